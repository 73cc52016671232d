//! Direct convolution of any kernel, stride, dilation and group count: a row of output pixels times
//! one or two blocks of output channels per register tile.
//!
//! Groups whose channels do not fill blocks are computed as the dense convolution between a block
//! of outputs and the inputs that any of them sees, with zero weights in between: a NaN or infinity
//! in one such group reaches its neighbours in the block.

use crate::blocked::chunks::{Chunk, ChunkGrid};
use crate::blocked::{BLOCK, Halo, zero_halo};
use crate::cache_class::CacheClass;
use crate::conv::cost::estimate;
use crate::conv::method::{ConvBand, ConvBands, ConvMethod, PreparedConv, UnpackWeights};
use crate::conv::operands::ConvJob;
use crate::conv::params::Conv2dParams;
use crate::conv::register_tiles::ConvTileArgs;
use crate::conv::table::ConvSignature;
use crate::conv::tiling::{RowTiling, TilePlace, TileShape};
use crate::gemm::tile::{Elements, Soon, Split, Tap, tile_size};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{LANES, Src};
use std::ops::Range;
use std::sync::Arc;

/// Packed weights up to this part of the second-level cache, in eighths, stay there while all of
/// them pass over a few rows.
const CACHED_EIGHTHS: usize = 5;
/// Rows that are finished for all output channels while their input is near.
const BAND: usize = 4;
/// Multiply-adds that a chunk should have at least, and at most.
const CHUNK_WORK: usize = 2 << 20;
const MOST_WORK: usize = 16 << 20;

/// Taps between two visits of the outputs, where weights come from far: their panel then stays in
/// the first-level cache while the tiles of a chunk pass over it.
const DEPTH: usize = 64;
/// Chunks that a convolution with many weights is cut into at least.
const LEAST_CHUNKS: usize = 16;

/// Sums of at most this number of products are made faster than the lines for them arrive.
const SHORT_SUMS: usize = 48;

/// Inputs with fewer channels than this are made planes: blocks of 16 would be mostly empty.
pub(in crate::conv) const PLANAR_CHANNELS: usize = 8;
/// How much faster another method must be expected to be to replace direct convolution.
const MARGIN: f64 = 1.15;

/// Direct convolution, which every other method must beat.
pub(in crate::conv) struct DirectMethod;
pub(in crate::conv) static METHOD: DirectMethod = DirectMethod;

impl ConvMethod for DirectMethod {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        !signature.params.is_depthwise()
    }

    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        Some(expected_us(signature, out) / MARGIN)
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], in_blocks: bool) -> Arc<dyn PreparedConv> {
        let ConvSignature { params, isa, cache, .. } = *signature;
        let planar = params.in_channels < PLANAR_CHANNELS && !in_blocks;
        Arc::new(Direct::new(params, Elements::Single, out, planar, isa, cache))
    }
}

/// Expected microseconds of direct convolution on one core.
pub(in crate::conv) fn expected_us(signature: &ConvSignature, out: [usize; 2]) -> f64 {
    let ConvSignature { params, shape: [images, ..], .. } = *signature;
    let (pixels, weights) = ((images * out[0] * out[1]) as f64, params.weight_len() as f64);
    estimate(signature, pixels * weights, 4.0 * weights)
}

/// Some bands more, so that two or four cores get the same number.
fn even_bands(bands: usize) -> usize {
    if bands > 2 { bands.next_multiple_of(4) } else { bands }
}

/// A direct convolution prepared for one image size.
#[derive(Clone, Debug)]
pub(in crate::conv) struct Direct {
    params: Conv2dParams,
    isa: Isa,
    /// The element of an input channel.
    elements: Elements,
    out: [usize; 2],
    /// Input channels come as planes and not in blocks.
    planar: bool,
    parts: Vec<OutputPart>,
    packed_len: usize,
    /// Most taps of a part.
    most_taps: usize,
    /// Taps between two visits of the outputs.
    depth: usize,
    /// Weights come from far, so that the tiles that read a panel share the requests for the next.
    shared: bool,
    /// How the work on an image is cut.
    cut: ChunkGrid,
}

/// One or two blocks of output channels and the input channels that they see.
#[derive(Clone, Copy, Debug)]
struct OutputPart {
    first_block: usize,
    blocks: usize,
    inputs: (usize, usize),
    packed_at: usize,
}

