//! Sums of convolutions in which each filter sees one channel.

use super::tile::{COLUMNS, PANEL, Sums};
use crate::vectorize::vectorized;

/// Difference between signed data and unsigned ones.
const SHIFT: i32 = 128;

/// Packed weights, and the places of taps in a copied image.
pub(super) struct Depthwise<'a> {
    pub channels: usize,
    /// `[tap][channel]`, channels in whole panels; then what is added to sums of signed data.
    pub packed: &'a [u8],
    /// Offset of each tap.
    pub segments: &'a [usize],
}

impl Depthwise<'_> {
    /// Bytes of packed weights; `None` where they cannot be counted.
    pub fn packed_len(channels: usize, taps: usize) -> Option<usize> {
        channels.checked_next_multiple_of(PANEL)?.checked_mul(taps.checked_add(size_of::<i32>())?)
    }

    /// Packs weights, `[channel][tap]`.
    pub fn pack(channels: usize, taps: usize, weights: &[i8], packed: &mut [u8]) {
        let width = channels.next_multiple_of(PANEL);
        packed.fill(0);
        let (bytes, corrections) = packed.split_at_mut(width * taps);
        for channel in 0..channels {
            let row = &weights[channel * taps..][..taps];
            row.iter().enumerate().for_each(|(tap, w)| bytes[tap * width + channel] = *w as u8);
            let sum = row.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w)));
            corrections.as_chunks_mut::<4>().0[channel] = sum.wrapping_mul(-SHIFT).to_ne_bytes();
        }
    }

    /// Computes the sums of some channels, at most 64 from a multiple of 16 on, of rows of windows that
    /// begin at these offsets.
    pub fn sums(&self, data: &[u8], starts: &[usize], [first, count]: [usize; 2], signed: bool, sums: &mut [Sums]) {
        let width = self.channels.next_multiple_of(PANEL);
        let (weights, corrections) = self.packed.split_at(width * self.segments.len());
        let corrections = &corrections.as_chunks::<4>().0[first..];
        let columns = count.next_multiple_of(PANEL).min(COLUMNS);
        for panel in (0..columns).step_by(PANEL) {
            let channel = first + panel;
            let bias = std::array::from_fn(|i| if signed { i32::from_ne_bytes(corrections[panel + i]) } else { 0 });
            let weights = &weights[channel..];
            panel_sums(
                PanelArgs { data: &data[channel..], starts, segments: self.segments, weights, width, bias },
                panel,
                sums,
            );
        }
    }
}

/// The operands of 16 channels.
struct PanelArgs<'a> {
    data: &'a [u8],
    starts: &'a [usize],
    segments: &'a [usize],
    weights: &'a [u8],
    /// Bytes from the weights of a tap to those of the next.
    width: usize,
    bias: [i32; PANEL],
}

vectorized! {
    fn panel_sums[](x: PanelArgs<'_>, panel: usize, sums: &mut [Sums]) {
        for (start, sums) in x.starts.iter().zip(sums) {
            let mut sum = x.bias;
            for (segment, weights) in x.segments.iter().zip(x.weights.chunks(x.width)) {
                let (data, weights) = (&x.data[start + segment..][..PANEL], &weights[..PANEL]);
                for i in 0..PANEL {
                    sum[i] = sum[i].wrapping_add(i32::from(data[i]) * i32::from(weights[i] as i8));
                }
            }
            sums[panel..][..PANEL].copy_from_slice(&sum);
        }
    }
}
