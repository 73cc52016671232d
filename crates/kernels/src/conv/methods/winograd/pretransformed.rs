//! Winograd convolutions whose filters are transformed when they are packed.
//!
//! A block of tiles is transformed for all input channels, multiplied for one part of the output
//! channels after the other and transformed back straight into the output; [`PointLayout`] gives
//! the layout of the values in between.

use std::ops::Range;
use std::sync::Arc;

use super::entries::{input_entry, output_entry};
use super::filters::{gather_filters, transform_filters};
use super::halo;
use super::point_layout::{KINDS, POINTS, PointLayout, PointOffsets};
use super::scheme::{Scheme, SideTiling, TileSide};
use super::transforms::{InputArgs, OutputArgs};
use crate::blocked::{BLOCK, Halo, zero_halo};
use crate::conv::method::{ConvBand, ConvBands, PreparedConv};
use crate::conv::methods::direct_bf16::pair_of;
use crate::conv::operands::ConvJob;
use crate::conv::params::Conv2dParams;
use crate::gemm::tile::{Elements, ProductArgs, Split, SplitEntries, SumsAt, Tap, product, tile_size};
use crate::isa::Isa;
use crate::par::{Par, groups_of, range_of, within};
use crate::simd::{Dst, LANES, Src, prefetch_far};

/// Transformed inputs and products of a block of tiles that stay near the second-level cache; a
/// single block may take more, as it reads the weights once.
const CACHED: usize = 600 << 10;
const CACHED_ALONE: usize = 1 << 20;
/// Tiles of a block: at least as many as pay for reading the weights, at most as many as still make
/// enough blocks. With stride 2 some filter values are multiplied with many points of a tile, so
/// that fewer pay.
const LEAST_TILES: usize = 25;
const LEAST_STRIDED_TILES: usize = 13;
const MOST_TILES: usize = 28;
/// Blocks are made smaller to be even in number, but not smaller than this.
const FEW_TILES: usize = 12;

/// Largest number of threads that each transform a whole single block of tiles; more threads share
/// the transforms.
const FEW_THREADS: usize = 4;

/// A Winograd convolution with pre-transformed filters, prepared for one image size.
#[derive(Clone, Debug)]
pub(in crate::conv) struct WinogradPretransformed {
    params: Conv2dParams,
    isa: Isa,
    scheme: Scheme,
    /// Elements of products; tensors, transforms and sums are `f32`.
    elements: Elements,
    /// How rows and columns of an image are cut into tiles.
    grid: [SideTiling; 2],
    out: [usize; 2],
    tiles: usize,
    /// Tiles that are computed together.
    blocks: Vec<TileBlock>,
    /// Layouts of the values of a block's tiles.
    layouts: Vec<BlockLayouts>,
}

impl WinogradPretransformed {
    pub(in crate::conv) fn new(
        params: Conv2dParams,
        images: usize,
        out: [usize; 2],
        scheme: Scheme,
        elements: Elements,
        isa: Isa,
    ) -> WinogradPretransformed {
        // More than one block: an even number shares out evenly between two cores, a multiple of
        // four between four.
        WinogradPretransformed::cut(params, images, out, scheme, elements, isa, |tiles, least| match least {
            1 => 1,
            few @ 2..=8 => {
                let more = few.next_multiple_of(2);
                if tiles >= FEW_TILES * more { more } else { few - few % 2 }
            }
            many => many.next_multiple_of(4),
        })
    }

    /// Divides the tiles into as many blocks as `blocks` gives for the number of tiles and the
    /// least number of blocks.
    fn cut(
        params: Conv2dParams,
        images: usize,
        out: [usize; 2],
        scheme: Scheme,
        elements: Elements,
        isa: Isa,
        blocks: impl FnOnce(usize, usize) -> usize,
    ) -> WinogradPretransformed {
        let grid = [scheme.rows.cut(out[0]), scheme.cols.cut(out[1])];
        let tiles = images * grid[0].tiles * grid[1].tiles;
        let points = scheme.points().iter().product::<usize>();
        let width = tile_size(isa).blocks * BLOCK;
        let bytes = points * (steps(&params, elements).next_multiple_of(BLOCK) + width) * size_of::<f32>();
        let least = if scheme.stride() == 1 { LEAST_TILES } else { LEAST_STRIDED_TILES };
        let most = (CACHED / bytes).clamp(least, MOST_TILES);
        let is_alone = tiles <= MOST_TILES && tiles * bytes <= CACHED_ALONE;
        let blocks = blocks(tiles, if is_alone { 1 } else { tiles.div_ceil(most) }).min(tiles);
        let mut all = WinogradPretransformed {
            params,
            isa,
            scheme,
            elements,
            grid,
            out,
            tiles,
            blocks: Vec::new(),
            layouts: Vec::new(),
        };
        (0..blocks).for_each(|block| all.add_block(range_of(block, blocks, tiles)));
        all
    }

