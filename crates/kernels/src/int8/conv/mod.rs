//! Convolutions of bytes. An image in planes is copied channels last, as unsigned numbers with what
//! pads it; pixels have that form. Then the windows of an output pixel are a few runs of bytes, the
//! same for every pixel, and products read them where they are.

use super::band::{BAND, Band, BandArgs, Products};
use super::depthwise::{CHANNELS, Depthwise, WindowRows};
use super::finish::{Epilogue, LimitedSums};
use super::pack;
use super::tile::{COLUMNS, GROUP, PANEL, Windows};
use super::turn::turn;
use super::winograd::Winograd;
use super::{Int8Result, Level, RoundTo, Rows};
use crate::blocked::BlockedShape;
use crate::par::{Columns, Par, par_columns_mut};
use crate::places::{Places, Runs};

/// A convolution over three spatial axes (fewer have extents of 1), channels first.
#[derive(Clone, Debug)]
pub struct Int8Conv {
    /// images
    pub batch: usize,
    /// channels of the input
    pub channels: usize,
    /// channels of the output
    pub filters: usize,
    /// groups of channels that do not see each other
    pub groups: usize,
    /// spatial extents of the input
    pub input: [usize; 3],
    /// spatial extents of the output
    pub output: [usize; 3],
    /// extents of the filters
    pub kernel: [usize; 3],
    /// distances between windows
    pub stride: [usize; 3],
    /// zeros before the input
    pub pad: [usize; 3],
    /// distances between taps
    pub dilate: [usize; 3],
    /// instructions
    pub level: Level,
    /// layouts of the images, if results are pixels
    pub pixels: Option<PixelForm>,
}

/// Layouts of a convolution over two axes whose results are pixels.
#[derive(Clone, Copy, Debug)]
pub struct PixelForm {
    /// pixels of the input, with a halo for the padding; planes without
    pub data: Option<BlockedShape>,
    /// pixels of the output
    pub output: BlockedShape,
    /// pixels that are added to results; ignored without an addend
    pub addend: BlockedShape,
}

/// The operands of a convolution.
pub struct Int8ConvOperands<'a, T> {
    /// images, `[batch, channels, input...]` or pixels
    pub data: Rows<'a>,
    /// bytes that are added to results, in the shape of the output or pixels
    pub addend: Option<Rows<'a>>,
    /// weights as [`Int8Conv::pack`] left them
    pub packed: &'a [u8],
    /// makes results of sums
    pub epilogue: &'a dyn Epilogue<T>,
}

/// Bytes of copied images that are multiplied together.
const COPIED: usize = 2 << 20;
/// Chunks of products that keep all threads busy.
const CHUNKS: usize = 16;

impl Int8Conv {
    /// The level it runs on.
    pub fn level(&self) -> Level {
        let level = self.level.or_best();
        if self.is_depthwise() { level.without_tiles() } else { level }
    }

    /// Whether each filter sees one channel, its own.
    fn is_depthwise(&self) -> bool {
        self.channels == self.groups && self.filters == self.groups && self.groups > 1
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Bytes of a group's channels at a pixel of an image.
    fn group_len(&self) -> Option<usize> {
        let channels = self.channels / self.groups;
        if self.is_depthwise() { Some(1) } else { channels.max(1).checked_next_multiple_of(GROUP) }
    }

    /// Bytes from one pixel of an image to the next.
    fn pixel_len(&self) -> Option<usize> {
        if let Some(data) = self.data_pixels() {
            return Some(data.pixel());
        }
        if self.is_depthwise() {
            return self.channels.checked_next_multiple_of(CHANNELS);
        }
        self.group_len()?.checked_mul(self.groups)
    }

    /// Weights of a filter as they are packed.
    fn row_len(&self) -> Option<usize> {
        self.group_len()?.checked_mul(self.taps())
    }

    /// Bytes that [`pack`](Self::pack) writes; `None` where they cannot be counted.
    pub fn packed_len(&self) -> Option<usize> {
        if self.is_depthwise() {
            return Depthwise::packed_len(self.channels, self.taps());
        }
        if let Some(winograd) = Winograd::of(self) {
            return winograd.packed_len();
        }
        pack::packed_len(self.filters / self.groups, self.row_len()?)?.checked_mul(self.groups)
    }

    /// Name of a method that has packed weights of its own.
    pub fn method(&self) -> Option<&'static str> {
        Winograd::of(self).map(|winograd| winograd.name())
    }

