//! Arguments of operators and iterators in MXNet's words. Wrappers of other languages are generated
//! from them.

use crate::pointers::StaticTexts;
use mxrt::internal::{AttrDef, AttrKind, OpDef};

/// Name, type and description of an argument.
pub(crate) type Argument = [String; 3];

/// The arguments of an operator, in MXNet's order.
pub(crate) fn arguments(def: &OpDef) -> Vec<Argument> {
    let mut all = inputs(def);
    let following = all.split_off(def.inputs_before_attrs.min(all.len()));
    // Wrappers are generated from the names: `**kwargs` stands for attributes of any name.
    all.extend(def.attrs.iter().filter(|attr| attr.listed && !attr.name.starts_with('*')).map(parameter));
    all.extend(following);
    all
}

fn inputs(def: &OpDef) -> Vec<Argument> {
    if def.input_count().is_some() {
        return vec![["data", "NDArray-or-Symbol[]", "The inputs."].map(str::to_owned)];
    }
    let input = |name: &str| [name.to_owned(), "NDArray-or-Symbol".to_owned(), format!("The input {name}.")];
    def.possible_inputs().iter().map(|name| input(name)).collect()
}

/// An attribute of an operator, or a parameter of an iterator, as an argument.
pub(crate) fn parameter(attr: &AttrDef) -> Argument {
    [attr.name.to_owned(), type_text(attr), attr.doc.to_owned()]
}

/// The argument that wrappers set to the number of inputs, or nothing. As in MXNet this is
/// `num_args` alone: callers give the others, such as `num_arrays`, themselves.
pub(crate) fn counting_argument(def: &OpDef) -> &'static str {
    def.input_count().filter(|count| *count == "num_args").unwrap_or_default()
}

/// The names, the types and the descriptions of arguments, in memory that lives as long as the
/// process.
pub(crate) fn columns(arguments: Vec<Argument>) -> [StaticTexts; 3] {
    let mut columns = [const { Vec::new() }; 3];
    for argument in arguments {
        columns.iter_mut().zip(argument).for_each(|(column, text)| column.push(text));
    }
    StaticTexts::lists(columns)
}

/// The type of an attribute and its default, as MXNet writes them.
fn type_text(attr: &AttrDef) -> String {
    let kind = match attr.kind {
        AttrKind::Object(_) => "string".to_owned(),
        _ => attr.type_name(),
    };
    let Some(default) = attr.default else { return format!("{kind}, required") };
    match attr.kind {
        AttrKind::Enum(_) | AttrKind::OptEnum(_) | AttrKind::DType(_) | AttrKind::OptDType(_) => {
            format!("{kind},optional, default='{default}'")
        }
        AttrKind::Str | AttrKind::Object(_) | AttrKind::OptInt => format!("{kind}, optional, default='{default}'"),
        AttrKind::Int | AttrKind::IntFrom(_) if !attr.wide && !attr.unsigned => {
            format!("{kind}, optional, default='{default}'")
        }
        _ => format!("{kind}, optional, default={}", default_text(attr, default)),
    }
}

/// A default that is written without quotes.
fn default_text(attr: &AttrDef, default: &str) -> String {
    match attr.kind {
        _ if default == "None" => default.to_owned(),
        AttrKind::Bool | AttrKind::OptBool => u8::from(matches!(default, "True" | "true" | "1")).to_string(),
        AttrKind::Float | AttrKind::FloatIn(..) if attr.wide => number(default.parse(), 17),
        AttrKind::Float | AttrKind::FloatIn(..) => number(default.parse::<f32>().map(f64::from), 9),
        AttrKind::OptFloat => number(default.parse(), 6),
        AttrKind::Floats | AttrKind::OptFloats => listed(default, |item| number(item.parse(), 6)),
        AttrKind::Shape | AttrKind::SparseShape | AttrKind::OptShape => listed(default, str::to_owned),
        _ => default.to_owned(),
    }
}

/// The items of a tuple in square brackets.
fn listed(tuple: &str, write: fn(&str) -> String) -> String {
    let items = tuple.trim_matches(['(', ')', '[', ']']).split(',').map(str::trim).filter(|item| !item.is_empty());
    format!("[{}]", items.map(write).collect::<Vec<_>>().join(","))
}

/// A number in at most `digits` digits, as `%g` of C writes it. Tests make sure that defaults are
/// numbers.
fn number(value: Result<f64, std::num::ParseFloatError>, digits: usize) -> String {
    let value = value.unwrap_or(f64::NAN);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let plain = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..digits as i32).contains(&exponent) {
        return plain(&format!("{value:.*}", (digits as i32 - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", plain(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_written_as_in_c() {
        let cases = [
            ("0", 9, "0"),
            ("-1.0", 9, "-1"),
            ("1e10", 9, "1e+10"),
            ("9.99999975e-05", 9, "9.99999975e-05"),
            ("0.0001", 17, "0.0001"),
            ("1e-15", 17, "1.0000000000000001e-15"),
            ("0.001", 17, "0.001"),
            ("inf", 9, "inf"),
            ("123456789", 9, "123456789"),
        ];
        for (text, digits, want) in cases {
            assert_eq!(number(text.parse(), digits), want, "{text}");
        }
    }
}
