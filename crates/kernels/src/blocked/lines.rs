//! Lines of 32 channels in bf16, and what reads and writes them or blocks of 16 in float32 alike.

use crate::blocked::{BLOCK, BlockedShape, LINE_CHANNELS};
use crate::simd::{Dst, LANES, PairsBody, Rounding, Src};

/// Pixels next to each other of 32 channels.
#[derive(Clone, Copy)]
pub(crate) enum Pixels<P> {
    /// A line each.
    Lines(P),
    /// A block, and another one if there are more than 16 channels.
    Blocks(P, Option<P>),
    /// Blocks of which the last one has this many channels; its others hold anything.
    Ragged(P, Option<P>, usize),
}

macro_rules! pixels {
    ($pointer:ident) => {
        impl Pixels<$pointer> {
            /// The pixels of a tensor at `at` from (row, col) on, of 32 channels: `pair` counts them.
            pub(crate) fn new(
                at: $pointer,
                shape: &BlockedShape,
                image: usize,
                pair: usize,
                row: usize,
                col: usize,
            ) -> Self {
                let inside = (shape.halo.top + row) * shape.row_stride() + (shape.halo.left + col) * BLOCK;
                Self::from_corner(at, shape, image, pair).add(inside)
            }

            /// The pixels of a tensor at `at` from the corner of its halo on.
            pub(crate) fn from_corner(at: $pointer, shape: &BlockedShape, image: usize, pair: usize) -> Self {
                let block = |block: usize| at.add(shape.padded_offset(image, block, 0, 0));
                if shape.in_lines() {
                    return Pixels::Lines(block(pair));
                }
                let high = (2 * pair + 1 < shape.blocks()).then(|| block(2 * pair + 1));
                match shape.c % BLOCK {
                    last if last > 0 && 2 * pair + 2 >= shape.blocks() => Pixels::Ragged(block(2 * pair), high, last),
                    _ => Pixels::Blocks(block(2 * pair), high),
                }
            }

            /// The pixels `n` elements on.
            #[inline(always)]
            pub(crate) fn add(self, n: usize) -> Self {
                match self {
                    Pixels::Lines(at) => Pixels::Lines(at.add(n)),
                    Pixels::Blocks(low, high) => Pixels::Blocks(low.add(n), high.map(|high| high.add(n))),
                    Pixels::Ragged(low, high, last) => Pixels::Ragged(low.add(n), high.map(|high| high.add(n)), last),
                }
            }
        }
    };
}

pixels!(Src);
pixels!(Dst);

impl Pixels<Src> {
    /// The values of a pixel, `at` elements on; zeros of channels that do not exist.
    ///
    /// # Safety
    /// The pixel must be readable.
    #[inline(always)]
    pub(crate) unsafe fn load<S: Rounding>(self, s: S, at: usize) -> [S::V; 2] {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                Pixels::Lines(line) => s.values_of_pairs(s.load(line, at)),
                Pixels::Blocks(low, Some(high)) => [s.load(low, at), s.load(high, at)],
                Pixels::Blocks(low, None) => [s.load(low, at), s.zero()],
                Pixels::Ragged(low, Some(high), last) => [s.load(low, at), s.load_part(high, at, last, s.zero())],
                Pixels::Ragged(low, None, last) => [s.load_part(low, at, last, s.zero()), s.zero()],
            }
        }
    }
}

impl Pixels<Dst> {
    /// Writes the values of a pixel, `at` elements on, rounded if it is a line.
    ///
    /// # Safety
    /// The pixel must be writable and not accessed by another thread.
    #[inline(always)]
    pub(crate) unsafe fn store<S: Rounding>(self, s: S, at: usize, [low, high]: [S::V; 2]) {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                Pixels::Lines(line) => s.store(line, at, s.round_to_pairs(low, high)),
                Pixels::Blocks(first, second) | Pixels::Ragged(first, second, _) => {
                    s.store(first, at, low);
                    if let Some(second) = second {
                        s.store(second, at, high);
                    }
                }
            }
        }
    }
}