impl Direct {
    /// Prepares the method; for [`Elements::Pairs`] the channels of `params` are pairs of channels.
    pub(in crate::conv) fn new(
        params: Conv2dParams,
        elements: Elements,
        out: [usize; 2],
        planar: bool,
        isa: Isa,
        cache: CacheClass,
    ) -> Direct {
        let (parts, packed_len) = output_parts(&params, isa);
        let row_work = (params.work(out) / out[0]).max(1);
        let cached = packed_len * size_of::<f32>() <= cache.bytes() / 8 * CACHED_EIGHTHS;
        let (chunk_rows, chunk_parts) = if cached {
            (CHUNK_WORK.div_ceil(row_work).max(BAND), parts.len())
        } else {
            // The more rows, the less often the weights are read.
            let part_work = (row_work * out[0] / parts.len()).max(1);
            let most_bands = part_work.div_ceil(CHUNK_WORK);
            let bands = LEAST_CHUNKS.div_ceil(parts.len()).max(part_work / MOST_WORK).min(most_bands);
            (out[0].div_ceil(bands).max(BAND), CHUNK_WORK.div_ceil(part_work))
        };
        let bands = even_bands(out[0].div_ceil(chunk_rows)).min(out[0]);
        let cut =
            ChunkGrid::new((out[0], bands), (parts.len(), parts.len().div_ceil(chunk_parts))).halved(params.work(out));
        // Chunks of all channels round their own input.
        let cut = if elements == Elements::Pairs { cut } else { cut.even(params.work(out)) };
        let runs = parts.iter().map(|part| channel_runs(planar, part.inputs).count()).max().unwrap_or(0);
        Direct {
            params,
            isa,
            elements,
            out,
            planar,
            packed_len,
            most_taps: runs * params.taps(),
            depth: if cached { usize::MAX } else { DEPTH },
            shared: !cached,
            cut,
            parts,
        }
    }

    /// Calls `visit` with every weight of some output channels and its place among the packed ones.
    fn each_weight(&self, outputs: Range<usize>, mut visit: impl FnMut(usize, usize)) {
        let p = &self.params;
        let (taps, inputs, group_outputs) = (p.taps(), p.group_inputs(), p.group_outputs());
        for part in &self.parts {
            let (first, width) = (part.first_block * LANES, part.blocks * LANES);
            for channel in first.max(outputs.start)..(first + width).min(outputs.end) {
                let group = channel / group_outputs;
                for run in channel_runs(self.planar, part.inputs) {
                    let run_at = part.packed_at + (run.first - part.inputs.0) * taps * width + channel - first;
                    for k in (0..run.count).filter(|k| (run.first + k) / inputs == group) {
                        let filter = (channel * inputs + (run.first + k) % inputs) * taps;
                        for t in 0..taps {
                            visit(filter + t, run_at + (t * run.count + k) * width);
                        }
                    }
                }
            }
        }
    }

    /// Writes the positions of a tile's inputs, counted from the pixel of its first tap, and
    /// returns the number of taps.
    fn fill_taps(&self, job: &ConvJob<'_>, part: &OutputPart, taps: &mut [Tap]) -> usize {
        let Conv2dParams { kernel, dilate, .. } = self.params;
        let mut used = 0;
        for run in channel_runs(self.planar, part.inputs) {
            for i in 0..kernel[0] {
                for j in 0..kernel[1] {
                    let at = job.xs.padded_offset(0, run.block, i * dilate[0], j * dilate[1]) + run.lane;
                    taps[used] = Tap { offset: at as u32, count: run.count as u32 };
                    used += 1;
                }
            }
        }
        used
    }

    /// How the work on an image is cut.
    pub(in crate::conv) fn cut(&self) -> &ChunkGrid {
        &self.cut
    }

    /// Whether writing outputs takes longer than computing them, and weights do not come from a
    /// distant cache for every few of them.
    fn is_bound_by_outputs(&self) -> bool {
        !self.shared && self.params.group_inputs() * self.params.taps() <= SHORT_SUMS
    }

    /// Bytes of scratch of a chunk.
    pub(in crate::conv) fn scratch_bytes(&self) -> usize {
        self.most_taps * size_of::<Tap>()
    }

