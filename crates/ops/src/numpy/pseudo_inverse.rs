//! Pseudo-inverses of the matrices in the last two axes, in double precision.

use super::linalg::{check_wide, matrix_error, no_matrices};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_pinv",
        doc: "The pseudo-inverse of matrices, without singular values of at most rcond times the largest.",
        inputs: Inputs::Fixed(&["A", "rcond"]),
        attrs: &[HERMITIAN],
        ..PSEUDO_INVERSE
    },
    OpDef {
        name: "_npi_pinv_scalar_rcond",
        doc: "The pseudo-inverse of matrices, without singular values of at most rcond times the largest.",
        attrs: &[
            AttrDef::new("rcond", AttrKind::Float, "1e-15", "Limit of singular values, relative to the largest.")
                .wide(),
            HERMITIAN,
        ],
        ..PSEUDO_INVERSE
    },
];

const HERMITIAN: AttrDef =
    AttrDef::new("hermitian", AttrKind::Bool, "False", "For NumPy; only False is possible, as in MXNet.");

const PSEUDO_INVERSE: OpDef = OpDef {
    inputs: Inputs::Fixed(&["A"]),
    infer_shape: |shapes| {
        if shapes.attrs.bool("hermitian") {
            return Err(not_implemented("hermitian=True is not supported, as in MXNet"));
        }
        let Some(a) = shapes.input(0) else { return Ok(()) };
        let [ref batch @ .., m, n] = a[..] else { return Err(no_matrices("A", &a)) };
        if let Some(limits) = shapes.inputs.get(1).and_then(PartialShape::complete) {
            let fits = |(n, limit): (&usize, &usize)| *limit == 1 || limit == n;
            let aligned = batch.iter().rev().zip(limits.iter().rev());
            if limits.size() != 1 && (limits.len() > batch.len() || !aligned.into_iter().all(fits)) {
                let message = format!("rcond has shape {limits}; expected one number for each matrix of {a}");
                return Err(shape_error(message));
            }
        }
        shapes.set_output(0, batch.iter().copied().chain([n, m]).collect::<Shape>())
    },
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[0] else { return Ok(()) };
        check_wide(dtype)?;
        dtypes.set_output(0, dtype)
    },
    bind: |attrs, signature| {
        let [.., m, n] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
        let limit = attrs.declares("rcond").then(|| attrs.float("rcond"));
        let batch: Vec<usize> = signature.inputs[0].shape.iter().rev().skip(2).copied().collect();
        let of_limits: Vec<usize> =
            signature.inputs.get(1).map(|t| t.shape.iter().rev().copied().collect()).unwrap_or_default();
        let place = move |block| place_of_limit(block, &batch, &of_limits);
        Ok(kernel_fn(signature, move |call| {
            let limits = match (limit, call.inputs.get(1)) {
                (Some(limit), _) => Scratch::filled(call.par, 1, limit),
                (None, Some(limits)) => floats(call.par, limits)?,
                (None, None) => return Err(wrong_arity()),
            };
            let a = floats(call.par, &call.inputs[0])?;
            let mut made = Scratch::<f64>::new(call.par, a.len());
            let limit_of = |matrix| limits[place(matrix)];
            linalg::pseudo_inverse(call.par, [m, n], &a, limit_of, &mut made).map_err(matrix_error)?;
            store_floats(&made, &mut call.outputs[0])
        }))
    },
    ..OpDef::BASE
};

/// The place of the limit of a matrix among limits that are broadcast. Extents are given from the
/// last to the first.
fn place_of_limit(block: usize, batch: &[usize], limits: &[usize]) -> usize {
    let (mut rest, mut place, mut step) = (block, 0, 1);
    for (n, extent) in batch.iter().zip(limits) {
        place += if *extent > 1 { rest % n * step } else { 0 };
        (rest, step) = (rest / n, step * extent);
    }
    place
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn limits_of_singular_values_are_broadcast_over_the_matrices() {
        let x = OpTest::new("_npi_pinv_scalar_rcond").f32([3, 1], &[1.0, 2.0, 2.0]).run();
        assert_close(&f32s(&x, [1, 3]), &[1.0 / 9.0, 2.0 / 9.0, 2.0 / 9.0]);
        // Of two batches of two matrices, the limit is that of the second axis.
        let twice = [2.0, 0.0, 0.0, 1.0].repeat(4);
        let x = OpTest::new("_npi_pinv").f32([2, 2, 2, 2], &twice).f32([1, 2], &[0.1, 0.9]).run();
        let (both, one) = ([0.5, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.0]);
        assert_close(&f32s(&x, [2, 2, 2, 2]), &[both, one, both, one].concat());
        let error = OpTest::new("_npi_pinv").f32([2, 2, 2], &[0.0; 8]).f32([3], &[0.0; 3]).error();
        assert!(error.message.contains("rcond has shape (3,)"), "{}", error.message);
    }
}
