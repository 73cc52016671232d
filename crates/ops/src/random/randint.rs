//! `_random_randint`: random whole numbers.

use super::key;
use crate::create::shape_from_attr;
use crate::prelude::*;
use mxrt_kernels::random::fill_integers;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_random_randint",
    aliases: &["_npi_random_randint", "random_randint"],
    doc: "Whole numbers drawn uniformly from low up to high (not included).",
    inputs: Inputs::Fixed(&[]),
    attrs: &[
        AttrDef::required("low", AttrKind::Int, "Lowest number.").wide(),
        AttrDef::required("high", AttrKind::Int, "End of the range, not included.").wide(),
        AttrDef::new("shape", AttrKind::Shape, "None", "Shape of the result."),
        AttrDef::new("ctx", AttrKind::Str, "", "Where the array is made."),
        AttrDef::new("dtype", AttrKind::DType(&["None", "int32", "int64"]), "None", "dtype; int32 if not given."),
    ],
    infer_shape: shape_from_attr,
    infer_dtype: |dtypes| {
        let dtype = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::I32);
        dtypes.set_output(0, dtype)
    },
    bind,
    form,
    random: true,
    ..OpDef::BASE
}];

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (low, high) = (attrs.int("low"), attrs.int("high"));
    match low < high {
        true => for_numeric(signature.outputs[0].dtype, KernelForm::Random(RandomForm::Integers(low, high))),
        false => Ok(None),
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (low, high) = (attrs.int("low"), attrs.int("high"));
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        if low >= high {
            return Err(value_error(format!("low must be less than high, got {low} and {high}")));
        }
        let RandomKey { seed, position } = key(call)?;
        fill_integers::<T>(call.par, seed, position, low, high, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