/// How many times 32 channels there are, the last ones perhaps not all.
pub(crate) fn pairs(shape: &BlockedShape) -> usize {
    shape.c.div_ceil(LINE_CHANNELS)
}

/// The blocks of a tensor, or lines, that hold 32 channels.
pub(crate) fn blocks_of_pair(shape: &BlockedShape, pair: usize) -> std::ops::Range<usize> {
    if shape.in_lines() { pair..pair + 1 } else { 2 * pair..(2 * pair + 2).min(shape.blocks()) }
}

/// Pixels of a row to copy, converted where the two differ.
pub(crate) struct CopyArgs {
    pub from: Pixels<Src>,
    pub to: Pixels<Dst>,
    /// Elements from one pixel that is read to the next.
    pub step: usize,
    pub count: usize,
}

/// Copies pixels between lines and blocks.
pub(crate) struct CopyPixels;

impl PairsBody for CopyPixels {
    type Args = CopyArgs;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &CopyArgs) {
        for i in 0..x.count {
            // SAFETY: promised by the caller.
            unsafe { x.to.store(s, i * LANES, x.from.load(s, i * x.step)) }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::amx::parts::{round, value};

    /// Returns the shapes of a tensor in blocks and in lines.
    fn shapes(shape: &BlockedShape) -> [BlockedShape; 2] {
        let BlockedShape { n, c, h, w, halo, .. } = *shape;
        [BlockedShape::new(n, c, h, w, halo), BlockedShape::lines(n, c, h, w, halo)]
    }

    /// Calls with the offsets of every number, halo included, in blocks and in lines, and with the
    /// half of the element of the line that it is.
    fn each(shape: &BlockedShape, mut call: impl FnMut(usize, usize, usize)) {
        let [blocks, lines] = shapes(shape);
        let [rows, columns] = [shape.halo.top + shape.h + shape.halo.bottom, lines.row_stride() / BLOCK];
        for (image, channel) in (0..shape.n).flat_map(|n| (0..shape.c).map(move |c| (n, c))) {
            for (row, col) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                let block = blocks.padded_offset(image, channel / BLOCK, row, col) + channel % BLOCK;
                let within = channel % LINE_CHANNELS;
                let line = lines.padded_offset(image, channel / LINE_CHANNELS, row, col) + within / 2;
                call(block, line, within % 2);
            }
        }
    }

    /// A tensor in blocks, in lines.
    pub(crate) fn to_lines(shape: &BlockedShape, data: &[f32]) -> (BlockedShape, Vec<f32>) {
        let lines = shapes(shape)[1];
        let mut words = vec![0u32; lines.len()];
        each(shape, |block, line, half| words[line] |= u32::from(round(data[block])) << (16 * half));
        (lines, words.into_iter().map(f32::from_bits).collect())
    }

    /// A tensor in lines, in blocks.
    pub(crate) fn to_blocks(shape: &BlockedShape, data: &[f32]) -> (BlockedShape, Vec<f32>) {
        let blocks = shapes(shape)[0];
        let mut numbers = vec![0.0; blocks.len()];
        each(shape, |block, line, half| numbers[block] = value((data[line].to_bits() >> (16 * half)) as u16));
        (blocks, numbers)
    }

    /// A tensor in blocks with something in the channels that do not exist.
    pub(crate) fn fill_unused(shape: &BlockedShape, data: &mut [f32], value: f32) {
        let used = shape.c - (shape.blocks() - 1) * BLOCK;
        for image in data.chunks_mut(shape.image_stride) {
            let last = &mut image[shape.image_len() - shape.block_stride()..shape.image_len()];
            last.chunks_mut(BLOCK).for_each(|pixel| pixel[used..].fill(value));
        }
    }

    /// Numbers rounded to bf16.
    pub(crate) fn rounded(data: &[f32]) -> Vec<f32> {
        data.iter().map(|x| value(round(*x))).collect()
    }
}
