//! `batch_dot`: products of the matrices of a batch.

use super::dot::{ATTRS, bind_gemm, matrix, mismatch, product_form};
use crate::prelude::*;
use crate::shape::{PartialDims, known_product};
use mxrt_kernels::gemm_plain::Gemm;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "batch_dot",
    aliases: &["_npx_batch_dot"],
    doc: "Products of the matrices in the last two axes; the axes before them must agree.",
    inputs: Inputs::Fixed(&["lhs", "rhs"]),
    attrs: ATTRS,
    infer_shape: infer_batch_dot,
    infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
    bind: bind_batch_dot,
    form: |attrs, signature| product_form(batch_dot(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |_, signature, divided| {
            !divided.contains(&false) && signature.inputs.first().is_some_and(|t| t.shape.len() > 2)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_batch_dot(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    if a.len() < 3 || a.len() != b.len() {
        return Err(shape_error(format!(
            "lhs {} and rhs {} must have the same number of axes, at least 3",
            shapes.inputs[0], shapes.inputs[1]
        )));
    }
    let (Some((mut batch, m, ka)), Some((other, kb, n))) =
        (matrix(&a, shapes.attrs.bool("transpose_a")), matrix(&b, shapes.attrs.bool("transpose_b")))
    else {
        return Err(wrong_arity());
    };
    if ka.is_some() && kb.is_some() && ka != kb {
        return Err(mismatch(shapes));
    }
    for (mine, theirs) in batch.iter_mut().zip(other) {
        if mine.is_some() && theirs.is_some() && *mine != theirs {
            return Err(shape_error(format!(
                "lhs {} and rhs {} must agree in all axes but the last two",
                shapes.inputs[0], shapes.inputs[1]
            )));
        }
        *mine = mine.or(theirs);
    }
    batch.extend([m, n]);
    shapes.set_output(0, PartialShape::from_dims(batch))
}

/// The products that `batch_dot` is.
fn batch_dot(attrs: &Attrs, signature: &Signature<'_>) -> Result<Gemm, OpError> {
    let (transpose_a, transpose_b) = (attrs.bool("transpose_a"), attrs.bool("transpose_b"));
    let partial = |shape: &Shape| shape.iter().map(|d| Some(*d)).collect::<PartialDims>();
    let a = matrix(&partial(&signature.inputs[0].shape), transpose_a);
    let b = matrix(&partial(&signature.inputs[1].shape), transpose_b);
    let (Some((batch, Some(m), Some(k))), Some((_, _, Some(n)))) = (a, b) else { return Err(wrong_arity()) };
    let Some(batch) = known_product(&batch) else { return Err(wrong_arity()) };
    Ok(Gemm { batch, transpose_a, transpose_b, ..Gemm::new(m, n, k) })
}

fn bind_batch_dot(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    bind_gemm(batch_dot(attrs, signature)?, signature)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn matrices_of_a_batch_are_multiplied_one_by_one() {
        let x: Vec<f32> = (0..4).map(|v| v as f32).collect();
        let y = OpTest::new("batch_dot").attr("transpose_b", "True").f32([2, 1, 2], &x).f32([2, 1, 2], &x).run();
        assert_eq!(f32s(&y, [2, 1, 1]), [1.0, 13.0]);
        OpTest::new("batch_dot").f32([2, 1, 2], &x).f32([1, 2, 2], &x).error();
    }
}
