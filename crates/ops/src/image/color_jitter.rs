//! `_image_random_color_jitter`: several changes of colour in a random order.

use super::color::{RANDOM, bind, uniform};
use crate::prelude::*;
use mxrt_kernels::image::color::Adjust;
use mxrt_kernels::random::Stream;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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
