//! Direct convolution on the tiles of AMX: of values rounded to bf16, or in float32 put together
//! from six products of bf16 (see `amx`).
//!
//! A run first writes its input as lines of 64 bytes, 32 channels of a pixel each. Pixels that a
//! tap of the kernel reads for outputs next to each other are lines one after another, whatever the
//! stride: pixels are ordered by phase, which is their row and column modulo the stride. So rows of
//! a product are outputs, with some between the rows of the image that nobody wants, and every tap
//! reads them at an offset of its own; nothing is copied for taps.

mod lines;

use crate::amx::parts::PARTS;
use crate::amx::tiles::{LINE, LINE_NUMBERS, ROWS, Rows, SIDE, Soon, TILE, Tiles, register_tile};
use crate::amx::{AmxGemm, number_in_parts};
use crate::blocked::{BLOCK, Halo, zero_halo};
use crate::conv::cost::{estimate, reading};
use crate::conv::kernel::MOST_ELEMENTS;
use crate::conv::method::{ConvMethod, PreparedConv, UnpackWeights};
use crate::conv::operands::ConvJob;
use crate::conv::options::Precision;
use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::gemm::Matrix;
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};
use lines::Plan;
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
const GAIN: [f64; 2] = [5.5, 1.8];
/// Bytes of an input that are made lines in a microsecond, and bytes of outputs that are stored.
const LINES: [f64; 2] = [25e3, 12e3];
const STORES: f64 = 40e3;
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
        let ConvSignature { params: p, shape: [images, ..], isa, .. } = *signature;
        let plan = Plan::new(p, out);
        let rows = (images * plan.row_panels() * SIDE) as f64;
        let products = rows * (plan.steps() * LINE_NUMBERS * plan.columns() * SIDE) as f64;
        let read = (images * plan.blocks() * plan.planes.len() * plan.plane() * LINE_NUMBERS) as f64;
        let written = (images * p.out_channels * out[0] * out[1]) as f64;
        let which = usize::from(COUNT == PARTS);
        let bytes = (2 * COUNT * p.weight_len()) as f64;
        let (arithmetic, weights) = (estimate(isa, products / GAIN[which], 0.0), reading(bytes));
        Some(arithmetic + 0.5 * weights + 4.0 * read / LINES[which] + 4.0 * written / STORES)
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
    plan: Plan,
    offsets: Vec<usize>,
    images: usize,
    isa: Isa,
    tiles: PhantomData<fn() -> T>,
}

impl<T, const COUNT: usize> std::fmt::Debug for TilesConv<T, COUNT> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TilesConv").field("plan", &self.plan).field("images", &self.images).finish_non_exhaustive()
    }
}

