//! The signature of an operator: what a caller can pass under any setting of its attributes.

use super::{AttrDef, AttrKind, Attrs, Inputs, OpDef, Outputs};
use std::borrow::Cow;

impl OpDef {
    /// Names of all inputs the operator can take, in order. Empty for one that takes any number.
    pub fn possible_inputs(&self) -> Vec<Cow<'static, str>> {
        inputs_of_all_settings(self)
    }

    /// Name of the attribute that counts the inputs, for operators that take any number; empty
    /// where none does.
    pub fn input_count(&self) -> Option<&'static str> {
        match self.inputs {
            Inputs::Variadic { count, .. } | Inputs::Ranged { count, .. } => Some(count),
            Inputs::Computed { .. } => Some(""),
            _ => None,
        }
    }

    /// Names of the attributes that hold an element type.
    pub fn dtype_attrs(&self) -> impl Iterator<Item = &'static str> {
        self.attrs.iter().filter(|a| matches!(a.kind, AttrKind::DType(_) | AttrKind::OptDType(_))).map(|a| a.name)
    }

    /// Whether a call always gives one result.
    pub fn has_single_output(&self) -> bool {
        matches!(self.outputs, Outputs::One | Outputs::OneNamed(_))
    }
}

/// All inputs an operator takes under some setting of its switches, in order.
fn inputs_of_all_settings(def: &OpDef) -> Vec<Cow<'static, str>> {
    match def.inputs {
        Inputs::Fixed(names) => names.iter().map(|n| Cow::Borrowed(*n)).collect(),
        Inputs::Variadic { .. } | Inputs::Ranged { .. } | Inputs::Computed { .. } => Vec::new(),
        Inputs::ByAttrs(_) => {
            let mut settings: Vec<_> = switch_settings(def).into_iter().map(|attrs| def.input_names(&attrs)).collect();
            // The settings with most inputs say their order.
            settings.sort_by_key(|names| std::cmp::Reverse(names.len()));
            let mut all = Vec::new();
            settings.into_iter().for_each(|names| merge(&mut all, names));
            all
        }
    }
}

/// Adds the names that are missing, each after the one it follows.
fn merge(all: &mut Vec<Cow<'static, str>>, names: Vec<Cow<'static, str>>) {
    let mut next = 0;
    for name in names {
        match all.iter().position(|n| *n == name) {
            Some(found) => next = found + 1,
            None => {
                all.insert(next, name);
                next += 1;
            }
        }
    }
}

/// The values an attribute that switches something can have.
fn switch_values(attr: &AttrDef) -> Vec<&'static str> {
    match attr.kind {
        AttrKind::Bool | AttrKind::OptBool => vec!["False", "True"],
        AttrKind::Enum(words) | AttrKind::OptEnum(words) => words.to_vec(),
        // Arrays take the place of parameters that are not given.
        AttrKind::OptFloat | AttrKind::OptInt | AttrKind::OptFloats => vec![any_value(attr), "None"],
        _ => Vec::new(),
    }
}

/// A value for an attribute that has to be given and switches nothing.
fn any_value(attr: &AttrDef) -> &'static str {
    match attr.kind {
        AttrKind::Shape | AttrKind::OptShape | AttrKind::SparseShape | AttrKind::Floats | AttrKind::OptFloats => "(1,)",
        AttrKind::DType(words) | AttrKind::OptDType(words) => words.first().copied().unwrap_or("float32"),
        _ => "1",
    }
}

/// Attributes with every pair of switches in every setting.
fn switch_settings(def: &OpDef) -> Vec<Attrs> {
    let switches: Vec<(&'static str, Vec<&'static str>)> =
        def.attrs.iter().map(|a| (a.name, switch_values(a))).filter(|s| !s.1.is_empty()).collect();
    let required: Vec<(&str, &str)> = def
        .attrs
        .iter()
        .filter(|a| a.default.is_none())
        .map(|a| (a.name, switch_values(a).first().copied().unwrap_or(any_value(a))))
        .collect();
    let mut settings = vec![required.clone()];
    for (i, (first, first_values)) in switches.iter().enumerate() {
        for first_value in first_values {
            let one = required.iter().copied().chain([(*first, *first_value)]);
            settings.push(one.clone().collect());
            for (second, second_values) in &switches[i + 1..] {
                settings.extend(second_values.iter().map(|v| one.clone().chain([(*second, *v)]).collect()));
            }
        }
    }
    settings.into_iter().filter_map(|given| def.parse_attrs(given).ok()).collect()
}
