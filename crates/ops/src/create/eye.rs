//! `_eye`: ones on a diagonal.

use super::{CTX, DTYPE, dtype_from_attr};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_tensor::Shape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_eye",
    doc: "A matrix of N rows and M columns (N if 0) with ones on its k-th diagonal.",
    inputs: Inputs::Fixed(&[]),
    attrs: &[
        AttrDef::required("N", AttrKind::IntFrom(1), "Number of rows.").wide(),
        AttrDef::new("M", AttrKind::IntFrom(0), "0", "Number of columns; N if 0.").wide(),
        AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive.").wide(),
        CTX,
        DTYPE,
    ],
    infer_shape: |shapes| {
        let (n, m) = (shapes.attrs.count("N"), shapes.attrs.count("M"));
        shapes.set_output(0, Shape::new(&[n, if m == 0 { n } else { m }]))
    },
    infer_dtype: dtype_from_attr,
    bind,
    form: |attrs, signature| for_numeric(signature.outputs[0].dtype, KernelForm::Diagonal { right: attrs.int("k") }),
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let k = attrs.int("k");
    let [_, columns] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        out.fill(T::ZERO);
        for (row, out) in out.chunks_mut(columns).enumerate() {
            let column = (row as i64).checked_add(k).and_then(|c| usize::try_from(c).ok());
            if let Some(out) = column.and_then(|c| out.get_mut(c)) {
                *out = T::ONE;
            }
        }
        Ok(())
    })))
}