impl<T: Tiles, const COUNT: usize> TilesConv<T, COUNT> {
    pub(in crate::conv) fn new(params: Conv2dParams, images: usize, out: [usize; 2]) -> TilesConv<T, COUNT> {
        let plan = Plan::new(params, out);
        TilesConv { offsets: plan.offsets(), plan, images, isa: Isa::detect(), tiles: PhantomData }
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
        let next = if channels > BLOCK { xs.block_stride() } else { 0 };
        let rows = xs.halo.top + xs.h + xs.halo.bottom;
        let columns = xs.halo.left + xs.w + xs.halo.right;
        let (apart, notes) = (plan.part() * LINE, lines.add(self.lines_len()));
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
                let x = job.x.add(xs.padded_offset(image, 2 * block, row, first));
                let start = (number * plan.blocks() + block) * plan.plane() + y * plan.size[1];
                let lines = lines.add(start * LINE_ELEMENTS);
                for column in 0..count {
                    // SAFETY: `ConvJob::new` checked that the input has these pixels of one or two
                    // blocks of channels; the lines of this block of this image are this chunk's.
                    unsafe {
                        let at = column * stride[1] * BLOCK;
                        let low: &[f32; ROWS] = &*x.block(at).cast();
                        let high: &[f32; ROWS] = &*x.block(at + next).cast();
                        let line = lines.block(column * LINE_ELEMENTS).cast();
                        let right = if channels == LINE_NUMBERS {
                            t.split([low, high], COUNT, line, apart)
                        } else {
                            // Channels beyond the last one hold anything.
                            let mut numbers = [[0.0; ROWS]; 2];
                            let whole = channels.min(BLOCK);
                            numbers[0][..whole].copy_from_slice(&low[..whole]);
                            numbers[1][..channels - whole].copy_from_slice(&high[..channels - whole]);
                            t.split(numbers.each_ref(), COUNT, line, apart)
                        };
                        if COUNT == PARTS {
                            notes.write(start + column, if right { 0.0 } else { 1.0 });
                            all &= right;
                        }
                    }
                }
            }
        }
        all
    }

    /// Convolves some panels of rows of all images, numbered one image after another, with some
    /// panels of output channels.
    fn multiply(&self, job: &TilesJob<'_>, rows: Range<usize>, columns: Range<usize>, scratch: &mut [u8]) {
        let mut t = T::configure();
        let (plan, panels) = (&self.plan, self.plan.row_panels());
        let mut first = rows.start;
        while first < rows.end {
            // Panels of one image that are near each other.
            let (image, within) = (first / panels, first % panels);
            let end = panels.min(within + plan.near(COUNT)).min(within + rows.end - first);
            // SAFETY: every image has its lines.
            let lines = unsafe { job.lines.add(image * self.image_len()).bytes(self.lines_len()) };
            for column in columns.clone() {
                let weights: &[u8] =
                    bytemuck::cast_slice(&job.weights[column * self.panel_len()..][..self.panel_len()]);
                // Requests of what the next panel holds are spread over the rows of this one.
                let requested = (COUNT * 2 * TILE / LINE).div_ceil(end - within);
                let mut soon = Soon { at: weights.as_ptr_range().end, lines: requested };
                for row in within..end {
                    let at = |step| lines.wrapping_add(self.offsets[step] + row * SIDE * LINE);
                    let a = Rows { at, part: plan.part() * LINE };
                    let sums = &mut scratch[..SUMS];
                    // SAFETY: `t` are configured tiles; lines and weights have all steps of these
                    // rows and columns, the sums have 32 x 32 numbers.
                    unsafe {
                        register_tile::<T, COUNT>(
                            &mut t,
                            plan.steps(),
                            a,
                            weights.as_ptr(),
                            sums.as_mut_ptr(),
                            true,
                            soon,
                        );
                    }
                    soon.at = soon.at.wrapping_add(plan.steps() * soon.lines * LINE);
                    let sums: &mut [f32] = bytemuck::cast_slice_mut(sums);
                    if !job.all_have_parts {
                        self.repair(job, image, row, weights, sums);
                    }
                    self.store(&job.conv, image, row, column, sums);
                }
            }
            first += end - within;
        }
    }

    /// Computes again, without tiles, the sums of outputs that read numbers without parts.
    fn repair(&self, job: &TilesJob<'_>, image: usize, row: usize, weights: &[u8], sums: &mut [f32]) {
        let plan = &self.plan;
        let notes = job.lines.add(image * self.image_len() + self.lines_len());
        for at in row * SIDE..plan.rows().min((row + 1) * SIDE) {
            // SAFETY: there is a note for every line of the image, and outputs read no others.
            let noted = |step: usize| unsafe { notes.read(self.offsets[step] / LINE + at) != 0.0 };
            let (y, x) = (at / plan.size[1], at % plan.size[1]);
            if x >= plan.out[1] || !(0..plan.steps()).any(noted) {
                continue;
            }
            let sums = &mut sums[(at - row * SIDE) * SIDE..][..SIDE];
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
    fn run_plain(&self, job: &ConvJob<'_>, weights: &[f32], par: &dyn Par) {
        let (plan, blocks) = (&self.plan, job.ys.blocks());
        let Conv2dParams { in_channels, out_channels, .. } = plan.params;
        let taps = plan.taps.len();
        par.run(self.images * plan.out[0], SUMS, &|chunk, scratch| {
            let (image, y) = (chunk / plan.out[0], chunk % plan.out[0]);
            let sums: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..SUMS]);
            for (block, x) in (0..blocks).flat_map(|block| (0..plan.out[1]).map(move |x| (block, x))) {
                sums.fill(0.0);
                self.each_input(job, image, [y, x], |tap, channel, value| {
                    for (i, sum) in sums.iter_mut().enumerate().take(BLOCK.min(out_channels - block * BLOCK)) {
                        let weight = weights[((block * BLOCK + i) * in_channels + channel) * taps + tap];
                        *sum = value.mul_add(weight, *sum);
                    }
                });
                self.store_pixels(job, image, block, [y, x], 1, Src::new(sums));
            }
        });
    }

    /// Writes the sums of a register tile to the outputs that they are.
    fn store(&self, job: &ConvJob<'_>, image: usize, row: usize, column: usize, sums: &[f32]) {
        let (plan, width) = (&self.plan, self.plan.size[1]);
        let end = plan.rows().min((row + 1) * SIDE);
        let mut at = row * SIDE;
        while at < end {
            let (y, x) = (at / width, at % width);
            let run = (width - x).min(end - at);
            let count = run.min(plan.out[1].saturating_sub(x));
            for half in 0..2 {
                let block = 2 * column + half;
                if count > 0 && block < job.ys.blocks() {
                    let sums = Src::new(sums).add((at - row * SIDE) * SIDE + half * LANES);
                    self.store_pixels(job, image, block, [y, x], count, sums);
                }
            }
            at += run;
        }
    }

    /// Writes sums, 32 apart, to a block of channels of `count` pixels of a row.
    fn store_pixels(&self, job: &ConvJob<'_>, image: usize, block: usize, [y, x]: [usize; 2], count: usize, sums: Src) {
        let bias = job.bias_block::<1>(block);
        let args = StorePixels {
            sums,
            bias: Src::new(&bias),
            residual: job.residual_at(image, block, y, x).map(|residual| residual.at),
            y: job.y.add(job.ys.offset(image, block, y, x)),
            limits: job.limits,
            count,
        };
        // SAFETY: `ConvJob::new` checked the shapes; these outputs are this part's alone.
        unsafe { entry::<StorePixels>(self.isa)(&args) }
    }
}

