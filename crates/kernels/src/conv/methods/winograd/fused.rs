//! Filters transformed on their way from the cache to the multiply-add units, for AVX-512.
//!
//! The image is divided into patches of 2x2 tiles; a tile is four, three or two outputs on a side
//! (7 = 4 + 3, 5 = 3 + 2), so that few outputs are computed and discarded. For each block of
//! outputs, 32 input channels and one row of the filter transform, six vectors are formed and used
//! at once on the four tiles: 24 accumulators. Six passes read the same 18 KiB of filters from the
//! first-level cache.
//!
//! Filters are multiplied by integers only; the fractions sit in the input transform. A side of
//! three is F(3,3) on the points of F(4,3) without -2, one of two is F(2,3) without 1/2, too: they
//! share the filters' rows and skip some.

use super::fused_patch::{FusedPatch, POINTS, PatchTile, SIDE, TILES, tile_sides, uses};
use super::transforms::{InputArgs, OutputArgs};
use super::{halo, odd_lines};
use crate::blocked::{BLOCK, Halo, zero_halo};
use crate::conv::cost::{TRANSFORMS, estimate, too_few_to_transform, transformed_channels};
use crate::conv::method::{ConvMethod, PreparedConv, UnpackWeights};
use crate::conv::operands::ConvJob;
use crate::conv::options::Winograd;
use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::isa::Isa;
use crate::par::{Par, groups_of, range_of};
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry_wide, prefetch_far, prefetch_near};
use std::ops::Range;
use std::sync::Arc;

/// Blocks of input channels between two visits of the accumulators.
const DEPTH: usize = 2;
/// Transformed inputs of a chunk that stay near the second-level cache, and patches that at least
/// pass over the filters together.
const CACHED: usize = 640 << 10;
const LEAST_PATCHES: usize = 2;
/// Elements of the filters of one input channel for a block of outputs.
const FILTER: usize = 9 * BLOCK;

/// How far beyond the filters of the next blocks lines are requested for the second-level cache, in
/// elements: those of one or two blocks come near in less time than memory takes.
const FAR: usize = 16 << 10;

/// The cost of filters transformed on their way, in multiply-adds: forming the values for a patch,
/// and each product with one of them. Fitted to layers of 4x4 to 8x8 patches.
const FORMING: f64 = 63.0;
const FORMED: f64 = 0.8;

/// Winograd F(4,3), filters transformed on their way to the multiply-add units.
pub(in crate::conv) struct FusedMethod;
pub(in crate::conv) static METHOD: FusedMethod = FusedMethod;

impl ConvMethod for FusedMethod {
    fn name(&self) -> &'static str {
        "winograd-fused"
    }

    fn needs(&self) -> Winograd {
        Winograd::F4
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        let ConvSignature { params: p, isa, .. } = signature;
        super::fits(p, 1) && *isa == Isa::Avx512 && p.in_channels.is_multiple_of(BLOCK)
    }

    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        let ConvSignature { params: p, shape: [images, ..], .. } = *signature;
        if too_few_to_transform(&p) {
            return None;
        }
        let kernel = WinogradFused::new(p, images, out);
        let pairs = (p.in_channels * p.out_channels) as f64;
        let (products, forming) = (kernel.products() as f64, FORMING * kernel.patches() as f64);
        let arithmetic = (FORMED * products + forming) * pairs + TRANSFORMS * products * transformed_channels(&p);
        Some(estimate(signature, arithmetic, 4.0 * p.weight_len() as f64))
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], _in_blocks: bool) -> Arc<dyn PreparedConv> {
        Arc::new(WinogradFused::new(signature.params, signature.shape[0], out))
    }
}

/// A Winograd convolution with raw filters, prepared for one image size.
#[derive(Clone, Debug)]
pub(in crate::conv) struct WinogradFused {
    params: Conv2dParams,
    out: [usize; 2],
    images: usize,
    patch: FusedPatch,
    tiles: Vec<PlacedTile>,
    /// Rows and columns of patches.
    grid: [usize; 2],
}

