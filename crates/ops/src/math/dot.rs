//! `dot`, `batch_dot`: products of matrices.

use crate::prelude::*;
use crate::shape::{PartialDims, known_product};
use mxrt_engine::OpError;
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_tensor::{PartialShape, Shape};

const ATTRS: &[AttrDef] = &[
    AttrDef::new("transpose_a", AttrKind::Bool, "False", "Transpose the first operand."),
    AttrDef::new("transpose_b", AttrKind::Bool, "False", "Transpose the second operand."),
    AttrDef::new(
        "forward_stype",
        AttrKind::OptEnum(&["csr", "default", "row_sparse"]),
        "None",
        "Storage of the result.",
    ),
];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "dot",
        aliases: &["_sparse_dot"],
        doc: "The sum of products over the last axis of lhs and the first of rhs (over the other \
            ends where transposed).",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        attrs: ATTRS,
        infer_shape: infer_dot,
        infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
        bind: bind_dot,
        ..OpDef::BASE
    },
    OpDef {
        name: "batch_dot",
        aliases: &["_npx_batch_dot"],
        doc: "Products of the matrices in the last two axes; the axes before them must agree.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        attrs: ATTRS,
        infer_shape: infer_batch_dot,
        infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
        bind: bind_batch_dot,
        rewrites: &Rewrites {
            row_wise: |_, signature, divided| {
                !divided.contains(&false) && signature.inputs.first().is_some_and(|t| t.shape.len() > 2)
            },
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
];

fn mismatch(shapes: &Shapes<'_>) -> OpError {
    let flag = |name: &str| if shapes.attrs.bool(name) { " transposed" } else { "" };
    shape_error(format!(
        "lhs {}{} and rhs {}{} cannot be multiplied: the axes that are summed have different sizes",
        shapes.inputs[0],
        flag("transpose_a"),
        shapes.inputs[1],
        flag("transpose_b")
    ))
}

/// Cuts the axes of one operand of `dot` into those summed over and the others. A vector is summed
/// whole.
fn cut<T: Copy>(dims: &[T], sum_first: bool) -> Option<(T, Vec<T>)> {
    let mut kept = dims.to_vec();
    if sum_first && !kept.is_empty() { Some((kept.remove(0), kept)) } else { kept.pop().map(|summed| (summed, kept)) }
}

fn infer_dot(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let (Some((ka, mut out)), Some((kb, right))) =
        (cut(&a, shapes.attrs.bool("transpose_a")), cut(&b, !shapes.attrs.bool("transpose_b")))
    else {
        return Err(shape_error("both operands need at least one axis"));
    };
    if ka.is_some() && kb.is_some() && ka != kb {
        return Err(mismatch(shapes));
    }
    out.extend(right);
    if out.is_empty() {
        out.push(Some(1));
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn bind_dot(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (transpose_a, transpose_b) = (attrs.bool("transpose_a"), attrs.bool("transpose_b"));
    let (a, b) = (&signature.inputs[0].shape, &signature.inputs[1].shape);
    let (Some((k, left)), Some((_, right))) = (cut(a, transpose_a), cut(b, !transpose_b)) else {
        return Err(wrong_arity());
    };
    // A transposed operand is stored with its summed axis at the other end.
    let product = Gemm {
        transpose_a: transpose_a && a.len() > 1,
        transpose_b: transpose_b && b.len() > 1,
        ..Gemm::new(checked_product(&left)?, checked_product(&right)?, k)
    };
    bind_gemm(product, signature)
}

/// Batch axes, rows, columns of an operand of `batch_dot`, as it is after transposing.
pub(crate) fn matrix(dims: &[Option<usize>], transpose: bool) -> Option<(PartialDims, Option<usize>, Option<usize>)> {
    let [batch @ .., rows, columns] = dims else { return None };
    let (rows, columns) = if transpose { (*columns, *rows) } else { (*rows, *columns) };
    Some((batch.iter().copied().collect(), rows, columns))
}

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

fn bind_batch_dot(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (transpose_a, transpose_b) = (attrs.bool("transpose_a"), attrs.bool("transpose_b"));
    let partial = |shape: &Shape| shape.iter().map(|d| Some(*d)).collect::<PartialDims>();
    let a = matrix(&partial(&signature.inputs[0].shape), transpose_a);
    let b = matrix(&partial(&signature.inputs[1].shape), transpose_b);
    let (Some((batch, Some(m), Some(k))), Some((_, _, Some(n)))) = (a, b) else { return Err(wrong_arity()) };
    let Some(batch) = known_product(&batch) else { return Err(wrong_arity()) };
    bind_gemm(Gemm { batch, transpose_a, transpose_b, ..Gemm::new(m, n, k) }, signature)
}

fn bind_gemm(product: Gemm, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
        let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        gemm(call.par, product, a, b, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_last_axis_meets_the_first() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let y = OpTest::new("dot").f32([2, 3], &x).f32([3], &[1.0, 10.0, 100.0]).run();
        assert_eq!(f32s(&y, [2]), [210.0, 543.0]);
        let y = OpTest::new("dot").attr("transpose_a", "1").f32([2, 3], &x).f32([2, 1], &[1.0, 10.0]).run();
        assert_eq!(f32s(&y, [3, 1]), [30.0, 41.0, 52.0]);
        let y = OpTest::new("dot").f32([2], &[1.0, 2.0]).f32([2], &[3.0, 4.0]).run();
        assert_eq!(f32s(&y, [1]), [11.0]);
        OpTest::new("dot").f32([2, 3], &x).f32([2, 3], &x).error();
    }

    #[test]
    fn matrices_of_a_batch_are_multiplied_one_by_one() {
        let x: Vec<f32> = (0..4).map(|v| v as f32).collect();
        let y = OpTest::new("batch_dot").attr("transpose_b", "True").f32([2, 1, 2], &x).f32([2, 1, 2], &x).run();
        assert_eq!(f32s(&y, [2, 1, 1]), [1.0, 13.0]);
        OpTest::new("batch_dot").f32([2, 1, 2], &x).f32([1, 2, 2], &x).error();
    }
}
