//! `_slice_assign`, `_slice_assign_scalar`: an array with a part of it replaced.

use super::slice::{ATTRS, Range, ranges};
use crate::prelude::*;
use mxrt_kernels::shape::assign_slice;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_slice_assign",
        aliases: &["_crop_assign", "_npi_slice_assign"],
        doc: "lhs with the part from begin to end replaced by rhs.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        attrs: ATTRS,
        infer_shape: |shapes| {
            shapes.same_as_first()?;
            let Some(dims) = shapes.dims(0) else { return Ok(()) };
            let whole: Vec<usize> = dims.iter().map(|extent| extent.unwrap_or(0)).collect();
            let part = ranges(shapes.attrs, &whole)?;
            let part = dims.iter().zip(part).map(|(extent, range)| extent.map(|_| range.len));
            shapes.set_input(1, "rhs", PartialShape::from_dims(part))
        },
        bind: bind_array,
        form,
        ..OpDef::BASE
    },
    OpDef {
        name: "_slice_assign_scalar",
        aliases: &["_crop_assign_scalar", "_npi_slice_assign_scalar"],
        doc: "data with every element of the part from begin to end replaced by a number.",
        attrs: &[
            AttrDef::new("scalar", AttrKind::Float, "0", "The number.").wide(),
            AttrDef::required("begin", AttrKind::SparseShape, "First index along each axis."),
            AttrDef::required("end", AttrKind::SparseShape, "Index after the last along each axis."),
            AttrDef::new("step", AttrKind::SparseShape, "()", "Step along each axis."),
        ],
        bind: bind_scalar,
        ..OpDef::BASE
    },
];

/// Ranges in the form the kernel takes: extents, starts, steps.
fn parts(ranges: &[Range]) -> (Vec<usize>, Vec<usize>, Vec<isize>) {
    let extents = ranges.iter().map(|r| r.len).collect();
    (extents, ranges.iter().map(|r| r.start).collect(), ranges.iter().map(|r| r.step).collect())
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shape = &signature.inputs[0].shape;
    let (part, begin, step) = parts(&ranges(attrs, shape)?);
    let steps = contiguous(shape);
    let first = begin.iter().zip(&steps).map(|(begin, distance)| begin * *distance as usize).sum();
    let into = step.iter().zip(&steps).map(|(step, distance)| step * distance).collect();
    let whole = KernelForm::strided(0, shape, 0, &steps);
    let replaced = Move { input: 1, from: (0, contiguous(&part)), into: (first, into), shape: part, output: 0 };
    for_all(signature.inputs[0].dtype, KernelForm::Move { fill: None, moves: vec![whole, replaced] })
}

fn bind_array(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (part, begin, step) = parts(&ranges(attrs, &signature.inputs[0].shape)?);
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        copy_first(call)?;
        let ([_, rhs], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let shape = out.shape;
        assign_slice(elements::<T>(rhs)?, &part, elements_mut(out)?, shape, &begin, &step).map_err(kernel_error)
    })))
}

fn bind_scalar(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (part, begin, step) = parts(&ranges(attrs, &signature.inputs[0].shape)?);
    let (number, count) = (attrs.float("scalar"), checked_product(&part)?);
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        copy_first(call)?;
        let values = Scratch::filled(call.par, count, T::from_f64(number));
        let out = &mut call.outputs[0];
        let shape = out.shape;
        assign_slice(&values, &part, elements_mut(out)?, shape, &begin, &step).map_err(kernel_error)
    })))
}
