//! Sums of convolutions in which each filter sees one channel.

use super::Level;
use super::tile::{Sums, TileEnd};
use crate::vectorize::vectorized;

/// Channels whose sums are computed together.
pub(super) const CHANNELS: usize = 32;
/// Difference between signed data and unsigned ones.
const SHIFT: i32 = 128;

/// Packed weights, and the places of taps in a copied image.
pub(super) struct Depthwise<'a> {
    pub level: Level,
    /// Channels in whole groups of [`CHANNELS`].
    pub width: usize,
    /// `[tap][channel]`; then what is added to sums of signed data.
    pub packed: &'a [u8],
    /// Offset of each tap.
    pub segments: &'a [usize],
}

impl Depthwise<'_> {
    /// Bytes of packed weights; `None` where they cannot be counted.
    pub fn packed_len(channels: usize, taps: usize) -> Option<usize> {
        channels.checked_next_multiple_of(CHANNELS)?.checked_mul(taps.checked_add(size_of::<i32>())?)
    }

    /// Packs weights, `[channel][tap]`.
    pub fn pack(channels: usize, taps: usize, weights: &[i8], packed: &mut [u8]) {
        let width = channels.next_multiple_of(CHANNELS);
        packed.fill(0);
        let (bytes, corrections) = packed.split_at_mut(width * taps);
        for channel in 0..channels {
            let row = &weights[channel * taps..][..taps];
            row.iter().enumerate().for_each(|(tap, w)| bytes[tap * width + channel] = *w as u8);
            let sum = row.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w)));
            corrections.as_chunks_mut::<4>().0[channel] = sum.wrapping_mul(-SHIFT).to_ne_bytes();
        }
    }

    /// Whether sums can become bytes in registers.
    pub fn in_registers(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let possible = self.level == Level::Vnni && self.segments.len() <= super::x86::MOST_TAPS;
        #[cfg(not(target_arch = "x86_64"))]
        let possible = false;
        possible
    }

    /// Computes some channels, at most 64 from a multiple of 32 on, of rows of windows that begin at
    /// these offsets.
    pub fn run(&self, data: &[u8], starts: &[usize], [first, count]: [usize; 2], signed: bool, mut end: TileEnd<'_>) {
        let (weights, corrections) = self.packed.split_at(self.width * self.segments.len());
        let corrections = corrections.as_chunks::<4>().0;
        let reach = starts.iter().max().zip(self.segments.iter().max()).map_or(0, |(start, last)| start + last);
        assert!(reach + self.width <= data.len(), "a window ends at {} of {}", reach + self.width, data.len());
        for at in (0..count).step_by(CHANNELS) {
            let channel = first + at;
            let of = |i: usize| if signed { i32::from_ne_bytes(corrections[channel + i]) } else { 0 };
            let x = DepthwiseArgs {
                data: &data[channel..],
                starts,
                segments: self.segments,
                weights: &weights[channel..],
                width: self.width,
                first: std::array::from_fn(of),
            };
            match self.level {
                // SAFETY: windows were checked above, and `Level::or_best` found the instructions.
                #[cfg(target_arch = "x86_64")]
                Level::Vnni if self.in_registers() => unsafe {
                    super::x86::depthwise_vnni(&x, at, &mut end);
                },
                _ => match &mut end {
                    TileEnd::Sums(sums) => channel_sums(&x, at, sums),
                    TileEnd::Bytes(..) => unreachable!("only registers end in bytes"),
                },
            }
        }
    }
}

/// The operands of 32 channels.
pub(super) struct DepthwiseArgs<'a> {
    pub data: &'a [u8],
    /// Offsets of windows in the data.
    pub starts: &'a [usize],
    pub segments: &'a [usize],
    pub weights: &'a [u8],
    /// Bytes from the weights of a tap to those of the next.
    pub width: usize,
    /// The numbers that sums begin with.
    pub first: [i32; CHANNELS],
}

vectorized! {
    fn channel_sums[](x: &DepthwiseArgs<'_>, at: usize, sums: &mut [Sums]) {
        for (start, sums) in x.starts.iter().zip(sums) {
            let mut sum = x.first;
            for (segment, weights) in x.segments.iter().zip(x.weights.chunks(x.width)) {
                let (data, weights) = (&x.data[start + segment..][..CHANNELS], &weights[..CHANNELS]);
                for i in 0..CHANNELS {
                    sum[i] = sum[i].wrapping_add(i32::from(data[i]) * i32::from(weights[i] as i8));
                }
            }
            sums[at..][..CHANNELS].copy_from_slice(&sum);
        }
    }
}
