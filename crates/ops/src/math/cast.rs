//! `Cast`, `amp_cast`: another element type.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "Cast",
        aliases: &["_npi_cast", "_npx_cast", "cast"],
        doc: "Converts to another dtype: floats are truncated to integers, narrower integers wrap \
            around.",
        attrs: &[AttrDef::required(
            "dtype",
            AttrKind::DType(&["bfloat16", "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "The new dtype.",
        )],
        infer_dtype,
        bind,
        form,
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
    OpDef {
        name: "amp_cast",
        doc: "Converts to another dtype, in networks converted to mixed precision.",
        attrs: &[AttrDef::required(
            "dtype",
            AttrKind::DType(&["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "The new dtype.",
        )],
        infer_dtype: |dtypes| {
            // Only floats are converted.
            match dtypes.inputs[0] {
                Some(dtype) if !dtype.is_float() => dtypes.set_output(0, dtype),
                _ => infer_dtype(dtypes),
            }
        },
        bind,
        form,
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
];

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    match dtypes.attrs.opt_dtype("dtype") {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    }
}

fn check_convertible(from: DType, to: DType) -> Result<(), OpError> {
    match from == DType::BF16 || to == DType::BF16 {
        true => Err(not_implemented("bfloat16 arrays cannot be converted yet")),
        false => Ok(()),
    }
}

fn form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to {
        return Ok(Some(KernelForm::Copy));
    }
    check_convertible(from, to)?;
    Ok(Some(KernelForm::Cast))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to {
        return Ok(costed_kernel_fn("copy", elementwise_ns(signature, 0), copy_first));
    }
    check_convertible(from, to)?;
    // Most pairs of types are converted one by one.
    let cost = elementwise_ns(signature, 500);
    Ok(costed_kernel_fn("plain", cost, |call| convert(call.par, &call.inputs[0], &mut call.outputs[0])))
}
