//! Changes of an image's colours by chance.

use super::augment::Random;
use super::color;
use crate::image::Pixels;
use mxrt_tensor::attrs::Attrs;

/// The changes of colours that an iterator makes.
pub(super) struct ColourChanges {
    /// Greatest changes of brightness, contrast and saturation, as shares.
    jitter: [f32; 3],
    /// Greatest changes of hue, lightness and saturation.
    hls: [f32; 3],
    /// Deviation of noise along the main directions of colours.
    pca_noise: f32,
}

impl ColourChanges {
    /// The changes that the parameters ask for, of images with `channels` channels.
    pub(super) fn new(parameters: &Attrs, channels: usize) -> Result<ColourChanges, String> {
        let float = |name: &str| parameters.float(name) as f32;
        let jitter = ["brightness", "contrast", "saturation"].map(float);
        let hls = ["random_h", "random_l", "random_s"].map(|name| parameters.int(name) as f32);
        let pca_noise = float("pca_noise");
        let changes_colours = jitter.iter().chain(&hls).chain([&pca_noise]).any(|v| *v != 0.0);
        if changes_colours && channels != 3 {
            return Err(format!("colours of images with {channels} channels cannot be changed by chance"));
        }
        Ok(ColourChanges { jitter, hls, pca_noise })
    }

    /// Changes the colours of an image by chance.
    pub(super) fn run(&self, image: &mut Pixels, random: &mut Random) {
        if self.jitter.iter().any(|v| *v > 0.0) {
            let factors = self.jitter.map(|v| 1.0 + random.between(-v, v));
            let mut order = [0, 1, 2];
            order.swap(2, random.below(3));
            order.swap(1, random.below(2));
            for change in order {
                [color::brightness, color::contrast, color::saturation][change](image, factors[change]);
            }
        }
        if self.hls.iter().any(|v| *v != 0.0) {
            // Nearly normal: sums of two numbers of different weight.
            let shift = self.hls.map(|most| {
                let chance = (random.between(0.0, 1.0) + 4.0 * random.between(0.0, 1.0)) / 5.0;
                (chance * most * 2.0 - most) as i32
            });
            color::hls(image, shift);
        }
        if self.pca_noise > 0.0 {
            color::lighting(image, [(); 3].map(|()| random.normal(self.pca_noise)));
        }
    }
}
