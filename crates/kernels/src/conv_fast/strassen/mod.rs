//! Convolution with seven products of half the size for every eight (V. Strassen, "Gaussian elimination is not optimal", 1969, in
//! the form of S. Winograd with 15 sums).
//!
//! A convolution multiplies a matrix of weights with one of inputs. Both are cut into quarters: weights by halves of the output and
//! of the input channels, inputs by halves of the channels and by the upper and lower rows of the image. With quarters `w11` (first
//! outputs, first inputs), `w12`, `w21`, `w22` and `x11` (first channels, upper rows), `x12` (first channels, lower rows), `x21`, `x22`,
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
//! little, as a register tile begins with one kept sum and leaves another. Each lower row has a partner in the upper half; where their
//! number is odd, the last upper row has zeros for a partner.

mod tiles;

use super::blocked::{BLOCK, BlockedShape, Halo, zero_halo};
use super::job::Job;
use super::params::Conv2dParams;
use super::places::{Place, Tiles};
use super::winograd::range_of;
use crate::activation::Activation;
use crate::cache_class::CacheClass;
use crate::gemm::tile::{Soon, Split, Tap, tile_size};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Dst, Src, entry};
use std::ops::Range;
use tiles::{InputSums, InputSumsArgs, Out, SumTileArgs, SumTiles};

/// Sums of inputs of a chunk take about so many bytes.
const MOST_SUMS: usize = 512 << 10;
/// Packed weights up to this part of the second-level cache, in eighths, stay there.
const CACHED_EIGHTHS: usize = 5;
/// Sums of inputs, panels of weights that are multiplied, and quarters: `w21` is kept so that weights can be read back.
const INPUT_SUMS: usize = 4;
const PANELS: usize = 7;
const QUARTERS: usize = 4;
const KEPT: usize = 3;

/// For two blocks of outputs.
static NO_BIAS: [f32; 2 * BLOCK] = [0.0; 2 * BLOCK];

/// Kept sums, in the order in which they lie in scratch.
#[derive(Clone, Copy)]
enum Kept {
    /// `a`, then `b`, then `c`.
    Running,
    /// `d`.
    Aside,
    /// `b + d`.
    Both,
}

/// What a step multiplies.
#[derive(Clone, Copy)]
enum Input {
    /// A half of the channels in the upper rows.
    Upper(usize),
    /// The same in the lower rows.
    Lower(usize),
    /// A sum of quarters.
    Sum(usize),
}

/// Where a step puts sums out.
#[derive(Clone, Copy)]
enum Output {
    /// A half of the channels in the upper rows.
    Upper(usize),
    /// The same in the lower rows.
    Lower(usize),
    Kept(Kept),
}

/// One product: `sums = from + panel * input`, kept as they are; `output = sums + add`.
#[derive(Clone, Copy)]
struct Step {
    panel: usize,
    input: Input,
    from: Option<Kept>,
    keep: Option<Kept>,
    add: Option<Kept>,
    output: Option<Output>,
}

/// The product of a panel, of which nothing becomes.
const fn step(panel: usize, input: Input) -> Step {
    Step { panel, input, from: None, keep: None, add: None, output: None }
}

const FIRST: Step = Step { keep: Some(Kept::Running), ..step(0, Input::Upper(0)) };
const UPPER_FIRST: Step =
    Step { from: Some(Kept::Running), output: Some(Output::Upper(0)), ..step(1, Input::Upper(1)) };
const SECOND: Step = Step { from: Some(Kept::Running), keep: Some(Kept::Running), ..step(2, Input::Sum(1)) };
const THIRD: Step = Step { from: Some(Kept::Running), keep: Some(Kept::Running), ..step(5, Input::Sum(2)) };
const UPPER_LAST: Step = Step { from: Some(Kept::Running), output: Some(Output::Upper(1)), ..step(6, Input::Sum(3)) };

/// For rows with a partner.
const PAIRED: [Step; PANELS] = [
    FIRST,
    UPPER_FIRST,
    SECOND,
    Step {
        keep: Some(Kept::Aside),
        add: Some(Kept::Running),
        output: Some(Output::Kept(Kept::Both)),
        ..step(3, Input::Sum(0))
    },
    Step { from: Some(Kept::Both), output: Some(Output::Lower(0)), ..step(4, Input::Lower(1)) },
    Step { add: Some(Kept::Aside), output: Some(Output::Lower(1)), ..THIRD },
    UPPER_LAST,
];
/// For rows without one; their windows may reach rows that have one.
const LONE: [Step; 5] = [FIRST, UPPER_FIRST, SECOND, THIRD, UPPER_LAST];

/// The panels from the quarters of the weights, `[w11, w12, w21, w22]`; sums are made in f64.
fn panels(quarters: [f32; QUARTERS]) -> [f32; PANELS] {
    let [w11, w12, w21, w22] = quarters.map(f64::from);
    let s1 = w21 + w22;
    let s2 = s1 - w11;
    [quarters[0], quarters[1], s2 as f32, s1 as f32, (w12 - s2) as f32, (w11 - w21) as f32, -quarters[3]]
}

