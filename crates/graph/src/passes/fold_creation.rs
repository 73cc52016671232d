//! Marks nodes that make their values of attributes alone (zeros, ranges) as constants, so that
//! they, and what depends only on them and on parameters, are computed once.

use crate::ir::{Graph, GraphNode};
use mxrt_engine::OpError;
use mxrt_ops::{DTypes, Shapes};
use mxrt_tensor::PartialShape;

/// Size above which a value takes as long to read as to make, and is not kept.
const MOST_BYTES: usize = 1 << 20;

/// Marks what attributes say completely; what also depends on its readers, such as the rows of a
/// batch, stays a step.
pub fn run(mut graph: Graph) -> Result<Graph, OpError> {
    for node in graph.nodes.iter_mut().filter(|node| node.inputs.is_empty() && !node.op.random) {
        node.made_once = bytes_made(node).is_some_and(|bytes| bytes <= MOST_BYTES);
    }
    Ok(graph)
}

/// Bytes of the outputs; none where their types do not follow from the attributes. (What is wrong
/// with these, building says.)
fn bytes_made(node: &GraphNode) -> Option<usize> {
    let count = node.op.num_outputs(&node.attrs);
    let (mut shapes, mut dtypes) = (vec![PartialShape::UNKNOWN; count], vec![None; count]);
    (node.op.infer_shape)(&mut Shapes { attrs: &node.attrs, inputs: &mut [], outputs: &mut shapes }).ok()?;
    (node.op.infer_dtype)(&mut DTypes { attrs: &node.attrs, inputs: &mut [], outputs: &mut dtypes }).ok()?;
    let bytes = |(shape, dtype): (PartialShape, Option<mxrt_tensor::DType>)| {
        shape.complete()?.size().checked_mul(dtype?.size())
    };
    shapes.into_iter().zip(dtypes).map(bytes).try_fold(0usize, |sum, bytes| sum.checked_add(bytes?))
}
