//! `_npi_nan_to_num`: NaN and infinities replaced by numbers.

use crate::prelude::*;
use crate::shape::bind_copy;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_nan_to_num",
    doc: "NaN and infinities replaced by numbers.",
    attrs: &[
        AttrDef::new("copy", AttrKind::Bool, "True", "For NumPy; the result is an array of its own."),
        AttrDef::new("nan", AttrKind::Float, "0", "In the place of NaN.").wide(),
        AttrDef::new("posinf", AttrKind::OptFloat, "None", "In the place of infinity; the largest number if none.")
            .wide(),
        AttrDef::new("neginf", AttrKind::OptFloat, "None", "In the place of -infinity; the lowest number if none.")
            .wide(),
    ],
    bind: |attrs, signature| {
        if !signature.inputs[0].dtype.is_float() {
            return bind_copy(attrs, signature);
        }
        let (nan, top, bottom) = (attrs.float("nan"), attrs.opt_float("posinf"), attrs.opt_float("neginf"));
        dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
            let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
            let nan = T::from_f64(nan);
            let (top, bottom) = (top.map_or(T::HIGHEST, T::from_f64), bottom.map_or(T::LOWEST, T::from_f64));
            for (out, x) in out.iter_mut().zip(x) {
                *out = match *x {
                    x if x.nan() => nan,
                    x if x == T::TOP => top,
                    x if x == T::BOTTOM => bottom,
                    x => x,
                };
            }
            Ok(())
        })))
    },
    form: |attrs, signature| {
        let dtype = signature.inputs[0].dtype;
        if !dtype.is_float() {
            return for_all(dtype, KernelForm::Copy);
        }
        let (nan, top, bottom) = (attrs.float("nan"), attrs.opt_float("posinf"), attrs.opt_float("neginf"));
        dispatch!(dtype, float, T => {
            let (top, bottom) = (top.map_or(T::HIGHEST, T::from_f64), bottom.map_or(T::LOWEST, T::from_f64));
            Ok(Some(KernelForm::Finite { numbers: [T::from_f64(nan), top, bottom].map(|number| number.to_f64()) }))
        })
    },
    ..OpDef::BASE
}];
