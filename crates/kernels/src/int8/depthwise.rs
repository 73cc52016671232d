//! Sums of convolutions in which each filter sees one channel.

use super::Level;
use super::tile::{ByteEnd, COLUMNS, Sums, TileEnd};
use crate::par::Columns;
use crate::places::Places;
use crate::vectorize::vectorized;

/// Channels whose sums are computed together.
pub(super) const CHANNELS: usize = COLUMNS;
/// Difference between signed data and unsigned ones.
const SHIFT: i32 = 128;

/// Rows of windows in images.
#[derive(Clone, Copy)]
pub(super) struct WindowRows {
    /// Offset of the first window.
    pub first: usize,
    /// Rows, and windows of a row.
    pub count: [usize; 2],
    /// Bytes from a row to the next, and from a window to the next.
    pub step: [usize; 2],
}

impl WindowRows {
    /// The largest offset of a window; `None` if there is no window.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no other level computes rows"))]
    fn most(&self) -> Option<usize> {
        let last = |axis: usize| self.count[axis].checked_sub(1)?.checked_mul(self.step[axis]);
        self.first.checked_add(last(0)?)?.checked_add(last(1)?)
    }
}

/// Places of the results of rows of windows.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no other level computes rows"))]
pub(super) struct ResultRows<'a, 'b> {
    pub out: &'a mut Columns<'b, u8>,
    /// The row of the first result, and its first column.
    pub first: [usize; 2],
    /// Rows from a result to the one below it.
    pub row_len: usize,
}

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
    pub fn run(&self, data: &[u8], starts: Places<'_>, [first, count]: [usize; 2], signed: bool, end: TileEnd<'_, '_>) {
        let x = self.args(data, starts.values(), Some(starts.most()), first, signed);
        assert!(count <= CHANNELS && starts.values().len() <= end.rows(), "{count} of {} windows", end.rows());
        match self.level {
            // SAFETY: windows were checked above, and `Level::or_best` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Level::Vnni if self.in_registers() => unsafe {
                super::x86::depthwise_vnni(&x, count, end);
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 if self.segments.len() <= super::x86::MOST_TAPS_AVX2 => unsafe {
                super::x86::depthwise_avx2(&x, count, end.sums());
            },
            _ => channel_sums(&x, end.sums()),
        }
    }

    /// Computes bytes of whole rows of windows, if the level has a kernel that does; otherwise nothing.
    /// Channels are as in [`run`](Self::run).
    pub fn run_rows(
        &self,
        data: &[u8],
        windows: &WindowRows,
        [first, count]: [usize; 2],
        signed: bool,
        end: &ByteEnd<'_>,
        to: &mut ResultRows<'_, '_>,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if let Some(columns) = super::x86::ThreeColumns::of(self.segments).filter(|_| self.level == Level::Vnni) {
            let x = self.args(data, &[], windows.most(), first, signed);
            assert!(count <= CHANNELS, "{count} channels");
            // SAFETY: windows were checked, and `Level::or_best` found the instructions.
            unsafe { super::x86::depthwise_rows_vnni(&x, columns, windows, count, end, to) }
            return true;
        }
        let _ = (data, windows, first, count, signed, end, to);
        false
    }

    /// The operands of 64 channels, from a multiple of that on, of windows up to this offset.
    fn args<'a>(
        &'a self,
        data: &'a [u8],
        starts: &'a [usize],
        most: Option<usize>,
        first: usize,
        signed: bool,
    ) -> DepthwiseArgs<'a> {
        let (weights, corrections) = self.packed.split_at(self.width * self.segments.len());
        let corrections = corrections.as_chunks::<4>().0;
        let last = self.segments.iter().max().copied().unwrap_or(0);
        let reach = most.and_then(|most| most.checked_add(last)?.checked_add(self.width));
        assert!(reach.is_some_and(|end| end <= data.len()), "a window ends at {reach:?} of {}", data.len());
        assert!(first + CHANNELS <= self.width, "{first} of {} channels", self.width);
        let of = |i: usize| if signed { i32::from_ne_bytes(corrections[first + i]) } else { 0 };
        DepthwiseArgs {
            data: &data[first..],
            starts,
            segments: self.segments,
            weights: &weights[first..],
            width: self.width,
            first: std::array::from_fn(of),
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
