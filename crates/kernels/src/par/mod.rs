//! Loops that kernels split over threads without knowledge of threads.

use crate::places::Places;
use crate::scratch::{Line, Memory, Scratch, SystemMemory};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub use picked::PickedRows;

/// A way to split loops. Chunk boundaries come from the caller, so results never depend on the
/// thread that runs a chunk.
pub trait Par: Sync {
    /// Runs `body(chunk, scratch)` once for every chunk in `0..chunks`, in any order and on any
    /// threads, and returns when all are done.
    ///
    /// `scratch` has at least `scratch_bytes` bytes, starts on a 64-byte boundary, belongs to the
    /// chunk alone while it runs and holds arbitrary content.
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync));

    /// Runs `body(range, scratch)` on ranges that together are `0..units`, one for each of the
    /// [`parallelism`](Self::parallelism). None is empty or longer than twice an even one. The ends
    /// of ranges depend on the present speed of threads, so results must not depend on them. Units
    /// should take equally long. Order, threads and scratch are as with [`run`](Self::run).
    fn run_static(&self, units: usize, scratch_bytes: usize, body: &(dyn Fn(Range<usize>, &mut [u8]) + Sync)) {
        let parallelism = self.parallelism().min(units);
        self.run(parallelism, scratch_bytes, &|part, scratch| body(range_of(part, parallelism, units), scratch));
    }

    /// Number of threads that may take part in a loop, including the caller. It affects speed;
    /// results must not depend on it.
    fn parallelism(&self) -> usize {
        1
    }

    /// Lends at least `bytes` bytes for the call, at a multiple of 64, of arbitrary content. Chunks
    /// may ask as well. Kernels use it through [`Scratch`].
    ///
    /// # Panics
    /// If there is no memory. The panic ends the call with an error.
    fn memory(&self, bytes: usize) -> Box<dyn Memory> {
        Box::new(SystemMemory(Line::zeros(bytes)))
    }
}

/// Range number `part` of `total` items divided into `parts` even ranges.
pub(crate) fn range_of(part: usize, parts: usize, total: usize) -> Range<usize> {
    part * total / parts..(part + 1) * total / parts
}

/// The part of `units` that is inside group number `group` of groups of `size` units, counted from
/// the beginning of the group.
pub(crate) fn within(units: &Range<usize>, group: usize, size: usize) -> Range<usize> {
    let [start, end] = [units.start, units.end].map(|unit| unit.saturating_sub(group * size).min(size));
    start..end
}

/// The groups of `size` units that contain `units`.
pub(crate) fn groups_of(units: &Range<usize>, size: usize) -> Range<usize> {
    units.start / size..units.end.div_ceil(size)
}

/// Runs chunks in order in the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Par for Serial {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let mut lines = Line::zeros(scratch_bytes);
        let scratch: &mut [u8] = bytemuck::cast_slice_mut(&mut lines);
        for chunk in 0..chunks {
            body(chunk, scratch);
        }
    }
}

/// Runs chunks in order in the calling thread and keeps its scratch from run to run, as a worker
/// does: fresh memory costs more than many kernels.
#[derive(Debug, Default)]
pub struct ReusedScratch(std::sync::Mutex<Vec<Line>>);

impl Par for ReusedScratch {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let mut lines = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if lines.len() < scratch_bytes.div_ceil(64) {
            *lines = Line::zeros(scratch_bytes);
        }
        let scratch: &mut [u8] = bytemuck::cast_slice_mut(&mut lines);
        for chunk in 0..chunks {
            body(chunk, scratch);
        }
    }
}

/// Runs loops of a chunk in order in its thread, with the memory of the loop around them.
pub(crate) struct Within<'a> {
    outer: &'a dyn Par,
    scratch: ReusedScratch,
}

impl<'a> Within<'a> {
    pub(crate) fn new(outer: &'a dyn Par) -> Within<'a> {
        Within { outer, scratch: ReusedScratch::default() }
    }
}

impl Par for Within<'_> {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        self.scratch.run(chunks, scratch_bytes, body);
    }

    fn memory(&self, bytes: usize) -> Box<dyn Memory> {
        self.outer.memory(bytes)
    }
}

/// Approximate bytes of output that one chunk of a memory-bound loop writes.
pub const CHUNK_BYTES: usize = 32 * 1024;

/// Elements per chunk for outputs of `T`: about [`CHUNK_BYTES`], a multiple of 64.
pub const fn chunk_elems<T>() -> usize {
    let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    let elems = CHUNK_BYTES / size / 64 * 64;
    if elems == 0 { 1 } else { elems }
}

