//! Filters of up to 8x8 with stride 2 on up to four channels, as F(4x4, 4x4) on the phases of the
//! image.
//!
//! Even and odd rows and columns of the padded image are four images of half the size; together
//! they have up to 16 channels, one vector. In them the filter is 4x4 with stride 1 (a zero tap
//! where 8 is not reached): 49 products for 16 outputs and four phases replace 16 x 49 products of
//! a 7x7 filter. A chunk is a row of tiles: it cuts its own phases from planes, so that nothing but
//! outputs travels between chunks.

use std::ops::Range;
use std::sync::Arc;

use super::odd_lines;
use super::scheme::filter_matrix;
use super::transforms::{F44, InputArgs, InputTile, OutputArgs, OutputTile};
use crate::blocked::{BLOCK, Halo, zero_halo};
use crate::conv::method::{ConvBand, ConvBands, ConvMethod, PreparedConv};
use crate::conv::methods::direct::expected_us;
use crate::conv::operands::ConvJob;
use crate::conv::options::Winograd;
use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::gemm::tile::{Elements, ProductArgs, Split, SumsAt, Tap, product, tile_size};
use crate::isa::Isa;
use crate::par::{Par, range_of};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry, prefetch_far};

/// Taps of a phase's filter along one side.
const TAPS: usize = 4;
/// Outputs along one side of a tile, points along one side, and all points.
const OUTS: usize = 4;
const POINTS: usize = 7;
const SQUARE: usize = POINTS * POINTS;

/// Winograd F(4,4) of the phases of a first layer.
pub(in crate::conv) struct PolyphaseMethod;
pub(in crate::conv) static METHOD: PolyphaseMethod = PolyphaseMethod;

/// 7x7 filters take less than this part of direct convolution's time where vectors are wide.
const LESS_THAN_DIRECT: f64 = 0.5;

impl ConvMethod for PolyphaseMethod {
    fn name(&self) -> &'static str {
        "winograd-polyphase"
    }

    fn needs(&self) -> Winograd {
        Winograd::F4
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        let p = &signature.params;
        let small = |k: usize| (2..=2 * TAPS).contains(&k);
        4 * p.in_channels <= BLOCK
            && p.groups == 1
            && p.stride == [2, 2]
            && p.dilate == [1, 1]
            && p.kernel.into_iter().all(small)
    }

    /// Smaller filters save too few multiplications.
    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        let ConvSignature { params: p, isa, .. } = signature;
        let pays = p.kernel.into_iter().all(|k| k >= 7) && p.out_channels >= 16 && *isa != Isa::Portable;
        pays.then(|| LESS_THAN_DIRECT * expected_us(signature, out))
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], _in_blocks: bool) -> Arc<dyn PreparedConv> {
        let ConvSignature { params, shape: [images, ..], isa, .. } = *signature;
        Arc::new(WinogradPolyphase::new(params, images, out, isa))
    }
}

/// A polyphase Winograd convolution prepared for one image size.
#[derive(Clone, Debug)]
pub(in crate::conv) struct WinogradPolyphase {
    params: Conv2dParams,
    isa: Isa,
    images: usize,
    out: [usize; 2],
    /// Rows and columns of tiles in an image.
    grid: [usize; 2],
}

impl WinogradPolyphase {
    pub(in crate::conv) fn new(params: Conv2dParams, images: usize, out: [usize; 2], isa: Isa) -> WinogradPolyphase {
        WinogradPolyphase { params, isa, images, out, grid: out.map(|o| o.div_ceil(OUTS)) }
    }

    /// Pixels of a phase that a row of tiles reads, in whole vectors.
    fn phase_cols(&self) -> usize {
        (self.grid[1] * OUTS + TAPS - 1).next_multiple_of(LANES)
    }

    /// Lanes in use: four phases of every input channel.
    fn depth(&self) -> usize {
        4 * self.params.in_channels
    }

