//! Direct convolution on the tiles of AMX: of values rounded to bf16, or in float32 put together
//! from six products of bf16 (see `amx`).
//!
//! Rows of a product are lines of 64 bytes, 32 channels of a pixel each. An input in lines is read as
//! it is if the stride is 1. Otherwise a run first writes lines, ordered by phase, which is their row
//! and column modulo the stride: then pixels that a tap of the kernel reads for outputs next to each
//! other are lines one after another, whatever the stride. So rows of a product are outputs, with
//! some between the rows of the image that nobody wants, and every tap reads them at an offset of its
//! own; nothing is copied for taps.

mod lines;
mod plain;

use crate::activation::ActivationLimits;
use crate::amx::parts::PARTS;
use crate::amx::tiles::{LINE, LINE_NUMBERS, PixelRow, ROWS, SIDE, Soon, TILE, TileRows, Tiles, register_tile};
use crate::amx::{AmxGemm, number_in_parts};
use crate::blocked::lines::{CopyArgs, CopyPixels, Pixels, blocks_of_pair};
use crate::blocked::{BLOCK, Halo, zero_ends};
use crate::conv::cost::estimate;
use crate::conv::kernel::MOST_ELEMENTS;
use crate::conv::method::{ConvMethod, PreparedConv, UnpackWeights};
use crate::conv::operands::ConvJob;
use crate::conv::options::Precision;
use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::gemm::Matrix;
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Dst, Entry, LANES, PairsBody, Rounding, Src, entry_lines};
use lines::{LinePlan, RowLines};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fewest channels of an input and an output: lines of fewer are mostly empty.
const LEAST_CHANNELS: usize = 16;
/// Elements of a line.
const LINE_ELEMENTS: usize = LINE / size_of::<f32>();
/// Bytes of the sums of a register tile.
const SUMS: usize = SIDE * SIDE * size_of::<f32>();
/// Multiply-adds in the time of one of `f32`, where operands are near: of bf16, and of six products.
const GAIN: [f64; 2] = [5.5, 2.7];
/// Bytes of an input that are made lines in a microsecond, and bytes of outputs that are stored. All
/// rates are in the unit of those of `cost`, which are a third above this machine kind's. Those of
/// bf16 are between float32's and those of lines, of which most inputs and outputs are.
const LINES: [f64; 2] = [80e3, 11e3];
const STORES: [f64; 2] = [80e3, 17e3];
/// Bytes of weights that arrive in a microsecond: products on tiles wait for them.
const WEIGHTS: f64 = 16e3;
/// Six products have to be this much faster than what runs without tiles.
const MARGIN: [f64; 2] = [1.0, 1.15];
/// Elements before packed weights; the first says which form they have.
const HEADER: usize = LINE_ELEMENTS;
const IN_PARTS: u32 = 1;
const PLAIN: u32 = 2;

/// Convolution on tiles, of values in this many parts.
pub(in crate::conv) struct TilesMethod<const COUNT: usize>;
pub(in crate::conv) static BF16: TilesMethod<1> = TilesMethod;
pub(in crate::conv) static SINGLE: TilesMethod<PARTS> = TilesMethod;

impl<const COUNT: usize> ConvMethod for TilesMethod<COUNT> {
    fn name(&self) -> &'static str {
        if COUNT == PARTS { "tiles" } else { "tiles-bf16" }
    }

    fn rounds(&self) -> bool {
        COUNT < PARTS
    }

    fn tiles(&self) -> bool {
        true
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        signature.isa == Isa::Avx512 && crate::amx::is_permitted() && suits(&signature.params)
    }

    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        let ConvSignature { params: p, shape: [images, ..], .. } = *signature;
        let plan = LinePlan::new(p, out);
        let rows = (images * plan.row_panels() * SIDE) as f64;
        let products = rows * (plan.steps() * LINE_NUMBERS * plan.columns() * SIDE) as f64;
        let read = (images * plan.blocks() * plan.planes.len() * plan.plane() * LINE_NUMBERS) as f64;
        let written = (images * p.out_channels * out[0] * out[1]) as f64;
        let which = usize::from(COUNT == PARTS);
        let bytes = (2 * COUNT * p.weight_len()) as f64;
        let moved = bytes / WEIGHTS + 4.0 * read / LINES[which] + 4.0 * written / STORES[which];
        Some(MARGIN[which] * (estimate(signature, products / GAIN[which], 0.0) + moved))
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], _in_blocks: bool) -> Arc<dyn PreparedConv> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        return {
            use crate::amx::hardware::Hardware;
            Arc::new(TilesConv::<Hardware, COUNT>::new(signature.params, signature.shape[0], out))
        };
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        unreachable!("{signature} {out:?} does not fit where there are no tiles")
    }
}

