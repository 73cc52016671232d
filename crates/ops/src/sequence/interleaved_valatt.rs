//! `_contrib_interleaved_matmul_selfatt_valatt`, `_contrib_interleaved_matmul_encdec_valatt`:
//! products of attention and values.

use super::interleaved::{HEADS, ProjectionIndex, bind_in_place, extents, gather, head, heads_of};
use crate::prelude::*;
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::shape::copy_strided;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_interleaved_matmul_selfatt_valatt",
        doc: "Values weighted by attention: (time, batch, heads * 3 * dim) and (batch * heads, \
            time, time) give (time, batch, heads * dim).",
        inputs: Inputs::Fixed(&["queries_keys_values", "attention"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_values(shapes, 3),
        bind: |attrs, signature| bind_values(attrs, signature, (0, 3, 2)),
        form: |attrs, signature| values_form(attrs, signature, (0, 3, 2)),
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_interleaved_matmul_encdec_valatt",
        doc: "Values (other time, batch, heads * 2 * dim) weighted by attention: (time, batch, \
            heads * dim).",
        inputs: Inputs::Fixed(&["keys_values", "attention"]),
        attrs: HEADS,
        infer_shape: |shapes| infer_values(shapes, 2),
        bind: |attrs, signature| bind_values(attrs, signature, (0, 2, 1)),
        form: |attrs, signature| values_form(attrs, signature, (0, 2, 1)),
        ..OpDef::BASE
    },
];

fn infer_values(shapes: &mut Shapes<'_>, parts: usize) -> Result<(), OpError> {
    let heads = shapes.attrs.count("heads");
    if let (Some([_, batch, width]), Some([_, queries, _])) = (extents(shapes, 0), extents(shapes, 1)) {
        let columns = checked_product(&[heads, parts])?;
        let width = width.filter(|width| width % columns == 0).map(|width| width / parts);
        shapes.set_output(0, PartialShape::from_dims([queries, batch, width]))?;
    }
    let (Some(values), Some(attention)) = (shapes.input(0), shapes.input(1)) else { return Ok(()) };
    let [time, batch, dim] = head(&values, heads, parts)?;
    let needed = checked_product(&[batch, heads])?;
    match attention[..] {
        [rows, queries, keys] if rows == needed && keys == time => {
            shapes.set_output(0, Shape::new(&[queries, batch, heads * dim]))
        }
        _ => Err(shape_error(format!("attention has shape {attention}; needed is ({needed}, time, {time})"))),
    }
}

/// The sums of `bind_values`.
fn values_form(attrs: &Attrs, signature: &Signature<'_>, place: ProjectionIndex) -> MaybeForm {
    let heads = attrs.count("heads");
    let view = heads_of(&signature.inputs[place.0].shape, heads, place)?;
    let [batch, m, k] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let n = view.shape[3];
    let form = KernelForm::Product {
        batch: [batch / heads.max(1), heads],
        size: [m, n, k],
        operands: [
            MatrixSteps { array: 1, first: 0, steps: [(heads * m * k) as isize, (m * k) as isize, k as isize, 1] },
            view.matrix(0, false),
            MatrixSteps { array: 0, first: 0, steps: [(heads * n) as isize, n as isize, (batch * n) as isize, 1] },
        ],
        alpha: 1.0,
        epilogue: SumEpilogue::default(),
    };
    Ok(Some(form))
}

fn bind_values(attrs: &Attrs, signature: &Signature<'_>, place: ProjectionIndex) -> BoundKernel {
    let heads = attrs.count("heads");
    let view = heads_of(&signature.inputs[place.0].shape, heads, place)?;
    let [batch, m, k] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let n = view.shape[3];
    let product = Gemm { batch, ..Gemm::new(m, n, k) };
    // From (batch * heads, time, dim) to (time, batch * heads, dim).
    let back = [n as isize, (m * n) as isize, 1];
    let form = values_form(attrs, signature, place)?;
    in_single(signature, |signature| {
        if let Some(kernel) = form.and_then(|form| bind_in_place(&form, signature)) {
            return kernel;
        }
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            let values = gather::<T>(call.par, &call.inputs[0], &view)?;
            let mut mixed = Scratch::new(call.par, batch * m * n);
            gemm(call.par, product, elements(&call.inputs[1])?, &values, &mut mixed);
            let out = elements_mut(&mut call.outputs[0])?;
            copy_strided(call.par, &mixed, 0, &back, &[m, batch, n], out).map_err(kernel_error)
        })))
    })
}
