//! Decides whether a graph treats the rows of a batch one by one, and into parts of how many rows a
//! batch is divided.

use crate::ir::{Graph, GraphNode, Types, Value, infer};
use mxrt_engine::OpError;
use mxrt_ops::{KernelOptions, Signature};
use mxrt_tensor::TensorType;
use std::collections::HashMap;

/// Estimate for one row above which a graph runs row by row: rows that run concurrently, one on
/// each core, need no barriers, and their arenas stay in the caches.
const ROW_NS: u64 = 500_000;
/// Estimate up to which smaller rows are grouped into a part: the cost of beginning a part is small
/// then, and arenas still stay in the caches. (On 1024 images of 64x64 in a network of two
/// convolutions, parts of 1, 2, 4 and 8 ms take 43, 49, 58 and 65 ms, the whole batch 75.)
const PART_NS: u64 = 1_000_000;
/// Number of such parts below which a batch stays whole.
const FEW_PARTS: usize = 4;
/// Rows of a part of a batch if reading the weights takes longer than computing one row.
pub const TOGETHER: usize = 16;
/// Estimate up to which more such rows are grouped.
const TOGETHER_NS: u64 = 15_000_000;

/// A division of batches that have more rows than a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// rows of a part
    pub each: usize,
    /// whether parts run concurrently
    pub side_by_side: bool,
}

impl Division {
    /// Chooses the division of a graph from the estimates of its plans for one row and for
    /// [`TOGETHER`] rows.
    pub fn choose(one_ns: u64, together_ns: u64) -> Division {
        let loss = one_ns.saturating_mul(TOGETHER as u64) > together_ns.saturating_mul(115) / 100;
        let row_ns = (together_ns / TOGETHER as u64).max(1);
        if loss {
            return Division { each: rows_in(TOGETHER_NS, row_ns).max(TOGETHER), side_by_side: false };
        }
        let each = if one_ns >= ROW_NS { 1 } else { rows_in(PART_NS, row_ns) };
        Division { each, side_by_side: true }
    }

    /// Whether a batch of `rows` rows is divided.
    pub fn applies(&self, rows: usize) -> bool {
        rows > self.each * if self.side_by_side && self.each > 1 { FEW_PARTS } else { 1 }
    }
}

/// The number of rows that fit into a time, as a power of two, by which most large batches are
/// divisible.
fn rows_in(time_ns: u64, row_ns: u64) -> usize {
    1 << (time_ns / row_ns).max(1).ilog2()
}

/// The number of rows of a batch, and whether each input has them. `None` if rows depend on each
/// other, or if there is only one.
pub fn batch(
    graph: &Graph,
    inputs: &[TensorType],
    options: KernelOptions,
) -> Result<Option<(usize, Vec<bool>)>, OpError> {
    // Such an operator may look at all rows, or draws them from one piece of a stream.
    if graph.nodes.iter().any(|node| node.is_random()) {
        return Ok(None);
    }
    let divided: Vec<bool> = graph.inputs.iter().map(|i| !i.constant).collect();
    let rows_of = |(t, divided): (&TensorType, &bool)| divided.then(|| t.shape.first().copied().unwrap_or(0));
    let mut counts = inputs.iter().zip(&divided).filter_map(rows_of);
    let Some(rows) = counts.next() else { return Ok(None) };
    if rows < 2 || counts.any(|other| other != rows) {
        return Ok(None);
    }
    let whole = infer(graph, inputs)?;
    // What does not fit a single row is not divided: a shape in the attributes, say.
    let Ok(single) = infer(graph, &with_rows(inputs, &divided, 1)) else { return Ok(None) };
    let mut by_rows: HashMap<Value, bool> = HashMap::new();
    for (i, divided) in divided.iter().enumerate() {
        by_rows.insert(Value::Input(i), *divided);
    }
    for (n, node) in graph.nodes.iter().enumerate() {
        let divided: Vec<bool> = node.inputs.iter().map(|v| by_rows.get(v).copied().unwrap_or(false)).collect();
        let outputs = (0..node.op.num_outputs(&node.attrs)).map(|o| Value::Node(n, o));
        let any = divided.contains(&true);
        if any && !keeps_rows(node, &divided, &whole, options) {
            return Ok(None);
        }
        for value in outputs {
            if any && !divides(whole.get(&value), single.get(&value), rows) {
                return Ok(None);
            }
            by_rows.insert(value, any);
        }
    }
    let all = graph.outputs.iter().all(|v| by_rows.get(v).copied().unwrap_or(false));
    Ok(all.then_some((rows, divided)))
}