/// Rows (of `row` elements each) per chunk so that a chunk holds about [`chunk_elems`] elements; at
/// least one.
pub fn chunk_rows<T>(row: usize) -> usize {
    (chunk_elems::<T>() / row.max(1)).max(1)
}

/// Rows per chunk if one row costs about `work` simple operations: about 32 thousand operations per
/// chunk, and at least one row.
pub fn chunk_by_work(work: usize) -> usize {
    (32 * 1024 / work.max(1)).max(1)
}

/// Cuts `out` into pieces of `chunk_len` elements (the last may be shorter) and runs
/// `body(index, piece)` for each; a single piece runs directly.
pub fn par_chunks_mut<T: Send>(par: &dyn Par, out: &mut [T], chunk_len: usize, body: impl Fn(usize, &mut [T]) + Sync) {
    Pieces::new(out, chunk_len).run(par, &|index, piece| {
        // SAFETY: `run` lends every piece of `out` once.
        body(index, unsafe { piece.elements() })
    });
}

/// Divides `out` as [`par_chunks_mut`] does, with `scratch_bytes` bytes of scratch for every chunk
/// (64-byte aligned, arbitrary content).
pub fn par_chunks_mut_scratch<T: Send>(
    par: &dyn Par,
    out: &mut [T],
    chunk_len: usize,
    scratch_bytes: usize,
    body: impl Fn(usize, &mut [T], &mut [u8]) + Sync,
) {
    Pieces::new(out, chunk_len).run_with_scratch(par, scratch_bytes, &|index, piece, scratch| {
        // SAFETY: `run_with_scratch` lends every piece of `out` once.
        body(index, unsafe { piece.elements() }, scratch)
    });
}

/// Gives every thread one run of pieces of `chunk_len` elements, as [`Par::run_static`] divides
/// them: `body(index of the first piece, run)`. A single piece runs directly.
pub fn par_static_mut<T: Send>(par: &dyn Par, out: &mut [T], chunk_len: usize, body: impl Fn(usize, &mut [T]) + Sync) {
    Pieces::new(out, chunk_len).run_static(par, &|first, run| {
        // SAFETY: `run_static` lends every piece of `out` once.
        body(first, unsafe { run.elements() })
    });
}

/// Divides two outputs in step: piece `i` of `a` has `a_len` elements and piece `i` of `b` has
/// `b_len`. Both must give the same number of pieces.
pub fn par_chunks_mut2<A: Send, B: Send>(
    par: &dyn Par,
    a: &mut [A],
    a_len: usize,
    b: &mut [B],
    b_len: usize,
    body: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    par_chunks_mut2_scratch(par, a, a_len, b, b_len, 0, |index, a, b, _| body(index, a, b));
}

/// Divides two outputs as [`par_chunks_mut2`] does, with `scratch_bytes` bytes of scratch for every
/// chunk (64-byte aligned, arbitrary content).
pub fn par_chunks_mut2_scratch<A: Send, B: Send>(
    par: &dyn Par,
    a: &mut [A],
    a_len: usize,
    b: &mut [B],
    b_len: usize,
    scratch_bytes: usize,
    body: impl Fn(usize, &mut [A], &mut [B], &mut [u8]) + Sync,
) {
    Pieces::new(a, a_len).run_in_step(&Pieces::new(b, b_len), par, scratch_bytes, &|index, a, b, scratch| {
        // SAFETY: `run_in_step` lends every piece of both once.
        body(index, unsafe { a.elements() }, unsafe { b.elements() }, scratch)
    });
}

/// A slice cut into equal pieces, each of which is lent once.
///
/// It knows no element type, so the code that cuts and lends is compiled once and not for each of
/// the hundreds of loops.
struct Pieces<'a> {
    base: *mut u8,
    /// bytes of an element
    size: usize,
    /// elements
    len: usize,
    /// elements of a piece
    piece: usize,
    owner: std::marker::PhantomData<&'a mut [u8]>,
}

// SAFETY: `new` takes a slice of elements that may be sent, and sharing `Pieces` only lets threads
// take disjoint pieces of it.
unsafe impl Sync for Pieces<'_> {}

/// A piece of a slice. Its owner may write it.
struct Piece {
    base: *mut u8,
    len: usize,
}

impl Piece {
    /// # Safety
    /// `T` is the element type of the slice, and the piece is lent to this caller alone.
    unsafe fn elements<'a, T>(self) -> &'a mut [T] {
        // SAFETY: a piece lies inside of its slice, and the caller has it alone.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.len) }
    }
}