    /// Packs the filters, `[filters, channels / groups, kernel...]`.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn pack(&self, weights: &[i8], packed: &mut [u8]) {
        let (taps, groups) = (self.taps(), self.groups);
        if self.is_depthwise() {
            return Depthwise::pack(self.channels, taps, weights, packed);
        }
        if let Some(winograd) = Winograd::of(self) {
            return winograd.pack(self.channels, weights, packed);
        }
        let (channels, filters) = (self.channels / groups, self.filters / groups);
        let group_len = self.group_len().unwrap_or(GROUP);
        let (from, to) = (filters * channels * taps, packed.len() / groups);
        if from == 0 || to == 0 {
            return;
        }
        for (weights, packed) in weights.chunks_exact(from).zip(packed.chunks_exact_mut(to)) {
            let weight = |filter: usize, i: usize| match (i / group_len, i % group_len) {
                (tap, channel) if channel < channels => weights[(filter * channels + channel) * taps + tap],
                _ => 0,
            };
            pack::pack(filters, group_len * taps, weight, packed);
        }
    }

    /// Bytes of the scratch memory of a band.
    fn band_bytes<T: RoundTo>(&self) -> usize {
        let len = if self.is_depthwise() { 0 } else { self.row_len().expect("was counted") };
        Band::<T>::bytes(self.level(), len)
    }

    /// The layout of the data, if they are pixels, which are multiplied where they are.
    fn data_pixels(&self) -> Option<BlockedShape> {
        self.pixels.and_then(|form| form.data)
    }

    /// Rows and columns of the input as they are seen: an image whose pixels are multiplied one by
    /// one is one row.
    fn axes(&self) -> Axes {
        if let Some(data) = self.data_pixels() {
            let halo = data.halo;
            let [height, width] = [halo.top + data.h + halo.bottom, halo.left + data.w + halo.right];
            return Axes {
                input: self.input,
                output: self.output,
                stride: self.stride,
                pad: self.pad,
                copied: [1, height, width],
            };
        }
        if self.kernel == [1; 3] && self.stride == [1; 3] && self.pad == [0; 3] && self.input == self.output {
            let pixels = self.input.iter().product();
            return Axes {
                input: [1, 1, pixels],
                output: [1, 1, pixels],
                stride: [1; 3],
                pad: [0; 3],
                copied: [1, 1, pixels],
            };
        }
        let copied = |axis: usize| {
            (self.output[axis].max(1) - 1) * self.stride[axis] + (self.kernel[axis].max(1) - 1) * self.dilate[axis] + 1
        };
        Axes {
            input: self.input,
            output: self.output,
            stride: self.stride,
            pad: self.pad,
            copied: std::array::from_fn(copied),
        }
    }

    /// Bytes of a copied image; `None` where they cannot be counted.
    fn image_len(&self) -> Option<usize> {
        let axes = self.axes();
        axes.copied.iter().try_fold(self.pixel_len()?, |n, extent| n.checked_mul(*extent))
    }

    /// Images that are copied and multiplied together.
    fn together(&self) -> usize {
        (COPIED / self.image_len().unwrap_or(usize::MAX).max(1)).clamp(1, self.batch.max(1))
    }

    /// Bytes of memory that [`run`](Self::run) needs for as long as it runs; `None` where they
    /// cannot be counted.
    pub fn workspace_len(&self) -> Option<usize> {
        if self.data_pixels().is_some() {
            return Some(0);
        }
        self.image_len()?.checked_mul(self.together())
    }

    /// Computes the results of every element of the output.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says, or `workspace` than
    /// [`workspace_len`](Self::workspace_len), or if results are pixels and no bytes.
    pub fn run<T: Int8Result>(&self, par: &dyn Par, x: &Int8ConvOperands<'_, T>, out: &mut [T], workspace: &mut [u8]) {
        T::convolve(self, par, x, out, workspace);
    }

    pub(super) fn run_as<T: RoundTo>(
        &self,
        par: &dyn Par,
        x: &Int8ConvOperands<'_, T>,
        out: &mut [T],
        workspace: &mut [u8],
    ) {
        let axes = self.axes();
        let [pixels, plane] = [axes.output, axes.input].map(|extents| extents.iter().product::<usize>());
        if out.is_empty() {
            return;
        }
        let [image_len, pixel_len] = [self.image_len(), self.pixel_len()].map(|len| len.expect("was counted"));
        let segments = self.segments(&axes, pixel_len);
        let limited = x.epilogue.limited();
        let job = ConvJob { conv: self, axes, pixel_len, image_len, segments, operands: x, limited };
        if let Some(winograd) = Winograd::of(self) {
            return job.multiply_transformed(&winograd, par, x.data.bytes, out);
        }
        if self.data_pixels().is_some() {
            return job.multiply_to_pixels(par, 0, x.data.bytes, out);
        }
        let (image, result) = (self.channels * plane, out.len() / self.batch);
        debug_assert!(self.pixels.is_some() || result == self.filters * pixels);
        for first in (0..self.batch).step_by(self.together()) {
            let count = self.together().min(self.batch - first);
            let copied = &mut workspace[..count * image_len];
            job.copy(par, &x.data.bytes[first * image..][..count * image], copied);
            let out = &mut out[first * result..][..count * result];
            if self.pixels.is_some() {
                job.multiply_to_pixels(par, first, copied, out);
            } else {
                job.multiply(par, first, copied, out);
            }
        }
    }

    /// Runs of bytes of a window in an image: taps next to each other are one, unless other bytes
    /// are between them.
    fn segments(&self, axes: &Axes, pixel_len: usize) -> Vec<usize> {
        let [_, height, width] = axes.copied;
        let columns = if self.rows_are_runs(pixel_len) { 1 } else { self.kernel[2] };
        let mut segments = Vec::with_capacity(self.taps());
        for depth in 0..self.kernel[0] {
            for row in 0..self.kernel[1] {
                for column in 0..columns {
                    let [d, h, w] = [depth * self.dilate[0], row * self.dilate[1], column * self.dilate[2]];
                    segments.push(((d * height + h) * width + w) * pixel_len);
                }
            }
        }
        segments
    }

    fn rows_are_runs(&self, pixel_len: usize) -> bool {
        self.groups == 1 && self.dilate[2] == 1 && self.group_len() == Some(pixel_len)
    }
}

