//! Limits of MXNet's `infer_shape_partial`. Operators there look at their inputs only when
//! these are known far enough; those of mxrt conclude what follows from the parts that are known.

use super::Node;
use mxrt_tensor::PartialShape;

/// Knowledge of the inputs of an operator without which MXNet infers nothing.
enum Needs {
    /// Every shape is complete.
    All,
    /// The first shape is complete.
    First,
    /// The last shape is complete.
    Last,
    /// The number of axes of the first is known.
    FirstRank,
    /// The number of axes of all is known.
    Ranks,
    /// The axes that a product of matrices sums over are known.
    Inner,
    /// The number of axes of all is known; an axis of the result, where all have this axis.
    Axes,
    /// Nothing, but nothing is concluded for the inputs.
    OutputsAlone,
}

/// Operators that need every shape.
const NEED_ALL: &[&str] = &[
    "BilinearSampler",
    "Flatten",
    "LRN",
    "SpatialTransformer",
    "_contrib_AdaptiveAvgPooling2D",
    "_contrib_BilinearResize2D",
    "_contrib_allclose",
    "_contrib_box_nms",
    "_image_to_tensor",
    "_slice_assign_scalar",
    "argmax",
    "argmax_channel",
    "argmin",
    "broadcast_axis",
    "col2im",
    "gather_nd",
    "im2col",
    "max",
    "min",
    "norm",
    "one_hot",
    "tile",
];

fn needs(op: &str) -> Option<Needs> {
    Some(match op {
        op if NEED_ALL.contains(&op) => Needs::All,
        "LinearRegressionOutput"
        | "LogisticRegressionOutput"
        | "MAERegressionOutput"
        | "_contrib_Proposal"
        | "where" => Needs::First,
        "take" => Needs::Last,
        "Embedding" | "_contrib_SparseEmbedding" => Needs::FirstRank,
        "_linalg_trmm" | "_linalg_trsm" | "_random_pdf_gamma" | "_random_pdf_normal" | "_random_pdf_uniform" => {
            Needs::Ranks
        }
        "batch_dot" => Needs::Inner,
        "_contrib_MultiBoxDetection" | "_contrib_box_decode" => Needs::OutputsAlone,
        "broadcast_axes" | "broadcast_like" | "broadcast_to" => return None,
        op if op.starts_with("broadcast_") => Needs::Axes,
        _ => return None,
    })
}

/// Whether MXNet infers anything for a node whose inputs are known so far.
pub(super) fn infers(node: &Node, inputs: &[PartialShape]) -> bool {
    let Some(needs) = node.op.and_then(|op| needs(op.name)) else { return true };
    let complete = |shape: Option<&PartialShape>| shape.is_some_and(PartialShape::is_complete);
    match needs {
        Needs::All => inputs.iter().all(PartialShape::is_complete),
        Needs::First => complete(inputs.first()),
        Needs::Last => complete(inputs.last()),
        Needs::FirstRank => inputs.first().is_some_and(|shape| shape.rank().is_some()),
        Needs::Ranks | Needs::Axes => inputs.iter().all(|shape| shape.rank().is_some()),
        Needs::Inner => sums_over_known_axes(node, inputs),
        Needs::OutputsAlone => true,
    }
}

fn sums_over_known_axes(node: &Node, inputs: &[PartialShape]) -> bool {
    let [left, right] = inputs else { return true };
    let is_known =
        |shape: &PartialShape, axis: usize| shape.dims().is_some_and(|dims| matches!(dims.get(axis), Some(Some(_))));
    let turned = |attr: &str| usize::from(node.parsed().bool(attr));
    is_known(left, 2 - turned("transpose_a")) && is_known(right, 1 + turned("transpose_b"))
}

/// Takes back what MXNet does not conclude for a node.
pub(super) fn forget(node: &Node, before: &[PartialShape], inputs: &mut [PartialShape], outputs: &mut [PartialShape]) {
    let Some(needs) = node.op.and_then(|op| needs(op.name)) else { return };
    if matches!(needs, Needs::Axes | Needs::OutputsAlone) {
        inputs.clone_from_slice(before);
    }
    let (Needs::Axes, Some(output)) = (needs, outputs.first_mut()) else { return };
    let Some(dims) = output.dims() else { return };
    let rank = dims.len();
    let is_open = |axis: usize| {
        before.iter().filter_map(PartialShape::dims).any(|input| {
            (axis + input.len()).checked_sub(rank).and_then(|axis| input.get(axis)).is_some_and(Option::is_none)
        })
    };
    let dims: Vec<Option<usize>> =
        dims.iter().enumerate().map(|(axis, extent)| extent.filter(|_| !is_open(axis))).collect();
    *output = PartialShape::from_dims(dims);
}
