//! `_linalg_potrf`, `_linalg_potri`, `_linalg_gelqf`, `_linalg_syevd`: factorisations of matrices.

use super::{cost_ns, form, matrices, matrix_error, square_like_input, square_matrices};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::linalg;
use mxrt_tensor::PartialShape;

const LOWER: &[AttrDef] =
    &[AttrDef::new("lower", AttrKind::Bool, "True", "Whether the factor is lower triangular, else upper.").unlisted()];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_potrf",
        aliases: &["linalg_potrf"],
        doc: "The Cholesky factor of symmetric, positive definite matrices: A = L L^T, or U^T U if \
              not lower.\n\nOne triangle of A is read. A matrix that is not positive definite is \
              an error; NaN is not.",
        inputs: Inputs::Fixed(&["A"]),
        attrs: LOWER,
        infer_shape: square_like_input,
        bind: |attrs, signature| {
            let (n, lower) = (order(signature), attrs.bool("lower"));
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
                let out = elements_mut(&mut call.outputs[0])?;
                linalg::cholesky::<T>(call.par, n, lower, elements(&call.inputs[0])?, out).map_err(matrix_error)
            })))
        },
        form: |attrs, signature| {
            form(MatrixForm::Cholesky { order: order(signature), lower: attrs.bool("lower") }, signature)
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_potri",
        aliases: &["linalg_potri"],
        doc: "The inverse of symmetric, positive definite matrices that are given by the factor of \
              linalg.potrf.",
        inputs: Inputs::Fixed(&["A"]),
        attrs: LOWER,
        infer_shape: square_like_input,
        bind: |attrs, signature| {
            let (n, lower) = (order(signature), attrs.bool("lower"));
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cubic(signature), move |call| {
                let out = elements_mut(&mut call.outputs[0])?;
                linalg::cholesky_inverse::<T>(call.par, n, lower, elements(&call.inputs[0])?, out).map_err(matrix_error)
            })))
        },
        form: |attrs, signature| {
            form(MatrixForm::CholeskyInverse { order: order(signature), lower: attrs.bool("lower") }, signature)
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_gelqf",
        aliases: &["linalg_gelqf"],
        doc: "The factors Q and L of matrices with no more rows than columns: A = L Q.\n\nL is \
              lower triangular; the rows of Q, which has the shape of A, are orthonormal. Signs \
              are LAPACK's.",
        inputs: Inputs::Fixed(&["A"]),
        outputs: Outputs::Count(|_| 2),
        infer_shape: infer_gelqf,
        bind: |_, signature| {
            let shape = &signature.inputs[0].shape;
            let [.., rows, columns] = shape[..] else { return Err(wrong_arity()) };
            let cost = cost_ns(4 * shape.size().saturating_mul(rows));
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost, move |call| {
                let ([a], [q, l]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
                linalg::lq::<T>(call.par, [rows, columns], elements(a)?, elements_mut(q)?, elements_mut(l)?);
                Ok(())
            })))
        },
        form: |_, signature| {
            let [.., rows, columns] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
            form(MatrixForm::Orthonormal { size: [rows, columns] }, signature)
        },
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_syevd",
        doc: "Eigenvectors and eigenvalues of symmetric matrices: A = U^T diag(L) U.\n\nThe lower \
              triangle of A is read. The rows of U are the eigenvectors; the element of largest \
              magnitude of each, the first of equal ones, is positive. L ascends.",
        inputs: Inputs::Fixed(&["A"]),
        outputs: Outputs::Count(|_| 2),
        infer_shape: |shapes| {
            let Some((batch, n)) = square_matrices(shapes, 0, "A")? else { return Ok(()) };
            let dims = |count: usize| batch.iter().copied().chain(std::iter::repeat_n(n, count));
            shapes.set_output(0, PartialShape::from_dims(dims(2)))?;
            shapes.set_output(1, PartialShape::from_dims(dims(1)))
        },
        bind: |_, signature| {
            let n = order(signature);
            let cost = cubic(signature).saturating_mul(10);
            dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost, move |call| {
                let ([a], [vectors, values]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
                linalg::symmetric_eigen::<T>(call.par, n, elements(a)?, elements_mut(vectors)?, elements_mut(values)?)
                    .map_err(matrix_error)
            })))
        },
        form: |_, signature| form(MatrixForm::SymmetricEigen { order: order(signature) }, signature),
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
];

