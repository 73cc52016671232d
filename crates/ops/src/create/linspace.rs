//! `_linspace`: a given number of evenly spaced values.

use super::{CTX, DTYPE, dtype_from_attr};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linspace",
    aliases: &["_npi_linspace"],
    doc: "num evenly spaced values from start to stop, which is the last one unless endpoint is \
        False.",
    inputs: Inputs::Fixed(&[]),
    attrs: &[
        AttrDef::required("start", AttrKind::Float, "First value.").wide(),
        AttrDef::required("stop", AttrKind::Float, "End of the range.").wide(),
        AttrDef::required("num", AttrKind::IntFrom(0), "Number of values."),
        AttrDef::new("endpoint", AttrKind::Bool, "True", "Whether stop is the last value."),
        CTX,
        DTYPE,
    ],
    infer_shape: |shapes| {
        let num = shapes.attrs.count("num");
        shapes.set_output(0, Shape::new(&[num]))
    },
    infer_dtype: dtype_from_attr,
    bind,
    form: |attrs, signature| {
        let (start, stop, step, intervals) = spaced(attrs);
        for_numeric(signature.outputs[0].dtype, KernelForm::Spaced { start, step, end: (intervals, stop) })
    },
    ..OpDef::BASE
}];

/// Start, end, distance between numbers, and how many distances there are.
fn spaced(attrs: &Attrs) -> (f64, f64, f64, usize) {
    let (start, stop, num) = (attrs.float("start"), attrs.float("stop"), attrs.count("num"));
    let intervals = if attrs.bool("endpoint") { num.saturating_sub(1) } else { num };
    let step = if intervals == 0 { 0.0 } else { (stop - start) / intervals as f64 };
    (start, stop, step, intervals)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (start, stop, step, intervals) = spaced(attrs);
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        for (i, out) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().enumerate() {
            *out = T::from_f64(if i > 0 && i == intervals { stop } else { start + step * i as f64 });
        }
        Ok(())
    })))
}