/// A tile of every patch, and the offsets of its points among transformed inputs and products.
#[derive(Clone, Debug)]
struct PlacedTile {
    tile: PatchTile,
    v: [u32; POINTS],
    m: [u32; POINTS],
}

impl WinogradFused {
    pub(in crate::conv) fn new(params: Conv2dParams, images: usize, out: [usize; 2]) -> WinogradFused {
        let patch = FusedPatch::for_image(out);
        let grid = [out[0].div_ceil(patch.0[0]), out[1].div_ceil(patch.0[1])];
        let mut kernel = WinogradFused { params, out, images, patch, tiles: Vec::new(), grid };
        let v_point = kernel.v_point();
        let placed = |tile: PatchTile| PlacedTile { v: tile.places(v_point), m: tile.places(TILES * BLOCK), tile };
        kernel.tiles = patch.tiles().map(placed).collect();
        kernel
    }

    /// Multiplications for one input and one output channel.
    pub(in crate::conv) fn products(&self) -> usize {
        self.patches() * self.patch.points()
    }

    pub(in crate::conv) fn patches(&self) -> usize {
        self.images * self.grid[0] * self.grid[1]
    }

    fn each_weight(&self, outputs: Range<usize>, mut visit: impl FnMut(usize, usize)) {
        let of_channel = self.params.in_channels * 9;
        for o in outputs {
            let place = o / BLOCK * of_channel * BLOCK + o % BLOCK;
            (0..of_channel).for_each(|i| visit(o * of_channel + i, place + i * BLOCK));
        }
    }

    fn input_blocks(&self) -> usize {
        self.params.in_channels / BLOCK
    }

    /// Elements between the points of a patch's transformed inputs.
    fn v_point(&self) -> usize {
        odd_lines(self.input_blocks() * TILES * BLOCK)
    }

    /// Patches whose transformed inputs fit the cache together.
    fn cached(&self) -> usize {
        (CACHED / (POINTS * self.v_point() * size_of::<f32>())).max(LEAST_PATCHES)
    }

    /// Bytes of scratch for transformed inputs and products of `patches` patches.
    fn scratch_parts(&self, patches: usize) -> [usize; 2] {
        [self.v_point(), TILES * BLOCK].map(|point| patches * POINTS * point * size_of::<f32>())
    }

    fn bytes(&self, patches: usize) -> usize {
        self.scratch_parts(patches).iter().sum()
    }

    fn units(&self, job: &ConvJob<'_>, units: Range<usize>, scratch: &mut [u8]) {
        let blocks = job.ys.blocks();
        let patches = groups_of(&units, blocks);
        assert!(scratch.len() >= self.bytes(patches.len()), "a range is longer than what there is scratch memory for");
        let (v, sums) = scratch.split_at_mut(self.scratch_parts(patches.len())[0]);
        let (v, sums) = (Dst::new(bytemuck::cast_slice_mut(v)), Dst::new(bytemuck::cast_slice_mut(sums)));
        for (at, patch) in patches.clone().enumerate() {
            for block in 0..self.input_blocks() {
                self.transform_inputs(job, patch, block, v.add(at * POINTS * self.v_point()));
            }
        }
        for block in 0..blocks {
            // The patches whose unit of this block is among the units.
            let [first, end] = [units.start, units.end].map(|unit| (unit + blocks - 1 - block) / blocks);
            if first == end {
                continue;
            }
            let v = v.as_src().add((first - patches.start) * POINTS * self.v_point());
            self.products_of(job, block, end - first, v, sums);
            for (at, patch) in (first..end).enumerate() {
                self.transform_outputs(job, patch, block, sums.as_src().add(at * POINTS * TILES * BLOCK));
            }
        }
    }

    /// Image, first row and first column of a patch.
    fn locate(&self, patch: usize) -> (usize, usize, usize) {
        let [rows, cols] = self.grid;
        (patch / (rows * cols), patch / cols % rows * self.patch.0[0], patch % cols * self.patch.0[1])
    }

