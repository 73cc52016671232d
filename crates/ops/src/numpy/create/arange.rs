//! `_npi_arange`: values in equal steps.

use super::{DTYPE, MADE};
use crate::create::arange::{bind_range, range_form};
use crate::numpy::CTX;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_arange",
    doc: "Values from start up to stop (not included) in steps; without stop from 0 up to start.",
    attrs: &[
        AttrDef::required("start", AttrKind::Float, "First value.").wide(),
        AttrDef::new("stop", AttrKind::OptFloat, "None", "End of the range.").wide(),
        AttrDef::new("step", AttrKind::Float, "1", "Distance between values.").wide(),
        AttrDef::new("repeat", AttrKind::IntFrom(1), "1", "How often each value is repeated."),
        AttrDef::new("infer_range", AttrKind::Bool, "False", "For MXNet; the length is start to stop."),
        CTX,
        DTYPE,
    ],
    infer_shape: |shapes| {
        let [start, stop, step] = range(shapes.attrs);
        let steps = ((stop - start) / step).ceil();
        if step == 0.0 || !steps.is_finite() {
            return Err(value_error(format!("the range from {start} to {stop} in steps of {step} has no length")));
        }
        let values = steps.max(0.0) * shapes.attrs.int("repeat") as f64;
        if values > 1e15 {
            return Err(value_error(format!("the range from {start} to {stop} in steps of {step} is too long")));
        }
        shapes.set_output(0, Shape::new(&[values as usize]))
    },
    bind: |attrs, signature| {
        let [start, _, step] = range(attrs);
        bind_range(start, step, attrs.int("repeat"), signature)
    },
    form: |attrs, signature| {
        let [start, _, step] = range(attrs);
        range_form(start, step, attrs.int("repeat"), signature)
    },
    ..MADE
}];

/// Start, stop and step: without a stop, start is one.
fn range(attrs: &Attrs) -> [f64; 3] {
    let start = attrs.float("start");
    let [start, stop] = attrs.opt_float("stop").map_or([0.0, start], |stop| [start, stop]);
    [start, stop, attrs.float("step")]
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_range_may_be_empty_but_has_steps() {
        let range = |stop: &str| OpTest::new("_npi_arange").attr("start", "1").attr("stop", stop);
        assert_eq!(f32s(&range("0").run(), [0]), [0.0; 0]);
        assert!(range("2").attr("step", "0").error().message.contains("in steps of 0 has no length"));
    }
}
