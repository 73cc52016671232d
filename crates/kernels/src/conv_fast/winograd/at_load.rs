//! Filters transformed when they are packed.
//!
//! A block of tiles is transformed for all input channels, multiplied for one part of the output channels at a time and
//! transformed back straight into the output; [`Layout`] says where values lie in between.

use std::ops::Range;

use super::super::blocked::{BLOCK, Halo, zero_halo};
use super::super::job::Job;
use super::super::params::Conv2dParams;
use super::scheme::{Layout, Scheme};
use super::strided::{Strided2, Strided3, Strided4};
use super::transform::{F2, F4, InputArgs, InputTile, OutputArgs, OutputTile};
use super::{halo, range_of};
use crate::gemm::tile::{Elements, ProductArgs, Split, Tap, product, tile_size};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Dst, Entry, LANES, Src, entry, prefetch_far};

/// Transformed inputs and products of a block of tiles that stay near the second-level cache.
const CACHED: usize = 600 << 10;
/// Tiles of a block: at least as many as pay for reading the weights, at most as many as still make enough blocks.
const LEAST_TILES: usize = 25;
const MOST_TILES: usize = 28;

/// So many transform a single block of tiles each for himself; more share what they transform.
const FEW_PEOPLE: usize = 4;

/// A Winograd convolution with filters transformed at load, prepared for one image size.
#[derive(Clone, Debug)]
pub(in super::super) struct AtLoad {
    params: Conv2dParams,
    isa: Isa,
    scheme: Scheme,
    /// Rows and columns of tiles in an image.
    grid: [usize; 2],
    out: [usize; 2],
    tiles: usize,
    /// Blocks of tiles.
    blocks: usize,
}

impl AtLoad {
    pub(in super::super) fn new(
        params: Conv2dParams,
        images: usize,
        out: [usize; 2],
        scheme: Scheme,
        isa: Isa,
    ) -> AtLoad {
        let grid = [out[0].div_ceil(scheme.outs()), out[1].div_ceil(scheme.outs())];
        let tiles = images * grid[0] * grid[1];
        let points = scheme.points() * scheme.points();
        let width = tile_size(isa).blocks * BLOCK;
        let bytes = points * (params.in_channels.next_multiple_of(BLOCK) + width) * size_of::<f32>();
        let most = (CACHED / bytes).clamp(LEAST_TILES, MOST_TILES);
        // More than one block: an even number shares out evenly between two cores, a multiple of four between four.
        let blocks = match tiles.div_ceil(most) {
            _ if tiles <= MOST_TILES => 1,
            few @ 0..=8 => few.next_multiple_of(2),
            many => many.next_multiple_of(4),
        };
        AtLoad { params, isa, scheme, grid, out, tiles, blocks: blocks.min(tiles) }
    }

    pub(in super::super) fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(in super::super) fn name(&self) -> String {
        let outs = self.scheme.outs();
        let stride = if self.scheme.stride() == 1 { "" } else { " stride 2" };
        format!("winograd F({outs},3){stride} at load, {} tiles, {}", self.tiles.div_ceil(self.blocks), self.isa)
    }

    pub(in super::super) fn halo(&self, size: [usize; 2]) -> Halo {
        halo(&self.params, size, self.grid.map(|g| g * self.scheme.outs()))
    }

    /// Groups of points, each with filter values of its own.
    fn groups(&self) -> usize {
        self.scheme.filters() * self.scheme.filters()
    }

    fn input_blocks(&self) -> usize {
        self.params.in_channels.div_ceil(BLOCK)
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

    pub(in super::super) fn packed_len(&self) -> usize {
        self.params.out_channels.next_multiple_of(BLOCK) * self.params.in_channels * self.groups()
    }

    /// `[part][group][input channel][16 or 32]`, computed in f64.
    pub(in super::super) fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (inputs, outputs) = (self.params.in_channels, self.params.out_channels);
        let g = self.scheme.filter_matrix();
        let side = g.len();
        let (_, parts) = self.parts();
        for part in 0..parts {
            let blocks = self.part_blocks(part);
            let width = blocks.len() * BLOCK;
            let packed = &mut packed[blocks.start * BLOCK * inputs * self.groups()..][..width * inputs * self.groups()];
            for block in blocks.clone() {
                for channel in 0..inputs {
                    let filters = gather_filters(weights, inputs, outputs, block, channel);
                    let at = channel * width + (block - blocks.start) * BLOCK;
                    for (i, rows) in g.iter().enumerate() {
                        let row: [[f64; BLOCK]; 3] =
                            std::array::from_fn(|j| combine(rows, [&filters[j], &filters[3 + j], &filters[6 + j]]));
                        for (j, cols) in g.iter().enumerate() {
                            let values = combine(cols, [&row[0], &row[1], &row[2]]);
                            let out = &mut packed[(i * side + j) * inputs * width + at..][..BLOCK];
                            out.iter_mut().zip(values).for_each(|(o, v)| *o = v as f32);
                        }
                    }
                }
            }
        }
    }

    /// Where transformed inputs of so many tiles lie.
    fn v_layout(&self, tiles: usize) -> Layout {
        Layout::new(self.scheme, self.input_blocks(), tiles * BLOCK)
    }

