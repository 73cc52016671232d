//! `_scatter_set_nd`: an array with elements put in places given by several indices.

use super::scatter_nd::SlicePositions;
use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::index::scatter_set_nd;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_scatter_set_nd",
    aliases: &["_npi_scatter_set_nd"],
    doc: "lhs with rhs put at the places indices name.",
    inputs: Inputs::Fixed(&["lhs", "rhs", "indices"]),
    attrs: &[AttrDef::required("shape", AttrKind::Shape, "Shape of lhs.")],
    infer_shape: |shapes| shapes.same_as_first(),
    infer_dtype: |dtypes| {
        if let Some(dtype) = dtypes.inputs[0] {
            dtypes.set_input(1, "rhs", dtype)?;
        }
        first_decides(dtypes)
    },
    bind: bind_set,
    form: |_, signature| {
        let [whole, values, indices] = signature.inputs else { return Err(wrong_arity()) };
        SlicePositions::new(&whole.shape, &values.shape, &indices.shape)?.form(true, signature)
    },
    ..OpDef::BASE
}];

fn bind_set(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [whole, values, indices] = signature.inputs else { return Err(wrong_arity()) };
    let places = SlicePositions::new(&whole.shape, &values.shape, &indices.shape)?;
    check_integers("indices", indices.dtype)?;
    dispatch_size!(whole.dtype, T => Ok(kernel_fn(signature, move |call| {
        copy_first(call)?;
        let ([_, values, indices], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let SlicePositions { sizes, inner, count } = &places;
        let (values, indices) = (elements::<T>(values)?, integers(call.par, indices)?);
        scatter_set_nd(values, &indices, *count, elements_mut(out)?, sizes, *inner).map_err(kernel_error)
    })))
}
