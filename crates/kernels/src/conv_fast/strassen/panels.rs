//! Weights as panels: in the order in which they are multiplied, sums of quarters made when they are packed.

use super::super::blocked::BLOCK;
use super::{PANELS, QUARTERS, Strassen};
use std::ops::Range;

/// The panels from the quarters of the weights, `[w11, w12, w21, w22]`; sums are made in f64.
fn panels(quarters: [f32; QUARTERS]) -> [f32; PANELS] {
    let [w11, w12, w21, w22] = quarters.map(f64::from);
    let s1 = w21 + w22;
    let s2 = s1 - w11;
    [quarters[0], quarters[1], s2 as f32, s1 as f32, (w12 - s2) as f32, (w11 - w21) as f32, -quarters[3]]
}

impl Strassen {
    /// Calls `visit` with the places of the four weights that panels are made of, in the order of [`panels`], the part, and the place
    /// in its panels; for all parts with any of some output channels. Neighbours in panels follow each other.
    fn each_quartet(&self, wanted: &Range<usize>, mut visit: impl FnMut([usize; QUARTERS], usize, usize)) {
        let (taps, inputs) = (self.params.taps(), self.inputs());
        let weight = |output: usize, input: usize, tap: usize| (output * 2 * inputs + input) * taps + tap;
        for part in 0..self.parts() {
            let blocks = self.part_blocks(part);
            let outputs = 2 * blocks.start * BLOCK..2 * blocks.end * BLOCK;
            if outputs.end <= wanted.start || wanted.end <= outputs.start {
                continue;
            }
            let half = blocks.len() * BLOCK;
            for i in 0..inputs {
                for t in 0..taps {
                    let step = (i / BLOCK * taps + t) * BLOCK + i % BLOCK;
                    for (column, o) in (outputs.start..outputs.start + half).enumerate() {
                        let of = |output: usize, input: usize| weight(o + output * half, i + input * inputs, t);
                        visit([of(0, 0), of(0, 1), of(1, 0), of(1, 1)], part, step * half + column);
                    }
                }
            }
        }
    }

    /// Where the panels of a part begin, their length, and where its part of `w21` lies.
    pub(super) fn packed_part(&self, part: usize) -> (usize, usize, usize) {
        let blocks = self.part_blocks(part);
        let (before, len) = (blocks.start * self.block_weights(), blocks.len() * self.block_weights());
        (PANELS * before, len, PANELS * self.params.weight_len() / QUARTERS + before)
    }

    /// Panels in the order in which a part reads them, part after part; then `w21`.
    pub(in super::super) fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        self.each_quartet(&(0..self.params.out_channels), |places, part, at| {
            let (start, len, rest) = self.packed_part(part);
            let quarters = places.map(|place| weights[place]);
            for (panel, value) in panels(quarters).into_iter().enumerate() {
                packed[start + panel * len + at] = value;
            }
            packed[rest + at] = quarters[2];
        });
    }

    /// The weights of some output channels, as they were before they were packed.
    pub(in super::super) fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        let filter = self.params.in_channels * self.params.taps();
        let wanted = outputs.start * filter..outputs.end * filter;
        self.each_quartet(&outputs, |places, part, at| {
            let (start, len, rest) = self.packed_part(part);
            let panel = |i: usize| packed[start + i * len + at];
            for (place, value) in places.into_iter().zip([panel(0), panel(1), packed[rest + at], -panel(PANELS - 1)]) {
                if wanted.contains(&place) {
                    weights[place - wanted.start] = value;
                }
            }
        });
    }
}