/// A running convolution.
struct TilesJob<'a> {
    conv: ConvJob<'a>,
    /// Lines and notes of every image.
    lines: Src,
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

    fn run(&self, job: &ConvJob<'_>, scratch: &mut [f32], par: &dyn Par) {
        let (plan, images) = (&self.plan, self.images);
        if job.ys.halo != Halo::default() {
            par.run(images * job.ys.blocks(), 0, &|chunk, _| {
                let (image, block) = (chunk / job.ys.blocks(), chunk % job.ys.blocks());
                // SAFETY: the halo of this block of this image is this chunk's.
                unsafe { zero_halo(job.y, &job.ys, image, block, 0..job.ys.h) }
            });
        }
        let (header, weights) = job.packed.split_at(HEADER);
        if header[0].to_bits() == PLAIN {
            return self.run_plain(job, weights, par);
        }
        let (lines, all_have_parts) = (Dst::new(scratch), AtomicBool::new(true));
        par.run(images * plan.blocks(), 0, &|chunk, _| {
            let (image, block) = (chunk / plan.blocks(), chunk % plan.blocks());
            if !self.fill(job, image, block, lines.add(image * self.image_len())) {
                all_have_parts.store(false, Ordering::Relaxed);
            }
        });
        let all_have_parts = all_have_parts.into_inner();
        let job = TilesJob { conv: *job, lines: lines.as_src(), weights, all_have_parts };
        let [rows, columns] = [images * plan.row_panels(), plan.columns()];
        // How panels are shared changes no order of additions.
        if columns > rows {
            par.run_static(columns, SUMS, &|part, scratch| self.multiply(&job, 0..rows, part, scratch));
        } else {
            par.run_static(rows, SUMS, &|part, scratch| self.multiply(&job, part, 0..columns, scratch));
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

/// Sums of a block of 16 channels of some pixels of a row, 32 apart, and where they go.
struct StorePixels {
    sums: Src,
    bias: Src,
    residual: Option<Src>,
    y: Dst,
    limits: crate::activation::Limits,
    count: usize,
}

impl Body for StorePixels {
    type Args = StorePixels;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &StorePixels) {
        let limits = x.limits.ready(s);
        // SAFETY: the caller has `count` pixels of sums, residual and output.
        unsafe {
            let bias = s.load(x.bias, 0);
            for i in 0..x.count {
                let mut v = s.add(s.load(x.sums, i * SIDE), bias);
                if let Some(residual) = x.residual {
                    v = s.add(v, s.load(residual, i * BLOCK));
                }
                s.store(x.y, i * BLOCK, limits.apply(s, v));
            }
        }
    }
}
