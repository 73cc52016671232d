//! Products with weights in 28 bits: they are multiplied where they are unpacked, in registers.

use super::{SIDE, View, WIDTH};
use crate::gemm::live::Live;
use crate::gemm::tile::Split;
use crate::par::Par;
use crate::simd::{
    COMPACT_ROWS, COMPACT_STEPS, COMPACT_SUMS_ROW, COMPACT_VALUES_ROW, CompactColumns, CompactSteps, Dst, Src,
    multiply_compact,
};
use std::ops::Range;

/// Rows of a chunk: weights are read from memory once for all of them.
const BAND: usize = 48;
/// Steps of one group of rows after another, whose weights and sums stay in the caches meanwhile.
const BLOCK: usize = COMPACT_VALUES_ROW;
/// Elements from a row's sums to the next row's: the sums of contiguous panels are contiguous, too,
/// because rows of C may be so far apart that they would evict each other from the first-level
/// cache.
pub(in crate::gemm) const ROW: usize = COMPACT_SUMS_ROW;
/// Approximate number of chunks, made by dividing the depth if there are few rows and columns.
const CHUNKS: usize = 32;

/// How a product is cut; a function of its shape alone.
#[derive(Clone, Copy)]
pub(in crate::gemm) struct CompactCut {
    /// Groups of contiguous panels.
    sides: usize,
    bands: Split,
    /// Parts of the depth.
    parts: usize,
    rows: usize,
}

impl CompactCut {
    pub fn new(rows: usize, columns: usize) -> CompactCut {
        let (sides, bands) = (columns.div_ceil(SIDE * WIDTH), Split::new(rows, BAND));
        CompactCut { sides, bands, parts: CHUNKS.div_ceil((sides * bands.parts).max(1)), rows }
    }

    /// Elements of memory for the sums of all parts.
    pub fn room(&self) -> usize {
        self.parts * self.sums()
    }

    /// Elements for the sums of a part.
    fn sums(&self) -> usize {
        self.sides * self.rows * ROW
    }

    /// The beginning of the first row's sums of a panel; the next row's follow [`ROW`] elements
    /// later.
    pub fn place(&self, panel: usize) -> usize {
        panel / SIDE * self.rows * ROW + panel % SIDE * WIDTH
    }
}

/// The sums of all columns in the first elements of `room`, where [`Cut::place`] says.
pub(in crate::gemm) fn multiply<'r>(
    view: &View<'_>,
    cut: CompactCut,
    live: &Live<'_>,
    room: &'r mut [f32],
    par: &dyn Par,
) -> &'r [f32] {
    let CompactCut { bands, parts, sides, .. } = cut;
    let (part, steps) = (cut.sums(), live.steps().len());
    let all = Dst::new(&mut room[..parts * part]);
    par.run(sides * bands.parts * parts, 0, &|chunk, _| {
        let (side, band, at) = (chunk / parts / bands.parts, chunk / parts % bands.parts, chunk % parts);
        let panels = view.places.side(side * SIDE);
        let range = steps * at / parts..steps * (at + 1) / parts;
        let sums = all.add(at * part + cut.place(panels.start));
        let job = Chunk { view, columns: view.columns(&panels), panels, live, range, sums };
        // SAFETY: no other chunk has this side, band and part, for which there is room.
        unsafe { job.multiply(bands.start(band)..bands.start(band) + bands.rows(band)) }
    });
    let (sums, others) = room[..parts * part].split_at_mut(part);
    for other in others.chunks_exact(part) {
        sums.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
    }
    sums
}

/// A part of the listed steps, of contiguous panels.
struct Chunk<'a> {
    view: &'a View<'a>,
    panels: Range<usize>,
    columns: CompactColumns,
    live: &'a Live<'a>,
    /// Places in the list.
    range: Range<usize>,
    /// Sums of the first row.
    sums: Dst,
}

impl Chunk<'_> {
    /// The sums of some rows.
    ///
    /// # Safety
    /// There must be room for them, and no other thread may touch them.
    unsafe fn multiply(&self, rows: Range<usize>) {
        for row in rows.clone() {
            // SAFETY: promised by the caller.
            unsafe { self.sums.zero(row * ROW, self.panels.len() * WIDTH) }
        }
        let steps = &self.live.steps()[self.range.clone()];
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
        let numbers = *first as usize..*last as usize + 1;
        debug_assert!(steps.is_sorted(), "a list in ascending order, as Live makes it");
        assert!(numbers.end <= self.view.places.k, "steps {numbers:?} of {}", self.view.places.k);

        let groups = Split::new(rows.len(), COMPACT_ROWS);
        let mut packed = [0.0; BAND * BLOCK];
        for block in (0..steps.len()).step_by(BLOCK) {
            let block = block..steps.len().min(block + BLOCK);
            // Rows of A may be so far apart that they would drive each other out of the first-level
            // cache. Behind the last step are zeros.
            for (row, packed) in rows.clone().zip(packed.chunks_exact_mut(BLOCK)) {
                let values = &self.live.row(row)[self.range.clone()][block.clone()];
                packed[..values.len()].copy_from_slice(values);
                packed[values.len()..].fill(0.0);
            }
            for group in 0..groups.parts {
                let (first, rows_here) = (groups.start(group), groups.rows(group));
                let (values, sums) = (Src::new(&packed[first * BLOCK..]), self.sums.add((rows.start + first) * ROW));
                // SAFETY: promised by the caller; the steps are there.
                unsafe { self.multiply_block(rows_here, steps, block.clone(), values, sums) }
            }
        }
        for (i, panel) in self.panels.clone().enumerate() {
            for (step, column, weight) in self.view.exceptions_of(panel, &numbers) {
                let Ok(at) = steps.binary_search(&(step as u32)) else { continue };
                for row in rows.clone() {
                    let (value, to) = (self.live.row(row)[self.range.start + at], row * ROW + i * WIDTH + column);
                    // SAFETY: promised by the caller.
                    unsafe { self.sums.write(to, self.sums.as_src().read(to) + value * weight) }
                }
            }
        }
    }

    /// Adds some of the steps, with `values` of rows [`BLOCK`] elements apart, to the sums of up to
    /// [`COMPACT_ROWS`] rows.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply); the view must have the steps.
    unsafe fn multiply_block(&self, rows: usize, steps: &[u32], block: Range<usize>, values: Src, sums: Dst) {
        // What is missing in the last ones is zero times a step that is there, and weights in 28
        // bits are finite.
        let some = |from: usize| std::array::from_fn(|i| steps[(from + i).min(steps.len() - 1)]);
        for at in block.clone().step_by(COMPACT_STEPS) {
            let (now, soon, values) = (some(at), some(at + COMPACT_STEPS), values.add(at - block.start));
            let steps = CompactSteps { steps: now, soon, values, sums };
            // SAFETY: `fits` asked for the instructions; the columns have these steps, after the
            // last of which there are `BEHIND` elements; `values` has them for all rows; `sums` as
            // promised.
            unsafe { multiply_compact(&self.columns, &steps, rows) }
        }
    }
}