    fn transform(&self) -> String {
        let stride = if self.scheme.stride() == 1 { "" } else { " stride 2" };
        let elements = if self.elements == Elements::Pairs { " bf16" } else { "" };
        format!("winograd {}{stride}{elements} pre-transformed", self.scheme.name())
    }

    /// Groups of points, each with filter values of its own.
    fn groups(&self) -> usize {
        self.scheme.filters()
    }

    fn steps(&self) -> usize {
        steps(&self.params, self.elements)
    }

    fn input_blocks(&self) -> usize {
        self.steps().div_ceil(BLOCK)
    }

    /// Blocks of output channels that a part has, and the number of parts.
    fn parts(&self) -> (usize, usize) {
        let width = tile_size(self.isa).blocks;
        (width, self.params.out_channels.div_ceil(BLOCK * width))
    }

    /// The output blocks of one part.
    fn part_blocks(&self, part: usize) -> Range<usize> {
        let (width, _) = self.parts();
        part * width..((part + 1) * width).min(self.params.out_channels.div_ceil(BLOCK))
    }

    /// The filter values of one step for a block of output channels, for each group.
    fn step_filters(&self, g: &[Vec<Vec<f64>>; 2], weights: &[f32], block: usize, step: usize) -> Vec<[f32; BLOCK]> {
        let of = |channel| transform_filters(g, &gather_filters(weights, &self.params, block, channel));
        match self.elements {
            Elements::Single => of(step),
            Elements::Pairs => {
                let pair =
                    |(low, high): ([f32; BLOCK], [f32; BLOCK])| std::array::from_fn(|l| pair_of(low[l], high[l]));
                of(2 * step).into_iter().zip(of(2 * step + 1)).map(pair).collect()
            }
        }
    }

    /// Most elements of transformed inputs of a block of tiles.
    fn v_len(&self) -> usize {
        PointLayout::most_rows(self.scheme, self.most_tiles(), self.input_blocks()) * BLOCK
    }

    /// Elements of the products with a part of the output channels.
    fn m_len(&self) -> usize {
        PointLayout::most_rows(self.scheme, self.most_tiles(), 1) * self.parts().0 * BLOCK
    }

    fn most_tiles(&self) -> usize {
        self.tiles.div_ceil(self.blocks.len())
    }

    /// Adds a block of tiles, with a layout of its own unless there is one for as many of every
    /// kind.
    fn add_block(&mut self, tiles: Range<usize>) {
        let mut kinds = [0; KINDS];
        self.walk(tiles.clone()).for_each(|tile| kinds[tile.kind] += 1);
        let known = self.layouts.iter().position(|layouts| layouts.kinds == kinds);
        let layout = known.unwrap_or_else(|| {
            let of = |blocks| PointLayout::new(self.scheme, self.grid.map(SideTiling::sizes), kinds, blocks);
            self.layouts.push(BlockLayouts { kinds, v: of(self.input_blocks()), m: of(1) });
            self.layouts.len() - 1
        });
        self.blocks.push(TileBlock { tiles, layout });
    }

    /// Bytes of transformed inputs, products and taps of a chunk.
    fn scratch_parts(&self) -> [usize; 3] {
        let floats = size_of::<f32>();
        [self.v_len() * floats, self.m_len() * floats, self.input_blocks() * size_of::<Tap>()]
    }

    /// Bytes of scratch of a chunk.
    pub(in crate::conv) fn chunk_bytes(&self) -> usize {
        self.scratch_parts().iter().sum()
    }

    /// Whether a block goes through the parts from the last to the first: every other one does, of
    /// each half of the blocks, so that a thread that goes on to the next block begins with the
    /// filters that the caches have.
    fn backwards(&self, block: usize) -> bool {
        !(block % self.blocks.len().div_ceil(2)).is_multiple_of(2)
    }

