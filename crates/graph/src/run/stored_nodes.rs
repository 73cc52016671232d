//! Nodes of a graph that run one by one on arrays as they are stored, like imperative calls.

use super::executable::cut::ValueSource;
use super::executable::inputs::not_held;
use crate::ir::{Graph, GraphNode, Value};
use crate::plan::ValueKey;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::OpError;
use mxrt_ops::{Invocation, LastStoredCall, invoke_again};
use mxrt_tensor::NDArray;
use smallvec::SmallVec;
use std::collections::HashSet;

/// Nodes of one result each.
pub(super) struct StoredNodes {
    graph: Graph,
    nodes: Vec<StoredNode>,
}

/// Memory of the last run of a node.
struct StoredNode {
    /// the value, if it depends on bound arrays alone
    kept: Option<Kept>,
    last: LastStoredCall,
}

/// The value of a node that reads bound arrays alone, and the keys of what it was computed from.
type Kept = Mutex<Option<(Keys, NDArray)>>;

type Keys = SmallVec<[ValueKey; 2]>;

impl StoredNodes {
    /// Nodes that read inputs of the whole graph alone may keep their value. Results of the graph,
    /// which callers may write to, do not.
    pub fn new(graph: Graph, sources: &[ValueSource], results: &HashSet<Value>) -> StoredNodes {
        let outer = |value: &Value| match *value {
            Value::Input(i) => matches!(sources.get(i), Some(ValueSource::Input(_))),
            Value::Node(..) => false,
        };
        let keeps = |n: usize, node: &GraphNode| {
            !node.inputs.is_empty() && node.inputs.iter().all(outer) && !results.contains(&Value::Node(n, 0))
        };
        let node = |(n, node)| StoredNode { kept: keeps(n, node).then(Kept::default), last: LastStoredCall::default() };
        let nodes = graph.nodes.iter().enumerate().map(node).collect();
        StoredNodes { graph, nodes }
    }

    /// Pushes the nodes. `bound` says which of the arrays are bound to the graph.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push(
        &self,
        call: &Invocation<'_>,
        arrays: &[&NDArray],
        bound: impl Fn(usize) -> bool,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let graph = &self.graph;
        let mut made: Vec<NDArray> = Vec::with_capacity(graph.nodes.len());
        for (node, StoredNode { kept, last }) in graph.nodes.iter().zip(&self.nodes) {
            let reads = node.inputs.iter().map(|value| array_of(*value, arrays, &made));
            let reads = reads.collect::<Result<SmallVec<[&NDArray; 4]>, OpError>>()?;
            let is_bound = |value: &Value| matches!(value, Value::Input(at) if bound(*at));
            let kept = kept.as_ref().filter(|_| node.inputs.iter().all(is_bound));
            let run = || {
                let result = invoke_again(call, last, node.op, &node.attrs, &reads);
                let result = result.map_err(|e| if e.node.is_none() { e.node(&*node.name) } else { e })?;
                result.into_iter().next().ok_or_else(not_held)
            };
            let result = match kept {
                Some(kept) => keep(kept, &reads, run)?,
                None => run()?,
            };
            drop(reads);
            made.push(result);
        }
        graph.outputs.iter().map(|value| array_of(*value, arrays, &made).cloned()).collect()
    }
}

/// The value of a node that was kept for the present content of what it reads, or else a new one.
fn keep(kept: &Kept, reads: &[&NDArray], run: impl FnOnce() -> Result<NDArray, OpError>) -> Result<NDArray, OpError> {
    // Keys count writes that are over. Where one is to come, a later call finds another key.
    let settled = reads.iter().all(|array| array.is_ready());
    let keys: Keys = reads.iter().map(|array| array.value_key()).collect();
    if settled
        && let Some((of, value)) = &*kept.lock()
        && *of == keys
        && value.var().failure().is_none()
    {
        return Ok(value.clone());
    }
    let value = run()?;
    let before = if settled { kept.lock().replace((keys, value.clone())) } else { None };
    drop(before);
    Ok(value)
}

fn array_of<'a>(value: Value, inputs: &[&'a NDArray], made: &'a [NDArray]) -> Result<&'a NDArray, OpError> {
    let found = match value {
        Value::Input(i) => inputs.get(i).copied(),
        Value::Node(n, _) => made.get(n),
    };
    found.ok_or_else(not_held)
}
