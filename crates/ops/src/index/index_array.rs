//! `_contrib_index_array`: the indices of every element.

use super::ravel_multi_index::steps_and_extents;
use crate::prelude::*;
use mxrt_kernels::positions::own;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_index_array",
    doc: "For every element of data its index along each axis (or the axes given), as int64 along \
        a new last axis.",
    attrs: &[AttrDef::new("axes", AttrKind::OptShape, "None", "Axes to tell; all if not given.")],
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        let count = axes(shapes.attrs, dims.len())?.len();
        dims.push(Some(count));
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
    bind,
    form: |attrs, signature| {
        let shape = &signature.inputs[0].shape;
        let all = steps_and_extents(shape);
        let axes = axes(attrs, shape.len())?.iter().map(|axis| all[*axis]).collect();
        Ok(Some(KernelForm::Positions { kind: PositionKind::Own, axes }))
    },
    ..OpDef::BASE
}];

fn axes(attrs: &Attrs, rank: usize) -> Result<Dims, OpError> {
    match attrs.opt_ints("axes") {
        None => Ok((0..rank).collect()),
        Some(axes) => axes.iter().map(|a| resolve_axis(*a, rank)).collect(),
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let axes = axes(attrs, shape.len())?;
    Ok(kernel_fn(signature, move |call| {
        own(call.par, &shape, &axes, elements_mut::<i64>(&mut call.outputs[0])?);
        Ok(())
    }))
}