    /// Output blocks of every part.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (blocks, width) = (self.params.out_channels.div_ceil(BLOCK), tile_size(self.isa).blocks);
        (0..blocks).step_by(width).map(move |first| first..(first + width).min(blocks))
    }

    /// Elements of the phases that a row of tiles reads, and between points of what they and the
    /// products become.
    fn scratch_parts(&self) -> [usize; 3] {
        let cols = self.grid[1];
        let phases = POINTS * self.phase_cols() * LANES;
        [phases, odd_lines(cols * LANES), odd_lines(cols * tile_size(self.isa).blocks * LANES)]
    }

    /// Bytes of scratch of a chunk.
    pub(in crate::conv) fn chunk_bytes(&self) -> usize {
        let [phases, v_point, m_point] = self.scratch_parts();
        (phases + SQUARE * (v_point + m_point)) * size_of::<f32>()
    }

    /// The seven phase rows that a row of tiles reads: `[row][col][16]`.
    fn cut_phases(&self, job: &ConvJob<'_>, tiles: &TileRow, phase: Dst) {
        let xs = &job.xs;
        let (top, left) = (xs.halo.top - self.params.pad[0], xs.halo.left - self.params.pad[1]);
        let cut = entry::<SplitPhases>(self.isa);
        for i in 0..POINTS {
            let row = 2 * (tiles.row * OUTS + i);
            let args = SplitPhasesArgs {
                x: job.x.add(xs.padded_offset(tiles.image, 0, top + row, left)),
                x_row: xs.row_stride(),
                x_channel: xs.block_stride(),
                channels: self.params.in_channels,
                out: phase.add(i * self.phase_cols() * LANES),
                cols: self.phase_cols(),
            };
            // SAFETY: the halo that `ConvJob::new` checked covers two rows for every phase row, and
            // all columns; `phase` has room.
            unsafe { cut(&args) }
        }
    }

    fn transform_inputs(&self, tiles: &TileRow, phase: Src, v: Dst) {
        let transform = entry::<InputTile<F44, F44, usize, POINTS, OUTS, POINTS, OUTS>>(self.isa);
        for col in 0..self.grid[1] {
            let args = InputArgs {
                x: [phase.add(col * OUTS * LANES); 2],
                x_row: self.phase_cols() * LANES,
                v: v.add(col * LANES),
                point: tiles.v_point,
            };
            // SAFETY: seven phase rows hold all columns of the tile; V has room for a row of tiles
            // at every point.
            unsafe { transform(&args) }
        }
    }

    /// Products and outputs of one part of the output channels.
    fn part(&self, job: &ConvJob<'_>, tiles: &TileRow, blocks: Range<usize>, v: Src, m: Dst) {
        let (width, depth) = (blocks.len() * BLOCK, self.depth());
        let tap = Tap { offset: 0, count: depth as u32 };
        let split = Split::tiles(self.grid[1], self.isa);
        let entries = split.entries(|rows| product(self.isa, Elements::Single, rows, blocks.len()));
        let filters = Src::new(job.packed).add(blocks.start * BLOCK * depth * SQUARE);
        let fetched = if job.fetches_outputs() { OUTS.min(self.out[0] - tiles.row * OUTS) * self.out[1] } else { 0 };
        for point in 0..SQUARE {
            for at in range_of(point, SQUARE, fetched) {
                let (row, col) = (tiles.row * OUTS + at / self.out[1], at % self.out[1]);
                blocks.clone().for_each(|b| prefetch_far(job.y.as_src(), job.ys.offset(tiles.image, b, row, col)));
            }
            for i in 0..split.parts {
                let at = split.start(i);
                let args = ProductArgs {
                    a: v.add(point * tiles.v_point + at * LANES),
                    taps: &raw const tap,
                    taps_len: 1,
                    b: filters.add(point * depth * width),
                    c: m.add(point * tiles.m_point + at * width),
                    c_at: SumsAt::rows(width),
                    add: false,
                };
                // SAFETY: V holds a row of tiles at every point, the filters all lanes of this
                // part, M has room for the row.
                unsafe { entries.of(&split, i)(&args) }
            }
        }
        let transform = entry::<OutputTile<F44, F44, usize, POINTS, OUTS, POINTS, OUTS>>(self.isa);
        let ys = &job.ys;
        let row = tiles.row * OUTS;
        let rows = OUTS.min(self.out[0] - row);
        for (n, block) in blocks.enumerate() {
            let bias = job.bias_block::<1>(block);
            for tile in 0..self.grid[1] {
                let col = tile * OUTS;
                let args = OutputArgs {
                    m: m.as_src().add(tile * width + n * LANES),
                    point: tiles.m_point,
                    bias: Src::new(&bias),
                    residual: job.residual_at(tiles.image, block, row, col).map(|r| (r.at, r.row)),
                    y: job.y.add(ys.offset(tiles.image, block, row, col)),
                    y_row: ys.row_stride(),
                    rows,
                    cols: OUTS.min(self.out[1] - col),
                    limits: job.limits,
                };
                // SAFETY: M holds the products of these tiles; outputs are clipped to the image,
                // and these rows belong to this chunk.
                unsafe { transform(&args) }
            }
            // SAFETY: as above.
            unsafe { zero_halo(job.y, ys, tiles.image, block, row..row + rows) }
        }
    }
}

impl PreparedConv for WinogradPolyphase {
    fn name(&self) -> String {
        format!("winograd F(4,4) polyphase, {}", self.isa)
    }

    fn packing(&self) -> String {
        format!("winograd F(4,4) polyphase x{}", tile_size(self.isa).blocks)
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        let read = [2 * (self.grid[0] * OUTS + TAPS - 1), 2 * self.phase_cols()];
        let after = |i: usize| read[i].saturating_sub(size[i] + self.params.pad[i]);
        Halo { top: self.params.pad[0], left: self.params.pad[1], bottom: after(0), right: after(1) }
    }

