//! `_npi_logspace`: values whose logarithms are in equal steps.

use super::{DTYPE, MADE, bind_places};
use crate::numpy::CTX;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_logspace",
    doc: "num values from base^start to base^stop, whose logarithms are evenly spaced.",
    attrs: &[
        AttrDef::required("start", AttrKind::Float, "Logarithm of the first value.").wide(),
        AttrDef::required("stop", AttrKind::Float, "Logarithm of the end.").wide(),
        AttrDef::required("num", AttrKind::IntFrom(0), "Number of values."),
        AttrDef::new("endpoint", AttrKind::Bool, "True", "Whether the end is the last value."),
        AttrDef::new("base", AttrKind::Float, "10", "Base of the logarithms.").wide(),
        CTX,
        DTYPE,
    ],
    infer_shape: |shapes| shapes.set_output(0, Shape::new(&[shapes.attrs.count("num")])),
    bind: |attrs, signature| {
        let (start, stop, base) = (attrs.float("start"), attrs.float("stop"), attrs.float("base"));
        let num = attrs.count("num");
        let intervals = if attrs.bool("endpoint") { num.saturating_sub(1) } else { num };
        let step = if intervals == 0 { 0.0 } else { (stop - start) / intervals as f64 };
        bind_places(signature, move |i| base.powf(start + step * i as f64))
    },
    ..MADE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn every_value_is_ten_times_the_one_before() {
        let y = OpTest::new("_npi_logspace").attr("start", "0").attr("stop", "2").attr("num", "3").run();
        assert_close(&f32s(&y, [3]), &[1.0, 10.0, 100.0]);
    }
}
