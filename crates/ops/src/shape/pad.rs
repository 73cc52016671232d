//! `Pad`: an array continued beyond its edges.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::shape::{PadMode, pad};
use mxrt_tensor::PartialShape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Pad",
    aliases: &["pad"],
    doc: "Continues an array of 4 or 5 axes beyond its edges, with a constant, the edge or its \
        mirror image. The first two axes cannot be padded.",
    attrs: &[
        AttrDef::required("mode", AttrKind::Enum(&["constant", "edge", "reflect"]), "With what to continue."),
        AttrDef::required("pad_width", AttrKind::Shape, "Widths before and after, for each axis in turn."),
        AttrDef::new("constant_value", AttrKind::Float, "0", "The constant."),
    ],
    infer_shape,
    bind,
    // The first axis cannot be padded.
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Widths before and after each axis.
fn widths(attrs: &Attrs, rank: usize) -> Result<Vec<(usize, usize)>, OpError> {
    let flat = extents("pad_width", attrs.ints("pad_width"))?;
    if rank != 4 && rank != 5 {
        return Err(shape_error(format!("only arrays with 4 or 5 axes can be padded, this one has {rank}")));
    }
    if flat.len() != 2 * rank {
        return Err(value_error(format!("pad_width needs two widths for each of {rank} axes, got {}", flat.len())));
    }
    if flat[..4].iter().any(|w| *w != 0) {
        return Err(not_implemented("pad_width must be 0 for the first two axes (batch and channel)"));
    }
    Ok(flat.chunks(2).map(|pair| (pair[0], pair[1])).collect())
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let widths = widths(shapes.attrs, dims.len())?;
    let reflect = shapes.attrs.str("mode") == "reflect";
    for (axis, (before, after)) in widths.into_iter().enumerate() {
        let Some(n) = dims[axis] else { continue };
        if reflect && before.max(after) >= n && before.max(after) > 0 {
            return Err(value_error(format!(
                "axis {axis} has {n} elements: its mirror image is at most {} wide",
                n.max(1) - 1
            )));
        }
        let sum = n.checked_add(before).and_then(|n| n.checked_add(after));
        dims[axis] = Some(sum.ok_or_else(|| value_error("pad_width is too large"))?);
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let widths = widths(attrs, signature.inputs[0].shape.len())?;
    let value = attrs.float("constant_value");
    dispatch!(signature.inputs[0].dtype, all, T => {
        let mode = match attrs.str("mode") {
            "edge" => PadMode::Edge,
            "reflect" => PadMode::Reflect,
            _ => PadMode::Constant(T::from_f64(value)),
        };
        Ok(kernel_fn(signature, move |call| {
            let x = &call.inputs[0];
            pad(call.par, elements::<T>(x)?, x.shape, &widths, mode, elements_mut(&mut call.outputs[0])?)
                .map_err(kernel_error)
        }))
    })
}