    fn takes_planes(&self) -> bool {
        true
    }

    fn packed_len(&self) -> usize {
        self.params.out_channels.next_multiple_of(BLOCK) * self.depth() * SQUARE
    }

    /// `[part][point][lane][16 or 32]`, computed in f64.
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let Conv2dParams { in_channels, out_channels, kernel, .. } = self.params;
        let g = filter_matrix(TAPS, &F44::FINITE);
        let depth = self.depth();
        packed[..self.packed_len()].fill(0.0);
        for part in self.parts() {
            let width = part.len() * BLOCK;
            let first = part.start * BLOCK;
            let packed = &mut packed[first * depth * SQUARE..];
            for o in 0..width.min(out_channels - first) {
                for lane in 0..depth {
                    let (down, right, channel) = (lane / in_channels / 2, lane / in_channels % 2, lane % in_channels);
                    let filter = &weights[((first + o) * in_channels + channel) * kernel[0] * kernel[1]..];
                    let tap = |a: usize, b: usize| {
                        let (r, s) = (2 * a + down, 2 * b + right);
                        if r < kernel[0] && s < kernel[1] { f64::from(filter[r * kernel[1] + s]) } else { 0.0 }
                    };
                    for (point, value) in at_points(&g, tap).into_iter().enumerate() {
                        packed[(point * depth + lane) * width + o] = value as f32;
                    }
                }
            }
        }
    }

    fn run(&self, job: &ConvJob<'_>, _: &mut [f32], par: &dyn Par) {
        let rows = self.grid[0];
        let [phases, v_point, m_point] = self.scratch_parts();
        let bytes = self.chunk_bytes();
        par.run(self.images * rows, bytes, &|chunk, scratch| {
            let scratch: &mut [f32] = bytemuck::cast_slice_mut(&mut scratch[..bytes]);
            let (phase, rest) = scratch.split_at_mut(phases);
            let (v, m) = rest.split_at_mut(SQUARE * v_point);
            let tiles = TileRow { image: chunk / rows, row: chunk % rows, v_point, m_point };
            self.cut_phases(job, &tiles, Dst::new(phase));
            self.transform_inputs(&tiles, Src::new(phase), Dst::new(v));
            for part in self.parts() {
                self.part(job, &tiles, part, Src::new(v), Dst::new(m));
            }
        });
    }

    fn bands(&self) -> Option<&dyn ConvBands> {
        Some(self)
    }
}

impl ConvBands for WinogradPolyphase {
    fn row_step(&self) -> usize {
        OUTS
    }

    fn band(&self, out: [usize; 2], _: usize) -> Option<ConvBand> {
        let conv = Arc::new(WinogradPolyphase::new(self.params, 1, out, self.isa));
        Some(ConvBand { chunk_bytes: conv.chunk_bytes(), conv })
    }
}

/// A row of tiles and the distances of its buffers.
struct TileRow {
    image: usize,
    row: usize,
    v_point: usize,
    m_point: usize,
}

/// Values of one phase's filter at all points.
fn at_points(g: &[Vec<f64>], tap: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let column = |i: usize, b: usize| (0..TAPS).map(|a| g[i][a] * tap(a, b)).sum::<f64>();
    let mut values = Vec::with_capacity(SQUARE);
    for i in 0..POINTS {
        let row: [f64; TAPS] = std::array::from_fn(|b| column(i, b));
        values.extend(g.iter().map(|g| (0..TAPS).map(|b| g[b] * row[b]).sum::<f64>()));
    }
    values
}

/// Two rows of every plane, and where their phases go.
struct SplitPhasesArgs {
    x: Src,
    x_row: usize,
    x_channel: usize,
    channels: usize,
    out: Dst,
    /// Pixels of the phases, a multiple of 16.
    cols: usize,
}

/// Lane = (row parity, column parity, channel).
struct SplitPhases;

impl Body for SplitPhases {
    type Args = SplitPhasesArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &SplitPhasesArgs) {
        for at in (0..x.cols).step_by(LANES) {
            let mut v = [s.zero(); LANES];
            // SAFETY: the caller passes two readable rows of `2 * cols` elements per plane and room
            // for `cols` pixels.
            unsafe {
                for down in 0..2 {
                    for channel in 0..x.channels {
                        let row = x.x.add(channel * x.x_channel + down * x.x_row + 2 * at);
                        let (even, odd) = s.deinterleave(s.load(row, 0), s.load(row, LANES));
                        v[2 * down * x.channels + channel] = even;
                        v[(2 * down + 1) * x.channels + channel] = odd;
                    }
                }
                s.transpose(&mut v);
                for i in 0..LANES {
                    s.store(x.out, (at + i) * LANES, v[i]);
                }
            }
        }
    }
}