    /// The four tiles of a patch in one block of channels.
    fn transform_inputs(&self, job: &ConvJob<'_>, patch: usize, block: usize, v: Dst) {
        let xs = &job.xs;
        let (image, row, col) = self.locate(patch);
        let (top, left) = (xs.halo.top - self.params.pad[0], xs.halo.left - self.params.pad[1]);
        let v = v.add(block * TILES * BLOCK);
        for PlacedTile { tile, v: points, .. } in &self.tiles {
            let transform = tile.input_transform();
            let args = InputArgs {
                x: [job.x.add(xs.padded_offset(image, block, top + row + tile.row, left + col + tile.col)); 2],
                x_row: xs.row_stride(),
                v: v.add(tile.number * BLOCK),
                point: points.as_ptr(),
            };
            // SAFETY: the halo that `ConvJob::new` checked covers every patch; V has room for every
            // block of every patch, and this block belongs to this chunk.
            unsafe { transform(&args) }
        }
    }

    /// All products of one block of output channels.
    fn products_of(&self, job: &ConvJob<'_>, block: usize, patches: usize, v: Src, m: Dst) {
        let point = self.v_point();
        let passes = pick_passes(self.patch);
        let filters = Src::new(job.packed).add(block * self.params.in_channels * FILTER);
        for first in (0..self.input_blocks()).step_by(DEPTH) {
            let blocks = DEPTH.min(self.input_blocks() - first);
            for patch in 0..patches {
                let args = PassArgs {
                    v: v.add(patch * POINTS * point + first * TILES * BLOCK),
                    v_point: point,
                    filters: filters.add(first * BLOCK * FILTER),
                    blocks,
                    next: blocks * BLOCK * FILTER,
                    m: m.add(patch * POINTS * TILES * BLOCK),
                    add: first > 0,
                };
                for pass in passes.iter().flatten() {
                    // SAFETY: V holds `blocks` blocks from `first` of this patch, the filters as
                    // many channels, M all points of the patch.
                    unsafe { pass(&args) }
                }
            }
        }
    }

    /// The outputs of one patch in one block of channels.
    fn transform_outputs(&self, job: &ConvJob<'_>, patch: usize, block: usize, m: Src) {
        let ys = &job.ys;
        let (image, row, col) = self.locate(patch);
        let bias = job.bias_block::<1>(block);
        for PlacedTile { tile, m: points, .. } in &self.tiles {
            let (row, col) = (row + tile.row, col + tile.col);
            if row >= self.out[0] || col >= self.out[1] {
                continue;
            }
            let transform = tile.output_transform();
            let args = OutputArgs {
                m: m.add(tile.number * BLOCK),
                point: points.as_ptr(),
                bias: Src::new(&bias),
                residual: job.residual_at(image, block, row, col).map(|r| (r.at, r.row)),
                y: job.y.add(ys.offset(image, block, row, col)),
                y_row: ys.row_stride(),
                rows: tile.outs[0].min(self.out[0] - row),
                cols: tile.outs[1].min(self.out[1] - col),
                limits: job.limits,
            };
            // SAFETY: M holds the products of this patch; outputs are clipped to the image, and
            // this block belongs to this chunk. The tile that ends a row writes the halo beside it.
            unsafe {
                transform(&args);
                if col + args.cols == self.out[1] {
                    zero_halo(job.y, ys, image, block, row..row + args.rows);
                }
            }
        }
    }
}

impl PreparedConv for WinogradFused {
    fn name(&self) -> String {
        let [rows, cols] = self.patch.0;
        format!("winograd F(4,3) fused-transform, {rows}x{cols} patches, {}", Isa::Avx512)
    }

    fn packing(&self) -> String {
        "winograd fused-transform".to_owned()
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        halo(&self.params, size, [self.grid[0] * self.patch.0[0], self.grid[1] * self.patch.0[1]])
    }

