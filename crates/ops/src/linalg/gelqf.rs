//! `_linalg_gelqf`: a triangular matrix times orthonormal rows.

use super::{cost_ns, form, matrices};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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

    #[test]
    fn rows_are_orthonormal() {
        let out = OpTest::new("_linalg_gelqf").f32([1, 2], &[3.0, 4.0]).run_all();
        assert_close(&f32s(&out[0], [1, 2]), &[-0.6, -0.8]);
        assert_close(&f32s(&out[1], [1, 1]), &[-5.0]);
        let error = OpTest::new("_linalg_gelqf").f32([2, 1], &[1.0, 2.0]).error();
        assert!(error.message.contains("no more rows than columns"), "{}", error.message);
    }
}