/// Whether channels and offsets are such that tiles can convolve them.
pub(in crate::conv) fn suits(p: &Conv2dParams) -> bool {
    p.groups == 1 && p.in_channels.min(p.out_channels) >= LEAST_CHANNELS && p.in_channels * p.taps() <= MOST_ELEMENTS
}

/// A convolution of values in COUNT parts on the tiles `T`, prepared for one image size.
pub(in crate::conv) struct TilesConv<T, const COUNT: usize> {
    plan: LinePlan,
    images: usize,
    store: Entry<StorePixels>,
    copy: Entry<CopyArgs>,
    tiles: PhantomData<fn() -> T>,
}

impl<T, const COUNT: usize> std::fmt::Debug for TilesConv<T, COUNT> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TilesConv").field("plan", &self.plan).field("images", &self.images).finish_non_exhaustive()
    }
}

impl<T: Tiles, const COUNT: usize> TilesConv<T, COUNT> {
    pub(in crate::conv) fn new(params: Conv2dParams, images: usize, out: [usize; 2]) -> TilesConv<T, COUNT> {
        let isa = Isa::detect();
        let (store, copy) = (entry_lines::<StorePixels>(isa), entry_lines::<CopyPixels>(isa));
        TilesConv { plan: LinePlan::new(params, out), images, store, copy, tiles: PhantomData }
    }

    /// Weights of one tap as a product of pixels would pack them.
    fn tap(&self) -> AmxGemm {
        let precision = if COUNT == PARTS { Precision::Single } else { Precision::Bf16 };
        AmxGemm::of(1, self.plan.params.out_channels, self.plan.params.in_channels, precision)
    }

    /// Elements of the lines of an image, and of those that the last rows of a product read after
    /// them.
    fn lines_len(&self) -> usize {
        (COUNT * self.plan.part() + SIDE) * LINE_ELEMENTS
    }

    /// Elements of the lines of an image, and of notes of which lines have numbers without parts.
    fn image_len(&self) -> usize {
        let notes = if COUNT == PARTS { self.plan.part() } else { 0 };
        self.lines_len() + notes
    }

    /// Elements of the weights of 32 outputs.
    fn panel_len(&self) -> usize {
        self.plan.steps() * COUNT * 2 * TILE / size_of::<f32>()
    }

    /// Writes the lines of 32 channels of an image; whether all numbers have parts.
    fn fill(&self, job: &ConvJob<'_>, image: usize, block: usize, lines: Dst) -> bool {
        let mut t = T::configure();
        let (plan, xs) = (&self.plan, &job.xs);
        let Conv2dParams { in_channels, stride, pad, .. } = plan.params;
        let channels = (in_channels - block * LINE_NUMBERS).min(LINE_NUMBERS);
        let rows = xs.halo.top + xs.h + xs.halo.bottom;
        let columns = xs.halo.left + xs.w + xs.halo.right;
        let notes = lines.add(self.lines_len());
        // SAFETY: there is a note for every line.
        let note = |at, count| unsafe { notes.add(at).as_src().bytes(count).cast::<f32>().cast_mut() };
        let mut all = true;
        for (number, plane) in plan.planes.iter().enumerate() {
            for y in 0..plan.size[0] {
                let row = xs.halo.top - pad[0] + y * stride[0] + plane.row;
                let first = xs.halo.left - pad[1] + plane.column;
                if row >= rows || first >= columns {
                    // Nobody reads what is beyond the image and its halo.
                    continue;
                }
                let count = (columns - first).div_ceil(stride[1]).min(plan.size[1]);
                let start = (number * plan.blocks() + block) * plan.plane() + y * plan.size[1];
                let to = lines.add(start * LINE_ELEMENTS);
                let from = |block| job.x.add(xs.padded_offset(image, block, row, first));
                let step = stride[1] * BLOCK;
                if COUNT < PARTS && (xs.in_lines() || channels.is_multiple_of(BLOCK)) {
                    let from = match xs.in_lines() {
                        true => Pixels::Lines(from(block)),
                        false => Pixels::Blocks(from(2 * block), (channels > BLOCK).then(|| from(2 * block + 1))),
                    };
                    let args = CopyArgs { from, to: Pixels::Lines(to), step, count };
                    // SAFETY: `ConvJob::new` checked that the input has these pixels; the lines of
                    // this block of this image are this chunk's.
                    unsafe { (self.copy)(&args) }
                    continue;
                }
                // SAFETY: as above, and there is a note for every line.
                unsafe {
                    let x = from(2 * block);
                    let row = PixelRow {
                        x: x.block(0),
                        next: if channels > BLOCK { xs.block_stride() } else { 0 },
                        step,
                        count,
                        parts: COUNT,
                        to: to.block(0).cast(),
                        apart: plan.part() * LINE,
                        notes: if COUNT == PARTS { note(start, count) } else { std::ptr::null_mut() },
                    };
                    all &=
                        if channels == LINE_NUMBERS { t.split_row(&row) } else { split_some(&mut t, &row, channels) };
                }
            }
        }
        all
    }

