//! Convolution with seven products of half the size for every eight (V. Strassen, "Gaussian elimination is not optimal", 1969, in
//! the form of S. Winograd with 15 sums).
//!
//! A convolution multiplies a matrix of weights with one of inputs. Both are cut into quarters: weights by halves of the outputs of a
//! part and of all input channels, inputs by halves of the channels and of a band of rows. With quarters `w11` (first outputs, first
//! inputs), `w12`, `w21`, `w22` and `x11` (first channels, first half of the band), `x12` (first channels, second half), `x21`, `x22`,
//!
//! ```text
//! s1 = w21 + w22   s2 = s1 - w11   s3 = w11 - w21   s4 = w12 - s2
//! t1 = x12 - x11   t2 = x22 - t1   t3 = x22 - x12   t4 = t2 - x21
//! a = w11 x11      y11 = a + w12 x21
//! b = a + s2 t2    d = s1 t1            y12 = (b + d) + s4 x22
//! c = b + s3 t3    y22 = c + d          y21 = c - w22 t4
//! ```
//!
//! Sums of weights are made when they are packed. Those of inputs are made by every chunk for the rows it reads; those of products cost
//! little, as a register tile begins with one kept sum and leaves another.
//!
//! The first half are the upper rows. Every lower row is the partner of one of them; where rows are odd in number, zeros stand for the
//! partner of the last. Halves lie side by side, so that the parts or bands of a core are neighbours and the layers around can be
//! cut like them ([`Cut`](super::cut::Cut)).

mod panels;
mod steps;
mod tiles;

use super::blocked::{BLOCK, BlockedShape, Halo, zero_halo};
use super::job::Job;
use super::params::Conv2dParams;
use super::places::{Place, Tiles};
use crate::activation::Activation;
use crate::cache_class::CacheClass;
use crate::gemm::tile::{Soon, Split, Tap, tile_size};
use crate::isa::Isa;
use crate::par::{Par, range_of};
use crate::simd::{Dst, Src, entry};
use std::ops::Range;
use steps::{Input, Kept, LONE, Output, PAIRED, Step};
use tiles::{InputSums, InputSumsArgs, Out, SumTileArgs, SumTiles};

/// Sums of inputs of a chunk take about so many bytes.
const MOST_SUMS: usize = 512 << 10;
/// Packed weights up to this part of the second-level cache, in eighths, stay there.
const CACHED_EIGHTHS: usize = 5;
/// What one has more than an equal share does not count below one in so many.
const UNEQUAL: usize = 10;
/// Sums of inputs, panels of weights that are multiplied, and quarters: `w21` is kept so that weights can be read back.
const INPUT_SUMS: usize = 4;
const PANELS: usize = 7;
const QUARTERS: usize = 4;
const KEPT: usize = 3;

/// For two blocks of outputs.
static NO_BIAS: [f32; 2 * BLOCK] = [0.0; 2 * BLOCK];

/// A convolution prepared for one image size.
#[derive(Clone, Debug)]
pub(super) struct Strassen {
    params: Conv2dParams,
    isa: Isa,
    out: [usize; 2],
    /// Pairs of rows are cut into so many bands.
    bands: usize,
    /// Weights come from far, so that the tiles that read a panel share the requests for the next.
    shared: bool,
}

impl Strassen {
    /// Whether channels can be halved and rows have partners.
    pub(super) fn fits(p: &Conv2dParams, size: [usize; 2]) -> bool {
        let halves = |channels: usize| channels.is_multiple_of(2 * BLOCK);
        let rows = p.output_size(size).map_or(0, |out| out[0]);
        p.groups == 1 && halves(p.in_channels) && halves(p.out_channels) && p.stride == [1, 1] && rows >= 2
    }

    pub(super) fn new(params: Conv2dParams, out: [usize; 2], isa: Isa, cache: CacheClass) -> Strassen {
        let shared = PANELS * params.weight_len() > cache.bytes() / 8 * CACHED_EIGHTHS;
        let all = Strassen { params, isa, out, bands: 1, shared };
        let pairs = all.pairs();
        let bands = (INPUT_SUMS * all.sums_shape(pairs).len() * size_of::<f32>()).div_ceil(MOST_SUMS);
        Strassen { bands: if bands > 1 { bands.next_multiple_of(2).min(pairs) } else { 1 }, ..all }
    }

