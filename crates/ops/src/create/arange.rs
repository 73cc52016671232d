//! `_arange`: evenly spaced values.

use super::{CTX, DTYPE, dtype_from_attr};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_arange",
    doc: "Values from start up to stop (not included) in steps, each repeated. Without stop the \
        range is 0..start, or with infer_range as long as needed.",
    inputs: Inputs::Fixed(&[]),
    attrs: &[
        AttrDef::required("start", AttrKind::Float, "First value.").wide(),
        AttrDef::new("stop", AttrKind::OptFloat, "None", "End of the range.").wide(),
        AttrDef::new("step", AttrKind::Float, "1", "Distance between values.").wide(),
        AttrDef::new("repeat", AttrKind::Int, "1", "How often each value is repeated."),
        AttrDef::new("infer_range", AttrKind::Bool, "False", "Take the length from where the array is used."),
        CTX,
        DTYPE,
    ],
    infer_shape,
    infer_dtype: dtype_from_attr,
    bind: |attrs, signature| bind_range(start(attrs), attrs.float("step"), attrs.int("repeat"), signature),
    form: |attrs, signature| range_form(start(attrs), attrs.float("step"), attrs.int("repeat"), signature),
    ..OpDef::BASE
}];

/// The length is known from the use only.
fn is_open(attrs: &Attrs) -> bool {
    attrs.bool("infer_range") && attrs.opt_float("stop").is_none()
}

/// The first value: without `stop`, the attribute `start` is the end.
fn start(attrs: &Attrs) -> f64 {
    if is_open(attrs) || attrs.opt_float("stop").is_some() { attrs.float("start") } else { 0.0 }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let attrs = shapes.attrs;
    let (step, repeat) = (attrs.float("step"), attrs.int("repeat"));
    if step == 0.0 || repeat < 1 {
        return Err(value_error(format!("step={step} must not be 0 and repeat={repeat} must be positive")));
    }
    if is_open(attrs) {
        return Ok(());
    }
    let (start, stop) = match attrs.opt_float("stop") {
        Some(stop) => (attrs.float("start"), stop),
        None => (0.0, attrs.float("start")),
    };
    let steps = ((stop - start) / step).ceil();
    // Also false for NaN.
    if !(steps > 0.0 && steps * repeat as f64 <= u32::MAX as f64) {
        return Err(value_error(format!(
            "Invalid range (start, stop, step) = ({start}, {stop}, {step}): expected at least one \
             value and no more than 2^32"
        )));
    }
    shapes.set_output(0, Shape::new(&[steps as usize * repeat as usize]))
}

fn times(repeat: i64) -> usize {
    usize::try_from(repeat).unwrap_or(0).max(1)
}

/// The form of [`bind_range`].
pub(crate) fn range_form(start: f64, step: f64, repeat: i64, signature: &Signature<'_>) -> MaybeForm {
    for_numeric(signature.outputs[0].dtype, KernelForm::Range { start, step, repeat: times(repeat) })
}

/// `start + i * step`, every value `repeat` times. In integer types start and step are truncated
/// first.
pub(crate) fn bind_range(start: f64, step: f64, repeat: i64, signature: &Signature<'_>) -> BoundKernel {
    let repeat = times(repeat);
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        // Whole numbers start and step by whole numbers, as in MXNet.
        let [start, step] = [start, step].map(|v| if T::FLOAT { v } else { T::from_f64(v).to_f64() });
        for (i, out) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().enumerate() {
            *out = T::from_f64(start + (i / repeat) as f64 * step);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_range_may_be_repeated_and_go_down() {
        let y = OpTest::new("_arange").attr("start", "3").attr("repeat", "2").run();
        assert_eq!(f32s(&y, [6]), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
        let y = OpTest::new("_arange").attr("start", "1").attr("stop", "0").attr("step", "-0.4").run();
        assert_eq!(f32s(&y, [3]), [1.0, 0.6, 0.2]);
        let whole = OpTest::new("_arange").attr("start", "1.5").attr("stop", "4").attr("dtype", "int32");
        assert_eq!(whole.attr("step", "1.25").run().values::<i32>(), [1, 2]);
        OpTest::new("_arange").attr("start", "1").attr("stop", "0").error();
        OpTest::new("_arange").attr("start", "1").attr("stop", "2").attr("step", "0").error();
    }
}