/// Gives the divided inputs another number of rows.
pub fn with_rows(inputs: &[TensorType], divided: &[bool], rows: usize) -> Vec<TensorType> {
    let change = |(tensor, divided): (&TensorType, &bool)| {
        let mut shape = tensor.shape.to_vec();
        if let (true, Some(first)) = (*divided, shape.first_mut()) {
            *first = rows;
        }
        TensorType::new(tensor.dtype, shape)
    };
    inputs.iter().zip(divided).map(change).collect()
}

/// Whether the two types differ in nothing except the number of rows.
fn divides(whole: Option<&TensorType>, single: Option<&TensorType>, rows: usize) -> bool {
    let (Some(whole), Some(single)) = (whole, single) else { return false };
    match (&whole.shape[..], &single.shape[..]) {
        ([n, rest @ ..], [1, other @ ..]) => *n == rows && rest == other && whole.dtype == single.dtype,
        _ => false,
    }
}

/// Whether every row of a node's results depends only on the same row of its divided inputs.
fn keeps_rows(node: &GraphNode, divided: &[bool], types: &Types, options: KernelOptions) -> bool {
    // The same bytes with the same number of rows, which is looked at apart.
    if (node.op.rewrites.is_identity)(&node.attrs) {
        return true;
    }
    let found: Option<Vec<TensorType>> = node.inputs.iter().map(|v| types.get(v).cloned()).collect();
    let Some(inputs) = found else { return false };
    if (node.op.rewrites.elementwise)(&node.attrs).is_some() {
        let rank = inputs.iter().map(|t| t.shape.len()).max().unwrap_or(0);
        return inputs.iter().zip(divided).all(|(t, divided)| {
            let full = t.shape.len() == rank;
            if *divided { full } else { !full || t.shape.first() == Some(&1) }
        });
    }
    (node.op.rewrites.row_wise)(&node.attrs, &Signature { inputs: &inputs, outputs: &[], options }, divided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_rows_are_run_one_by_one_unless_their_weights_cost_more_than_they_do() {
        let one_by_one = Division { each: 1, side_by_side: true };
        assert_eq!(Division::choose(7_000_000, 16 * 6_900_000), one_by_one);
        let sixteen = Division { each: TOGETHER, side_by_side: false };
        assert_eq!(Division::choose(10_000_000, 60_000_000), sixteen);
    }

    #[test]
    fn small_rows_go_together_until_a_part_takes_some_milliseconds() {
        assert_eq!(Division::choose(400_000, 16 * 400_000), Division { each: 2, side_by_side: true });
        assert_eq!(Division::choose(20_000, 16 * 20_000), Division { each: 32, side_by_side: true });
        assert_eq!(Division::choose(1_000_000, 2_000_000), Division { each: 64, side_by_side: false });
        assert_eq!(Division::choose(0, 0), Division { each: 1 << 19, side_by_side: true }, "no division by zero");
    }

    #[test]
    fn batches_that_are_over_in_no_time_stay_whole() {
        let small = Division { each: 32, side_by_side: true };
        assert_eq!([small.applies(128), small.applies(129)], [false, true]);
        let large = Division { each: 1, side_by_side: true };
        assert_eq!([large.applies(1), large.applies(2)], [false, true]);
        let sixteen = Division { each: TOGETHER, side_by_side: false };
        assert_eq!([sixteen.applies(16), sixteen.applies(17)], [false, true]);
    }
}