/// A convolution prepared for one image size.
#[derive(Clone, Debug)]
pub(super) struct Strassen {
    params: Conv2dParams,
    isa: Isa,
    out: [usize; 2],
    /// Upper rows of the output are cut into so many bands.
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
        let mut all = Strassen { params, isa, out, bands: 1, shared };
        let upper = all.upper_rows();
        let sums = INPUT_SUMS * all.sums_shape(upper).len() * size_of::<f32>();
        let bands = sums.div_ceil(MOST_SUMS);
        all.bands = if bands > 1 { bands.next_multiple_of(2).min(upper) } else { 1 };
        all
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

    /// The output blocks of one part, counted in its half.
    fn part_blocks(&self, part: usize) -> Range<usize> {
        let width = tile_size(self.isa).blocks;
        part * width..((part + 1) * width).min(self.output_blocks())
    }

    /// Elements that a block of outputs adds to a panel.
    fn block_weights(&self) -> usize {
        self.inputs() * self.params.taps() * BLOCK
    }

    fn upper_rows(&self) -> usize {
        self.out[0].div_ceil(2)
    }

    /// Those of some upper rows that have a partner.
    fn lower_rows(&self, upper: &Range<usize>) -> usize {
        upper.end.min(self.out[0] / 2).saturating_sub(upper.start)
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

    /// Calls `visit` with the places of the four weights that panels are made of, in the order of [`panels`], and the place of the
    /// first panel's element among the packed ones.
    fn each_quartet(&self, mut visit: impl FnMut([usize; QUARTERS], usize, usize)) {
        let (taps, inputs) = (self.params.taps(), self.inputs());
        let outputs = self.params.out_channels / 2;
        let weight = |output: usize, input: usize, tap: usize| (output * 2 * inputs + input) * taps + tap;
        for part in 0..self.parts() {
            let blocks = self.part_blocks(part);
            let (first, width) = (blocks.start * BLOCK, blocks.len() * BLOCK);
            for o in first..first + width {
                for i in 0..inputs {
                    for t in 0..taps {
                        let step = (i / BLOCK * taps + t) * BLOCK + i % BLOCK;
                        let of = |lower: usize, second: usize| weight(o + lower * outputs, i + second * inputs, t);
                        visit([of(0, 0), of(0, 1), of(1, 0), of(1, 1)], part, step * width + o - first);
                    }
                }
            }
        }
    }

    /// Where the panels of a part begin, their length, and where its part of `w21` lies.
    fn packed_part(&self, part: usize) -> (usize, usize, usize) {
        let blocks = self.part_blocks(part);
        let (before, len) = (blocks.start * self.block_weights(), blocks.len() * self.block_weights());
        (PANELS * before, len, PANELS * self.params.weight_len() / QUARTERS + before)
    }

    /// Panels in the order in which a part reads them, part after part; then `w21`.
    pub(super) fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        self.each_quartet(|places, part, at| {
            let (start, len, rest) = self.packed_part(part);
            let quarters = places.map(|place| weights[place]);
            for (panel, value) in panels(quarters).into_iter().enumerate() {
                packed[start + panel * len + at] = value;
            }
            packed[rest + at] = quarters[2];
        });
    }

