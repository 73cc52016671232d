//! `_contrib_interleaved_matmul_selfatt_qk`, `_contrib_interleaved_matmul_encdec_qk`: products of
//! queries and keys.

use super::interleaved::{HEADS, ProjectionIndex, bind_in_place, extents, gather, head, heads_of};
use crate::prelude::*;
use mxrt_kernels::gemm_plain::{Gemm, gemm};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_interleaved_matmul_selfatt_qk",
        doc: "Scaled products of queries and keys: (time, batch, heads * 3 * dim) gives (batch * \
            heads, time, time).",
        inputs: Inputs::Fixed(&["queries_keys_values"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_scores(shapes, 3, None),
        bind: |attrs, signature| bind_scores(attrs, signature, [(0, 3, 0), (0, 3, 1)]),
        form: |attrs, signature| scores_form(attrs, signature, [(0, 3, 0), (0, 3, 1)]),
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_interleaved_matmul_encdec_qk",
        doc: "Scaled products of queries (time, batch, heads * dim) and keys (other time, batch, \
            heads * 2 * dim).",
        inputs: Inputs::Fixed(&["queries", "keys_values"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_scores(shapes, 1, Some(2)),
        bind: |attrs, signature| bind_scores(attrs, signature, [(0, 1, 0), (1, 2, 0)]),
        form: |attrs, signature| scores_form(attrs, signature, [(0, 1, 0), (1, 2, 0)]),
        ..OpDef::BASE
    },
];

fn infer_scores(shapes: &mut Shapes<'_>, parts: usize, other: Option<usize>) -> Result<(), OpError> {
    let heads = shapes.attrs.count("heads");
    if let Some([time, batch, _]) = extents(shapes, 0)
        && let Some([keys, ..]) = extents(shapes, usize::from(other.is_some()))
    {
        let rows = batch.and_then(|batch| batch.checked_mul(heads));
        shapes.set_output(0, PartialShape::from_dims([rows, time, keys]))?;
    }
    let Some(queries) = shapes.input(0) else { return Ok(()) };
    let [time, batch, dim] = head(&queries, heads, parts)?;
    let keys = match other {
        None => time,
        Some(parts) => {
            let Some(keys) = shapes.input(1) else { return Ok(()) };
            let [keys_time, keys_batch, keys_dim] = head(&keys, heads, parts)?;
            if (keys_batch, keys_dim) != (batch, dim) {
                return Err(shape_error(format!("queries {queries} and keys_values {keys} do not fit")));
            }
            keys_time
        }
    };
    shapes.set_output(0, Shape::new(&[checked_product(&[batch, heads])?, time, keys]))
}

/// The factor of the products of vectors of `dim` numbers.
fn score_scale(dim: usize) -> f64 {
    1.0 / (dim.max(1) as f64).sqrt()
}

/// The scaled products of `bind_scores`.
fn scores_form(attrs: &Attrs, signature: &Signature<'_>, places: [ProjectionIndex; 2]) -> MaybeForm {
    let heads = attrs.count("heads");
    let [queries, keys] = places;
    let view = |place: ProjectionIndex| heads_of(&signature.inputs[place.0].shape, heads, place);
    let (left, right) = (view(queries)?, view(keys)?);
    let [batch, m, n] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    let k = left.shape[3];
    let form = KernelForm::Product {
        batch: [batch / heads.max(1), heads],
        size: [m, n, k],
        operands: [
            left.matrix(queries.0, false),
            right.matrix(keys.0, true),
            MatrixSteps { array: 0, first: 0, steps: [(heads * m * n) as isize, (m * n) as isize, n as isize, 1] },
        ],
        alpha: score_scale(k),
        epilogue: SumEpilogue::default(),
    };
    Ok(Some(form))
}

fn bind_scores(attrs: &Attrs, signature: &Signature<'_>, places: [ProjectionIndex; 2]) -> BoundKernel {
    let heads = attrs.count("heads");
    let [queries, keys] = places;
    let view = |place: ProjectionIndex| heads_of(&signature.inputs[place.0].shape, heads, place);
    let (left, right) = (view(queries)?, view(keys)?);
    let [batch, m, n] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    let k = left.shape[3];
    let product = Gemm { batch, transpose_b: true, alpha: score_scale(k), ..Gemm::new(m, n, k) };
    let form = scores_form(attrs, signature, places)?;
    in_single(signature, |signature| {
        if let Some(kernel) = form.and_then(|form| bind_in_place(&form, signature)) {
            return kernel;
        }
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            let a = gather::<T>(call.par, &call.inputs[queries.0], &left)?;
            let b = gather::<T>(call.par, &call.inputs[keys.0], &right)?;
            gemm(call.par, product, &a, &b, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })))
    })
}
