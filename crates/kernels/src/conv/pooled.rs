//! A convolution and the pooling after it as one step, for large outputs that have no other reader.
//!
//! A thread processes its rows from the top, one band after the other: the band is convolved into
//! scratch memory and pooled while it is in the cache. Rows that the next windows need, too, move
//! to the front of the scratch memory; a thread that begins in the middle of an image convolves the
//! band above once more for them, with the same bits.

use crate::blocked::pool::{Pool2dParams, PoolKind, PoolRows, Pooling};
use crate::blocked::{Blocked, BlockedMut, BlockedShape, Halo};
use crate::conv::kernel::ConvKernel;
use crate::conv::method::ConvBand;
use crate::conv::operands::{ConvEpilogue, ConvJob, ExpectedOperands, Residual};
use crate::par::{Par, groups_of, within};
use crate::simd::Dst;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Outputs of a convolution below this stay in the second-level cache until they are pooled anyway.
const LEAST_OUTPUT: usize = 1 << 20;
/// Rows that are computed twice do not count below this part of all.
const LITTLE: usize = 32;
/// Largest band, which leaves room for other data in that cache.
const MOST_BAND: usize = 352 << 10;

/// A convolution followed by a pooling, prepared for one input shape.
#[derive(Clone, Debug)]
pub struct PooledKernel {
    conv: ConvKernel,
    /// Convolves one band; weights are packed as for the whole image.
    band: ConvBand,
    bands: PoolBands,
    pooling: Pooling,
    output: BlockedShape,
}

impl PooledKernel {
    /// Prepares a pooling with `out` rows and columns of windows after `conv`; none if this does
    /// not pay.
    pub fn new(conv: &ConvKernel, kind: PoolKind, params: Pool2dParams, out: [usize; 2]) -> Option<PooledKernel> {
        if conv.output_shape().image_len() * size_of::<f32>() < LEAST_OUTPUT {
            return None;
        }
        let kernel = PooledKernel::with(conv, kind, params, out, MOST_BAND)?;
        // Two threads that share the image compute a band twice then.
        let repeats = kernel.bands.carried > 0;
        let may_repeat = conv.prepared().bands().is_some_and(|bands| bands.may_repeat());
        (may_repeat || !repeats).then_some(kernel)
    }

    /// Prepares a pooling in bands of a limited number of bytes, even if it does not pay.
    pub(super) fn with(
        conv: &ConvKernel,
        kind: PoolKind,
        params: Pool2dParams,
        out: [usize; 2],
        most: usize,
    ) -> Option<PooledKernel> {
        if out.contains(&0) || !params.is_sound() {
            return None;
        }
        let whole = conv.output_shape();
        let pooling = Pooling::new(conv.isa(), kind, params);
        let row_bytes = whole.row_stride() * whole.blocks() * size_of::<f32>();
        let conv_bands = conv.prepared().bands()?;
        let step = conv_bands.row_step();
        let covered = whole.h.next_multiple_of(step);
        let rows = (1..=covered / step).map(|steps| steps * step).take_while(|rows| rows * row_bytes <= most);
        let possible = rows.map(|rows| PoolBands::new(&pooling, whole.h, out[0], covered, rows));
        let fits = |b: &PoolBands| b.carried <= b.rows && (b.carried + b.rows) * row_bytes <= most;
        // Hardly any rows twice, none shared by windows if possible. Then as few bands as possible,
        // unless a thread that begins inside of the image computes one twice.
        let cost = |b: &PoolBands| {
            let size = if b.carried > 0 { b.rows } else { b.count };
            ((b.count * b.rows - covered) * LITTLE / covered, b.carried, size)
        };
        let bands = possible.filter(fits).min_by_key(cost)?;
        let band = conv_bands.band([bands.rows, whole.w], bands.count)?;
        let output = BlockedShape::new(whole.n, whole.c, out[0], out[1], Halo::default());
        Some(PooledKernel { conv: conv.clone(), band, bands, pooling, output })
    }

    /// The pooling, such as `max 3x3/2 in bands of 8 rows`.
    pub fn name(&self) -> String {
        format!("{} in bands of {} rows", self.pooling.name(), self.bands.rows)
    }

    /// The shape of the output, without halo; it may be given any halo, which a run fills with
    /// zeros, and may be in lines of bf16.
    pub fn output_shape(&self) -> BlockedShape {
        self.output
    }

