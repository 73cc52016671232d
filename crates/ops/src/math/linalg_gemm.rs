//! `_linalg_gemm`, `_linalg_gemm2`: scaled products of matrices.

use super::dot::matrix;
use crate::prelude::*;
use crate::shape::{PartialDims, known_product};
use mxrt_engine::OpError;
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_tensor::{PartialShape, Shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_gemm",
        aliases: &["linalg_gemm"],
        doc: "alpha * A B + beta * C for the matrices in the last two axes.",
        inputs: Inputs::Fixed(&["A", "B", "C"]),
        attrs: &[
            AttrDef::new("transpose_a", AttrKind::Bool, "False", "Transpose A."),
            AttrDef::new("transpose_b", AttrKind::Bool, "False", "Transpose B."),
            AttrDef::new("alpha", AttrKind::Float, "1", "Scale of the product."),
            AttrDef::new("beta", AttrKind::Float, "1", "Scale of C."),
            AttrDef::new("axis", AttrKind::Int, "-2", "The axis of rows; only -2."),
        ],
        infer_shape: |shapes| {
            infer_shape(shapes)?;
            let product = shapes.outputs[0].clone();
            shapes.set_input(2, "C", product)
        },
        bind: |attrs, signature| bind(attrs, attrs.float("beta"), signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_gemm2",
        aliases: &["linalg_gemm2"],
        doc: "alpha * A B for the matrices in the last two axes.",
        inputs: Inputs::Fixed(&["A", "B"]),
        attrs: &[
            AttrDef::new("transpose_a", AttrKind::Bool, "False", "Transpose A."),
            AttrDef::new("transpose_b", AttrKind::Bool, "False", "Transpose B."),
            AttrDef::new("alpha", AttrKind::Float, "1", "Scale of the product."),
            AttrDef::new("axis", AttrKind::Int, "-2", "The axis of rows; only -2."),
        ],
        infer_shape,
        bind: |attrs, signature| bind(attrs, 0.0, signature),
        ..OpDef::BASE
    },
];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let rows = shapes.attrs.int("axis");
    if rows != -2 && usize::try_from(rows).ok() != a.len().checked_sub(2) {
        return Err(not_implemented("axis must be -2: rows in the last axis but one"));
    }
    let misfit = || shape_error(format!("A {} and B {} cannot be multiplied", shapes.inputs[0], shapes.inputs[1]));
    let (Some((batch, m, ka)), Some((other, kb, n))) =
        (matrix(&a, shapes.attrs.bool("transpose_a")), matrix(&b, shapes.attrs.bool("transpose_b")))
    else {
        return Err(misfit());
    };
    if batch != other || (ka.is_some() && kb.is_some() && ka != kb) {
        return Err(misfit());
    }
    let mut out = batch;
    out.extend([m, n]);
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn bind(attrs: &Attrs, beta: f64, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (transpose_a, transpose_b) = (attrs.bool("transpose_a"), attrs.bool("transpose_b"));
    let partial = |shape: &Shape| shape.iter().map(|d| Some(*d)).collect::<PartialDims>();
    let a = matrix(&partial(&signature.inputs[0].shape), transpose_a);
    let b = matrix(&partial(&signature.inputs[1].shape), transpose_b);
    let (Some((batch, Some(m), Some(k))), Some((_, _, Some(n)))) = (a, b) else { return Err(wrong_arity()) };
    let Some(batch) = known_product(&batch) else { return Err(wrong_arity()) };
    let product = Gemm { batch, transpose_a, transpose_b, alpha: attrs.float("alpha"), beta, ..Gemm::new(m, n, k) };
    dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
        let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        if let Some(c) = call.inputs.get(2) {
            out.copy_from_slice(elements(c)?);
        }
        gemm(call.par, product, a, b, out);
        Ok(())
    })))
}
