//! `_image_random_brightness` and similar operators: changes of brightness, contrast and colour.

use super::one_image;
use crate::prelude::*;
use crate::random::key;
use mxrt_kernels::Par;
use mxrt_kernels::image::color::Adjust;
use mxrt_kernels::random::Stream;
use mxrt_tensor::TensorMut;

macro_rules! random_factor {
    ($name:literal, $alias:literal, $adjust:ident, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            doc: $doc,
            attrs: &[
                AttrDef::required("min_factor", AttrKind::FloatIn(0.0, f64::INFINITY), "Least factor."),
                AttrDef::required("max_factor", AttrKind::FloatIn(0.0, f64::INFINITY), "Largest factor."),
            ],
            bind: |attrs, signature| {
                let range = [attrs.float("min_factor"), attrs.float("max_factor")];
                if range[0] > range[1] {
                    return Err(value_error(format!("min_factor {} is larger than max_factor {}", range[0], range[1])));
                }
                bind(signature, move |stream| vec![Adjust::$adjust(uniform(stream, range))])
            },
            ..RANDOM
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    random_factor!(
        "_image_random_brightness",
        "_npx__image_random_brightness",
        Brightness,
        "Multiplies (height, width, channels) by a random factor."
    ),
    random_factor!(
        "_image_random_contrast",
        "_npx__image_random_contrast",
        Contrast,
        "Multiplies the distance of (height, width, channels) to the mean grey by a random factor."
    ),
    random_factor!(
        "_image_random_saturation",
        "_npx__image_random_saturation",
        Saturation,
        "Makes the colours of (height, width, channels) stronger or weaker by a random factor."
    ),
    random_factor!(
        "_image_random_hue",
        "_npx__image_random_hue",
        Hue,
        "Turns the hue of (height, width, channels) by a random number of circles."
    ),
];

pub(super) const RANDOM: OpDef = OpDef { infer_shape: one_image, random: true, ..OpDef::BASE };

pub(super) fn uniform(stream: &mut Stream, [low, high]: [f64; 2]) -> f32 {
    (low + (high - low) * stream.uniform()) as f32
}

/// A kernel that draws its changes from the stream of the call.
pub(super) fn bind(
    signature: &Signature<'_>,
    draw: impl Fn(&mut Stream) -> Vec<Adjust> + Send + Sync + 'static,
) -> BoundKernel {
    bind_changes(signature, move |call| {
        let RandomKey { seed, position } = key(call)?;
        Ok(draw(&mut Stream::new(seed, position, 0)))
    })
}

pub(super) fn bind_changes(
    signature: &Signature<'_>,
    changes: impl Fn(&KernelCall<'_, '_>) -> Result<Vec<Adjust>, OpError> + Send + Sync + 'static,
) -> BoundKernel {
    let channels = signature.inputs[0].shape[2];
    check_numeric(signature.inputs[0].dtype)?;
    Ok(kernel_fn(signature, move |call| {
        let changes = changes(call)?;
        copy_first(call)?;
        change_pixels(call.par, &changes, channels, &mut call.outputs[0])
    }))
}

fn change_pixels(
    par: &dyn Par,
    changes: &[Adjust],
    channels: usize,
    pixels: &mut TensorMut<'_>,
) -> Result<(), OpError> {
    dispatch!(pixels.dtype, numeric, T => {
        let pixels = elements_mut::<T>(pixels)?;
        changes.iter().for_each(|change| change.apply(par, channels, pixels));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn run(op: &str, attrs: &[(&str, &str)], x: &[f32]) -> Vec<f32> {
        let test = OpTest::new(op).attrs(attrs);
        f32s(&test.f32([1, 1, 3], x).run(), [1, 1, 3])
    }

    #[test]
    fn a_range_of_one_factor_is_that_factor() {
        let x = [10.0, 20.0, 30.0];
        let twice = [("min_factor", "2"), ("max_factor", "2")];
        assert_eq!(run("_image_random_brightness", &twice, &x), [20.0, 40.0, 60.0]);
        assert_close(&run("_image_random_contrast", &twice, &x), &[1.85, 21.85, 41.85]);
        assert_close(&run("_image_random_saturation", &twice, &x), &[16.58, 36.58, 56.58]);
        assert_close(&run("_image_random_hue", &[("min_factor", "1"), ("max_factor", "1")], &x), &x);
    }

    #[test]
    fn factors_lie_in_their_range() {
        for _ in 0..50 {
            let y = run("_image_random_brightness", &[("min_factor", "0.5"), ("max_factor", "2")], &[1.0, 0.0, 0.0]);
            assert!((0.5..=2.0).contains(&y[0]), "{y:?}");
        }
        let error =
            OpTest::new("_image_random_hue").attr("min_factor", "2").attr("max_factor", "1").f32([1, 1, 3], &[0.0; 3]);
        assert!(error.error().message.contains("larger than max_factor"));
    }
}
