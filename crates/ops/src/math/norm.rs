//! `norm`: length of vectors.

use super::reduce::{bind_reduction, left_shape, reduced_axes};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::reduce::Reduction;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "norm",
    aliases: &["_sparse_norm"],
    doc: "The sum of absolute values (ord 1) or the Euclidean norm (ord 2) over one or two axes, \
        or of everything.",
    attrs: &[
        AttrDef::new("ord", AttrKind::Int, "2", "1 or 2."),
        AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to reduce; all if not given."),
        AttrDef::new(
            "out_dtype",
            AttrKind::DType(&["None", "float16", "float32", "float64", "int32", "int64", "int8"]),
            "None",
            "dtype of the result; only that of the input.",
        ),
        AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep reduced axes with size 1."),
    ],
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let reduced = reduced_axes(shapes.attrs, dims.len())?;
        shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
    },
    bind,
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let reduction = match attrs.int("ord") {
        1 => Reduction::L1,
        2 => Reduction::L2,
        other => return Err(value_error(format!("ord must be 1 or 2, got {other}"))),
    };
    if attrs.opt_dtype("out_dtype").is_some_and(|d| d != signature.inputs[0].dtype) {
        return Err(not_implemented("out_dtype must be the dtype of the input; convert with astype"));
    }
    bind_reduction(reduction, reduced_axes(attrs, signature.inputs[0].shape.len())?, signature)
}