    /// Writes the lines that products read, or finds them in the input.
    fn lines_of(&self, job: &ConvJob<'_>, scratch: &mut [f32], par: &dyn Par) -> (RowLines, bool) {
        let plan = &self.plan;
        if let Some(lines) = plan.in_input(job) {
            return (lines, true);
        }
        let (lines, all_have_parts) = (Dst::new(scratch), AtomicBool::new(true));
        par.run(self.images * plan.blocks(), 0, &|chunk, _| {
            let (image, block) = (chunk / plan.blocks(), chunk % plan.blocks());
            if !self.fill(job, image, block, lines.add(image * self.image_len())) {
                all_have_parts.store(false, Ordering::Relaxed);
            }
        });
        let lines = RowLines {
            lines: lines.as_src(),
            image_stride: self.image_len(),
            image_len: self.lines_len(),
            offsets: plan.offsets(),
            part: plan.part() * LINE,
            width: plan.size[1],
            rows: plan.rows(),
            exact: false,
        };
        (lines, all_have_parts.into_inner())
    }

    /// Convolves some panels of rows of all images, numbered one image after another, with some
    /// panels of output channels.
    fn multiply(&self, job: &TilesJob<'_>, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
        let mut t = T::configure();
        let (steps, panels) = (self.plan.steps(), job.rows.panels());
        // Sums are stored while the next ones are made.
        let (this, other) = scratch[..2 * SUMS].split_at_mut(SUMS);
        let mut sums = [this, other];
        let mut made: Option<Made> = None;
        let mut first = rows.start;
        while first < rows.end {
            // Panels of one image that are near each other.
            let (image, within) = (first / panels, first % panels);
            let end = panels.min(within + self.plan.near(COUNT)).min(within + rows.end - first);
            // SAFETY: every image has its lines.
            let lines = unsafe { job.rows.lines.add(image * job.rows.image_stride).bytes(job.rows.image_len) };
            for column in columns.clone() {
                let weights: &[u8] =
                    bytemuck::cast_slice(&job.weights[column * self.panel_len()..][..self.panel_len()]);
                // Requests of what the next panel holds are spread over the rows of this one.
                let requested = (COUNT * 2 * TILE / LINE).div_ceil(end - within);
                let mut soon = Soon { at: weights.as_ptr_range().end, lines: requested };
                for panel in within..end {
                    let row = job.rows.first(panel);
                    let at = |step| lines.wrapping_add(job.rows.offsets[step] + row * LINE);
                    let a = TileRows { at, part: job.rows.part };
                    let [this, other] = &mut sums;
                    // SAFETY: `t` are configured tiles; lines and weights have all steps of these
                    // rows and columns, the sums have 32 x 32 numbers.
                    unsafe {
                        let to = this.as_mut_ptr();
                        register_tile::<T, COUNT>(&mut t, steps, a, weights.as_ptr(), to, true, soon);
                    }
                    soon.at = soon.at.wrapping_add(steps * soon.lines * LINE);
                    let now = Made { image, panel, column };
                    if !job.all_have_parts {
                        self.repair(job, &now, weights, bytemuck::cast_slice_mut(this));
                    }
                    if let Some(made) = made.replace(now) {
                        self.store(job, &made, bytemuck::cast_slice(other));
                    }
                    sums.swap(0, 1);
                }
            }
            first += end - within;
        }
        if let Some(made) = made {
            self.store(job, &made, bytemuck::cast_slice(sums[1]));
        }
    }