    pub(super) fn name(&self) -> String {
        let rows = Split::tiles(self.out[1], self.isa).rows(0);
        format!("strassen {rows}x{} {}", self.part_blocks(0).len(), self.isa)
    }

    /// The form of packed weights of a convolution of these channels and kernel.
    pub(super) fn packing(&self) -> String {
        format!("strassen x{}", tile_size(self.isa).blocks)
    }

    pub(super) fn packed_len(&self) -> usize {
        (PANELS + 1) * self.params.weight_len() / QUARTERS
    }

    /// Channels of a half.
    fn inputs(&self) -> usize {
        self.params.in_channels / 2
    }

    fn output_blocks(&self) -> usize {
        self.params.out_channels / 2 / BLOCK
    }

    fn parts(&self) -> usize {
        self.output_blocks().div_ceil(tile_size(self.isa).blocks)
    }

    /// Numbers of the pairs of output blocks of one part; the first blocks of all its pairs lie before the second ones.
    fn part_blocks(&self, part: usize) -> Range<usize> {
        let width = tile_size(self.isa).blocks;
        part * width..((part + 1) * width).min(self.output_blocks())
    }

    /// Elements that a block of outputs adds to a panel.
    fn block_weights(&self) -> usize {
        self.inputs() * self.params.taps() * BLOCK
    }

    /// Upper rows and their partners, the last of which may lack one.
    fn pairs(&self) -> usize {
        self.out[0].div_ceil(2)
    }

    /// Input rows and columns that so many rows and columns of outputs read.
    fn reach(&self, i: usize, outs: usize) -> usize {
        let p = &self.params;
        if outs == 0 { 0 } else { (outs - 1) * p.stride[i] + (p.kernel[i] - 1) * p.dilate[i] + 1 }
    }

    /// A sum of inputs for so many rows of outputs.
    fn sums_shape(&self, rows: usize) -> BlockedShape {
        BlockedShape::new(1, self.inputs(), self.reach(0, rows), self.reach(1, self.out[1]), Halo::default())
    }

    /// Bytes of sums of inputs, kept sums and taps of a band of so many rows.
    fn scratch_parts(&self, rows: usize) -> [usize; 3] {
        let floats = size_of::<f32>();
        let kept = rows * self.out[1] * self.part_blocks(0).len() * BLOCK;
        let taps = 2 * self.inputs() / BLOCK * self.params.taps();
        [INPUT_SUMS * self.sums_shape(rows).len() * floats, KEPT * kept * floats, taps * size_of::<Tap>()]
    }

    pub(super) fn run(&self, job: &Job<'_>, par: &dyn Par) {
        let (pieces, parts) = (job.xs.n * self.bands, self.parts());
        let scratch_bytes = self.scratch_parts(self.pairs().div_ceil(self.bands)).iter().sum();
        if self.are_equal_shares(pieces, par.parallelism()) {
            return par.run(pieces, scratch_bytes, &|piece, scratch| self.band(job, piece, 0..parts, scratch));
        }
        // Everybody computes some parts of all bands. Their sums each makes for himself: that takes less than to wait for who has a
        // row more.
        par.run_static(parts * pieces, scratch_bytes, &|units, scratch| {
            for piece in 0..pieces {
                let [start, end] = [units.start, units.end].map(|unit| (unit + pieces - 1 - piece) / pieces);
                self.band(job, piece, start..end, scratch);
            }
        });
    }

    /// Whether so many threads that take so many bands as they come have about as much to do.
    fn are_equal_shares(&self, pieces: usize, parallelism: usize) -> bool {
        let work = |piece: usize| {
            let (rows, paired) = self.band_rows(piece % self.bands);
            PAIRED.len() * paired + LONE.len() * (rows.len() - paired)
        };
        let share = |one: usize| range_of(one, parallelism, pieces).map(work).sum::<usize>();
        let (most, all) = ((0..parallelism).map(share).max().unwrap_or(0), (0..pieces).map(work).sum::<usize>());
        most * parallelism <= all + all / UNEQUAL
    }

    /// The upper rows of a band, and how many of them have partners: the rows behind them.
    fn band_rows(&self, band: usize) -> (Range<usize>, usize) {
        let pairs = range_of(band, self.bands, self.pairs());
        let paired = pairs.end.min(self.out[0] / 2).saturating_sub(pairs.start);
        (2 * pairs.start..2 * pairs.start + pairs.len(), paired)
    }

