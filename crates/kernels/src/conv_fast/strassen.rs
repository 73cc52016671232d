//! 1x1 convolutions with seven products in the place of eight: Strassen's scheme in Winograd's form, once.
//!
//! Pixels (upper and lower rows), input and output channels are cut in halves. Seven products of sums of halves of the input
//! and sums of halves of the weights give the four quarters of the output; the sums of weights are made when they are packed,
//! those of inputs once for all output channels, and what the products have in common stays near the register tile.
//!
//! What that does to rounding is said at [`Winograd`](super::method::Winograd).

use super::blocked::{BLOCK, zero_halo};
use super::direct::{Chunk, Cut, InputRows, even_bands};
use super::job::Job;
use super::params::Conv2dParams;
use super::strassen_tile::{Finish, SevenArgs, SumArgs, TILE, seven_tile, sum_row};
use crate::cache_class::CacheClass;
use crate::gemm::tile::{Soon, Split, Tap, tile_size};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Dst, LANES, Src};
use std::ops::Range;

/// Packed weights up to this part of the second-level cache, in eighths, stay there while all of them pass over a few rows.
const CACHED_EIGHTHS: usize = 5;
/// Multiply-adds that a chunk should have at least.
const CHUNK_WORK: usize = 1 << 20;
/// Output channels of a tile.
const WIDTH: usize = 2 * LANES;
/// Products, and sums of inputs.
const PRODUCTS: usize = 7;
const SUMS: usize = 4;

/// A 1x1 convolution by seven products, prepared for one image size.
#[derive(Clone, Debug)]
pub(super) struct Strassen {
    params: Conv2dParams,
    isa: Isa,
    out: [usize; 2],
    /// Every chunk makes all output channels of its rows, and the sums it needs; otherwise chunks share the sums.
    by_rows: bool,
    bands: usize,
    chunk_parts: usize,
}

/// Left operand of a product.
#[derive(Clone, Copy)]
enum Left {
    /// A half of the channels (0 or 1) of the upper (0) or lower (1) rows.
    Quarter(usize, usize),
    /// A sum.
    Sum(usize),
}

/// The products in the order of their packed weights.
const LEFT: [Left; PRODUCTS] = [
    Left::Quarter(0, 0),
    Left::Quarter(1, 0),
    Left::Sum(1),
    Left::Sum(2),
    Left::Quarter(1, 1),
    Left::Sum(0),
    Left::Sum(3),
];

impl Strassen {
    /// Whether halves are whole tiles.
    pub(super) fn fits(p: &Conv2dParams, out: [usize; 2], isa: Isa) -> bool {
        let reads_pixels = p.kernel == [1, 1] && p.stride == [1, 1] && p.pad == [0, 0] && p.groups == 1;
        let whole = p.in_channels.is_multiple_of(2 * BLOCK) && p.out_channels.is_multiple_of(2 * WIDTH);
        isa == Isa::Avx512 && reads_pixels && whole && out[0].is_multiple_of(2)
    }

    pub(super) fn new(params: Conv2dParams, out: [usize; 2], isa: Isa, cache: CacheClass) -> Strassen {
        let (pairs, parts) = (out[0] / 2, params.out_channels / (2 * WIDTH));
        let pair_work = (params.work(out) / pairs).max(1);
        let packed = params.weight_len() / 4 * PRODUCTS * size_of::<f32>();
        let by_rows = packed <= cache.bytes() / 8 * CACHED_EIGHTHS;
        let (bands, chunk_parts) = if by_rows {
            let least = CHUNK_WORK.div_ceil(pair_work);
            (even_bands(pairs.div_ceil(least)).min(pairs), parts)
        } else {
            (1, CHUNK_WORK.div_ceil(pair_work * pairs / parts).min(parts))
        };
        Strassen { params, isa, out, by_rows, bands, chunk_parts }
    }

    pub(super) fn name(&self) -> String {
        format!("strassen {}x2 {}", Split::tiles(self.out[1], self.isa).rows(0), self.isa)
    }

    /// Whether every chunk makes all output channels of its rows.
    pub(super) fn by_rows(&self) -> bool {
        self.by_rows
    }

    /// Input channels of a half.
    fn half(&self) -> usize {
        self.params.in_channels / 2
    }

    /// Elements of the weights of one product of a tile.
    fn panel(&self) -> usize {
        self.half() * WIDTH
    }

    fn parts(&self) -> usize {
        self.params.out_channels / (2 * WIDTH)
    }

    pub(super) fn packed_len(&self) -> usize {
        self.parts() * PRODUCTS * self.panel()
    }