    /// Writes the sums of a register tile to the outputs that they are, and the halo next to them.
    fn store(&self, job: &TilesJob<'_>, made: &Made, sums: &[f32]) {
        let (conv, rows, width) = (&job.conv, &job.rows, self.plan.out[1]);
        let Made { image, panel, column } = *made;
        let (first, end) = (rows.first(panel), rows.rows.min((panel + 1) * SIDE));
        // Rows that the panel before this one had are not stored again.
        let mut at = panel * SIDE;
        while at < end {
            let (y, x) = (at / rows.width, at % rows.width);
            let run = (rows.width - x).min(end - at);
            let count = run.min(width.saturating_sub(x));
            if count > 0 {
                let sums = Src::new(sums).add((at - first) * SIDE);
                self.store_pixels(conv, image, column, [y, x], count, sums);
            }
            at += run;
        }
    }

    /// Writes sums of 32 channels of `count` pixels of a row, and the halo next to them.
    fn store_pixels(&self, job: &ConvJob<'_>, image: usize, pair: usize, [y, x]: [usize; 2], count: usize, sums: Src) {
        let bias = job.bias_block::<2>(2 * pair);
        let args = StorePixels {
            sums,
            bias: Src::new(&bias),
            residual: job.residual_pixels(image, pair, y, x),
            y: Pixels::<Dst>::new(job.y, &job.ys, image, pair, y, x),
            limits: job.limits,
            count,
        };
        let ends = [x == 0, x + count == self.plan.out[1]];
        // SAFETY: `ConvJob::new` checked the shapes; these outputs are this part's alone, and so is
        // the halo next to them.
        unsafe {
            (self.store)(&args);
            blocks_of_pair(&job.ys, pair).for_each(|block| zero_ends(job.y, &job.ys, image, block, y, ends));
        }
    }
}

/// A register tile of sums: a panel of rows of an image, and one of output channels.
#[derive(Clone, Copy)]
struct Made {
    image: usize,
    panel: usize,
    column: usize,
}

/// Splits pixels of a row with fewer than 32 channels. Those beyond the last one hold anything.
///
/// # Safety
/// The caller promises what [`Tiles::split_row`] asks for.
unsafe fn split_some<T: Tiles>(t: &mut T, row: &PixelRow, channels: usize) -> bool {
    let (mut all, whole) = (true, channels.min(BLOCK));
    for i in 0..row.count {
        // SAFETY: promised by the caller.
        unsafe {
            let [low, high] = row.numbers(i);
            let mut numbers = [[0.0; ROWS]; 2];
            numbers[0][..whole].copy_from_slice(&low[..whole]);
            numbers[1][..channels - whole].copy_from_slice(&high[..channels - whole]);
            let right = t.split(numbers.each_ref(), row.parts, row.to.add(i * LINE), row.apart);
            row.note(i, right);
            all &= right;
        }
    }
    all
}

/// A running convolution.
struct TilesJob<'a> {
    conv: ConvJob<'a>,
    rows: RowLines,
    /// Notes of every image which lines have numbers without parts.
    notes: Src,
    /// Panels of weights.
    weights: &'a [f32],
    all_have_parts: bool,
}

impl<T: Tiles, const COUNT: usize> PreparedConv for TilesConv<T, COUNT> {
    fn name(&self) -> String {
        (if COUNT == PARTS { "amx" } else { "bf16 amx" }).to_owned()
    }

    fn packing(&self) -> String {
        format!("tiles of {COUNT} x bf16")
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        self.plan.params.halo(size, self.plan.out)
    }

    fn packed_len(&self) -> usize {
        HEADER + self.plan.columns() * self.panel_len()
    }

