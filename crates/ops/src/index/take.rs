//! `take`: slices along an axis, by number.

use crate::prelude::*;
use crate::shape::PartialDims;
use mxrt_kernels::index::{OutOfRange, take};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "take",
    aliases: &["_npi_take"],
    doc: "The slices of a along an axis that indices name. Indices outside are clipped, wrapped, \
        or with mode raise an error.",
    inputs: Inputs::Fixed(&["a", "indices"]),
    attrs: &[
        AttrDef::new("axis", AttrKind::Int, "0", "The axis."),
        AttrDef::new("mode", AttrKind::Enum(&["clip", "raise", "wrap"]), "clip", "What happens to indices outside."),
    ],
    infer_shape,
    infer_dtype: first_decides,
    bind,
    form,
    ..OpDef::BASE
}];

/// The output has the dtype of the first input; indices have any.
pub(crate) fn first_decides(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    match dtypes.inputs[0].or(dtypes.outputs[0]) {
        Some(dtype) => {
            dtypes.set_input(0, "data", dtype)?;
            dtypes.set_output(0, dtype)
        }
        None => Ok(()),
    }
}

/// The meaning of the attribute `mode`.
pub(crate) fn mode(attrs: &Attrs) -> OutOfRange {
    match attrs.str("mode") {
        "wrap" => OutOfRange::Wrap,
        "raise" => OutOfRange::Raise,
        _ => OutOfRange::Clip,
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(a) = shapes.dims(0) else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("axis"), a.len())?;
    let Some(indices) = shapes.dims(1) else { return Ok(()) };
    let mut out: PartialDims = a[..axis].iter().copied().collect();
    out.extend(indices);
    out.extend_from_slice(&a[axis + 1..]);
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// The axis, and the axes around it.
fn place(attrs: &Attrs, signature: &Signature<'_>) -> Result<(usize, [usize; 3]), OpError> {
    let shape = &signature.inputs[0].shape;
    let axis = resolve_axis(attrs.int("axis"), shape.len())?;
    check_integers("indices", signature.inputs[1].dtype)?;
    Ok((axis, split_around(axis, shape)))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (axis, split) = place(attrs, signature)?;
    Ok(Some(KernelForm::Take { data: 0, indices: 1, split, mode: mode(attrs), axis, pick: false }))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let ((axis, split), mode) = (place(attrs, signature)?, mode(attrs));
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([a, indices], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (a, indices) = (elements::<T>(a)?, integers(call.par, indices)?);
        take(call.par, a, split, &indices, mode, axis, elements_mut(out)?).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_engine::FailureKind;

    #[test]
    fn indices_outside_follow_the_mode() {
        let of =
            |mode: &str| OpTest::new("take").attr("mode", mode).f32([3], &[10.0, 20.0, 30.0]).i32([3], &[-1, 1, 4]);
        assert_eq!(f32s(&of("clip").run(), [3]), [10.0, 20.0, 30.0]);
        assert_eq!(f32s(&of("wrap").run(), [3]), [30.0, 20.0, 20.0]);
        let error = of("raise").error();
        assert_eq!(error.kind, FailureKind::Index);
        assert!(error.message.contains("index -1") && error.message.contains("size 3"), "{}", error.message);
    }
}