    /// The positions of tiles.
    fn walk(&self, tiles: Range<usize>) -> impl Iterator<Item = ImageTile> {
        let [rows, cols] = self.grid;
        let [tall, wide] = self.grid.map(|cut| cut.sizes()[0]);
        let first = tiles.start / cols.tiles;
        let mut at = [first / rows.tiles, first % rows.tiles, tiles.start % cols.tiles];
        tiles.map(move |_| {
            let [image, row, col] = [at[0], rows.start(at[1]), cols.start(at[2])];
            let kept = [rows.start(at[1] + 1) - row, cols.start(at[2] + 1) - col];
            at[2] += 1;
            if at[2] == cols.tiles {
                at = if at[1] + 1 == rows.tiles { [image + 1, 0, 0] } else { [image, at[1] + 1, 0] };
            }
            let kind = 2 * usize::from(kept[0] < tall) + usize::from(kept[1] < wide);
            ImageTile { image, row, col, kept, kind }
        })
    }

    /// The positions of tiles, each with its number among those of its kind.
    fn numbered(&self, tiles: Range<usize>) -> impl Iterator<Item = (ImageTile, usize)> {
        let mut next = [0; KINDS];
        self.walk(tiles).map(move |place| {
            let number = next[place.kind];
            next[place.kind] += 1;
            (place, number)
        })
    }

    /// Some input blocks of some tiles.
    fn transform_inputs(&self, job: &ConvJob<'_>, tiles: &TileBlock, blocks: Range<usize>, v: Dst) {
        let transform = input_entry(self.scheme, self.elements, self.isa);
        let mut places = [[0; POINTS * POINTS]; KINDS];
        for block in blocks {
            self.layouts[tiles.layout].v.places(block, BLOCK, &mut places);
            for (tile, number) in self.numbered(tiles.tiles.clone()) {
                let args = InputArgs {
                    x: self.tile_input(job, &tile, block),
                    x_row: job.xs.row_stride(),
                    v: v.add(number * BLOCK),
                    point: places[tile.kind].as_ptr(),
                };
                // SAFETY: the halo that `ConvJob::new` checked covers every tile; V has room for
                // these tiles of every block at all places of the scheme, and these blocks of these
                // tiles belong to this chunk.
                unsafe { transform(&args) }
            }
        }
    }

    /// The beginning of a tile's input in an input block: in the first 16 channels and in the other
    /// ones, if pairs have any.
    fn tile_input(&self, job: &ConvJob<'_>, tile: &ImageTile, block: usize) -> [Src; 2] {
        let (xs, stride) = (&job.xs, self.scheme.stride());
        let (top, left) = (xs.halo.top - self.params.pad[0], xs.halo.left - self.params.pad[1]);
        let first = if self.elements == Elements::Pairs { 2 * block } else { block };
        let x = job.x.add(xs.padded_offset(tile.image, first, top + tile.row * stride, left + tile.col * stride));
        let more = self.elements == Elements::Pairs && first + 1 < xs.blocks();
        [x, if more { x.add(xs.block_stride()) } else { x }]
    }