impl<'a> Pieces<'a> {
    fn new<T: Send>(out: &'a mut [T], piece: usize) -> Pieces<'a> {
        let (len, base) = (out.len(), out.as_mut_ptr().cast());
        Pieces { base, size: size_of::<T>(), len, piece: piece.max(1), owner: std::marker::PhantomData }
    }

    fn count(&self) -> usize {
        self.len.div_ceil(self.piece)
    }

    /// Lends piece `index`, if `taken` says that it was not lent. A `Par` that runs a chunk twice
    /// causes a panic and not a data race.
    fn lend(&self, index: usize, taken: &[AtomicBool]) -> Piece {
        self.lend_run(index..index + 1, taken)
    }

    /// Lends neighbouring pieces, at least one, as [`lend`](Self::lend).
    fn lend_run(&self, run: Range<usize>, taken: &[AtomicBool]) -> Piece {
        run.clone().for_each(|index| take(index, taken));
        let (start, end) = (run.start * self.piece, self.len.min(run.end * self.piece));
        // SAFETY: `taken` has a flag for each piece, so `start < self.len`.
        Piece { base: unsafe { self.base.add(start * self.size) }, len: end - start }
    }

    fn run(&self, par: &dyn Par, body: &(dyn Fn(usize, Piece) + Sync)) {
        match self.count() {
            0 => {}
            1 => body(0, Piece { base: self.base, len: self.len }),
            _ => self.run_with_scratch(par, 0, &|index, piece, _| body(index, piece)),
        }
    }

    fn run_static(&self, par: &dyn Par, body: &(dyn Fn(usize, Piece) + Sync)) {
        let taken = flags(self.count());
        match taken.len() {
            0 => {}
            1 => body(0, self.lend(0, &taken)),
            units => par.run_static(units, 0, &|run, _| {
                if !run.is_empty() {
                    body(run.start, self.lend_run(run, &taken));
                }
            }),
        }
    }

    fn run_with_scratch(&self, par: &dyn Par, bytes: usize, body: &(dyn Fn(usize, Piece, &mut [u8]) + Sync)) {
        let taken = flags(self.count());
        if !taken.is_empty() {
            par.run(taken.len(), bytes, &|index, scratch| body(index, self.lend(index, &taken), scratch));
        }
    }

    #[allow(clippy::type_complexity, reason = "a function of two pieces and scratch")]
    fn run_in_step(
        &self,
        other: &Pieces<'_>,
        par: &dyn Par,
        bytes: usize,
        body: &(dyn Fn(usize, Piece, Piece, &mut [u8]) + Sync),
    ) {
        assert_eq!(self.count(), other.count(), "the two outputs are cut into different numbers of pieces");
        let taken = flags(other.count());
        self.run_with_scratch(par, bytes, &|index, piece, scratch| {
            body(index, piece, other.lend(index, &taken), scratch)
        });
    }
}

/// Cuts `out`, seen as `[outer, rows, inner]`, into bands of `width` columns of one outer index and
/// runs `body(outer index, first column, band, scratch)` for each. The scratch is as [`Par::run`]
/// gives it.
pub fn par_columns_mut<T: Send>(
    par: &dyn Par,
    out: &mut [T],
    [outer, rows, inner]: [usize; 3],
    width: usize,
    scratch_bytes: usize,
    body: impl Fn(usize, usize, Columns<'_, T>, &mut [u8]) + Sync,
) {
    assert_eq!(out.len(), outer * rows * inner, "the output does not have the shape [{outer}, {rows}, {inner}]");
    let bounds = Scratch::collect(par, outer + 1, (0..=outer).map(|o| o * rows));
    par_cells_mut(par, out, inner, &bounds, width, scratch_bytes, body);
}

/// Cuts `out`, seen as rows of `inner` elements, at the rows `bounds` and into bands of `width`
/// columns, and runs `body(piece, first column, cell, scratch)` for each cell of piece `i`, which
/// has the rows from bound `i` to the next. The scratch is as [`Par::run`] gives it.
///
/// # Panics
/// If the bounds are not in order or after the last row.
pub fn par_cells_mut<T: Send>(
    par: &dyn Par,
    out: &mut [T],
    inner: usize,
    bounds: &[usize],
    width: usize,
    scratch_bytes: usize,
    body: impl Fn(usize, usize, Columns<'_, T>, &mut [u8]) + Sync,
) {
    let all = bounds.last().map_or(Some(0), |rows| rows.checked_mul(inner));
    let inside = bounds.is_sorted() && all.is_some_and(|all| all <= out.len());
    assert!(inside, "rows up to {bounds:?} of {inner} in {} elements", out.len());
    if all == Some(0) {
        return;
    }
    let base = SendPtr(out.as_mut_ptr());
    run_bands(par, [bounds.len() - 1, inner], width.max(1), scratch_bytes, &|piece, columns, scratch| {
        let rows = bounds[piece + 1] - bounds[piece];
        if rows == 0 {
            return;
        }
        let cell = Columns {
            // SAFETY: the piece has a row and `columns.start < inner`, so the offset is inside of
            // `out`.
            base: unsafe { base.get().add(bounds[piece] * inner + columns.start) },
            rows,
            inner,
            width: columns.len(),
            owner: std::marker::PhantomData,
        };
        body(piece, columns.start, cell, scratch);
    });
}

/// Runs `body(outer index, columns, scratch)` for every band once.
#[allow(clippy::type_complexity, reason = "a function of a band and scratch")]
fn run_bands(
    par: &dyn Par,
    [outer, inner]: [usize; 2],
    width: usize,
    scratch_bytes: usize,
    body: &(dyn Fn(usize, Range<usize>, &mut [u8]) + Sync),
) {
    let bands = inner.div_ceil(width);
    let taken = flags(outer * bands);
    par.run(outer * bands, scratch_bytes, &|chunk, scratch| {
        take(chunk, &taken);
        let (o, start) = (chunk / bands, chunk % bands * width);
        body(o, start..inner.min(start + width), scratch);
    });
}

/// A pointer that may be shared between threads. Its users must be sound by themselves.
struct SendPtr<T>(*mut T);
// SAFETY: see the type; its only user hands out disjoint bands of `T: Send`.
unsafe impl<T: Send> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// Some columns of a matrix, row by row.
pub struct Columns<'a, T> {
    base: *mut T,
    rows: usize,
    inner: usize,
    width: usize,
    owner: std::marker::PhantomData<&'a mut [T]>,
}

impl<T> Columns<'_, T> {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of one row.
    #[inline]
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: `row < rows`, and the columns start.. start + width of every row are inside of
        // the borrowed output and belong to this value alone, which was made once (of its flag, or
        // of what it borrows) and lends a row until the next call.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(row * self.inner), self.width) }
    }
}

