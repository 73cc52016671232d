//! Applying operators: composition as MXNet's `sym.X(...)` does it.

use super::attributes::{HIDDEN_KEYS, hidden_key};
use super::error::attr_error;
use super::{MAX_OUTPUTS, Node, NodeEntry, NodeParts, Symbol};
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{Attrs, Inputs, OpDef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One argument: a keyword, where it was given by one, and a symbol with one output.
pub(crate) type ComposedArgument = (Option<String>, Symbol);

impl Symbol {
    /// A variable. Hidden keys among the attributes (`lr_mult`, `ctx_group`, ...) are kept as
    /// `__key__`.
    pub fn variable(name: &str, attrs: BTreeMap<String, String>) -> Symbol {
        let kept = |key: String| if HIDDEN_KEYS.contains(&key.as_str()) { format!("__{key}__") } else { key };
        let attrs = attrs.into_iter().map(|(key, value)| (kept(key), value)).collect();
        Symbol::from_entries(vec![NodeEntry::new(Node::variable(name, attrs), 0)])
    }

    /// Checks the attributes that an operator is to be applied with, before its inputs are known.
    pub fn check_attributes(op: &'static OpDef, attrs: &BTreeMap<String, String>) -> Result<(), OpError> {
        let mut attrs = hide(attrs.clone()).map_err(|e| e.op(op.name))?;
        if let Inputs::Variadic { count, .. } = op.inputs {
            attrs.entry(count.to_owned()).or_insert_with(|| "1".to_owned());
        }
        let parsed = op.parse_attrs(attrs.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        parsed.map(drop).map_err(|e| attr_error(e, op, "", &attrs))
    }

    /// Applies an operator.
    ///
    /// Inputs that are missing become variables called `<name>_<input>`, with the attributes of the
    /// node. Operators of any number of inputs get that number as an attribute.
    pub fn create(
        op: &'static OpDef,
        name: String,
        attrs: BTreeMap<String, String>,
        inputs: Vec<ComposedArgument>,
    ) -> Result<Symbol, OpError> {
        Symbol::create_with_subgraphs(op, name, attrs, inputs, Vec::new())
    }

    /// [`Symbol::create`] for operators that run graphs of their own.
    pub fn create_with_subgraphs(
        op: &'static OpDef,
        name: String,
        attrs: BTreeMap<String, String>,
        inputs: Vec<ComposedArgument>,
        subgraphs: Vec<Symbol>,
    ) -> Result<Symbol, OpError> {
        let mut attrs = hide(attrs).map_err(|e| e.op(op.name).node(name.as_str()))?;
        if let Inputs::Variadic { count, .. } = op.inputs
            && !attrs.contains_key(count)
        {
            attrs.insert(count.to_owned(), (inputs.len() + subgraphs.len()).to_string());
        }
        let fail = |e: OpError| attr_error(e, op, &name, &attrs);
        let parsed = op.parse_attrs(attrs.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(fail)?;
        let entries = match_arguments(op, &parsed, &name, &attrs, inputs, subgraphs.len()).map_err(fail)?;
        let (op, parsed, control_deps) = (Some(op), Some(parsed), Vec::new());
        let parts = NodeParts { op, name, attrs, parsed, inputs: entries, control_deps, subgraphs };
        let node = Node::from_parts(versioned(parts)?)?;
        set_input_inits(&node);
        Ok(Symbol::from_entries((0..node.num_outputs()).map(|i| NodeEntry::new(node.clone(), i)).collect()))
    }
}

/// Puts MXNet's five bare keys (`lr_mult`, …) into their hidden form.
fn hide(attrs: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, OpError> {
    // To collect into a tree sorts first, in code that is compiled for each place.
    let mut hidden = BTreeMap::new();
    for (key, value) in attrs {
        hidden.insert(hidden_key(&key, &value)?, value);
    }
    Ok(hidden)
}

/// The name of the variable made for a missing input.
pub(crate) fn variable_name(node: &str, input: &str) -> String {
    if node.is_empty() { input.to_owned() } else { format!("{node}_{input}") }
}

/// The number of inputs that a node has by its attributes, which are bounded.
fn number_of_inputs(op: &'static OpDef, parsed: &Attrs) -> Result<usize, OpError> {
    let bad = |message: String| Err(OpError::new(FailureKind::Value, message));
    match op.inputs {
        // MXNet's wrappers count what was given, not the weight that is made for it.
        Inputs::Variadic { named, .. } if named(parsed).is_some() => Ok(op.num_inputs(parsed)),
        Inputs::Variadic { count, .. } => match parsed.opt_int(count).map(usize::try_from) {
            Some(Ok(n)) if n <= MAX_OUTPUTS => Ok(n),
            given => bad(format!("{count}={given:?} is not a possible number of inputs")),
        },
        Inputs::Ranged { count, .. } => match parsed.opt_int(count).map(usize::try_from) {
            Some(Ok(n)) if n <= MAX_OUTPUTS / 3 => Ok(3 * n),
            given => bad(format!("{count}={given:?} is not a possible number of arrays")),
        },
        _ => Ok(op.num_inputs(parsed)),
    }
}

/// The input that argument number `i` is for, of `required` in all.
fn slot_of<N: AsRef<str>>(i: usize, keyword: Option<&str>, names: &[N], required: usize) -> Result<usize, OpError> {
    let names = || names.iter().map(AsRef::as_ref);
    let message = match keyword {
        None if i < required => return Ok(i),
        None => {
            let names: Vec<&str> = names().collect();
            format!("Incorrect number of arguments, requires {required} inputs ({})", names.join(", "))
        }
        Some(key) => {
            if let Some(slot) = names().position(|name| name == key).filter(|slot| *slot < required) {
                return Ok(slot);
            }
            let list: Vec<String> = names().enumerate().map(|(i, name)| format!("\t[{i}]{name}")).collect();
            let list = list.join("\n");
            format!("Symbol.ComposeKeyword argument name {key} not found.\nCandidate arguments:\n{list}\n")
        }
    };
    Err(OpError::new(FailureKind::Value, message))
}

/// Positional arguments first, then keywords, then variables of our own.
fn match_arguments(
    op: &'static OpDef,
    parsed: &Attrs,
    name: &str,
    attrs: &BTreeMap<String, String>,
    arguments: Vec<ComposedArgument>,
    subgraphs: usize,
) -> Result<Vec<NodeEntry>, OpError> {
    let bad = |message: String| Err(OpError::new(FailureKind::Value, message));
    let required = number_of_inputs(op, parsed)?.saturating_sub(subgraphs);
    let names = op.input_names(parsed);
    let mut slots: Vec<Option<NodeEntry>> = vec![None; required];
    for (i, (keyword, symbol)) in arguments.into_iter().enumerate() {
        let slot = slot_of(i, keyword.as_deref(), &names, required)?;
        let what = keyword.map_or_else(|| format!("Argument {i}"), |key| format!("Keyword ComposedArgument {key}"));
        let [entry] = symbol.outputs() else {
            let n = symbol.outputs().len();
            return bad(format!("{what} is a tuple of {n} outputs, single value is required; choose one with sym[i]"));
        };
        if slots[slot].is_some() {
            return bad(format!("{what}: the input '{}' is given twice", names[slot]));
        }
        slots[slot] = Some(entry.clone());
    }
    let own = |input: &str| NodeEntry::new(Node::variable(variable_name(name, input), attrs.clone()), 0);
    Ok(slots.into_iter().zip(&names).map(|(slot, input)| slot.unwrap_or_else(|| own(input))).collect())
}

/// Brings the versions of the inputs up to date: an operator's states count one mutation more
/// afterwards. The attributes have been parsed.
pub(crate) fn versioned(mut parts: NodeParts) -> Result<NodeParts, OpError> {
    let (Some(op), Some(parsed)) = (parts.op, &parts.parsed) else { return Ok(parts) };
    for entry in parts.inputs.iter_mut() {
        entry.version = entry.node.mutations();
    }
    for i in op.states(parsed) {
        let Some(entry) = parts.inputs.get_mut(i) else { continue };
        if !entry.node.is_variable() {
            let message = format!(
                "Mutation target can only be Variable: input {i} of {} '{}' is a state of the \
                 operator, but '{}' computes it",
                op.name, parts.name, entry.node.name
            );
            return Err(OpError::new(FailureKind::Value, message).op(op.name).node(parts.name));
        }
        entry.version = entry.node.mutate();
    }
    Ok(parts)
}

/// How MXNet wants an input to be initialised where its variable does not say.
pub(crate) fn input_init(op: &OpDef, input: usize) -> Option<&'static str> {
    match (op.name, input) {
        (
            "BatchNorm" | "BatchNorm_v1" | "CuDNNBatchNorm" | "_contrib_SyncBatchNorm" | "_contrib_BatchNormWithReLU",
            3 | 4,
        ) => Some(if input == 3 { r#"["zero", {}]"# } else { r#"["one", {}]"# }),
        ("IdentityAttachKLSparseReg", 1) => Some(r#"["zero", {}]"#),
        ("LeakyReLU", 1) => Some(r#"["Constant", {"value": 0.25}]"#),
        ("UpSampling", 1) => Some(r#"["bilinear", {}]"#),
        _ => None,
    }
}

fn set_input_inits(node: &Arc<Node>) {
    let Some(op) = node.op else { return };
    for (i, entry) in node.inputs.iter().enumerate() {
        if let Some(init) = input_init(op, i)
            && entry.node.is_variable()
            && entry.node.attr("__init__").is_none()
        {
            entry.node.put_attr("__init__", init);
        }
    }
}