/// The order of the matrices.
fn order(signature: &Signature<'_>) -> usize {
    signature.inputs[0].shape.last().copied().unwrap_or(0)
}

/// Time of an operator that takes a multiply-add for each element and row.
fn cubic(signature: &Signature<'_>) -> u64 {
    cost_ns(signature.inputs[0].shape.size().saturating_mul(order(signature)))
}

fn infer_gelqf(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if let (None, Some(q)) = (shapes.dims(0), shapes.outputs[0].dims()) {
        let q = PartialShape::from_dims(q.iter().copied());
        shapes.set_input(0, "A", q)?;
    }
    let Some((batch, rows, columns)) = matrices(shapes, 0, "A")? else { return Ok(()) };
    if let (Some(rows), Some(columns)) = (rows, columns)
        && rows > columns
    {
        return Err(shape_error(format!(
            "A has shape {}, but has to have no more rows than columns",
            shapes.inputs[0]
        )));
    }
    let dims = |last: Option<usize>| batch.iter().copied().chain([rows, last]);
    shapes.set_output(0, PartialShape::from_dims(dims(columns)))?;
    shapes.set_output(1, PartialShape::from_dims(dims(rows)))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    const A: [f32; 4] = [4.0, 2.0, 2.0, 5.0];

    #[test]
    fn a_factor_and_the_inverse_made_of_it() {
        let lower = OpTest::new("linalg_potrf").f32([1, 2, 2], &A).run();
        assert_close(&f32s(&lower, [1, 2, 2]), &[2.0, 0.0, 1.0, 2.0]);
        let inverse = OpTest::new("linalg_potri").array(lower).run();
        // 1 / 16 of [[5, -2], [-2, 4]].
        assert_close(&f32s(&inverse, [1, 2, 2]), &[0.3125, -0.125, -0.125, 0.25]);
        let upper = OpTest::new("_linalg_potrf").attr("lower", "False").f32([2, 2], &A).run();
        assert_close(&f32s(&upper, [2, 2]), &[2.0, 1.0, 0.0, 2.0]);
        let inverse = OpTest::new("_linalg_potri").attr("lower", "0").array(upper).run();
        assert_close(&f32s(&inverse, [2, 2]), &[0.3125, -0.125, -0.125, 0.25]);
    }

    #[test]
    fn orthonormal_rows_and_eigenvectors() {
        let out = OpTest::new("_linalg_gelqf").f32([1, 2], &[3.0, 4.0]).run_all();
        assert_close(&f32s(&out[0], [1, 2]), &[-0.6, -0.8]);
        assert_close(&f32s(&out[1], [1, 1]), &[-5.0]);
        // What is above the diagonal is not read.
        let out = OpTest::new("_linalg_syevd").f32([2, 2], &[2.0, 9.0, 1.0, 2.0]).run_all();
        let half = 0.5f32.sqrt();
        assert_close(&f32s(&out[0], [2, 2]), &[half, -half, half, half]);
        assert_close(&f32s(&out[1], [2]), &[1.0, 3.0]);
    }

    #[test]
    fn what_cannot_be_factorised_is_refused() {
        let error = |name: &str, shape: [usize; 2], values: &[f32]| {
            OpTest::new(name).f32(shape, values).error().message.clone()
        };
        assert!(error("_linalg_potrf", [2, 2], &[1.0, 2.0, 2.0, 1.0]).contains("matrix 0 is not positive definite"));
        assert!(error("_linalg_potri", [2, 2], &[0.0; 4]).contains("zero on its diagonal"));
        assert!(error("_linalg_potrf", [1, 2], &[1.0, 2.0]).contains("square"));
        assert!(error("_linalg_gelqf", [2, 1], &[1.0, 2.0]).contains("no more rows than columns"));
        let vector = OpTest::new("_linalg_syevd").f32([2], &[1.0, 2.0]).error();
        assert!(vector.message.contains("2 axes at least"), "{}", vector.message);
        let whole = OpTest::new("_linalg_potrf").i32([1, 1], &[1]).error();
        assert!(whole.message.contains("only float32 and float64"), "{}", whole.message);
    }
}