    /// Products and outputs of one part of the output channels for some tiles.
    fn part(&self, job: &ConvJob<'_>, part: usize, tiles: &TileBlock, v: Src, m: &mut [u8], taps: &mut [u8]) {
        let blocks = self.part_blocks(part);
        let width = blocks.len() * BLOCK;
        let steps = self.steps();
        let m = Dst::new(bytemuck::cast_slice_mut(m));
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut taps[..self.input_blocks() * size_of::<Tap>()]);
        let filters = Src::new(job.packed).add(blocks.start * BLOCK * steps * self.groups());
        let BlockLayouts { v: v_layout, m: m_layout, .. } = &self.layouts[tiles.layout];
        let mut rows = self.rows(0, blocks.len(), taps);
        let mut fetched = self.walk(tiles.tiles.clone());
        for group in 0..self.groups() {
            if job.fetches_outputs() {
                let some = range_of(group, self.groups(), tiles.tiles.len()).len();
                fetched.by_ref().take(some).for_each(|tile| fetch_outputs(job, &blocks, &tile));
            }
            let ((v_start, count), (m_start, _)) = (v_layout.group(group), m_layout.group(group));
            if rows.count != count {
                rows = self.rows(count, blocks.len(), taps);
            }
            let (v, m) = (v.add(v_start * BLOCK), m.add(m_start * width));
            // SAFETY: V holds so many rows of every input block, the filters all inputs of this
            // part, M has room for the rows.
            unsafe { rows.multiply(v, filters.add(group * steps * width), m, width, taps) }
        }
        let mut places = [[0; POINTS * POINTS]; KINDS];
        m_layout.places(0, width, &mut places);
        for (n, block) in blocks.clone().enumerate() {
            self.transform_outputs(job, block, tiles, m.as_src().add(n * LANES), width, &places);
        }
    }

    /// The way in which `count` rows are multiplied with `blocks` blocks of output channels; the
    /// taps are the positions of input blocks.
    fn rows(&self, count: usize, blocks: usize, taps: &mut [Tap]) -> PointRows {
        for (block, tap) in taps.iter_mut().enumerate() {
            let steps = BLOCK.min(self.steps() - block * BLOCK);
            *tap = Tap { offset: (block * count * BLOCK) as u32, count: steps as u32 };
        }
        let split = Split::tiles(count, self.isa);
        PointRows { count, split, entries: split.entries(|rows| product(self.isa, self.elements, rows, blocks)) }
    }

    /// Outputs of one block of channels for some tiles.
    fn transform_outputs(
        &self,
        job: &ConvJob<'_>,
        block: usize,
        tiles: &TileBlock,
        m: Src,
        width: usize,
        places: &[PointOffsets; KINDS],
    ) {
        let ys = &job.ys;
        let transform = output_entry(self.scheme, self.isa);
        let bias = job.bias_block::<1>(block);
        for (ImageTile { image, row, col, kept: [rows, cols], kind }, number) in self.numbered(tiles.tiles.clone()) {
            let args = OutputArgs {
                m: m.add(number * width),
                point: places[kind].as_ptr(),
                bias: Src::new(&bias),
                residual: job.residual_at(image, block, row, col).map(|r| (r.at, r.row)),
                y: job.y.add(ys.offset(image, block, row, col)),
                y_row: ys.row_stride(),
                rows,
                cols,
                limits: job.limits,
            };
            // SAFETY: M holds the products of these tiles; outputs are clipped to the image, and
            // these tiles of this block belong to this chunk. The last tile of a row writes the
            // halo beside it.
            unsafe {
                transform(&args);
                if col + cols == self.out[1] {
                    zero_halo(job.y, ys, image, block, row..row + rows);
                }
            }
        }
    }
}

impl PreparedConv for WinogradPretransformed {
    fn name(&self) -> String {
        format!("{}, {} tiles, {}", self.transform(), self.tiles.div_ceil(self.blocks.len()), self.isa)
    }

    fn packing(&self) -> String {
        format!("{} x{}", self.transform(), self.parts().0)
    }

    fn input_halo(&self, size: [usize; 2]) -> Halo {
        let [rows, cols] = self.scheme.outs();
        // A band may end with tiles that are cut off more than those of the whole image.
        halo(&self.params, size, [self.grid[0].tiles * rows, self.grid[1].tiles * cols])
    }

    fn packed_len(&self) -> usize {
        self.params.out_channels.next_multiple_of(BLOCK) * self.steps() * self.groups()
    }

    /// `[part][group][step][16 or 32]`, computed in f64.
    fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let g = [self.scheme.rows, self.scheme.cols].map(TileSide::filter_matrix);
        let (_, parts) = self.parts();
        for part in 0..parts {
            let blocks = self.part_blocks(part);
            let (width, step_len) = (blocks.len() * BLOCK, blocks.len() * BLOCK * self.groups());
            let packed = &mut packed[blocks.start * BLOCK * self.steps() * self.groups()..][..self.steps() * step_len];
            for block in blocks.clone() {
                for step in 0..self.steps() {
                    let at = step * width + (block - blocks.start) * BLOCK;
                    for (group, values) in self.step_filters(&g, weights, block, step).into_iter().enumerate() {
                        packed[group * self.steps() * width + at..][..BLOCK].copy_from_slice(&values);
                    }
                }
            }
        }
    }

    fn scratch_len(&self) -> usize {
        if self.blocks.len() == 1 { self.v_len() } else { 0 }
    }

    fn run(&self, job: &ConvJob<'_>, scratch: &mut [f32], par: &dyn Par) {
        let (_, parts) = self.parts();
        let [v_bytes, m_bytes, taps_bytes] = self.scratch_parts();
        if self.blocks.len() == 1 && par.parallelism() > FEW_THREADS {
            let (block, v) = (&self.blocks[0], Dst::new(scratch));
            let groups = self.input_blocks().min(16);
            par.run(groups, 0, &|group, _| {
                self.transform_inputs(job, block, range_of(group, groups, self.input_blocks()), v);
            });
            return par.run(parts, m_bytes + taps_bytes, &|part, scratch| {
                let (m, taps) = scratch.split_at_mut(m_bytes);
                self.part(job, part, block, v.as_src(), m, taps);
            });
        }
        let bytes = v_bytes + m_bytes + taps_bytes;
        let some = |units: Range<usize>, scratch: &mut [u8]| {
            let (v, rest) = scratch.split_at_mut(v_bytes);
            let (m, taps) = rest.split_at_mut(m_bytes);
            let v = Dst::new(bytemuck::cast_slice_mut(v));
            for at in groups_of(&units, parts) {
                let block = &self.blocks[at];
                self.transform_inputs(job, block, 0..self.input_blocks(), v);
                let (some, part) = (within(&units, at, parts), |part| self.part(job, part, block, v.as_src(), m, taps));
                if self.backwards(at) { some.rev().for_each(part) } else { some.for_each(part) }
            }
        };
        // A thread that has parts of a block transforms all of its inputs: these are fewer bytes
        // than what becomes of them.
        if self.blocks.len() <= par.parallelism() {
            par.run_static(self.blocks.len() * parts, bytes, &some);
        } else {
            par.run(self.blocks.len(), bytes, &|block, scratch| some(block * parts..(block + 1) * parts, scratch));
        }
    }

    fn bands(&self) -> Option<&dyn ConvBands> {
        (self.scheme.stride() == 1).then_some(self)
    }
}

