//! Sums of convolutions in which each filter sees one channel.

use super::Level;
use super::tile::{COLUMNS, Starts, Sums, TileEnd};
use crate::vectorize::vectorized;

/// Channels whose sums are computed together.
pub(super) const CHANNELS: usize = COLUMNS;
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

    /// Computes 64 channels, from a multiple of that on, of rows of windows that begin at these
    /// offsets. The first `count` of them are wanted.
    pub fn run(&self, data: &[u8], starts: Starts<'_>, [first, count]: [usize; 2], signed: bool, end: TileEnd<'_, '_>) {
        let (weights, corrections) = self.packed.split_at(self.width * self.segments.len());
        let corrections = corrections.as_chunks::<4>().0;
        let (most, starts) = (starts.most(), starts.rows());
        let last = self.segments.iter().max();
        let reach = last.map_or(Some(0), |last| most.checked_add(*last)?.checked_add(self.width));
        assert!(reach.is_some_and(|end| end <= data.len()), "a window ends at {reach:?} of {}", data.len());
        assert!(first + CHANNELS <= self.width && count <= CHANNELS, "{first} and {count} of {} channels", self.width);
        assert!(starts.len() <= end.rows(), "{} windows in {} rows", starts.len(), end.rows());
        let of = |i: usize| if signed { i32::from_ne_bytes(corrections[first + i]) } else { 0 };
        let x = DepthwiseArgs {
            data: &data[first..],
            starts,
            segments: self.segments,
            weights: &weights[first..],
            width: self.width,
            first: std::array::from_fn(of),
        };
        match self.level {
            // SAFETY: windows were checked above, and `Level::or_best` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Level::Vnni if self.in_registers() => unsafe {
                super::x86::depthwise_vnni(&x, count, end);
            },
            _ => channel_sums(&x, end.sums()),
        }
    }
}

/// The operands of 64 channels.
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
    fn channel_sums[](x: &DepthwiseArgs<'_>, sums: &mut [Sums]) {
        for (start, sum) in x.starts.iter().zip(sums) {
            *sum = x.first;
            for (segment, weights) in x.segments.iter().zip(x.weights.chunks(x.width)) {
                let (data, weights) = (&x.data[start + segment..][..CHANNELS], &weights[..CHANNELS]);
                for i in 0..CHANNELS {
                    sum[i] = sum[i].wrapping_add(i32::from(data[i]) * i32::from(weights[i] as i8));
                }
            }
        }
    }
}
