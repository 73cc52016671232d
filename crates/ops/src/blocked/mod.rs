//! Operators on blocked layouts, made by the layout pass only.

pub mod concat;
pub mod convert;
pub mod convolution;
pub mod elementwise;
pub mod pointwise;
pub mod pooling;
pub mod quantized_concat;
pub mod quantized_convolution;
pub mod quantized_pooling;

use crate::prelude::*;
use mxrt_kernels::blocked::BlockedShape;

/// The attributes of an operator, and those with the layouts of its operands: two more.
const fn with_layouts<const N: usize, const M: usize>(layer: [AttrDef; N]) -> [AttrDef; M] {
    let mut all = [LAYOUTS; M];
    let mut i = 0;
    while i < N {
        all[i] = layer[i];
        i += 1;
    }
    all[M - 1] = OUT_LAYOUT;
    all
}

/// Whether elements are bytes, which are in pixels where they are not plain.
fn is_bytes(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8)
}

/// The output has the shape that its layout says, for as many images as the first input has.
pub(crate) fn infer_from_layout(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (inputs, output) = layouts(shapes.attrs)?;
    let Some(n) = shapes.input(0).and_then(|x| x.first().copied()) else { return Ok(()) };
    match (output, inputs.first()) {
        (Layout::Blocked(layout), _) => shapes.set_output(0, layout.physical(n)),
        (Layout::Plain, Some(Layout::Blocked(layout))) => shapes.set_output(0, layout.logical(n)),
        _ => Ok(()),
    }
}

/// The layout of an operand that has to be blocked, as the kernels see it.
pub(crate) fn shape_of(layout: Option<&Layout>, signature: &Signature<'_>) -> Result<BlockedShape, OpError> {
    let n = signature.inputs.first().and_then(|t| t.shape.first().copied()).unwrap_or(0);
    match layout {
        Some(Layout::Blocked(layout)) => Ok(layout.shape(n)),
        _ => Err(value_error("an operand that has to be blocked is not")),
    }
}

/// The words in a plan for which of two operands are in lines of bf16.
pub(crate) fn in_lines(x: &BlockedShape, y: &BlockedShape) -> &'static str {
    match (x.in_lines(), y.in_lines()) {
        (true, true) => ", bf16 lines",
        (true, false) => ", from bf16 lines",
        (false, true) => ", to bf16 lines",
        (false, false) => "",
    }
}

/// An operator whose first `data` inputs may be in lines, and its output.
pub(crate) fn takes_lines(signature: &Signature<'_>, data: usize) -> Option<LinesForm> {
    let mut inputs = vec![Lines::Never; signature.inputs.len()];
    inputs.iter_mut().take(data).for_each(|input| *input = Lines::Takes);
    Some(LinesForm { inputs, output: true, alike: false })
}