    /// Some parts of one of the bands of all images.
    fn band(&self, job: &Job<'_>, piece: usize, parts: Range<usize>, scratch: &mut [u8]) {
        if parts.is_empty() {
            return;
        }
        let (image, band) = (piece / self.bands, piece % self.bands);
        let [sums_bytes, kept_bytes, taps_bytes] = self.scratch_parts(self.pairs().div_ceil(self.bands));
        let (sums, rest) = scratch.split_at_mut(sums_bytes);
        let (kept, taps) = rest.split_at_mut(kept_bytes);
        let sums = Dst::new(bytemuck::cast_slice_mut(sums));
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut taps[..taps_bytes]);
        let (raw, summed) = taps.split_at_mut(taps.len() / 2);
        let (rows, paired) = self.band_rows(band);
        let shape = self.sums_shape(rows.len());
        self.fill_taps(&job.xs, raw);
        self.fill_taps(&shape, summed);
        let band = Band { job, image, rows, paired, sums: sums.as_src(), shape, raw, summed };
        self.sum_inputs(&band, sums);
        self.some_parts(&band, parts, Dst::new(bytemuck::cast_slice_mut(kept)));
    }

    /// The outputs of some parts in a band.
    fn some_parts(&self, band: &Band<'_>, parts: Range<usize>, kept: Dst) {
        let mut shapes = None;
        for part in parts {
            // All but the last have as many blocks.
            let blocks = self.part_blocks(part).len();
            let (of, tiles) = shapes.take().filter(|(of, _)| *of == blocks).unwrap_or_else(|| {
                let shapes = SumTiles { isa: self.isa, blocks };
                let of_rows = |rows| Tiles::new(self.out[1], rows, self.isa, &shapes);
                (blocks, [of_rows(band.paired), of_rows(band.rows.len() - band.paired)])
            });
            self.part(band, part, &tiles, kept);
            shapes = Some((of, tiles));
        }
    }

    /// Where a tile finds its inputs in a half of the channels.
    fn fill_taps(&self, shape: &BlockedShape, taps: &mut [Tap]) {
        let Conv2dParams { kernel, dilate, .. } = self.params;
        let mut taps = taps.iter_mut();
        for block in 0..self.inputs() / BLOCK {
            for (i, j) in (0..kernel[0]).flat_map(|i| (0..kernel[1]).map(move |j| (i, j))) {
                let offset = shape.padded_offset(0, block, i * dilate[0], j * dilate[1]) as u32;
                if let Some(tap) = taps.next() {
                    *tap = Tap { offset, count: BLOCK as u32 };
                }
            }
        }
    }

    /// The input pixel under the first tap of the first output of a row, in the first or second half of the channels.
    fn input(&self, band: &Band<'_>, half: usize, row: usize) -> Src {
        let (xs, p) = (&band.job.xs, &self.params);
        let (top, left) = (xs.halo.top - p.pad[0], xs.halo.left - p.pad[1]);
        band.job.x.add(xs.padded_offset(band.image, half * self.inputs() / BLOCK, top + row * p.stride[0], left))
    }

    fn sum_inputs(&self, band: &Band<'_>, sums: Dst) {
        let (xs, shape) = (&band.job.xs, &band.shape);
        let with_partners = self.reach(0, band.paired);
        let quarters = [band.rows.start, band.rows.end].map(|row| [0, 1].map(|half| self.input(band, half, row)));
        let body = entry::<InputSums>(self.isa);
        for block in 0..self.inputs() / BLOCK {
            for row in 0..shape.h {
                let [own, partners] =
                    quarters.map(|halves| halves.map(|x| x.add(block * xs.block_stride() + row * xs.row_stride())));
                let at = sums.add(shape.offset(0, block, row, 0));
                let args = InputSumsArgs {
                    own,
                    partners: (row < with_partners).then_some(partners),
                    sums: std::array::from_fn(|i| at.add(i * shape.len())),
                    pixels: shape.w,
                };
                // SAFETY: `Job::new` checked that the input has the rows that outputs read; the sums have room for four shapes.
                unsafe { body(&args) }
            }
        }
    }

    /// All products of one part.
    fn part(&self, band: &Band<'_>, part: usize, [paired, lone]: &[Tiles<SumTileArgs>; 2], kept: Dst) {
        let paired_rows = 0..band.paired;
        PAIRED.iter().for_each(|step| self.step(band, part, step, paired, paired_rows.clone(), kept));
        LONE.iter().for_each(|step| self.step(band, part, step, lone, band.paired..band.rows.len(), kept));
        let blocks = self.part_blocks(part);
        let rows = band.rows.start..band.rows.end + band.paired;
        for block in 2 * blocks.start..2 * blocks.end {
            // SAFETY: `Job::new` checked the shape; these rows of these blocks belong to this chunk.
            unsafe { zero_halo(band.job.y, &band.job.ys, band.image, block, rows.clone()) }
        }
    }

    /// One product for some rows of a band.
    fn step(
        &self,
        band: &Band<'_>,
        part: usize,
        step: &Step,
        tiles: &Tiles<SumTileArgs>,
        rows: Range<usize>,
        kept: Dst,
    ) {
        if rows.is_empty() {
            return;
        }
        let (job, cols, blocks) = (band.job, self.out[1], self.part_blocks(part));
        let own = band.rows.start + rows.start;
        let partner = band.rows.end + rows.start;
        let (a, input_row, taps) = match step.input {
            Input::Own(half) => (self.input(band, half, own), job.xs.row_stride(), band.raw),
            Input::Partner(half) => (self.input(band, half, partner), job.xs.row_stride(), band.raw),
            Input::Sum(i) => {
                let at = i * band.shape.len() + band.shape.offset(0, 0, rows.start * self.params.stride[0], 0);
                (band.sums.add(at), band.shape.row_stride(), band.summed)
            }
        };
        let (start, len, _) = self.packed_part(part);
        let b = Src::new(job.packed).add(start + step.panel * len);
        let kept_block = rows.len() * cols * BLOCK;
        let kept = |which: Kept| kept.add(which as usize * blocks.len() * kept_block);
        let bias = [0, blocks.len()].map(|half| job.bias_block::<2>(2 * blocks.start + half));
        let add = step.add.map(|which| kept(which).as_src());
        let out = |output| {
            let (half, row) = match output {
                Output::Own(half) => (half, own),
                Output::Partner(half) => (half, partner),
                Output::Kept(which) => {
                    let limits = Activation::None.limits();
                    let (y, y_row, bias) = (kept(which), cols * BLOCK, Src::new(&NO_BIAS));
                    return Out { y, y_block: kept_block, y_row, add, bias, residual: None, limits };
                }
            };
            let block = 2 * blocks.start + half * blocks.len();
            Out {
                y: job.y.add(job.ys.offset(band.image, block, row, 0)),
                y_block: job.ys.block_stride(),
                y_row: job.ys.row_stride(),
                add,
                bias: Src::new(&bias[half]),
                residual: job.residual_at(band.image, block, row, 0),
                limits: job.limits,
            }
        };
        let width = blocks.len() * BLOCK;
        let first = SumTileArgs {
            a,
            row: input_row * self.params.stride[0],
            taps: taps.as_ptr(),
            taps_len: taps.len(),
            b,
            soon: Soon::behind(b, width),
            kept_block,
            kept_row: cols * BLOCK,
            from: step.from.map(|which| kept(which).as_src()),
            keep: step.keep.map(kept),
            out: step.output.map(out),
        };
        let passes = tiles.count(rows.len());
        let mut args = first;
        for (pass, Place { row, col, entry }) in tiles.places(rows.len()).enumerate() {
            args.move_from(&first, row, col * BLOCK, (row * cols + col) * BLOCK);
            if self.shared {
                args.soon = Soon::share(b.add(len), len, width, pass, passes);
            }
            // SAFETY: `Job::new` checked shapes, halo and lengths; taps, weights and kept sums were laid out for this part; these
            // rows of these blocks belong to this chunk.
            unsafe { entry(&args) }
        }
    }
}

/// Some upper rows of an image and their partners, the rows behind them.
struct Band<'a> {
    job: &'a Job<'a>,
    image: usize,
    rows: Range<usize>,
    /// How many have partners.
    paired: usize,
    /// Sums of inputs.
    sums: Src,
    shape: BlockedShape,
    /// Where inputs lie in a half of the channels, and in a sum.
    raw: &'a [Tap],
    summed: &'a [Tap],
}