    fn packed_len(&self) -> usize {
        self.params.out_channels.div_ceil(BLOCK) * self.params.in_channels * FILTER
    }

    /// `[output block][input channel][9][16]`
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        packed[..self.packed_len()].fill(0.0);
        self.each_weight(0..self.params.out_channels, |weight, place| packed[place] = weights[weight]);
    }

    fn unpacker(&self) -> Option<&dyn UnpackWeights> {
        Some(self)
    }

    /// A unit of work is a block of outputs of a patch, patch after patch. A thread that has units
    /// of a patch transforms all of its inputs: then inputs travel between cores, and not what
    /// becomes of them, which is three times as much.
    fn run(&self, job: &ConvJob<'_>, _: &mut [f32], par: &dyn Par) {
        let (parallelism, blocks) = (par.parallelism(), job.ys.blocks());
        let least = self.patches().div_ceil(self.cached());
        if least > parallelism {
            let groups = least.next_multiple_of(parallelism).min(self.patches());
            par.run(groups, self.bytes(self.patches().div_ceil(groups)), &|group, scratch| {
                let patches = range_of(group, groups, self.patches());
                self.units(job, patches.start * blocks..patches.end * blocks, scratch);
            });
        } else {
            let units = self.patches() * blocks;
            let most = (2 * units.div_ceil(parallelism)).div_ceil(blocks) + 1;
            par.run_static(units, self.bytes(most.min(self.patches())), &|units, scratch| {
                self.units(job, units, scratch)
            });
        }
    }
}

impl UnpackWeights for WinogradFused {
    fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        let first = outputs.start * self.params.in_channels * 9;
        self.each_weight(outputs, |weight, place| weights[weight - first] = packed[place]);
    }
}

/// The passes over the filters, none for a row of points that no tile uses.
fn pick_passes(FusedPatch([tall, wide]): FusedPatch) -> [Option<Entry<PassArgs>>; SIDE] {
    let tall = tile_sides(tall);
    // The first tile is as large as the second one, so it uses every point that the second one
    // does.
    let live = |row: usize| tall.iter().filter(|outs| uses(**outs, row)).count();
    macro_rules! pass {
        ($row:literal, $wide:literal) => {
            match live($row) {
                0 => None,
                1 => Some(entry_wide::<TransformPass<$row, 1, $wide>>()),
                _ => Some(entry_wide::<TransformPass<$row, 2, $wide>>()),
            }
        };
    }
    macro_rules! passes {
        ($wide:literal) => {
            [pass!(0, $wide), pass!(1, $wide), pass!(2, $wide), pass!(3, $wide), pass!(4, $wide), pass!(5, $wide)]
        };
    }
    match wide {
        8 => passes!(8),
        7 => passes!(7),
        6 => passes!(6),
        5 => passes!(5),
        _ => passes!(4),
    }
}
/// One patch, a few blocks of input channels, one block of output channels.
struct PassArgs {
    v: Src,
    v_point: usize,
    filters: Src,
    /// Blocks of input channels.
    blocks: usize,
    /// The distance to the filters of the next blocks, which are requested at the same time.
    next: usize,
    m: Dst,
    add: bool,
}

/// Row `ROW` of the filter transform: six points of the tiles in `LIVE` rows of tiles. A patch is
/// `WIDE` outputs wide.
struct TransformPass<const ROW: usize, const LIVE: usize, const WIDE: usize>;

impl<const ROW: usize, const LIVE: usize, const WIDE: usize> TransformPass<ROW, LIVE, WIDE> {
    /// The tiles that use each point of this row, a bit each. A constant number folds wherever the
    /// loops over points and tiles are unrolled; from a table of sizes the compiler would learn it
    /// too late to keep the sums in registers.
    const LIVE: u32 = {
        let (mut live, mut bit) = (0, 0);
        while bit < SIDE * TILES {
            let (point, tile) = (bit / TILES, bit % TILES);
            if tile / 2 < LIVE && uses(tile_sides(WIDE)[tile % 2], point) {
                live |= 1 << bit;
            }
            bit += 1;
        }
        live
    };

