//! Exact Winograd convolutions of bytes: 3x3 windows next to each other share products.
//!
//! AVX2 multiplies numbers of 16 bits, and bytes leave half of these unused. So inputs and weights
//! may be transformed before they are multiplied: F(2,3) has 16 products for 2x2 outputs and F(4,3)
//! has 36 for 4x4, where windows have 36 and 144. Weights are transformed without the fractions of
//! the textbook, and outputs are that much larger: 4 times for F(2,3), 576 times for F(4,3). All
//! arithmetic is modulo 2^32, where a multiple can be divided exactly: by the odd factor through its
//! inverse, by the power of two with a shift, which leaves the sum in 30 or 26 bits. Channels whose
//! sums could need more are divided into parts, which are added after the division.
//!
//! Transformed inputs have magnitudes of at most 100 * 255, and weights of 49 * 128.

use super::conv::Int8Conv;
use super::level::Level;
use super::tile::{PANEL, PANELS, ROWS, Sums};
#[cfg(target_arch = "x86_64")]
use super::x86::winograd as kernels;
use std::ops::Range;

/// Points along a side of the largest scheme.
pub(super) const MOST_POINTS: usize = 6;
/// Outputs along a side of the largest scheme.
pub(super) const MOST_OUTPUTS: usize = 4;
/// Most tiles that are transformed together.
pub(super) const MOST_TILES: usize = 8 * ROWS;
/// Channels of a vector of transformed inputs.
const LANES: usize = 16;
/// Fewer channels or filters leave vectors or tiles empty.
const LEAST: usize = 32;
/// Bytes of the transformed inputs of a group of tiles: half of a second-level cache.
const TRANSFORMED: usize = 224 << 10;
/// Numbers between the points of transformed inputs, beyond the tiles: what keeps the lines of all
/// points out of the same places of a cache.
const APART: usize = 32;
/// Rows for which a line of weights is at least as long on its way from memory as in products.
const LEAST_ROWS: usize = 12;
/// Bytes of the weights of a channel, at a point, of a panel.
const LINE: usize = PANEL * size_of::<i16>();
/// Bytes of the corrections of a panel, which follow its weights.
const CORRECTIONS: usize = PANEL * size_of::<i32>();

/// The number of outputs of a tile along a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// F(2,3).
    Two,
    /// F(4,3).
    Four,
}

impl Scheme {
    /// Points along a side.
    #[inline]
    pub const fn points(self) -> usize {
        self.outputs() + 2
    }

    /// Outputs along a side.
    #[inline]
    pub const fn outputs(self) -> usize {
        match self {
            Scheme::Two => 2,
            Scheme::Four => MOST_OUTPUTS,
        }
    }

    /// Channels of which a sum is at most as large as what is left of 32 bits.
    const fn most_channels(self) -> usize {
        const PRODUCTS: usize = 9 * 255 * 128;
        match self {
            Scheme::Two => (1 << 29) / PRODUCTS / LANES * LANES,
            Scheme::Four => (1 << 25) / PRODUCTS / LANES * LANES,
        }
    }

    /// Transforms weights along a side.
    fn weights(self, [a, b, c]: [i32; 3]) -> [i32; MOST_POINTS] {
        match self {
            Scheme::Two => [a, a + b + c, a - b + c, c, 0, 0],
            Scheme::Four => [a, a + b + c, a - b + c, a + 2 * b + 4 * c, a - 2 * b + 4 * c, c],
        }
    }
}

/// A 3x3 convolution by transforms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Winograd {
    pub scheme: Scheme,
    /// Channels in whole vectors.
    channels: usize,
    filters: usize,
    /// Extents of the output.
    output: [usize; 2],
}