    /// `[panel of 32 outputs][tap][32 inputs][part][2 tiles]`; unchanged where one has no parts.
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (plan, tap, taps) = (&self.plan, self.tap(), self.plan.taps.len());
        let (header, body) = packed[..self.packed_len()].split_at_mut(HEADER);
        let (mut t, mut all) = (T::configure(), true);
        for (panel, out) in body.chunks_exact_mut(self.panel_len()).enumerate() {
            for (i, out) in out.chunks_exact_mut(self.panel_len() / taps).enumerate() {
                let matrix =
                    Matrix { data: &weights[i..], row_stride: taps, col_stride: plan.params.in_channels * taps };
                all &= tap.pack_panel(&mut t, panel, matrix, bytemuck::cast_slice_mut(out));
            }
        }
        let in_parts = COUNT < PARTS || all;
        if !in_parts {
            body.fill(0.0);
            body[..weights.len()].copy_from_slice(weights);
        }
        header.fill(0.0);
        header[0] = f32::from_bits(if in_parts { IN_PARTS } else { PLAIN });
    }

    fn unpacker(&self) -> Option<&dyn UnpackWeights> {
        (COUNT == PARTS).then_some(self)
    }

    fn scratch_len(&self) -> usize {
        self.images * self.image_len()
    }

    fn takes_lines(&self) -> bool {
        COUNT < PARTS
    }

    fn run(&self, job: &ConvJob<'_>, scratch: &mut [f32], par: &dyn Par) {
        let (header, weights) = job.packed.split_at(HEADER);
        if header[0].to_bits() == PLAIN {
            return self.run_plain(job, weights, par);
        }
        let notes = Src::new(scratch).add(self.lines_len());
        let (lines, all_have_parts) = self.lines_of(job, scratch, par);
        let job = TilesJob { conv: *job, rows: lines, notes, weights, all_have_parts };
        let [rows, columns] = [self.images * job.rows.panels(), self.plan.columns()];
        // How panels are shared changes no order of additions.
        if columns > rows {
            par.run_static(columns, 2 * SUMS, &|part, scratch| self.multiply(&job, 0..rows, part, scratch));
        } else {
            par.run_static(rows, 2 * SUMS, &|part, scratch| self.multiply(&job, part, 0..columns, scratch));
        }
    }
}

impl<T: Tiles, const COUNT: usize> UnpackWeights for TilesConv<T, COUNT> {
    /// Undoes packing. Numbers below 2^-103 come back without their last digits.
    fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        let (inputs, taps) = (self.plan.params.in_channels, self.plan.taps.len());
        let (header, body) = packed[..self.packed_len()].split_at(HEADER);
        let each = inputs * taps;
        if header[0].to_bits() == PLAIN {
            weights.copy_from_slice(&body[outputs.start * each..outputs.end * each]);
            return;
        }
        for (output, weights) in outputs.zip(weights.chunks_exact_mut(each)) {
            let panel = bytemuck::cast_slice(&body[output / SIDE * self.panel_len()..][..self.panel_len()]);
            for (tap, channel) in (0..taps).flat_map(|tap| (0..inputs).map(move |channel| (tap, channel))) {
                let k = tap * self.plan.blocks() * LINE_NUMBERS + channel;
                weights[channel * taps + tap] = number_in_parts(panel, k, output % SIDE);
            }
        }
    }
}

/// Sums of 32 channels of some pixels of a row, and where they go.
struct StorePixels {
    sums: Src,
    bias: Src,
    residual: Option<Pixels<Src>>,
    y: Pixels<Dst>,
    limits: ActivationLimits,
    count: usize,
}

impl PairsBody for StorePixels {
    type Args = StorePixels;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &StorePixels) {
        let limits = x.limits.ready(s);
        // SAFETY: the caller has `count` pixels of sums, residual and output.
        unsafe {
            let bias = [s.load(x.bias, 0), s.load(x.bias, LANES)];
            for i in 0..x.count {
                let mut low = s.add(s.load(x.sums, i * SIDE), bias[0]);
                let mut high = s.add(s.load(x.sums, i * SIDE + LANES), bias[1]);
                if let Some(residual) = x.residual {
                    let residual = residual.load(s, i * BLOCK);
                    low = s.add(low, residual[0]);
                    high = s.add(high, residual[1]);
                }
                x.y.store(s, i * BLOCK, [limits.apply(s, low), limits.apply(s, high)]);
            }
        }
    }
}