impl ConvBands for WinogradPretransformed {
    fn row_step(&self) -> usize {
        self.scheme.outs()[0]
    }

    fn band(&self, out: [usize; 2], count: usize) -> Option<ConvBand> {
        let band =
            WinogradPretransformed::cut(self.params, 1, out, self.scheme, self.elements, self.isa, |_, least| least);
        let images = self.tiles / (self.grid[0].tiles * self.grid[1].tiles);
        let more = (images * count * band.blocks.len()).saturating_sub(self.blocks.len());
        let [rows, cols] = self.scheme.outs();
        let outputs = self.tiles * rows * cols * self.params.out_channels;
        // Weights are read for every band.
        let pays = more * self.packed_len() <= outputs;
        pays.then(|| ConvBand { chunk_bytes: band.chunk_bytes(), conv: Arc::new(band) })
    }
}

/// Tiles that are computed together, and the number of their layout.
#[derive(Clone, Debug)]
struct TileBlock {
    tiles: Range<usize>,
    layout: usize,
}

/// Rows of one product, cut into register tiles.
struct PointRows {
    count: usize,
    split: Split,
    entries: SplitEntries<ProductArgs>,
}

impl PointRows {
    /// Products with the filter values of one group.
    ///
    /// # Safety
    /// `v` must hold the rows that the taps reach, `filters` as many steps of `width` values, and
    /// `m` have room for the rows.
    unsafe fn multiply(&self, v: Src, filters: Src, m: Dst, width: usize, taps: &[Tap]) {
        // No point of a group is needed where all tiles are clipped.
        let parts = if self.count > 0 { self.split.parts } else { 0 };
        for i in 0..parts {
            let at = self.split.start(i);
            let (taps_len, taps) = (taps.len(), taps.as_ptr());
            let (a, c, c_at) = (v.add(at * BLOCK), m.add(at * width), SumsAt::rows(width));
            let args = ProductArgs { a, taps, taps_len, b: filters, c, c_at, add: false };
            // SAFETY: promised by the caller.
            unsafe { self.entries.of(&self.split, i)(&args) }
        }
    }
}

/// The layouts of transformed inputs and products, for the number of tiles of every kind.
#[derive(Clone, Debug)]
struct BlockLayouts {
    kinds: [usize; KINDS],
    v: PointLayout,
    m: PointLayout,
}

/// The position of a tile.
struct ImageTile {
    image: usize,
    /// First output of the tile.
    row: usize,
    col: usize,
    /// Rows and columns inside the image.
    kept: [usize; 2],
    kind: usize,
}

/// Requests the lines of the outputs of a tile.
fn fetch_outputs(job: &ConvJob<'_>, blocks: &Range<usize>, tile: &ImageTile) {
    for row in tile.row..tile.row + tile.kept[0] {
        for col in tile.col..tile.col + tile.kept[1] {
            for block in blocks.clone() {
                prefetch_far(job.y.as_src(), job.ys.offset(tile.image, block, row, col));
            }
        }
    }
}

/// Steps of a product: input channels, or pairs of them.
fn steps(params: &Conv2dParams, elements: Elements) -> usize {
    match elements {
        Elements::Single => params.in_channels,
        Elements::Pairs => params.in_channels.div_ceil(2),
    }
}