    /// Convolves and pools; writes all of `y`, its halo included. A residual is not possible.
    ///
    /// # Panics
    /// If an operand does not have the shape that the convolution and
    /// [`output_shape`](Self::output_shape) say, up to a larger halo.
    pub fn run(
        &self,
        x: Blocked<'_>,
        packed: &[f32],
        epilogue: ConvEpilogue<'_>,
        y: &mut BlockedMut<'_>,
        par: &dyn Par,
    ) {
        assert!(matches!(epilogue.residual, Residual::None), "nothing can be added before a pooling");
        let (packed_len, lines) = (self.conv.packed_len(), [false, true]);
        let expected = ExpectedOperands { x: self.conv.input_shape(), y: self.output, packed_len, lines };
        let job = ConvJob::new(&expected, x, packed, epilogue, y);
        let (images, bands, parallelism) = (self.output.n, self.bands.count, par.parallelism());
        let floats = self.buffer().len();
        let bytes = floats * size_of::<f32>() + self.band.chunk_bytes;
        let some = |units: Range<usize>, scratch: &mut [u8]| {
            let (buffer, inner) = scratch.split_at_mut(floats * size_of::<f32>());
            let (buffer, inner) = (bytemuck::cast_slice_mut(buffer), BorrowedScratch(Mutex::new(inner)));
            for image in groups_of(&units, bands) {
                self.some_bands(&job, image, within(&units, image, bands), buffer, &inner);
            }
        };
        if images <= parallelism {
            par.run_static(images * bands, bytes, &some);
        } else {
            par.run(images, bytes, &|image, scratch| some(image * bands..(image + 1) * bands, scratch));
        }
    }

    /// A band below the rows that it shares windows with.
    fn buffer(&self) -> BlockedShape {
        let whole = self.conv.output_shape();
        BlockedShape::new(1, whole.c, self.bands.carried + self.bands.rows, whole.w, Halo::default())
    }

    /// The outputs that some bands of an image complete.
    fn some_bands(
        &self,
        job: &ConvJob<'_>,
        image: usize,
        mine: Range<usize>,
        buffer: &mut [f32],
        alone: &BorrowedScratch<'_>,
    ) {
        let (bands, shape) = (&self.bands, self.buffer());
        let again = usize::from(mine.start > 0 && bands.carried > 0);
        let mut done = bands.complete_before(&self.pooling, mine.start);
        for band in mine.start - again..mine.end {
            let (first, dst) = (bands.start(band), Dst::new(buffer));
            let below = dst.add(bands.carried * shape.row_stride());
            self.band.conv.run(&job.band(image, first * self.conv.params().stride[0], below, shape), &mut [], alone);
            if band >= mine.start {
                let end = bands.complete_before(&self.pooling, band + 1);
                let rows = PoolRows {
                    x: dst.as_src(),
                    xs: shape,
                    first: first as isize - bands.carried as isize,
                    size: bands.size,
                    fetch: false,
                };
                // SAFETY: windows of these outputs lie in the band and in what was carried; these
                // rows belong to this chunk.
                unsafe { self.pooling.run_channels(&rows, job.y, &job.ys, image, done..end) }
                done = end;
            }
            if band + 1 < mine.end {
                let moved = bands.start(band + 1) - first;
                carry(buffer, &shape, moved, bands.carried);
            }
        }
    }
}

/// Moves `rows` rows of every block to its front from `from`.
fn carry(buffer: &mut [f32], shape: &BlockedShape, from: usize, rows: usize) {
    let row = shape.row_stride();
    for block in buffer[..shape.len()].chunks_exact_mut(shape.block_stride()) {
        block.copy_within(from * row..(from + rows) * row, 0);
    }
}

/// How the rows of an image are cut into bands of the same height. The last one ends with the
/// image, so it may begin inside of the one before.
#[derive(Clone, Debug)]
struct PoolBands {
    rows: usize,
    count: usize,
    /// Rows of the image, and those that the algorithm computes.
    size: usize,
    covered: usize,
    /// Rows of windows.
    out: usize,
    /// Rows above a band that its windows reach.
    carried: usize,
}

impl PoolBands {
    fn new(pooling: &Pooling, size: usize, out: usize, covered: usize, rows: usize) -> PoolBands {
        let mut bands = PoolBands { rows, count: covered.div_ceil(rows), size, covered, out, carried: 0 };
        let reach = |band: usize| {
            let next = bands.complete_before(pooling, band);
            if next < out { bands.start(band).saturating_sub(pooling.rows(next, size).start) } else { 0 }
        };
        bands.carried = (1..bands.count).map(reach).max().unwrap_or(0);
        bands
    }

    fn start(&self, band: usize) -> usize {
        (band * self.rows).min(self.covered - self.rows)
    }

    /// Rows of outputs whose windows end in the bands before this one.
    fn complete_before(&self, pooling: &Pooling, band: usize) -> usize {
        match band {
            0 => 0,
            _ if band == self.count => self.out,
            _ => {
                let end = self.start(band - 1) + self.rows;
                // Windows end one after the other.
                let (mut low, mut high) = (0, self.out);
                while low < high {
                    let middle = (low + high) / 2;
                    if pooling.rows(middle, self.size).end <= end { low = middle + 1 } else { high = middle }
                }
                low
            }
        }
    }
}

/// Chunks in order in the calling thread, in scratch memory that it was lent.
struct BorrowedScratch<'a>(Mutex<&'a mut [u8]>);

impl Par for BorrowedScratch<'_> {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let mut scratch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = &mut scratch[..scratch_bytes];
        (0..chunks).for_each(|chunk| body(chunk, scratch));
    }
}
