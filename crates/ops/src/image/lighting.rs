//! `_image_adjust_lighting`, `_image_random_lighting`: noise along the main directions of colours.

use super::color::{RANDOM, bind, bind_changes};
use crate::prelude::*;
use mxrt_kernels::image::color::Adjust;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_image_adjust_lighting",
        aliases: &["_npx__image_adjust_lighting"],
        doc: "Adds alpha of each of the three main directions of the colours of ImageNet to \
              (height, width, channels).",
        attrs: &[AttrDef::required("alpha", AttrKind::Floats, "Three factors.")],
        bind: |attrs, signature| {
            let alpha = <[f64; 3]>::try_from(attrs.floats("alpha"))
                .map_err(|_| value_error(format!("alpha needs 3 numbers, got {}", attrs.floats("alpha").len())))?;
            bind_fixed(signature, Adjust::Lighting(alpha.map(|v| v as f32)))
        },
        random: false,
        ..RANDOM
    },
    OpDef {
        name: "_image_random_lighting",
        aliases: &["_npx__image_random_lighting"],
        doc: "Adds each of the three main directions of the colours of ImageNet to (height, width, \
              channels), times normally distributed factors.",
        attrs: &[AttrDef::new("alpha_std", AttrKind::Float, "0.05", "Deviation of the factors.")],
        bind: |attrs, signature| {
            let deviation = attrs.float("alpha_std");
            bind(signature, move |stream| {
                vec![Adjust::Lighting([(); 3].map(|()| (stream.normal() * deviation) as f32))]
            })
        },
        ..RANDOM
    },
];

fn bind_fixed(signature: &Signature<'_>, change: Adjust) -> BoundKernel {
    bind_changes(signature, move |_| Ok(vec![change]))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn noise_of_no_deviation_changes_nothing() {
        let x = [10.0, 20.0, 30.0];
        let y = OpTest::new("_image_random_lighting").attr("alpha_std", "0").f32([1, 1, 3], &x).run();
        assert_eq!(f32s(&y, [1, 1, 3]), x);
    }
}
