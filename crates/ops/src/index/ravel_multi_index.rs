//! `_ravel_multi_index`: places as single numbers.

use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::positions::ravel;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_ravel_multi_index",
    aliases: &["ravel_multi_index"],
    doc: "Indices along each axis, in the columns of data, as positions in the flattened \
        array.",
    attrs: ATTRS,
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let axes = shape(shapes.attrs)?.len();
        match dims.split_first() {
            Some((Some(n), rest)) if *n == axes && !rest.is_empty() => {
                shapes.set_output(0, PartialShape::from_dims(rest.iter().copied()))
            }
            Some((None, _)) => Ok(()),
            _ => Err(shape_error(format!(
                "data has shape {} but its first axis must hold one index for each of {axes} \
                 axes",
                shapes.inputs[0]
            ))),
        }
    },
    infer_dtype: first_decides,
    bind: bind_ravel,
    form: |attrs, signature| form(PositionKind::Ravel, attrs, signature),
    ..OpDef::BASE
}];

pub(super) const ATTRS: &[AttrDef] =
    &[AttrDef::new("shape", AttrKind::Shape, "None", "Shape of the array that is indexed.")];

pub(super) fn shape(attrs: &Attrs) -> Result<Dims, OpError> {
    let dims = attrs.opt_ints("shape").unwrap_or(&[]);
    if dims.is_empty() {
        return Err(value_error("shape is needed: that of the array that is indexed"));
    }
    // The first extent does not matter for positions and may be given as -1.
    let mut known: Vec<i64> = dims.to_vec();
    known[0] = known[0].max(1);
    extents("shape", &known)
}

pub(super) fn form(kind: PositionKind, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let axes = steps_and_extents(&shape(attrs)?);
    for_numeric(signature.inputs[0].dtype, KernelForm::Positions { kind, axes })
}

/// Returns the distance between neighbours along each axis, and its extent.
pub(super) fn steps_and_extents(shape: &[usize]) -> Vec<[usize; 2]> {
    contiguous(shape).iter().zip(shape).map(|(step, extent)| [*step as usize, *extent]).collect()
}

fn bind_ravel(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let axes = steps_and_extents(&shape(attrs)?);
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        ravel(call.par, elements::<T>(&call.inputs[0])?, &axes, elements_mut::<T>(&mut call.outputs[0])?);
        Ok(())
    })))
}