impl Winograd {
    /// The way to compute a convolution of pixels by transforms, if that is the fastest on its level.
    pub fn of(conv: &Int8Conv) -> Option<Winograd> {
        let pixels = conv.pixels.is_some_and(|form| form.data.is_some());
        let near = conv.kernel == [1, 3, 3] && conv.stride == [1; 3] && conv.dilate == [1; 3];
        let many = conv.groups == 1 && conv.channels.min(conv.filters) >= LEAST;
        if conv.level.or_best() != Level::Avx2 || !(pixels && near && many) {
            return None;
        }
        let [_, height, width] = conv.output;
        let cost = |scheme: Scheme| {
            let tiles = height.div_ceil(scheme.outputs()) * width.div_ceil(scheme.outputs());
            scheme.points().pow(2) * tiles.next_multiple_of(ROWS).max(LEAST_ROWS)
        };
        let scheme = if cost(Scheme::Four) <= cost(Scheme::Two) { Scheme::Four } else { Scheme::Two };
        let channels = conv.channels.checked_next_multiple_of(LANES)?;
        let (filters, output) = (conv.filters, [height, width]);
        let faster = cost(scheme) < 9 * (height * width).max(LEAST_ROWS);
        faster.then_some(Winograd { scheme, channels, filters, output })
    }

    /// Name in plans and keys.
    pub fn name(&self) -> &'static str {
        match self.scheme {
            Scheme::Two => "winograd-f2",
            Scheme::Four => "winograd-f4",
        }
    }

    fn points(&self) -> usize {
        self.scheme.points().pow(2)
    }

    /// Channels whose products are added before outputs are made.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (all, most) = (self.channels, self.scheme.most_channels());
        (0..all).step_by(most).map(move |first| first..(first + most).min(all))
    }

    /// Bytes of a panel; `None` where they cannot be counted.
    fn panel_len(&self) -> Option<usize> {
        self.channels.checked_mul(self.points() * LINE)?.checked_add(CORRECTIONS)
    }

    /// Bytes of packed weights; `None` where they cannot be counted.
    pub fn packed_len(&self) -> Option<usize> {
        self.panel_len()?.checked_mul(self.filters.div_ceil(PANEL))
    }

    /// Packs the filters, `[filters, channels, 3, 3]`: for each panel the parts of the channels, of each
    /// the points, of each pairs of channels of 16 filters.
    pub fn pack(&self, channels: usize, weights: &[i8], packed: &mut [u8]) {
        packed.fill(0);
        let len = self.panel_len().expect("was counted");
        for (filter, weights) in weights.chunks_exact(channels * 9).enumerate().take(self.filters) {
            let (column, panel) = (filter % PANEL, &mut packed[filter / PANEL * len..][..len]);
            let (numbers, corrections) = panel.split_at_mut(len - CORRECTIONS);
            let sum = weights.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w)));
            corrections.as_chunks_mut::<4>().0[column] = sum.wrapping_mul(-128).to_ne_bytes();
            let (taps, numbers) = (weights.as_chunks::<9>().0, numbers.as_chunks_mut::<2>().0);
            let mut first = 0;
            for part in self.parts() {
                for (i, taps) in taps[part.start..part.end.min(channels)].iter().enumerate() {
                    let place = (i / 2 * PANEL + column) * 2 + i % 2;
                    self.each_point(taps, |point, w| {
                        numbers[first + point * part.len() * PANEL + place] = w.to_ne_bytes();
                    });
                }
                first += self.points() * part.len() * PANEL;
            }
        }
    }

    /// Calls `put` with each point and its weight.
    fn each_point(&self, taps: &[i8; 9], mut put: impl FnMut(usize, i16)) {
        let row = |y: usize| self.scheme.weights([0, 1, 2].map(|x| i32::from(taps[y * 3 + x])));
        let rows = [0, 1, 2].map(row);
        let side = self.scheme.points();
        for x in 0..side {
            let column = self.scheme.weights(rows.map(|row| row[x]));
            for (y, w) in column.iter().enumerate().take(side) {
                put(y * side + x, *w as i16);
            }
        }
    }

    /// Tiles that are transformed together, a multiple of the rows of a register tile.
    pub fn group(&self) -> usize {
        let all = self.output.iter().map(|side| side.div_ceil(self.scheme.outputs())).product::<usize>();
        let each = self.points() * self.channels * size_of::<i16>();
        (TRANSFORMED / each).min(all).next_multiple_of(ROWS).min(MOST_TILES)
    }

    /// Tiles of some rows of the output.
    pub fn tiles(&self, rows: &Range<usize>) -> usize {
        let side = self.scheme.outputs();
        rows.len().div_ceil(side) * self.output[1].div_ceil(side)
    }

    /// The outputs of a tile of some rows.
    pub fn place(&self, rows: &Range<usize>, tile: usize) -> TilePlace {
        let (side, width) = (self.scheme.outputs(), self.output[1]);
        let columns = width.div_ceil(side);
        let [row, column] = [rows.start + tile / columns * side, tile % columns * side];
        TilePlace { first: [row, column], count: [side.min(rows.end.saturating_sub(row)), side.min(width - column)] }
    }

    /// Bytes of the scratch memory of a group.
    pub fn scratch_len(&self) -> usize {
        let [transformed, products, sums] = self.lens();
        let bytes = [transformed * size_of::<i16>(), products * size_of::<i32>(), sums * size_of::<Sums>()];
        bytes.iter().map(|len| len.next_multiple_of(64)).sum()
    }

    /// Numbers from a point to the next of transformed inputs, and of products.
    fn pitches(&self) -> [usize; 2] {
        [self.group() * self.channels + APART, self.group() * PANEL]
    }

    /// Transformed inputs, products and rows of sums.
    fn lens(&self) -> [usize; 3] {
        let [transformed, products] = self.pitches();
        [self.points() * transformed, self.points() * products, self.group() * self.scheme.outputs().pow(2)]
    }
}

