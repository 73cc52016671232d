//! `stack`: arrays joined along a new axis.

use crate::prelude::*;
use mxrt_kernels::shape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "stack",
    doc: "Joins arrays of one shape along a new axis.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[
        AttrDef::new("axis", AttrKind::Int, "0", "Where the new axis stands in the result."),
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs."),
    ],
    infer_shape,
    bind,
    form,
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
            !divided.contains(&false) && resolve_axis(attrs.int("axis"), rank + 1).is_ok_and(|axis| axis > 0)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let mut common = PartialShape::UNKNOWN;
    for shape in shapes.inputs.iter() {
        common.merge(shape).map_err(|e| shape_error(format!("all inputs must have one shape: {e}")))?;
    }
    let Some(dims) = common.dims() else { return Ok(()) };
    let mut out: Vec<Option<usize>> = dims.to_vec();
    out.insert(resolve_new_axis(shapes.attrs.int("axis"), dims.len())?, Some(shapes.inputs.len()));
    shapes.inputs.iter_mut().for_each(|s| *s = common.clone());
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// Elements before the new axis, and after it.
fn split(attrs: &Attrs, data: &[usize]) -> Result<(usize, usize), OpError> {
    let axis = resolve_new_axis(attrs.int("axis"), data.len())?;
    Ok((data[..axis].iter().product(), data[axis..].iter().product()))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (outer, inner) = split(attrs, &signature.inputs[0].shape)?;
    Ok(Some(super::joined(outer, inner, signature.inputs.iter().map(|_| 1))))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (outer, inner) = split(attrs, &signature.inputs[0].shape)?;
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let inputs =
            call.inputs.iter().map(|x| Ok((elements::<T>(x)?, 1))).collect::<Result<Vec<_>, OpError>>()?;
        shape::concat(call.par, &inputs, outer, inner, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