    /// Whether a tile uses a point of this row.
    #[inline(always)]
    const fn live(point: usize, tile: usize) -> bool {
        Self::LIVE >> (point * TILES + tile) & 1 == 1
    }

    /// The six vectors of row `ROW` of the transformed filter.
    ///
    /// # Safety
    /// `g[.. 9 * 16]` must be readable.
    #[inline(always)]
    unsafe fn filter_row<S: Simd>(s: S, g: Src) -> [S::V; SIDE] {
        let (two, four) = (s.splat(2.0), s.splat(4.0));
        let mut c = [s.zero(); 3];
        for j in 0..3 {
            // SAFETY: promised by the caller.
            let at = |r: usize| unsafe { s.load(g, (r * 3 + j) * LANES) };
            c[j] = match ROW {
                0 => at(0),
                1 => s.add(s.add(at(2), at(0)), at(1)),
                2 => s.sub(s.add(at(2), at(0)), at(1)),
                3 => s.fma(two, at(1), s.fma(four, at(0), at(2))),
                4 => s.fnma(two, at(1), s.fma(four, at(2), at(0))),
                _ => at(2),
            };
        }
        let sum = s.add(c[0], c[2]);
        [
            c[0],
            s.add(sum, c[1]),
            s.sub(sum, c[1]),
            s.fma(two, c[1], s.fma(four, c[0], c[2])),
            s.fnma(two, c[1], s.fma(four, c[2], c[0])),
            c[2],
        ]
    }

    /// Lines of the next blocks' filters that this pass requests for every channel: all of them in
    /// the order of their addresses, which memory answers fastest, by the passes that no patch does
    /// without.
    const REQUESTS: usize = match ROW {
        4 => 0,
        5 => 1,
        _ => 2,
    };
    /// Lines for every channel that the passes before this one request.
    const REQUESTED: usize = if ROW < 4 { 2 * ROW } else { 8 };

    /// Requests the next lines of this pass's share.
    #[inline(always)]
    fn request_filters(soon: Src) -> Src {
        for line in 0..Self::REQUESTS {
            prefetch_near(soon, line * LANES);
            prefetch_far(soon, line * LANES + FAR);
        }
        soon.add(Self::REQUESTS * LANES)
    }
}

impl<const ROW: usize, const LIVE: usize, const WIDE: usize> Body for TransformPass<ROW, LIVE, WIDE> {
    type Args = PassArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &PassArgs) {
        // SAFETY: the caller passes `blocks` blocks of V and of filters, and M for all points of a
        // patch.
        unsafe {
            let m = x.m.add(ROW * SIDE * TILES * LANES);
            let mut acc = [[s.zero(); TILES]; SIDE];
            if x.add {
                for j in 0..SIDE {
                    for t in 0..TILES {
                        if Self::live(j, t) {
                            acc[j][t] = s.load(m.as_src(), (j * TILES + t) * LANES);
                        }
                    }
                }
            }
            let mut g = x.filters;
            let mut soon = g.add(x.next + Self::REQUESTED * x.blocks * LANES * LANES);
            for block in 0..x.blocks {
                let v = x.v.add(ROW * SIDE * x.v_point + block * TILES * LANES);
                for k in 0..LANES {
                    soon = Self::request_filters(soon);
                    let u = Self::filter_row(s, g);
                    g = g.add(FILTER);
                    for j in 0..SIDE {
                        for t in 0..TILES {
                            if Self::live(j, t) {
                                let a = s.splat(v.read(j * x.v_point + t * LANES + k));
                                acc[j][t] = s.fma(u[j], a, acc[j][t]);
                            }
                        }
                    }
                }
            }
            for j in 0..SIDE {
                for t in 0..TILES {
                    if Self::live(j, t) {
                        s.store(m, (j * TILES + t) * LANES, acc[j][t]);
                    }
                }
            }
        }
    }
}