    /// The same for products with a part of so many output channels.
    fn m_layout(&self, tiles: usize, width: usize) -> Layout {
        Layout::new(self.scheme, 1, tiles * width)
    }

    /// Elements that all chunks share during a run.
    pub(in super::super) fn scratch_len(&self) -> usize {
        if self.blocks == 1 { self.v_layout(self.tiles).len() } else { 0 }
    }

    pub(in super::super) fn run(&self, job: &Job<'_>, scratch: &mut [f32], par: &dyn Par) {
        let most = self.tiles.div_ceil(self.blocks);
        let (width, parts) = self.parts();
        let taps_bytes = self.input_blocks() * size_of::<Tap>();
        let m_bytes = self.m_layout(most, width * BLOCK).len() * size_of::<f32>();
        if self.blocks == 1 && par.people() > FEW_PEOPLE {
            let v = Dst::new(scratch);
            let groups = self.input_blocks().min(16);
            par.run(groups, 0, &|group, _| {
                self.transform_inputs(job, 0..self.tiles, range_of(group, groups, self.input_blocks()), v);
            });
            return par.run(parts, m_bytes + taps_bytes, &|part, scratch| {
                let (m, taps) = scratch.split_at_mut(m_bytes);
                self.part(job, part, 0..self.tiles, v.as_src(), m, taps);
            });
        }
        // Few people transform all inputs of a single block, each for himself: these travel less than what becomes of them.
        let groups = if self.blocks == 1 { par.people().min(parts) } else { 1 };
        let v_bytes = self.v_layout(most).len() * size_of::<f32>();
        par.run(self.blocks * groups, v_bytes + m_bytes + taps_bytes, &|chunk, scratch| {
            let tiles = range_of(chunk / groups, self.blocks, self.tiles);
            let (v, rest) = scratch.split_at_mut(v_bytes);
            let (m, taps) = rest.split_at_mut(m_bytes);
            let v = Dst::new(bytemuck::cast_slice_mut(v));
            self.transform_inputs(job, tiles.clone(), 0..self.input_blocks(), v);
            for part in range_of(chunk % groups, groups, parts) {
                self.part(job, part, tiles.clone(), v.as_src(), m, taps);
            }
        });
    }

    /// Image, row and column of a tile, in tiles.
    fn locate(&self, tile: usize) -> (usize, usize, usize) {
        let [rows, cols] = self.grid;
        (tile / (rows * cols), tile / cols % rows, tile % cols)
    }

    /// Some blocks of input channels of some tiles.
    fn transform_inputs(&self, job: &Job<'_>, tiles: Range<usize>, blocks: Range<usize>, v: Dst) {
        let (xs, step) = (&job.xs, self.scheme.outs() * self.scheme.stride());
        let layout = self.v_layout(tiles.len());
        let transform = input_entry(self.scheme, self.isa);
        let (top, left) = (xs.halo.top - self.params.pad[0], xs.halo.left - self.params.pad[1]);
        for block in blocks {
            let places = layout.places(block);
            for tile in tiles.clone() {
                let (image, row, col) = self.locate(tile);
                let args = InputArgs {
                    x: job.x.add(xs.padded_offset(image, block, top + row * step, left + col * step)),
                    x_row: xs.row_stride(),
                    v: v.add((tile - tiles.start) * BLOCK),
                    point: places.as_ptr(),
                };
                // SAFETY: the halo that `Job::new` checked covers every tile; V has room for these tiles of every block at all
                // places of the scheme, and these blocks of these tiles belong to this chunk.
                unsafe { transform(&args) }
            }
        }
    }

