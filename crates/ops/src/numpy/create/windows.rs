//! `_npi_blackman`, `_npi_hamming`, `_npi_hanning`: window functions.

use super::{DTYPE, MADE, bind_places};
use crate::math::identity::bind_fill;
use crate::numpy::CTX;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_blackman",
        doc: "The Blackman window of M points.",
        bind: |_, signature| bind_window(|x| 0.42 - 0.5 * x.cos() + 0.08 * (2.0 * x).cos(), signature),
        ..WINDOW
    },
    OpDef {
        name: "_npi_hamming",
        doc: "The Hamming window of M points.",
        bind: |_, signature| bind_window(|x| 0.54 - 0.46 * x.cos(), signature),
        ..WINDOW
    },
    OpDef {
        name: "_npi_hanning",
        doc: "The Hann window of M points.",
        bind: |_, signature| bind_window(|x| 0.5 - 0.5 * x.cos(), signature),
        ..WINDOW
    },
];

const WINDOW: OpDef = OpDef {
    attrs: &[AttrDef::new("M", AttrKind::OptInt, "None", "Number of points."), CTX, DTYPE],
    infer_shape: |shapes| {
        let Some(points) = shapes.attrs.opt_int("M") else { return Err(value_error("M must be given")) };
        shapes.set_output(0, Shape::new(&[usize::try_from(points).unwrap_or(0)]))
    },
    ..MADE
};

fn bind_window(window: fn(f64) -> f64, signature: &Signature<'_>) -> BoundKernel {
    let points = signature.outputs[0].shape.size();
    if points == 1 {
        return bind_fill(1.0, signature);
    }
    let step = std::f64::consts::TAU / points.saturating_sub(1).max(1) as f64;
    bind_places(signature, move |i| window(step * i as f64))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn a_window_ends_in_zeros() {
        let y = OpTest::new("_npi_hanning").attr("M", "3").run();
        assert_close(&f32s(&y, [3]), &[0.0, 1.0, 0.0]);
    }
}