/// The part of an output that a tile makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TilePlace {
    /// The first row and column.
    pub first: [usize; 2],
    /// Rows and columns.
    pub count: [usize; 2],
}

/// Inputs of tiles in an image of pixels.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub data: &'a [u8],
    /// Offset of the first window, bytes from a row to the next and from a pixel to the next.
    pub steps: [usize; 3],
}

/// Scratch memory of a group of tiles.
pub(super) struct Group<'a> {
    x: &'a Winograd,
    transformed: &'a mut [i16],
    products: &'a mut [i32],
    /// Sums of each output, tile by tile.
    pub sums: &'a mut [Sums],
}

impl<'a> Group<'a> {
    /// Divides scratch memory on a 64-byte boundary.
    pub fn of(x: &'a Winograd, scratch: &'a mut [u8]) -> Group<'a> {
        let [transformed, products, sums] = x.lens();
        let (first, rest) = scratch.split_at_mut((transformed * size_of::<i16>()).next_multiple_of(64));
        let (second, rest) = rest.split_at_mut((products * size_of::<i32>()).next_multiple_of(64));
        Group {
            x,
            transformed: &mut bytemuck::cast_slice_mut(first)[..transformed],
            products: &mut bytemuck::cast_slice_mut(second)[..products],
            sums: bytemuck::cast_slice_mut(&mut rest[..sums * size_of::<Sums>()]),
        }
    }

    /// Most outputs of a tile.
    pub fn outputs(&self) -> usize {
        self.x.scheme.outputs().pow(2)
    }

    /// Transforms the inputs of tiles, at most those of a group.
    ///
    /// # Panics
    /// If there are more, or inputs are not in the data.
    pub fn transform(&mut self, from: &Inputs<'_>, tiles: &[TilePlace]) {
        let Winograd { scheme, channels, output, .. } = *self.x;
        let [first, below, next] = from.steps;
        let [last_row, last_column] = output.map(|side| side + 1);
        let end = first + last_row * below + last_column * next + channels;
        assert!(end <= from.data.len(), "windows end at {end} of {} bytes", from.data.len());
        assert!(tiles.len() <= self.x.group(), "{} tiles", tiles.len());
        let pitch = self.x.pitches()[0];
        for (tile, place) in tiles.iter().enumerate() {
            // Inputs after the last ones are those again: outputs that they change are not wanted.
            let rows = std::array::from_fn(|i| first + (place.first[0] + i).min(last_row) * below);
            let columns = std::array::from_fn(|i| (place.first[1] + i).min(last_column) * next);
            let to = self.transformed[tile * channels..].as_mut_ptr();
            // SAFETY: only the level of AVX2 comes here; inputs and tiles were checked, and points of
            // all tiles have memory.
            unsafe { kernels::transform(scheme, from.data.as_ptr(), [&rows, &columns], channels, (to, pitch)) }
        }
    }

    /// Computes the sums of a tile of filters, from `panel` on, for the transformed inputs.
    ///
    /// # Panics
    /// If there are no such panels.
    pub fn multiply(&mut self, packed: &[u8], panels: Range<usize>, signed: bool, tiles: &[TilePlace]) {
        assert!(panels.len() <= PANELS, "{panels:?}");
        let len = self.x.panel_len().expect("was counted");
        for (panel, packed) in packed[panels.start * len..panels.end * len].chunks_exact(len).enumerate() {
            let (weights, corrections) = packed.split_at(len - CORRECTIONS);
            let corrections = corrections.as_chunks::<4>().0;
            let first: [i32; PANEL] =
                std::array::from_fn(|i| if signed { i32::from_ne_bytes(corrections[i]) } else { 0 });
            let outputs = tiles.iter().map(|tile| tile.count[0] * tile.count[1]).sum();
            self.sums[..outputs].iter_mut().for_each(|sums| sums[panel * PANEL..][..PANEL].copy_from_slice(&first));
            let mut weights = weights;
            for part in self.x.parts() {
                let (these, rest) = weights.split_at(self.x.points() * part.len() * LINE);
                self.multiply_part(these, part, tiles.len());
                self.finish(panel, tiles);
                weights = rest;
            }
        }
    }

    /// Computes the products of all points of some channels and a panel.
    fn multiply_part(&mut self, weights: &[u8], channels: Range<usize>, tiles: usize) {
        let [from, to] = self.x.pitches();
        let len = channels.len() * LINE;
        for point in 0..self.x.points() {
            let data = self.transformed[point * from + channels.start..].as_ptr();
            let (weights, to) = (&weights[point * len..][..len], self.products[point * to..][..to].as_mut_ptr());
            // SAFETY: only the level of AVX2 comes here; a group is a multiple of six tiles, whose
            // inputs and products have memory.
            unsafe {
                let rows = tiles.next_multiple_of(ROWS);
                kernels::products((data, self.x.channels), rows, weights.as_ptr().cast(), channels.len() / 2, to);
            }
        }
    }

    /// Adds outputs of the products of a panel to sums.
    fn finish(&mut self, panel: usize, tiles: &[TilePlace]) {
        let pitch = self.x.pitches()[1];
        let mut sums = &mut *self.sums;
        for (tile, place) in tiles.iter().enumerate() {
            let (these, rest) = sums.split_at_mut(place.count[0] * place.count[1]);
            let from = self.products[tile * PANEL..].as_ptr();
            // SAFETY: only the level of AVX2 comes here; all tiles of a group have products.
            unsafe { kernels::finish(self.x.scheme, (from, pitch), place.count, panel, these) }
            sums = rest;
        }
    }
}

/// No other architecture has the level on which [`Winograd::of`] finds a way.
#[cfg(not(target_arch = "x86_64"))]
mod kernels {
    use super::{MOST_POINTS, Scheme, Sums};

    pub unsafe fn transform(_: Scheme, _: *const u8, _: [&[usize; MOST_POINTS]; 2], _: usize, _: (*mut i16, usize)) {
        unreachable!("inputs are transformed with AVX2 only");
    }

    pub unsafe fn products(_: (*const i16, usize), _: usize, _: *const i16, _: usize, _: *mut i32) {
        unreachable!("transformed inputs are multiplied with AVX2 only");
    }

    pub unsafe fn finish(_: Scheme, _: (*const i32, usize), _: [usize; 2], _: usize, _: &mut [Sums]) {
        unreachable!("outputs are made of products with AVX2 only");
    }
}