    /// Products and outputs of one part of the output channels for some tiles.
    fn part(&self, job: &Job<'_>, part: usize, tiles: Range<usize>, v: Src, m: &mut [u8], taps: &mut [u8]) {
        let count = tiles.len();
        let blocks = self.part_blocks(part);
        let width = blocks.len() * BLOCK;
        let inputs = self.params.in_channels;
        let (v_layout, m_layout) = (self.v_layout(count), self.m_layout(count, width));
        let m = Dst::new(bytemuck::cast_slice_mut(m));
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut taps[..self.input_blocks() * size_of::<Tap>()]);
        let filters = Src::new(job.packed).add(blocks.start * BLOCK * inputs * self.groups());
        for group in self.scheme.groups() {
            if job.fetches_outputs() {
                self.fetch_outputs(job, blocks.clone(), &tiles, range_of(group.filter, self.groups(), count));
            }
            let (v, m) = (v.add(v_layout.start(group)), m.add(m_layout.start(group)));
            self.products(group.points * count, blocks.len(), v, filters.add(group.filter * inputs * width), m, taps);
        }
        for (n, block) in blocks.clone().enumerate() {
            self.transform_outputs(job, block, tiles.clone(), m.as_src().add(n * LANES), width, &m_layout);
        }
    }

    /// Products of `rows` tiles with the filter values of one group for `blocks` blocks of output channels.
    fn products(&self, rows: usize, blocks: usize, v: Src, filters: Src, m: Dst, taps: &mut [Tap]) {
        for (block, tap) in taps.iter_mut().enumerate() {
            let channels = BLOCK.min(self.params.in_channels - block * BLOCK);
            *tap = Tap { offset: (block * rows * BLOCK) as u32, count: channels as u32 };
        }
        let split = Split::tiles(rows, self.isa);
        let entries = split.entries(|rows| product(self.isa, Elements::Single, rows, blocks));
        for i in 0..split.parts {
            let at = split.start(i);
            let args = ProductArgs {
                a: v.add(at * BLOCK),
                taps: taps.as_ptr(),
                taps_len: taps.len(),
                b: filters,
                c: m.add(at * blocks * BLOCK),
                add: false,
            };
            // SAFETY: V holds so many rows of every input block, the filters all inputs of this part, M has room for the rows.
            unsafe { entries.of(&split, i)(&args) }
        }
    }

    /// Requests the lines of the outputs of some of the tiles.
    fn fetch_outputs(&self, job: &Job<'_>, blocks: Range<usize>, tiles: &Range<usize>, some: Range<usize>) {
        let outs = self.scheme.outs();
        for tile in some {
            let (image, row, col) = self.locate(tiles.start + tile);
            for row in row * outs..((row + 1) * outs).min(self.out[0]) {
                for col in col * outs..((col + 1) * outs).min(self.out[1]) {
                    for block in blocks.clone() {
                        prefetch_far(job.y.as_src(), job.ys.offset(image, block, row, col));
                    }
                }
            }
        }
    }

    /// Outputs of one block of channels for some tiles.
    fn transform_outputs(
        &self,
        job: &Job<'_>,
        block: usize,
        tiles: Range<usize>,
        m: Src,
        width: usize,
        layout: &Layout,
    ) {
        let (ys, outs) = (&job.ys, self.scheme.outs());
        let transform = output_entry(self.scheme, self.isa);
        let places = layout.places(0);
        let bias = job.bias_block::<1>(block);
        for tile in tiles.clone() {
            let (image, tile_row, tile_col) = self.locate(tile);
            let (row, col) = (tile_row * outs, tile_col * outs);
            let args = OutputArgs {
                m: m.add((tile - tiles.start) * width),
                point: places.as_ptr(),
                bias: Src::new(&bias),
                residual: job.residual_at(image, block, row, col).map(|r| (r.at, r.row)),
                y: job.y.add(ys.offset(image, block, row, col)),
                y_row: ys.row_stride(),
                rows: outs.min(self.out[0] - row),
                cols: outs.min(self.out[1] - col),
                limits: job.limits,
            };
            // SAFETY: M holds the products of these tiles; outputs are clipped to the image, and these tiles of this block
            // belong to this chunk. The last tile of a row writes the halo beside it.
            unsafe {
                transform(&args);
                if tile_col + 1 == self.grid[1] {
                    zero_halo(job.y, ys, image, block, row..row + args.rows);
                }
            }
        }
    }
}

/// The input transform of a scheme.
fn input_entry(scheme: Scheme, isa: Isa) -> Entry<InputArgs<*const u32>> {
    match scheme {
        Scheme::F2 => entry::<InputTile<F2, *const u32>>(isa),
        Scheme::F4 => entry::<InputTile<F4, *const u32>>(isa),
        Scheme::Strided2 => entry::<InputTile<Strided2, *const u32>>(isa),
        Scheme::Strided3 => entry::<InputTile<Strided3, *const u32>>(isa),
        Scheme::Strided4 => entry::<InputTile<Strided4, *const u32>>(isa),
    }
}

/// The output transform of a scheme.
fn output_entry(scheme: Scheme, isa: Isa) -> Entry<OutputArgs<*const u32>> {
    match scheme {
        Scheme::F2 => entry::<OutputTile<F2, *const u32>>(isa),
        Scheme::F4 => entry::<OutputTile<F4, *const u32>>(isa),
        Scheme::Strided2 => entry::<OutputTile<Strided2, *const u32>>(isa),
        Scheme::Strided3 => entry::<OutputTile<Strided3, *const u32>>(isa),
        Scheme::Strided4 => entry::<OutputTile<Strided4, *const u32>>(isa),
    }
}

/// The nine values of the filters of one input channel for a block of output channels; zero beyond the last.
fn gather_filters(weights: &[f32], inputs: usize, outputs: usize, block: usize, channel: usize) -> [[f64; BLOCK]; 9] {
    let mut filters = [[0.0; BLOCK]; 9];
    for lane in 0..BLOCK.min(outputs - block * BLOCK) {
        let filter = &weights[((block * BLOCK + lane) * inputs + channel) * 9..][..9];
        filters.iter_mut().zip(filter).for_each(|(f, &w)| f[lane] = f64::from(w));
    }
    filters
}

/// A linear combination of three vectors.
fn combine(factors: &[f64; 3], v: [&[f64; BLOCK]; 3]) -> [f64; BLOCK] {
    std::array::from_fn(|l| factors[0] * v[0][l] + factors[1] * v[1][l] + factors[2] * v[2][l])
}