/// Extents of a convolution, and those of its copied images.
#[derive(Clone, Copy)]
struct Axes {
    input: [usize; 3],
    output: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
    copied: [usize; 3],
}

/// A running convolution.
struct ConvJob<'a, T> {
    conv: &'a Int8Conv,
    axes: Axes,
    /// Bytes of a pixel of the images that are multiplied.
    pixel_len: usize,
    /// Bytes of one of these images.
    image_len: usize,
    segments: Vec<usize>,
    operands: &'a Int8ConvOperands<'a, T>,
    /// The results as limited numbers, if they are such.
    limited: Option<LimitedSums<'a>>,
}

impl<T: RoundTo> ConvJob<'_, T> {
    /// Multiplies copied images, of which the first has this number.
    fn multiply(&self, par: &dyn Par, first: usize, copied: &[u8], out: &mut [T]) {
        let pixels: usize = self.axes.output.iter().product();
        let (groups, filters) = (self.conv.groups, self.conv.filters / self.conv.groups);
        let images = out.len() / (self.conv.filters * pixels);
        // A chunk has the filters of some groups, or some of those of a group.
        let (outer, rows) = if self.conv.is_depthwise() {
            let parts = parts_of(groups, images * pixels.div_ceil(BAND));
            (parts, groups / parts)
        } else {
            let parts = parts_of(filters, groups * images * pixels.div_ceil(BAND));
            (groups * parts, filters / parts)
        };
        par_columns_mut(
            par,
            out,
            [images * outer, rows, pixels],
            BAND,
            self.conv.band_bytes::<T>(),
            |o, start, mut part, scratch| {
                let (image, filter) = (o / outer, o % outer * rows);
                let copied = &copied[image * self.image_len..][..self.image_len];
                let mut band = Band::of(scratch);
                let mut starts = Runs::<BAND>::new();
                self.find_starts(start, part.width(), &mut starts);
                for f in (0..rows).step_by(COLUMNS) {
                    let count = COLUMNS.min(rows - f);
                    let place = (first + image) * self.conv.filters + filter + f;
                    self.read_addend(place * pixels + start, [count, part.width()], &mut band);
                    let args = self.band_of(copied, starts.places(), [filter + f, count]);
                    // All filters of a chunk see the same channels.
                    if f == 0 {
                        band.prepare(&args);
                    }
                    band.compute(&args);
                    put(&band, f, count, &mut part);
                }
            },
        );
    }

    /// Bytes from the beginning of an image to the first window: a halo may be wider than the padding.
    /// Then from a row of windows to the next, and from a window to the next.
    fn window_steps(&self) -> [usize; 3] {
        let Axes { stride, copied, .. } = self.axes;
        let beyond = |halo: usize, axis: usize| halo.checked_sub(self.axes.pad[axis]).expect("a halo has the padding");
        let data = self.conv.data_pixels();
        let [above, before] = data.map_or([0; 2], |data| [beyond(data.halo.top, 1), beyond(data.halo.left, 2)]);
        [above * copied[2] + before, stride[1] * copied[2], stride[2]].map(|pixels| pixels * self.pixel_len)
    }

    /// Rows of windows of an image over two axes, from a row on.
    fn window_rows(&self, row: usize, count: [usize; 2]) -> WindowRows {
        let [first, below, next] = self.window_steps();
        WindowRows { first: first + row * below, count, step: [below, next] }
    }

    /// Finds the offsets of the windows of `count` output pixels in an image, from this one on. Only
    /// the first is divided: that takes as long as the products of a few channels.
    fn find_starts<const N: usize>(&self, first: usize, count: usize, starts: &mut Runs<N>) {
        let Axes { output: [_, height, width], stride, copied, .. } = self.axes;
        let [mut d, mut h, mut w] = [first / (height * width), first / width % height, first % width];
        let [corner, below, step] = self.window_steps();
        let depth = stride[0] * copied[1] * copied[2] * self.pixel_len;
        let mut rest = count;
        while rest > 0 {
            let some = (width - w).min(rest);
            starts.push(corner + d * depth + h * below + w * step, step, some);
            rest -= some;
            (w, h) = (0, h + 1);
            if h == height {
                (h, d) = (0, d + 1);
            }
        }
    }

    /// The operands of some pixels and neighbouring filters, of one group or depthwise.
    fn band_of<'b>(&'b self, images: &'b [u8], starts: Places<'b>, columns: [usize; 2]) -> BandArgs<'b, T> {
        let (conv, x) = (self.conv, self.operands);
        let products = if conv.is_depthwise() {
            let (level, width) = (conv.level(), conv.channels.next_multiple_of(CHANNELS));
            let x = Depthwise { level, width, packed: x.packed, segments: &self.segments };
            Products::Depthwise { x, data: images }
        } else {
            let filters = conv.filters / conv.groups;
            // Divisions take as long as some products.
            let (group, filter) =
                if conv.groups == 1 { (0, columns[0]) } else { (columns[0] / filters, columns[0] % filters) };
            let (group_len, row_len) = (conv.group_len().unwrap_or(GROUP), conv.row_len().unwrap_or(GROUP));
            let len = pack::panel_len(row_len);
            let runs = row_len / self.segments.len().max(1);
            let panels = &x.packed[(group * filters.div_ceil(PANEL) + filter / PANEL) * len..];
            Products::Windows {
                level: conv.level(),
                windows: Windows::new(&images[group * group_len..], &self.segments, runs / GROUP),
                panels: &panels[..columns[1].div_ceil(PANEL) * len],
            }
        };
        self.args(products, starts, columns)
    }

    /// The operands of products.
    fn args<'b>(&'b self, products: Products<'b>, starts: Places<'b>, columns: [usize; 2]) -> BandArgs<'b, T> {
        let x = self.operands;
        let (signed, epilogue, limited, added) = (x.data.signed, x.epilogue, self.limited, x.addend.is_some());
        BandArgs { products, starts, columns, signed, epilogue, limited, added }
    }

    /// Turns what is added to some filters and pixels.
    fn read_addend(&self, at: usize, [filters, pixels]: [usize; 2], band: &mut Band<'_, T>) {
        let Some(addend) = self.operands.addend else { return };
        let plane: usize = self.axes.output.iter().product();
        turn(&addend.bytes[at..], plane, [filters, pixels], 0, |pixel, filter, bytes| {
            band.addend[pixel][filter..][..bytes.len()].copy_from_slice(bytes);
        });
    }
}