    /// Computes one chunk from an input that may hold only the rows it reads.
    pub(in crate::conv) fn run_chunk(&self, job: &ConvJob<'_>, chunk: &Chunk, from: InputRows, scratch: &mut [u8]) {
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut scratch[..self.scratch_bytes()]);
        // Parts are mostly alike: they see the same inputs, and all but the last have as many
        // blocks.
        let (mut inputs, mut used, mut tiles) = (None, 0, None);
        for part in &self.parts[chunk.parts.clone()] {
            if inputs != Some(part.inputs) {
                (inputs, used) = (Some(part.inputs), self.fill_taps(job, part, taps));
            }
            let of_these = tiles.take().filter(|(blocks, _)| *blocks == part.blocks);
            let (blocks, these) = of_these.unwrap_or_else(|| (part.blocks, self.tiles(part, chunk)));
            self.rows(job, part, &taps[..used], &these, chunk, from);
            tiles = Some((blocks, these));
        }
    }

    /// Some output rows of one part.
    fn rows(
        &self,
        job: &ConvJob<'_>,
        part: &OutputPart,
        taps: &[Tap],
        tiles: &RowTiling,
        chunk: &Chunk,
        from: InputRows,
    ) {
        let width = part.blocks * LANES;
        let depth = if job.in_place { taps.len() } else { self.depth.min(taps.len()) };
        let mut b = Src::new(job.packed).add(part.packed_at);
        for (i, some) in taps.chunks(depth).enumerate() {
            let len = some.iter().map(|tap| tap.count as usize * width).sum();
            let stage = TapStage {
                taps: some,
                b,
                len,
                shared: self.shared,
                resumes: i > 0,
                pauses: (i + 1) * depth < taps.len(),
            };
            self.stage(job, part, &stage, tiles, chunk, from);
            b = b.add(len);
        }
        for block in part.first_block..part.first_block + part.blocks {
            // SAFETY: `ConvJob::new` checked the shape; these output rows of these blocks belong to
            // this chunk.
            unsafe { zero_halo(job.y, &job.ys, chunk.image, block, chunk.rows.clone()) }
        }
    }

    /// How the rows of a chunk are cut into tiles.
    fn tiles(&self, part: &OutputPart, chunk: &Chunk) -> RowTiling {
        let pixel = self.params.stride[1] * if self.planar { 1 } else { BLOCK };
        let shape = TileShape { isa: self.isa, elements: self.elements, blocks: part.blocks, pixel };
        RowTiling::new(self.out[1], chunk.rows.len(), shape)
    }

    /// Some taps of all tiles of some rows of a part.
    fn stage(
        &self,
        job: &ConvJob<'_>,
        part: &OutputPart,
        stage: &TapStage<'_>,
        tiles: &RowTiling,
        chunk: &Chunk,
        from: InputRows,
    ) {
        let Conv2dParams { stride, pad, .. } = self.params;
        let (xs, ys) = (&job.xs, &job.ys);
        let bias = job.bias_block::<2>(part.first_block);
        let (top, left) = (xs.halo.top - pad[0], xs.halo.left - pad[1]);
        let (width, pixel) = (part.blocks * LANES, stride[1] * xs.block);
        let fetch_outputs = stage.len <= SHORT_SUMS * width && job.fetches_outputs();
        // Rounded inputs were just written. Of others the first part brings near what the others
        // read, unless much lies between.
        let first = self.shared || part.first_block == self.parts[chunk.parts.start].first_block;
        let fetch_rows = first && self.elements == Elements::Single;
        let passes = tiles.count(chunk.rows.len());
        // What the first pixel of the chunk needs; tiles differ from it in where they lie.
        let at = chunk.rows.start;
        let x = job.x.add(xs.padded_offset(from.image, 0, top + at * stride[0] - from.first, left));
        let y = job.y.add(ys.offset(chunk.image, part.first_block, at, 0));
        let residual = job.residual_at(chunk.image, part.first_block, at, 0);
        let (x_row, y_row) = (stride[0] * xs.row_stride(), ys.row_stride());
        let mut args = ConvTileArgs {
            a: x,
            pixel,
            row: x_row,
            taps: stage.taps.as_ptr(),
            taps_len: stage.taps.len(),
            b: stage.b,
            soon: Soon { rows: fetch_rows, ..stage.soon(width, 0, passes) },
            resumes: stage.resumes,
            pauses: stage.pauses,
            bias: Src::new(&bias),
            residual,
            y,
            y_block: ys.block_stride(),
            y_row,
            fetch_outputs,
            limits: job.limits,
        };
        for (pass, TilePlace { row, col, entry }) in tiles.places(chunk.rows.len()).enumerate() {
            let (right, y_right) = (col * pixel, col * BLOCK);
            (args.a, args.row) = (x.add(row * x_row + right), x_row - right);
            (args.y, args.y_row) = (y.add(row * y_row + y_right), y_row - y_right);
            if stage.shared {
                args.soon.at = stage.soon(width, pass, passes).at;
            }
            if let (Some(tile), Some(first)) = (&mut args.residual, &residual) {
                (tile.at, tile.row) = (first.at.add(row * first.row + y_right), first.row - y_right);
            }
            // SAFETY: `ConvJob::new` checked shapes, halo and lengths; the taps and weights were
            // laid out for this part; these output rows of these blocks belong to this chunk.
            unsafe { entry(&args) }
        }
    }
}

impl PreparedConv for Direct {
    fn name(&self) -> String {
        let rows = Split::tiles(self.out[1], self.isa).rows(0);
        let blocks = self.parts.iter().map(|p| p.blocks).max().unwrap_or(1);
        let elements = if self.elements == Elements::Pairs { " bf16" } else { "" };
        format!("direct{elements} {rows}x{blocks} {}", self.isa)
    }