    /// `[part][product][input channel][32]`
    pub(super) fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (half, inputs) = (self.half(), self.params.in_channels);
        let outputs = self.params.out_channels / 2;
        for (part, packed) in packed[..self.packed_len()].chunks_exact_mut(PRODUCTS * self.panel()).enumerate() {
            for lane in 0..WIDTH {
                let channel = part * WIDTH + lane;
                let (left, right) = (&weights[channel * inputs..], &weights[(channel + outputs) * inputs..]);
                for k in 0..half {
                    let b = [left[k], right[k], left[k + half], right[k + half]].map(f64::from);
                    for (product, value) in right_operands(b).into_iter().enumerate() {
                        packed[product * self.panel() + k * WIDTH + lane] = value as f32;
                    }
                }
            }
        }
    }

    /// Elements of the sums of some pairs of rows.
    fn sums_len(&self, pairs: usize) -> usize {
        SUMS * self.half() * pairs * self.out[1]
    }

    /// Elements that all chunks share: the sums, unless each chunk makes its own.
    pub(super) fn scratch_len(&self, images: usize) -> usize {
        if self.by_rows { 0 } else { images * self.sums_len(self.out[0] / 2) }
    }

    /// How the work is cut.
    pub(super) fn cut(&self, images: usize) -> Cut {
        let groups = self.parts().div_ceil(self.chunk_parts);
        let own = if self.by_rows { self.sums_len(self.most_rows() / 2) } else { 0 };
        let taps = 2 * self.half().div_ceil(BLOCK) * size_of::<Tap>();
        Cut { images, bands: self.bands, groups, scratch: (own + 2 * TILE) * size_of::<f32>() + taps }
    }

    /// What chunk number `index` computes.
    pub(super) fn chunk(&self, cut: &Cut, index: usize) -> Chunk {
        let (band, rest) = (index % cut.bands, index / cut.bands);
        let (image, group) = (rest % cut.images, rest / cut.images);
        let start = |band: usize| 2 * (self.out[0] / 2 * band).div_ceil(cut.bands);
        let parts = group * self.chunk_parts..((group + 1) * self.chunk_parts).min(self.parts());
        Chunk { image, rows: start(band)..start(band + 1), parts }
    }

    /// Most rows of a chunk.
    pub(super) fn most_rows(&self) -> usize {
        2 * (self.out[0] / 2).div_ceil(self.bands)
    }

    pub(super) fn run(&self, job: &Job<'_>, scratch: &mut [f32], par: &dyn Par) {
        let cut = self.cut(job.xs.n);
        if self.by_rows {
            return par.run(cut.chunks(), cut.scratch, &|chunk, scratch| {
                let chunk = self.chunk(&cut, chunk);
                self.run_chunk(job, &chunk, InputRows { image: chunk.image, first: 0 }, scratch);
            });
        }
        let (blocks, all) = (self.half() / BLOCK, 0..self.out[0]);
        let (sums, image_sums) = (Dst::new(scratch), self.sums_len(self.out[0] / 2));
        par.run(job.xs.n * blocks, 0, &|chunk, _| {
            let (image, block) = (chunk / blocks, chunk % blocks);
            let from = InputRows { image, first: 0 };
            self.sums(job, &all, block..block + 1, from, sums.add(image * image_sums));
        });
        par.run(cut.chunks(), cut.scratch, &|chunk, scratch| {
            let chunk = self.chunk(&cut, chunk);
            let sums = sums.as_src().add(chunk.image * image_sums);
            self.products(job, &chunk, InputRows { image: chunk.image, first: 0 }, sums, scratch);
        });
    }

    /// Computes a chunk that makes its own sums, from an input that may hold only the rows it reads.
    pub(super) fn run_chunk(&self, job: &Job<'_>, chunk: &Chunk, from: InputRows, scratch: &mut [u8]) {
        let bytes = self.sums_len(chunk.rows.len() / 2) * size_of::<f32>();
        let (sums, scratch) = scratch.split_at_mut(bytes);
        let sums = Dst::new(bytemuck::cast_slice_mut(sums));
        self.sums(job, &chunk.rows, 0..self.half() / BLOCK, from, sums);
        self.products(job, chunk, from, sums.as_src(), scratch);
    }

    /// The sums of some blocks of channels of the upper and the lower half of some rows: `[sum][block][pair][column][16]`.
    fn sums(&self, job: &Job<'_>, rows: &Range<usize>, blocks: Range<usize>, from: InputRows, to: Dst) {
        let (pairs, width) = (rows.len() / 2, self.out[1] * BLOCK);
        let half = self.half() / BLOCK;
        let body = sum_row(self.isa);
        for block in blocks {
            for pair in 0..pairs {
                let x = |lower: usize, right: usize| {
                    let row = rows.start + lower * pairs + pair - from.first;
                    job.x.add(job.xs.offset(from.image, block + right * half, row, 0))
                };
                let y = |sum: usize| to.add(((sum * half + block) * pairs + pair) * width);
                let args = SumArgs {
                    a: [x(0, 0), x(0, 1), x(1, 0), x(1, 1)],
                    to: [y(0), y(1), y(2), y(3)],
                    cols: self.out[1],
                };
                // SAFETY: `Job::new` checked that the input has these rows; the sums have room for this row of this block,
                // which belongs to this chunk.
                unsafe { body(&args) }
            }
        }
    }

    /// The products of a chunk, from inputs and sums.
    fn products(&self, job: &Job<'_>, chunk: &Chunk, from: InputRows, sums: Src, scratch: &mut [u8]) {
        let pairs = chunk.rows.len() / 2;
        let (kept, taps) = scratch.split_at_mut(2 * TILE * size_of::<f32>());
        let kept = Dst::new(bytemuck::cast_slice_mut(kept));
        let sum_block = pairs * self.out[1] * BLOCK;
        let taps = self.fill_taps([job.xs.block_stride(), sum_block], taps);
        let split = Split::new(self.out[1], tile_size(self.isa).rows);
        let entries = split.entries(|m| seven_tile(self.isa, m));
        let passes = pairs * split.parts;
        for part in chunk.parts.clone() {
            let b = Src::new(job.packed).add(part * PRODUCTS * self.panel());
            let bias = [0, 1].map(|half| job.bias_block::<2>(self.first_block(part, half)));
            for pass in 0..passes {
                let (pair, i) = (pass / split.parts, pass % split.parts);
                let col = split.start(i);
                let finish = |lower: usize, right: usize| {
                    let (row, block) = (chunk.rows.start + lower * pairs + pair, self.first_block(part, right));
                    Finish {
                        bias: Src::new(&bias[right]),
                        residual: job.residual_at(chunk.image, block, row, col),
                        y: job.y.add(job.ys.offset(chunk.image, block, row, col)),
                        y_block: job.ys.block_stride(),
                        limits: job.limits,
                    }
                };
                for (product, left) in LEFT.into_iter().enumerate() {
                    let (a, taps) = match left {
                        Left::Quarter(right, lower) => {
                            let row = chunk.rows.start + lower * pairs + pair - from.first;
                            let block = right * self.half() / BLOCK;
                            (job.x.add(job.xs.offset(from.image, block, row, col)), taps[0])
                        }
                        Left::Sum(sum) => {
                            let at = sum * self.half() / BLOCK * sum_block + (pair * self.out[1] + col) * BLOCK;
                            (sums.add(at), taps[1])
                        }
                    };
                    let panel = b.add(product * self.panel());
                    let soon = if self.by_rows {
                        Soon::behind(panel, WIDTH)
                    } else {
                        Soon::share(panel.add(PRODUCTS * self.panel()), self.panel(), WIDTH, pass, passes)
                    };
                    let args = SevenArgs {
                        a,
                        taps: taps.as_ptr(),
                        taps_len: taps.len(),
                        b: panel,
                        soon: Soon { rows: true, ..soon },
                        product,
                        kept,
                        finish: match product {
                            1 => Some(finish(0, 0)),
                            4 => Some(finish(1, 0)),
                            5 => Some(finish(1, 1)),
                            6 => Some(finish(0, 1)),
                            _ => None,
                        },
                    };
                    // SAFETY: `Job::new` checked shapes, halo and lengths; taps, sums and weights were laid out for this
                    // part; these output rows of these blocks belong to this chunk.
                    unsafe { entries.of(&split, i)(&args) }
                }
            }
            for block in [0, 1].map(|half| self.first_block(part, half)) {
                for block in block..block + 2 {
                    // SAFETY: as above.
                    unsafe { zero_halo(job.y, &job.ys, chunk.image, block, chunk.rows.clone()) }
                }
            }
        }
    }

    /// The first of the two output blocks of a part in a half of the output channels.
    fn first_block(&self, part: usize, half: usize) -> usize {
        2 * part + half * self.params.out_channels / 2 / BLOCK
    }

    /// Where tiles find the blocks of half of the channels, in the input and in the sums.
    fn fill_taps<'t>(&self, strides: [usize; 2], scratch: &'t mut [u8]) -> [&'t [Tap]; 2] {
        let blocks = self.half() / BLOCK;
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut scratch[..2 * blocks * size_of::<Tap>()]);
        for (i, tap) in taps.iter_mut().enumerate() {
            let offset = i % blocks * strides[i / blocks];
            *tap = Tap { offset: offset as u32, count: LANES as u32 };
        }
        let (x, sums) = taps.split_at(blocks);
        [x, sums]
    }
}

/// The right operands of the products, in their order, from the quarters of the weights: of the first half of the inputs to both
/// halves of the outputs, then of the second. The fifth product is subtracted, so its operand changes its sign.
fn right_operands([b11, b12, b21, b22]: [f64; 4]) -> [f64; PRODUCTS] {
    let t1 = b12 - b11;
    let t2 = b22 - t1;
    [b11, b21, t2, b22 - b12, b21 - t2, t1, b22]
}
