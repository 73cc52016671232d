//! Sums without tiles, where numbers have no parts.

use super::{Made, SUMS, TilesConv, TilesJob};
use crate::amx::number_in_parts;
use crate::amx::tiles::{LINE, LINE_NUMBERS, SIDE, Tiles};
use crate::blocked::BLOCK;
use crate::conv::operands::ConvJob;
use crate::conv::params::Conv2dParams;
use crate::par::Par;
use crate::simd::Src;

impl<T: Tiles, const COUNT: usize> TilesConv<T, COUNT> {
    /// Computes again, without tiles, the sums of outputs that read numbers without parts.
    pub(super) fn repair(&self, job: &TilesJob<'_>, made: &Made, weights: &[u8], sums: &mut [f32]) {
        let (plan, Made { image, panel, .. }) = (&self.plan, *made);
        let notes = job.notes.add(image * self.image_len());
        for at in panel * SIDE..plan.rows().min((panel + 1) * SIDE) {
            // SAFETY: there is a note for every line of the image, and outputs read no others.
            let noted = |step: usize| unsafe { notes.read(job.rows.offsets[step] / LINE + at) != 0.0 };
            let (y, x) = (at / plan.size[1], at % plan.size[1]);
            if x >= plan.out[1] || !(0..plan.steps()).any(noted) {
                continue;
            }
            let sums = &mut sums[(at - panel * SIDE) * SIDE..][..SIDE];
            sums.fill(0.0);
            self.each_input(&job.conv, image, [y, x], |tap, channel, value| {
                let k = tap * plan.blocks() * LINE_NUMBERS + channel;
                for (column, sum) in sums.iter_mut().enumerate() {
                    *sum = value.mul_add(number_in_parts(weights, k, column), *sum);
                }
            });
        }
    }

    /// Every input that an output sees: tap, channel, value.
    fn each_input(&self, job: &ConvJob<'_>, image: usize, at: [usize; 2], mut call: impl FnMut(usize, usize, f32)) {
        let Conv2dParams { kernel, stride, dilate, pad, in_channels, .. } = self.plan.params;
        let first = [job.xs.halo.top - pad[0], job.xs.halo.left - pad[1]];
        for tap in 0..kernel[0] * kernel[1] {
            let offset = [tap / kernel[1] * dilate[0], tap % kernel[1] * dilate[1]];
            let [row, column] = [0, 1].map(|i| first[i] + at[i] * stride[i] + offset[i]);
            for channel in 0..in_channels {
                let place = job.xs.padded_offset(image, channel / BLOCK, row, column) + channel % BLOCK;
                // SAFETY: `ConvJob::new` checked that the input has these pixels.
                call(tap, channel, unsafe { job.x.read(place) });
            }
        }
    }

    /// The convolution with weights that have no parts, without tiles.
    pub(super) fn run_plain(&self, job: &ConvJob<'_>, weights: &[f32], par: &dyn Par) {
        let plan = &self.plan;
        let Conv2dParams { in_channels, out_channels, .. } = plan.params;
        let taps = plan.taps.len();
        par.run(self.images * plan.out[0], SUMS, &|chunk, scratch| {
            let (image, y) = (chunk / plan.out[0], chunk % plan.out[0]);
            let sums: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..SUMS]);
            for (pair, x) in (0..plan.columns()).flat_map(|pair| (0..plan.out[1]).map(move |x| (pair, x))) {
                sums.fill(0.0);
                self.each_input(job, image, [y, x], |tap, channel, value| {
                    for (i, sum) in sums.iter_mut().enumerate().take(SIDE.min(out_channels - pair * SIDE)) {
                        let weight = weights[((pair * SIDE + i) * in_channels + channel) * taps + tap];
                        *sum = value.mul_add(weight, *sum);
                    }
                });
                self.store_pixels(job, image, pair, [y, x], 1, Src::new(sums));
            }
        });
    }
}