    fn packing(&self) -> String {
        let elements = if self.elements == Elements::Pairs { " bf16" } else { "" };
        let planes = if self.planar { " planes" } else { "" };
        format!("direct{elements}{planes} x{}", tile_size(self.isa).blocks)
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        self.params.halo(size, self.out)
    }

    fn takes_planes(&self) -> bool {
        self.planar
    }

    fn packed_len(&self) -> usize {
        self.packed_len
    }

    /// Weights in the order in which a tile reads them: part, block of input channels, tap, input
    /// channel, output channel.
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        packed[..self.packed_len].fill(0.0);
        self.each_weight(0..self.params.out_channels, |weight, place| packed[place] = weights[weight]);
    }

    fn unpacker(&self) -> Option<&dyn UnpackWeights> {
        (self.elements == Elements::Single).then_some(self)
    }

    fn run(&self, job: &ConvJob<'_>, _: &mut [f32], par: &dyn Par) {
        let images = job.xs.n;
        par.run(self.cut.chunks(images), self.scratch_bytes(), &|chunk, scratch| {
            let chunk = self.cut.chunk(chunk, images);
            let from = InputRows { image: chunk.image, first: 0 };
            self.run_chunk(job, &chunk, from, scratch);
        });
    }

    fn bands(&self) -> Option<&dyn ConvBands> {
        self.is_bound_by_outputs().then_some(self)
    }
}

impl UnpackWeights for Direct {
    fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        let first = outputs.start * self.params.group_inputs() * self.params.taps();
        self.each_weight(outputs, |weight, place| weights[weight - first] = packed[place]);
    }
}

impl ConvBands for Direct {
    fn row_step(&self) -> usize {
        1
    }

    fn may_repeat(&self) -> bool {
        false
    }

    fn band(&self, out: [usize; 2], _: usize) -> Option<ConvBand> {
        let cache = CacheClass::detect();
        let conv = Arc::new(Direct::new(self.params, self.elements, out, self.planar, self.isa, cache));
        Some(ConvBand { chunk_bytes: conv.scratch_bytes(), conv })
    }
}

/// Taps that all tiles of a chunk pass over one after the other, and their weights.
struct TapStage<'t> {
    taps: &'t [Tap],
    b: Src,
    /// Elements of the weights.
    len: usize,
    /// Whether the tiles share the requests for what follows.
    shared: bool,
    /// Whether others went before, and whether others follow.
    resumes: bool,
    pauses: bool,
}

impl TapStage<'_> {
    /// The requests of tile number `pass` of `passes`: the lines that follow the weights.
    fn soon(&self, width: usize, pass: usize, passes: usize) -> Soon {
        if !self.shared {
            Soon::behind(self.b, width)
        } else {
            Soon::share(self.b.add(self.len), self.len, width, pass, passes)
        }
    }
}

/// The position of a chunk's input.
#[derive(Clone, Copy)]
pub(in crate::conv) struct InputRows {
    /// The image among those that the input holds.
    pub image: usize,
    /// The row, counted from the first of the padding, that the input's first row stands for.
    pub first: usize,
}

/// Input channels of one block.
struct ChannelRun {
    first: usize,
    count: usize,
    block: usize,
    lane: usize,
}

/// Input channels cut where blocks end.
fn channel_runs(planar: bool, (start, end): (usize, usize)) -> impl Iterator<Item = ChannelRun> {
    let block = if planar { 1 } else { BLOCK };
    let mut first = start;
    std::iter::from_fn(move || {
        let count = (block - first % block).min(end.checked_sub(first)?);
        let run = ChannelRun { first, count, block: first / block, lane: first % block };
        first += count;
        (count > 0).then_some(run)
    })
}

/// Cuts the output channels into parts of as many blocks as the tile has (one, where groups are
/// narrower than that), and adds up the weights they need.
fn output_parts(p: &Conv2dParams, isa: Isa) -> (Vec<OutputPart>, usize) {
    let blocks = p.out_channels.div_ceil(BLOCK);
    let widest = tile_size(isa).blocks;
    let width = if p.groups == 1 || p.group_outputs().is_multiple_of(widest * BLOCK) { widest } else { 1 };
    let mut parts = Vec::with_capacity(blocks.div_ceil(width));
    let mut packed_at = 0;
    for first_block in (0..blocks).step_by(width) {
        let here = width.min(blocks - first_block);
        let last = ((first_block + here) * BLOCK).min(p.out_channels) - 1;
        let groups = (first_block * BLOCK / p.group_outputs(), last / p.group_outputs() + 1);
        let inputs = (groups.0 * p.group_inputs(), groups.1 * p.group_inputs());
        parts.push(OutputPart { first_block, blocks: here, inputs, packed_at });
        packed_at += (inputs.1 - inputs.0) * p.taps() * here * BLOCK;
    }
    (parts, packed_at)
}
