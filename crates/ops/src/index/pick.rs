//! `pick`: one element of each row.

use super::take::{first_decides, mode};
use crate::prelude::*;
use mxrt_kernels::index::pick;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "pick",
    aliases: &["_npx_pick", "choose_element_0index"],
    doc: "From every row along an axis the element that index names. Indices outside are clipped \
        or wrapped.",
    inputs: Inputs::Fixed(&["data", "index"]),
    attrs: &[
        AttrDef::new("axis", AttrKind::OptInt, "-1", "The axis."),
        AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep the axis with size 1."),
        AttrDef::new("mode", AttrKind::Enum(&["clip", "wrap"]), "clip", "What happens to indices outside."),
    ],
    infer_shape,
    infer_dtype: first_decides,
    bind,
    form,
    ..OpDef::BASE
}];

fn axis(attrs: &Attrs, rank: usize) -> Result<usize, OpError> {
    match attrs.opt_int("axis") {
        Some(axis) => resolve_axis(axis, rank),
        None => Err(not_implemented("axis=None is not supported: name an axis")),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.dims(0) else { return Ok(()) };
    let axis = axis(shapes.attrs, data.len())?;
    let (mut with, mut without) = (data.clone(), data);
    with[axis] = Some(1);
    without.remove(axis);
    if without.is_empty() {
        without.push(Some(1));
    }
    let (with, without) = (PartialShape::from_dims(with), PartialShape::from_dims(without));
    // The index may have the axis with size 1 or not at all.
    let have = shapes.inputs[1].clone();
    if shapes.set_input(1, "index", without.clone()).is_err() && shapes.set_input(1, "index", with.clone()).is_err() {
        return Err(shape_error(format!("index has shape {have} but data {} needs {without}", shapes.inputs[0])));
    }
    let keep = shapes.attrs.bool("keepdims");
    shapes.set_output(0, if keep { with } else { without })
}

/// The axis, and the axes around it.
fn place(attrs: &Attrs, signature: &Signature<'_>) -> Result<(usize, [usize; 3]), OpError> {
    let shape = &signature.inputs[0].shape;
    let axis = axis(attrs, shape.len())?;
    check_integers("index", signature.inputs[1].dtype)?;
    Ok((axis, split_around(axis, shape)))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (axis, split) = place(attrs, signature)?;
    Ok(Some(KernelForm::Take { data: 0, indices: 1, split, mode: mode(attrs), axis, pick: true }))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let ((axis, split), mode) = (place(attrs, signature)?, mode(attrs));
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([data, index], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (x, index) = (elements::<T>(data)?, integers(call.par, index)?);
        pick(call.par, x, split, &index, mode, axis, elements_mut(out)?).map_err(kernel_error)
    })))
}