    /// The weights of some output channels, as they were before they were packed.
    pub(super) fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]) {
        let filter = self.params.in_channels * self.params.taps();
        let wanted = outputs.start * filter..outputs.end * filter;
        self.each_quartet(|places, part, at| {
            let (start, len, rest) = self.packed_part(part);
            let panel = |i: usize| packed[start + i * len + at];
            for (place, value) in places.into_iter().zip([panel(0), panel(1), packed[rest + at], -panel(PANELS - 1)]) {
                if wanted.contains(&place) {
                    weights[place - wanted.start] = value;
                }
            }
        });
    }

    /// Bytes of sums of inputs, kept sums and taps of a chunk.
    fn scratch_parts(&self) -> [usize; 3] {
        let rows = self.upper_rows().div_ceil(self.bands);
        let floats = size_of::<f32>();
        let kept = rows * self.out[1] * self.part_blocks(0).len() * BLOCK;
        let taps = 2 * self.inputs() / BLOCK * self.params.taps();
        [INPUT_SUMS * self.sums_shape(rows).len() * floats, KEPT * kept * floats, taps * size_of::<Tap>()]
    }

    pub(super) fn run(&self, job: &Job<'_>, par: &dyn Par) {
        let [sums_bytes, kept_bytes, taps_bytes] = self.scratch_parts();
        let pieces = job.xs.n * self.bands;
        // Those who share a band make its sums each for himself.
        let groups = par.people().div_ceil(pieces).min(self.parts());
        par.run(pieces * groups, sums_bytes + kept_bytes + taps_bytes, &|chunk, scratch| {
            let (sums, rest) = scratch.split_at_mut(sums_bytes);
            let (kept, taps) = rest.split_at_mut(kept_bytes);
            let (piece, group) = (chunk / groups, chunk % groups);
            let (image, band) = (piece / self.bands, piece % self.bands);
            let rows = range_of(band, self.bands, self.upper_rows());
            let lower = self.lower_rows(&rows);
            let sums = Dst::new(bytemuck::cast_slice_mut(sums));
            let shape = self.sums_shape(rows.len());
            self.sum_inputs(job, image, &rows, sums, &shape);
            let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut taps[..taps_bytes]);
            let (raw, summed) = taps.split_at_mut(taps.len() / 2);
            self.fill_taps(&job.xs, raw);
            self.fill_taps(&shape, summed);
            let band = Band { job, image, rows, lower, sums: sums.as_src(), shape, raw, summed };
            let kept = Dst::new(bytemuck::cast_slice_mut(kept));
            let mut shapes = None;
            for part in range_of(group, groups, self.parts()) {
                let blocks = self.part_blocks(part);
                let (of, tiles) = shapes.take().filter(|(of, _)| *of == blocks.len()).unwrap_or_else(|| {
                    let shapes = SumTiles { isa: self.isa, blocks: blocks.len() };
                    let of_rows = |rows| Tiles::new(self.out[1], rows, self.isa, &shapes);
                    (blocks.len(), [of_rows(lower), of_rows(band.rows.len() - lower)])
                });
                self.part(&band, part, &tiles, kept);
                shapes = Some((of, tiles));
            }
        });
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

    /// The pixel under the first tap of the first column of an output row, in the first or second half of the channels.
    fn input(&self, job: &Job<'_>, image: usize, half: usize, row: usize) -> Src {
        let (xs, p) = (&job.xs, &self.params);
        let (top, left) = (xs.halo.top - p.pad[0], xs.halo.left - p.pad[1]);
        job.x.add(xs.padded_offset(image, half * self.inputs() / BLOCK, top + row * p.stride[0], left))
    }

    fn sum_inputs(&self, job: &Job<'_>, image: usize, rows: &Range<usize>, sums: Dst, shape: &BlockedShape) {
        let partners = self.reach(0, self.lower_rows(rows));
        let quarters = [rows.start, self.upper_rows() + rows.start]
            .map(|row| [0, 1].map(|half| self.input(job, image, half, row)));
        let body = entry::<InputSums>(self.isa);
        for block in 0..self.inputs() / BLOCK {
            for row in 0..shape.h {
                let [upper, lower] = quarters
                    .map(|halves| halves.map(|x| x.add(block * job.xs.block_stride() + row * job.xs.row_stride())));
                let at = sums.add(shape.offset(0, block, row, 0));
                let args = InputSumsArgs {
                    upper,
                    lower: (row < partners).then_some(lower),
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
        let (lower, rows) = (band.lower, band.rows.len());
        PAIRED.iter().for_each(|step| self.step(band, part, step, paired, 0..lower, kept));
        LONE.iter().for_each(|step| self.step(band, part, step, lone, lower..rows, kept));
        for half in [0, self.output_blocks()] {
            for block in self.part_blocks(part) {
                let (upper, below) = (&band.rows, self.upper_rows() + band.rows.start);
                for rows in [upper.clone(), below..below + lower].into_iter().filter(|rows| !rows.is_empty()) {
                    // SAFETY: `Job::new` checked the shape; these rows of these blocks belong to this chunk.
                    unsafe { zero_halo(band.job.y, &band.job.ys, band.image, half + block, rows) }
                }
            }
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
        let (upper, lower) = (band.rows.start + rows.start, self.upper_rows() + band.rows.start + rows.start);
        let (a, input_row, taps) = match step.input {
            Input::Upper(half) => (self.input(job, band.image, half, upper), job.xs.row_stride(), band.raw),
            Input::Lower(half) => (self.input(job, band.image, half, lower), job.xs.row_stride(), band.raw),
            Input::Sum(i) => {
                let at = i * band.shape.len() + band.shape.offset(0, 0, rows.start * self.params.stride[0], 0);
                (band.sums.add(at), band.shape.row_stride(), band.summed)
            }
        };
        let (start, len, _) = self.packed_part(part);
        let b = Src::new(job.packed).add(start + step.panel * len);
        let kept_block = rows.len() * cols * BLOCK;
        let kept = |which: Kept| kept.add(which as usize * blocks.len() * kept_block);
        let bias = [0, self.output_blocks()].map(|half| job.bias_block::<2>(half + blocks.start));
        let add = step.add.map(|which| kept(which).as_src());
        let out = |output| {
            let (half, row) = match output {
                Output::Upper(half) => (half, upper),
                Output::Lower(half) => (half, lower),
                Output::Kept(which) => {
                    let limits = Activation::None.limits();
                    let (y, y_row, bias) = (kept(which), cols * BLOCK, Src::new(&NO_BIAS));
                    return Out { y, y_block: kept_block, y_row, add, bias, residual: None, limits };
                }
            };
            let block = half * self.output_blocks() + blocks.start;
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

/// Some upper rows of an image and their partners.
struct Band<'a> {
    job: &'a Job<'a>,
    image: usize,
    rows: Range<usize>,
    lower: usize,
    /// Sums of inputs.
    sums: Src,
    shape: BlockedShape,
    /// Where inputs lie in a half of the channels, and in a sum.
    raw: &'a [Tap],
    summed: &'a [Tap],
}