impl<'a, T> Columns<'a, T> {
    /// Address of some columns of the first of some rows. Those of the next row are [`pitch`] elements
    /// further.
    ///
    /// [`pitch`]: Self::pitch
    ///
    /// # Panics
    /// If there are no such rows or columns.
    pub fn addresses(&mut self, rows: Range<usize>, columns: Range<usize>) -> *mut T {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        assert!(columns.start <= columns.end && columns.end <= self.width, "columns {columns:?} of {}", self.width);
        self.base.wrapping_add(rows.start * self.inner + columns.start)
    }

    /// Elements from a row to the next.
    pub fn pitch(&self) -> usize {
        self.inner
    }

    /// Chooses rows by their numbers. Each is looked up when it is lent.
    pub fn picked<'b>(&'b mut self, rows: Places<'b>) -> PickedRows<'b, T> {
        let Columns { base, rows: count, inner, width, owner } = *self;
        PickedRows { matrix: Columns { base, rows: count, inner, width, owner }, rows }
    }

    /// All columns of a matrix with rows of `inner` elements, of which there is a whole number.
    pub fn of_rows(matrix: &'a mut [T], inner: usize) -> Columns<'a, T> {
        let (base, owner) = (matrix.as_mut_ptr(), std::marker::PhantomData);
        Columns { base, rows: matrix.len() / inner.max(1), inner, width: inner, owner }
    }

    /// All columns of a matrix whose rows are arrays.
    pub fn of_arrays<const N: usize>(rows: &'a mut [[T; N]]) -> Columns<'a, T> {
        let (base, owner) = (rows.as_mut_ptr().cast(), std::marker::PhantomData);
        Columns { base, rows: rows.len(), inner: N, width: N, owner }
    }
}

/// Makes one flag per chunk that says whether it was lent.
fn flags(n: usize) -> Vec<AtomicBool> {
    std::iter::repeat_with(Default::default).take(n).collect()
}

/// Marks a chunk as lent.
fn take(chunk: usize, taken: &[AtomicBool]) {
    let first = !taken[chunk].swap(true, std::sync::atomic::Ordering::Relaxed);
    assert!(first, "chunk {chunk} was run twice");
}

mod picked;
#[cfg(test)]
mod tests;
