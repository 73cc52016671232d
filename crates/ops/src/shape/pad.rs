//! `Pad`: an array continued beyond its edges.

use super::stretches::{Stretch, form_of_stretches};
use crate::prelude::*;
use mxrt_kernels::shape::{PadMode, pad};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Pad",
    aliases: &["pad"],
    doc: "Continues an array of 4 or 5 axes beyond its edges, with a constant, the edge or its \
        mirror image. The first two axes cannot be padded.",
    attrs: &[
        AttrDef::required("mode", AttrKind::Enum(&["constant", "edge", "reflect"]), "With what to continue."),
        AttrDef::required("pad_width", AttrKind::Shape, "Widths before and after, for each axis in turn."),
        AttrDef::new("constant_value", AttrKind::Float, "0", "The constant.").wide(),
    ],
    infer_shape,
    bind,
    form,
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

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let widths = widths(attrs, signature.inputs[0].shape.len())?;
    padded_form(signature, &widths, attrs.str("mode"), attrs.float("constant_value"))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let widths = widths(attrs, signature.inputs[0].shape.len())?;
    bind_padded(signature, widths, attrs.str("mode"), attrs.float("constant_value"))
}

/// A kernel that pads input 0 by these widths before and after each axis.
pub(crate) fn bind_padded(
    signature: &Signature<'_>,
    widths: Vec<(usize, usize)>,
    mode: &str,
    constant: f64,
) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, all, T => {
        let mode = match mode {
            "edge" => PadMode::Edge,
            "reflect" => PadMode::Reflect,
            "symmetric" => PadMode::Symmetric,
            _ => PadMode::Constant(T::from_f64(constant)),
        };
        Ok(kernel_fn(signature, move |call| {
            let x = &call.inputs[0];
            pad(call.par, elements::<T>(x)?, x.shape, &widths, mode, elements_mut(&mut call.outputs[0])?)
                .map_err(kernel_error)
        }))
    })
}

/// The stretches of an axis of `n` elements.
fn stretches(n: usize, (before, after): (usize, usize), mode: &str) -> Vec<Stretch> {
    let last = n.saturating_sub(1);
    let (head, tail) = match mode {
        "edge" => ((0, 0), (last, 0)),
        "symmetric" => ((before.saturating_sub(1), -1), (last, -1)),
        _ => ((before, -1), (last.saturating_sub(1), -1)),
    };
    let all = [(0, before, head.0, head.1), (before, n, 0, 1), (before + n, after, tail.0, tail.1)];
    let constant = mode == "constant";
    all.into_iter().enumerate().filter(|(i, part)| part.1 > 0 && (*i == 1 || !constant)).map(|(_, part)| part).collect()
}

/// The form of an array with these widths before and after each axis.
pub(crate) fn padded_form(
    signature: &Signature<'_>,
    widths: &[(usize, usize)],
    mode: &str,
    constant: f64,
) -> MaybeForm {
    let (data, out) = (&signature.inputs[0], &signature.outputs[0].shape);
    let fill = (mode == "constant").then_some(constant);
    let stretches: Vec<_> = data.shape.iter().zip(widths).map(|(n, widths)| stretches(*n, *widths, mode)).collect();
    form_of_stretches(data, &data.shape, out, &stretches, fill)
}
