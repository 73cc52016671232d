//! `Concat`: arrays joined along an axis.

use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::shape;
use mxrt_tensor::TensorType;

/// Rows of the table.
pub static OPS: &[OpDef] = &[CONCAT];

pub(super) const CONCAT: OpDef = OpDef {
    name: "Concat",
    aliases: &["_sparse_concat", "concat"],
    doc: "Joins arrays along an axis they already have; all other extents must agree.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs."),
        AttrDef::new("dim", AttrKind::Int, "1", "Axis along which to join."),
    ],
    infer_shape: |shapes| infer_shape(shapes),
    bind: |attrs, signature| bind(attrs.int("dim"), signature),
    form: |attrs, signature| form(attrs.int("dim"), signature),
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| blocked::concat::form(attrs, signature),
        row_wise: |attrs, signature, divided| !divided.contains(&false) && is_within_rows(attrs.int("dim"), signature),
        concatenation: |attrs, signature| {
            let out = signature.outputs.first()?;
            let axis = resolve_axis(attrs.int("dim"), out.shape.len()).ok()?;
            let same_dtype = signature.inputs.iter().all(|t| t.dtype == out.dtype);
            let fits = same_dtype && out.shape[..axis].iter().all(|n| *n == 1);
            fits.then(|| one_behind_another(signature))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
};

pub(super) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let arrays = shapes.inputs.len();
    infer_joined(shapes, arrays)
}

/// Infers the first inputs, which are joined, and output 0; others are left alone.
pub(crate) fn infer_joined(shapes: &mut Shapes<'_>, arrays: usize) -> Result<(), OpError> {
    let known = shapes.inputs[..arrays].iter().chain(shapes.outputs.first()).find_map(PartialShape::rank);
    let Some(rank) = known else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("dim"), rank)?;
    // What all have in common: everything but the extent along the axis.
    let mut common = PartialShape::of_rank(rank);
    let elsewhere = |shape: &PartialShape, along: Option<usize>| {
        let dims = shape.dims().map(|d| d.iter().enumerate().map(|(i, d)| if i == axis { along } else { *d }));
        dims.map_or(PartialShape::UNKNOWN, PartialShape::from_dims)
    };
    for (i, shape) in shapes.inputs[..arrays].iter().chain(shapes.outputs.first()).enumerate() {
        common.merge(&elsewhere(shape, None)).map_err(|_| {
            let first = &shapes.inputs[0];
            shape_error(format!(
                "array {i} has shape {shape}, which does not fit the first, {first}, in all axes \
                 but {axis}"
            ))
        })?;
    }
    for i in 0..arrays {
        shapes.set_input(i, "an input", common.clone())?;
    }
    let total = shapes.inputs[..arrays].iter().map(|s| s.dim(axis)).try_fold(0usize, |n, d| n.checked_add(d?));
    shapes.set_output(0, elsewhere(&common, total))
}

/// Inputs whose bytes follow each other.
fn one_behind_another(signature: &Signature<'_>) -> Vec<ConcatenatedInput> {
    let mut end = 0;
    let part = |t: &TensorType| {
        let start = end;
        end += t.bytes();
        ConcatenatedInput { bytes: start..end, merge: None }
    };
    signature.inputs.iter().map(part).collect()
}

fn form(axis: i64, signature: &Signature<'_>) -> MaybeForm {
    let out = &signature.outputs[0].shape;
    let axis = resolve_axis(axis, out.len())?;
    let (outer, inner) = (out[..axis].iter().product(), out[axis + 1..].iter().product());
    let extents = signature.inputs.iter().map(|t| t.shape.get(axis).copied().unwrap_or(1));
    Ok(Some(super::joined(outer, inner, extents)))
}

/// Joins along `axis`.
fn bind(axis: i64, signature: &Signature<'_>) -> BoundKernel {
    let out = &signature.outputs[0].shape;
    let axis = resolve_axis(axis, out.len())?;
    let (outer, inner) = (out[..axis].iter().product(), out[axis + 1..].iter().product());
    dispatch_size!(signature.inputs[0].dtype, T => Ok(costed_kernel_fn("plain", elementwise_ns(signature, 0), move |call| {
        let inputs = call
            .inputs
            .iter()
            .map(|x| Ok((elements::<T>(x)?, x.shape.get(axis).copied().unwrap_or(1))))
            .collect::<Result<Vec<_>, OpError>>()?;
        shape::concat(call.par, &inputs, outer, inner, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn arrays_are_joined_along_the_axis() {
        let join = |dim: &str| {
            OpTest::new("concat")
                .attr("num_args", "2")
                .attr("dim", dim)
                .f32([1, 2], &[1.0, 2.0])
                .f32([1, 2], &[3.0, 4.0])
        };
        assert_eq!(f32s(&join("0").run(), [2, 2]), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(f32s(&join("-1").run(), [1, 4]), [1.0, 2.0, 3.0, 4.0]);
        join("2").error();
    }

    #[test]
    fn other_extents_must_agree() {
        let error = OpTest::new("Concat").attr("num_args", "2").f32([2, 3], &[0.0; 6]).f32([3, 4], &[0.0; 12]).error();
        assert!(error.message.contains("(3, 4)") && error.message.contains("(2, 3)"), "{}", error.message);
    }
}