/// Parts of equal length, a multiple of a tile's columns, so that there are enough chunks.
fn parts_of(filters: usize, chunks: usize) -> usize {
    let wanted = CHUNKS.div_ceil(chunks.max(1));
    let tiles = filters / COLUMNS;
    if filters.is_multiple_of(COLUMNS) {
        (1..=tiles.min(wanted)).rev().find(|n| tiles.is_multiple_of(*n)).unwrap_or(1)
    } else {
        1
    }
}

/// Turns results of some filters, and writes them.
fn put<T: RoundTo>(band: &Band<'_, T>, first: usize, filters: usize, out: &mut Columns<'_, T>) {
    let pixels = out.width();
    if size_of::<T>() == 1 {
        let bytes: &[u8] = bytemuck::cast_slice(&*band.results);
        turn(bytes, COLUMNS, [pixels, filters], 0, |filter, pixel, bytes| {
            let row = bytemuck::cast_slice_mut::<T, u8>(out.row(first + filter));
            row[pixel..][..bytes.len()].copy_from_slice(bytes);
        });
        return;
    }
    for filter in 0..filters {
        for (out, results) in out.row(first + filter).iter_mut().zip(&*band.results) {
            *out = results[filter];
        }
    }
}

mod copy;
mod pixels;
#[cfg(test)]
mod tests;
mod winograd;
