//! Builds a graph from a text that has been read: looks up names, checks and connects edges.

use super::read::{RawEntry, RawGraph, RawNode};
use crate::symbol::{GraphError, MAX_OUTPUTS, Node, NodeEntry, NodeParts, Symbol, UnknownOperator};
use mxrt_ops::{OpDef, registry};
use std::collections::HashMap;
use std::sync::Arc;

fn bad(message: String) -> GraphError {
    GraphError::Json(message)
}

/// The operator with this name or alias, unless only passes make it or it would read files.
pub(super) fn operator(name: &str) -> Option<&'static OpDef> {
    registry().get(name).filter(|op| !op.internal && !op.reads_files)
}

/// Reports all unknown operators in one error.
pub(super) fn check_operators(graph: &RawGraph) -> Result<(), GraphError> {
    let mut unknown = Vec::new();
    collect_unknown(graph, &mut unknown, &mut HashMap::new());
    if unknown.is_empty() { Ok(()) } else { Err(GraphError::UnknownOperators(unknown)) }
}

fn collect_unknown<'a>(graph: &'a RawGraph, list: &mut Vec<UnknownOperator>, places: &mut HashMap<&'a str, usize>) {
    for node in &graph.nodes {
        if !node.is_variable() && operator(&node.op).is_none() {
            let place = *places.entry(&node.op).or_insert_with(|| {
                list.push(UnknownOperator { op: node.op.clone(), node: node.name.clone(), count: 0 });
                list.len() - 1
            });
            list[place].count += 1;
        }
        for inner in &node.subgraphs {
            collect_unknown(inner, list, places);
        }
    }
}

/// How far the visit of a node is.
#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    New,
    Open,
    Done,
}

/// Positions of the nodes that the heads need, inputs first. Ids that point nowhere and cycles are
/// errors.
pub(super) fn order(graph: &RawGraph) -> Result<Vec<usize>, GraphError> {
    check_ids(graph)?;
    let mut states = vec![VisitState::New; graph.nodes.len()];
    let mut order = Vec::new();
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for head in &graph.heads {
        if states[head.node as usize] == VisitState::New {
            states[head.node as usize] = VisitState::Open;
            stack.push((head.node as usize, 0));
        }
        while let Some((at, next)) = stack.last_mut() {
            let (at, step) = (*at, *next);
            *next += 1;
            match child(&graph.nodes[at], step) {
                None => {
                    states[at] = VisitState::Done;
                    order.push(at);
                    stack.pop();
                }
                Some(child) => match states[child] {
                    VisitState::Done => {}
                    VisitState::New => {
                        states[child] = VisitState::Open;
                        stack.push((child, 0));
                    }
                    VisitState::Open => {
                        let names = (&graph.nodes[at].name, &graph.nodes[child].name);
                        return Err(bad(format!("nodes '{}' and '{}' are part of a cycle", names.0, names.1)));
                    }
                },
            }
        }
    }
    Ok(order)
}

fn child(node: &RawNode, step: usize) -> Option<usize> {
    let input = node.inputs.get(step).map(|e| e.node);
    let id = input.or_else(|| node.control_deps.get(step - node.inputs.len().min(step)).copied());
    id.map(|id| id as usize)
}

fn check_ids(graph: &RawGraph) -> Result<(), GraphError> {
    let n = graph.nodes.len();
    let wrong = |who: String, id: u32| bad(format!("{who} refers to node {id}, but there are {n} nodes"));
    for node in &graph.nodes {
        let inputs = node.inputs.iter().enumerate().map(|(i, e)| (format!("input {i}"), e.node));
        let deps = node.control_deps.iter().map(|id| ("a control dependency".to_owned(), *id));
        if let Some((what, id)) = inputs.chain(deps).find(|(_, id)| *id as usize >= n) {
            return Err(wrong(format!("{what} of node '{}'", node.name), id));
        }
        if node.is_variable() && !node.inputs.is_empty() {
            return Err(bad(format!("the variable '{}' has inputs", node.name)));
        }
    }
    for id in &graph.arg_nodes {
        match graph.nodes.get(*id as usize) {
            None => return Err(wrong("arg_nodes".to_owned(), *id)),
            Some(node) if node.is_variable() => {}
            Some(node) => {
                return Err(bad(format!("arg_nodes lists '{}', which is no variable but a {}", node.name, node.op)));
            }
        }
    }
    match graph.heads.iter().find(|e| e.node as usize >= n) {
        Some(head) => Err(wrong("heads".to_owned(), head.node)),
        None if graph.heads.is_empty() => Err(bad("heads is empty: the graph has no outputs".to_owned())),
        None => Ok(()),
    }
}

/// Connects the nodes.
pub(super) fn build(graph: RawGraph) -> Result<Symbol, GraphError> {
    build_within(graph, &mut MAX_OUTPUTS.clone())
}

/// Connects the nodes. `budget` is the number of outputs that all nodes together may have beyond
/// one each.
fn build_within(mut graph: RawGraph, budget: &mut usize) -> Result<Symbol, GraphError> {
    let order = order(&graph)?;
    let mut built: Vec<Option<Arc<Node>>> = vec![None; graph.nodes.len()];
    for at in order {
        let empty = RawNode::variable(String::new(), Default::default());
        let raw = std::mem::replace(&mut graph.nodes[at], empty);
        let node = connect(raw, &built, budget)?;
        let more = node.num_outputs().saturating_sub(1);
        *budget = budget.checked_sub(more).ok_or_else(|| {
            bad(format!("node '{}' brings the graph over {MAX_OUTPUTS} outputs beyond one for each node", node.name))
        })?;
        built[at] = Some(node);
    }
    let heads = entries(&graph.heads, &built);
    for (i, head) in heads.iter().enumerate() {
        head.check().map_err(|what| bad(format!("head {i}: {what}")))?;
    }
    Ok(Symbol::from_entries(heads))
}

fn connect(raw: RawNode, built: &[Option<Arc<Node>>], budget: &mut usize) -> Result<Arc<Node>, GraphError> {
    let op = if raw.is_variable() { None } else { operator(&raw.op) };
    let inputs = entries(&raw.inputs, built);
    let control_deps = raw.control_deps.iter().filter_map(|id| built.get(*id as usize).cloned().flatten()).collect();
    let mut subgraphs = Vec::with_capacity(raw.subgraphs.len());
    for graph in raw.subgraphs {
        let place = |e: GraphError| match e {
            GraphError::Json(text) => bad(format!("graph inside node '{}': {text}", raw.name)),
            other => other,
        };
        subgraphs.push(build_within(graph, budget).map_err(place)?);
    }
    let parts = NodeParts { op, name: raw.name, attrs: raw.attrs, parsed: None, inputs, control_deps, subgraphs };
    Ok(Node::from_parts(parts)?)
}

/// Edges to nodes that have been built. The order of building and the check of the ids ensure that
/// they exist.
fn entries(raw: &[RawEntry], built: &[Option<Arc<Node>>]) -> Vec<NodeEntry> {
    let entry = |e: &RawEntry| {
        let node = built.get(e.node as usize)?.clone()?;
        Some(NodeEntry { node, index: e.index as usize, version: e.version })
    };
    raw.iter().filter_map(entry).collect()
}
