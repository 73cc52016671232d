//! Upgrades graphs in files of older MXNet versions, with one function per change of the format.

use super::LoadOptions;
use super::build::{operator, order};
use super::read::{RawEntry, RawGraph, RawNode};
use super::write::VERSION;
use crate::symbol::{GraphError, HIDDEN_KEYS, attr_error, input_init, variable_name};
use mxrt_ops::{AttrDef, AttrKind, Attrs, Inputs, OpDef};

/// Version of files that name none.
const OLDEST: i64 = 800;

/// Brings a graph up to date; returns the warnings for the user.
pub(super) fn upgrade(graph: &mut RawGraph, options: LoadOptions) -> Result<Vec<String>, GraphError> {
    let version = graph.version.unwrap_or(OLDEST);
    let mut warnings = Vec::new();
    if version > VERSION {
        warnings.push(format!(
            "loading symbol saved by MXNet version {version} with lower version of MXNet v{VERSION}. \
             May cause undefined behavior. Please update mxrt if you encounter any issue"
        ));
    }
    if version < VERSION {
        let (major, minor, patch) = (version / 10000, version / 100 % 100, version % 100);
        warnings.push(format!(
            "Loading symbol saved by previous version v{major}.{minor}.{patch}. Attempting to \
             upgrade..."
        ));
        let order = order(graph)?;
        for at in &order {
            move_hidden_keys(graph, *at)?;
        }
        for at in &order {
            if version < 900 {
                add_missing_inputs(graph, *at)?;
            }
            if version < 904 {
                set_inits(graph, *at);
            }
            if version < 905 {
                drop_old_axis(&mut graph.nodes[*at]);
            }
        }
        warnings.push("Symbol successfully upgraded!".to_owned());
    }
    if options.np_shape && !graph.np_shape {
        graph.nodes.iter_mut().filter(|n| n.is_variable()).for_each(mark_unknown_extents);
    }
    Ok(warnings)
}

fn parse(op: &'static OpDef, node: &RawNode) -> Result<Attrs, GraphError> {
    let given = node.attrs.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    op.parse_attrs(given).map_err(|e| attr_error(e, op, &node.name, &node.attrs).into())
}

/// Renames hidden keys. `lr_mult` becomes `__lr_mult__`; `weight_lr_mult` becomes `__lr_mult__` of
/// the variable that is the input `weight`.
fn move_hidden_keys(graph: &mut RawGraph, at: usize) -> Result<(), GraphError> {
    let node = &mut graph.nodes[at];
    let concerned = |key: &str| HIDDEN_KEYS.iter().any(|k| key.starts_with(k) || key.ends_with(k));
    let keys: Vec<String> = node.attrs.keys().filter(|k| concerned(k)).cloned().collect();
    let taken: Vec<(String, String)> = keys.into_iter().filter_map(|k| node.attrs.remove_entry(&k)).collect();
    for (key, value) in taken {
        if HIDDEN_KEYS.contains(&key.as_str()) {
            graph.nodes[at].attrs.insert(format!("__{key}__"), value);
            continue;
        }
        match variable_meant(graph, at, &key)? {
            Some((variable, hidden)) => {
                graph.nodes[variable].attrs.insert(format!("__{hidden}__"), value);
            }
            None => {
                graph.nodes[at].attrs.insert(key, value);
            }
        }
    }
    Ok(())
}

/// The variable and the hidden key that a key of an operator such as `weight_lr_mult` stands for.
fn variable_meant(graph: &RawGraph, at: usize, key: &str) -> Result<Option<(usize, &'static str)>, GraphError> {
    let node = &graph.nodes[at];
    let split = HIDDEN_KEYS.iter().find_map(|k| key.strip_suffix(k)?.strip_suffix('_').map(|input| (input, *k)));
    let (Some((input, hidden)), Some(op)) = (split, operator(&node.op)) else { return Ok(None) };
    if matches!(op.inputs, Inputs::Variadic { .. } | Inputs::Ranged { .. }) {
        return Ok(None);
    }
    let position = op.input_names(&parse(op, node)?).iter().position(|name| name == input);
    let variable = position.and_then(|i| node.inputs.get(i)).map(|e| e.node as usize);
    Ok(variable.filter(|v| graph.nodes[*v].is_variable()).map(|v| (v, hidden)))
}

/// Adds variables for missing inputs. MXNet before 0.9.0 did not write auxiliary states.
fn add_missing_inputs(graph: &mut RawGraph, at: usize) -> Result<(), GraphError> {
    let node = &graph.nodes[at];
    let counted = |op: &OpDef| matches!(op.inputs, Inputs::Variadic { .. } | Inputs::Ranged { .. });
    let Some(op) = operator(&node.op).filter(|op| !counted(op)) else { return Ok(()) };
    let names = op.input_names(&parse(op, node)?);
    for name in names.iter().skip(node.inputs.len()) {
        let node = &graph.nodes[at];
        let variable = RawNode::variable(variable_name(&node.name, name), node.attrs.clone());
        let id = u32::try_from(graph.nodes.len())
            .map_err(|_| GraphError::Json(format!("too many nodes to add the missing inputs of '{}'", node.name)))?;
        graph.nodes.push(variable);
        graph.nodes[at].inputs.push(RawEntry { node: id, index: 0, version: 0 });
    }
    Ok(())
}

/// Adds the initializers of states to their variables. MXNet before 0.9.4 did not write them.
fn set_inits(graph: &mut RawGraph, at: usize) {
    let Some(op) = operator(&graph.nodes[at].op) else { return };
    for i in 0..graph.nodes[at].inputs.len() {
        let input = graph.nodes[at].inputs[i].node as usize;
        if let Some(init) = input_init(op, i)
            && graph.nodes[input].is_variable()
        {
            graph.nodes[input].attrs.entry("__init__".to_owned()).or_insert_with(|| init.to_owned());
        }
    }
}

/// Removes `axis=-1` of argmin and argmax, which meant all axes before MXNet 0.9.5.
fn drop_old_axis(node: &mut RawNode) {
    let concerned = operator(&node.op).is_some_and(|op| matches!(op.name, "argmin" | "argmax"));
    if concerned && node.attrs.get("axis").is_some_and(|axis| axis == "-1") {
        node.attrs.remove("axis");
    }
}

/// Writes unknown extents as -1, because an extent of 0 is empty under numpy's semantics.
fn mark_unknown_extents(node: &mut RawNode) {
    static DEFS: [AttrDef; 1] = [AttrDef::new("shape", AttrKind::OptShape, "None", "")];
    let Some(text) = node.attrs.get_mut("__shape__") else { return };
    // a hint that cannot be read is reported when it is used
    let Ok(parsed) = Attrs::parse(&DEFS, [("shape", text.as_str())]) else { return };
    *text = match parsed.opt_ints("shape") {
        None | Some([]) => "None".to_owned(),
        Some(dims) => {
            let dims: Vec<String> = dims.iter().map(|d| if *d == 0 { -1 } else { *d }.to_string()).collect();
            format!("[{}]", dims.join(","))
        }
    };
}
