//! `_image_random_brightness` and similar operators: changes of brightness, contrast and colour.

use super::one_image;
use crate::prelude::*;
use crate::random::key;
use mxrt_engine::OpError;
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
    OpDef {
        name: "_image_random_color_jitter",
        aliases: &["_npx__image_random_color_jitter"],
        doc: "Changes brightness, contrast, saturation and hue of (height, width, channels) in \
              random order, each by a random factor around 1, or for hue by a part of a circle \
              around 0.",
        attrs: &[
            AttrDef::required("brightness", AttrKind::Float, "Most that the factor of the brightness differs from 1."),
            AttrDef::required("contrast", AttrKind::Float, "Most that the factor of the contrast differs from 1."),
            AttrDef::required("saturation", AttrKind::Float, "Most that the factor of the saturation differs from 1."),
            AttrDef::required("hue", AttrKind::Float, "Largest turn of the hue."),
        ],
        bind: |attrs, signature| {
            let most = ["brightness", "contrast", "saturation", "hue"].map(|name| attrs.float(name));
            bind(signature, move |stream| jitter(stream, most))
        },
        ..RANDOM
    },
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

const RANDOM: OpDef = OpDef { infer_shape: one_image, random: true, ..OpDef::BASE };

fn uniform(stream: &mut Stream, [low, high]: [f64; 2]) -> f32 {
    (low + (high - low) * stream.uniform()) as f32
}

fn jitter(stream: &mut Stream, most: [f64; 4]) -> Vec<Adjust> {
    let mut order = [0, 1, 2, 3];
    for i in (1..4).rev() {
        order.swap(i, (stream.next_u32() as usize) % (i + 1));
    }
    let present = order.into_iter().filter(|i| most[*i] > 0.0);
    present
        .map(|i| {
            let change = uniform(stream, [-most[i], most[i]]);
            match i {
                0 => Adjust::Brightness(1.0 + change),
                1 => Adjust::Contrast(1.0 + change),
                2 => Adjust::Saturation(1.0 + change),
                _ => Adjust::Hue(change),
            }
        })
        .collect()
}

/// A kernel that draws its changes from the stream of the call.
fn bind(
    signature: &Signature<'_>,
    draw: impl Fn(&mut Stream) -> Vec<Adjust> + Send + Sync + 'static,
) -> Result<Box<dyn Kernel>, OpError> {
    bind_changes(signature, move |call| {
        let RandomKey { seed, position } = key(call)?;
        Ok(draw(&mut Stream::new(seed, position, 0)))
    })
}

fn bind_fixed(signature: &Signature<'_>, change: Adjust) -> Result<Box<dyn Kernel>, OpError> {
    bind_changes(signature, move |_| Ok(vec![change]))
}

fn bind_changes(
    signature: &Signature<'_>,
    changes: impl Fn(&KernelCall<'_, '_>) -> Result<Vec<Adjust>, OpError> + Send + Sync + 'static,
) -> Result<Box<dyn Kernel>, OpError> {
    let channels = signature.inputs[0].shape[2];
    check_numeric(signature.inputs[0].dtype)?;
    Ok(kernel_fn(signature, move |call| {
        let changes = changes(call)?;
        copy_first(call)?;
        change_pixels(&changes, channels, &mut call.outputs[0])
    }))
}

fn change_pixels(changes: &[Adjust], channels: usize, pixels: &mut TensorMut<'_>) -> Result<(), OpError> {
    dispatch!(pixels.dtype, numeric, T => {
        let pixels = elements_mut::<T>(pixels)?;
        changes.iter().for_each(|change| change.apply(channels, pixels));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn run(op: &str, attrs: &[(&str, &str)], x: &[f32]) -> Vec<f32> {
        let test = attrs.iter().fold(OpTest::new(op), |t, (k, v)| t.attr(k, v));
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
        assert_eq!(run("_image_random_lighting", &[("alpha_std", "0")], &x), x);
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
