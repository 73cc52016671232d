//! Transpositions in squares that fit into registers: lines of both matrices are used whole.

use crate::par::Columns;
use crate::shape::Item;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry, prefetch_far, prefetch_near};
use crate::vectorize::{Width, vectorized};

/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;

/// The side of a square of elements of this size, if there is one.
pub(crate) fn side(size: usize) -> Option<usize> {
    match size {
        1 | 2 | 4 => Some(16),
        8 => Some(8),
        _ => None,
    }
}

/// A part of a transposition: element `[r, c]` is `from + c * step + r` of the source, or
/// `from + c * step - r` backwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnedBlock {
    pub from: isize,
    pub step: isize,
    pub backwards: bool,
    pub rows: usize,
    pub columns: usize,
}

impl TurnedBlock {
    /// The first element of the source that is read, and the one after the last.
    fn reach(&self) -> [isize; 2] {
        let (down, across) = (self.rows as isize - 1, (self.columns as isize - 1) * self.step);
        let down = if self.backwards { -down } else { down };
        [self.from + down.min(0) + across.min(0), self.from + down.max(0) + across.max(0) + 1]
    }

    /// The element of the source that is the first of square `[r, c]` in memory.
    fn corner(&self, r: usize, c: usize, side: usize) -> isize {
        let r = if self.backwards { -((r + side - 1) as isize) } else { r as isize };
        self.from + c as isize * self.step + r
    }
}

/// Writes a block to the rows and columns of a matrix from these on.
///
/// # Panics
/// If there is no square for `T`, it has more rows or columns than the block, or the block is not
/// inside of `x` or of the matrix.
pub(crate) fn turn<T: Item>(x: &[T], block: TurnedBlock, out: &mut Columns<'_, T>, at: [usize; 2]) {
    let TurnedBlock { rows, columns, .. } = block;
    let side = side(size_of::<T>()).filter(|side| *side <= columns.min(rows));
    assert!(side.is_some(), "no square of elements of {} bytes fits into {rows} x {columns}", size_of::<T>());
    let [first, end] = block.reach();
    assert!(first >= 0 && end as usize <= x.len(), "{block:?} of {} elements", x.len());
    // Refuses a block that is larger than the matrix.
    out.addresses(at[0]..at[0] + rows, at[1]..at[1] + columns);
    if size_of::<T>() == size_of::<f32>() { turn_words(x, block, out, at) } else { turn_any(x, block, out, at) }
}

/// The positions of squares that cover `range`, of a total of `len` elements: the last one may cover
/// some a second time.
fn squares(range: std::ops::Range<usize>, len: usize, side: usize) -> impl Iterator<Item = usize> {
    range.step_by(side).map(move |at| at.min(len - side))
}

/// Elements of a run that are requested before they are read.
const AHEAD: isize = 2 * LANES as isize;

/// Elements of four bytes.
fn turn_words<T: Item>(x: &[T], block: TurnedBlock, out: &mut Columns<'_, T>, at: [usize; 2]) {
    let TurnedBlock { rows, columns, backwards, .. } = block;
    let body: Entry<TurnArgs> = entry::<Turn<true>>(Width::widest().isa());
    let pitch = out.pitch() as isize;
    let (source, target) = (Src::of_words(x), Dst::of_words(out));
    for c in squares(0..columns, columns, LANES) {
        // Squares that follow each other, and one that reaches to the last row.
        for (r, squares) in [(0, rows / LANES), (rows - LANES, usize::from(!rows.is_multiple_of(LANES)))] {
            let from = source.add(block.corner(r, c, LANES) as usize);
            let line = at[0] + if backwards { r + LANES - 1 } else { r };
            let down = if backwards { -pitch } else { pitch };
            let args = TurnArgs {
                from,
                distance: block.step,
                to: target.add(line * out.pitch() + at[1] + c),
                width: down,
                squares,
                next: [if backwards { -(LANES as isize) } else { LANES as isize }, LANES as isize * pitch],
                soon: if backwards { -AHEAD } else { AHEAD },
            };
            // SAFETY: `turn` has seen that block and matrix have 16 rows and columns and where they
            // end; no square begins after row `rows - 16` or column `columns - 16`.
            unsafe { body(&args) }
        }
    }
}

/// Squares one after the other: each is read from 16 runs of 16 elements, `distance` apart, and
/// becomes 16 runs that are `width` apart. `next` leads to the runs of the next square. Lines `soon`
/// elements after each run are requested.
pub(crate) struct TurnArgs {
    pub from: Src,
    pub distance: isize,
    pub to: Dst,
    pub width: isize,
    pub squares: usize,
    pub next: [isize; 2],
    pub soon: isize,
}

/// The runs must be there, on both sides. Lines that are requested `FAR` come to the second-level cache:
/// runs of which many have the same place in the first level displace each other there.
pub(crate) struct Turn<const FAR: bool>;

impl<const FAR: bool> Body for Turn<FAR> {
    type Args = TurnArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &TurnArgs) {
        let (mut from, mut to) = (x.from, x.to);
        for _ in 0..x.squares {
            let mut v = [s.zero(); LANES];
            for i in 0..LANES {
                let run = from.add((i as isize * x.distance) as usize);
                if FAR {
                    prefetch_far(run, x.soon as usize)
                } else {
                    prefetch_near(run, x.soon as usize)
                }
                // SAFETY: the caller has 16 runs for each square.
                v[i] = unsafe { s.load(run, 0) };
            }
            s.transpose(&mut v);
            for i in 0..LANES {
                // SAFETY: the caller has 16 rows.
                unsafe { s.store(to.add((i as isize * x.width) as usize), 0, v[i]) }
            }
            (from, to) = (from.add(x.next[0] as usize), to.add(x.next[1] as usize));
        }
    }
}

vectorized! {
    fn turn_any[T: Item](x: &[T], block: TurnedBlock, out: &mut Columns<'_, T>, at: [usize; 2]) {
        if side(size_of::<T>()) == Some(8) {
            turn_squares::<T, 8>(x, block, out, at)
        } else {
            turn_squares::<T, 16>(x, block, out, at)
        }
    }
}

/// Elements of any size, in squares of N x N.
#[inline(always)]
fn turn_squares<T: Item, const N: usize>(x: &[T], block: TurnedBlock, out: &mut Columns<'_, T>, at: [usize; 2]) {
    let TurnedBlock { rows, columns, step, backwards, .. } = block;
    let strip = LINE / size_of::<T>();
    for r0 in (0..rows).step_by(strip) {
        for c in squares(0..columns, columns, N) {
            for r in squares(r0..rows.min(r0 + strip), rows, N) {
                let corner = block.corner(r, c, N);
                let mut square = [[T::zeroed(); N]; N];
                for i in 0..N {
                    square[i].copy_from_slice(&x[(corner + i as isize * step) as usize..][..N]);
                }
                turn_square(&mut square);
                for i in 0..N {
                    let line = at[0] + r + if backwards { N - 1 - i } else { i };
                    out.row(line)[at[1] + c..][..N].copy_from_slice(&square[i]);
                }
            }
        }
    }
}

/// Transposes a square whose side is a power of two. Every round interleaves the upper half of the
/// rows with the lower one.
#[inline(always)]
fn turn_square<T: Copy, const N: usize>(square: &mut [[T; N]; N]) {
    for _ in 0..N.ilog2() {
        let old = *square;
        for i in 0..N / 2 {
            let (upper, lower) = (&old[i], &old[i + N / 2]);
            for j in 0..N / 2 {
                (square[2 * i][2 * j], square[2 * i][2 * j + 1]) = (upper[j], lower[j]);
                (square[2 * i + 1][2 * j], square[2 * i + 1][2 * j + 1]) = (upper[N / 2 + j], lower[N / 2 + j]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares a block with its definition at every width, in both directions of both axes.
    fn check<T: Item + PartialEq>(
        rows: usize,
        columns: usize,
        pad: usize,
        number: impl Fn(usize) -> T,
    ) -> Result<(), TestCaseError> {
        let distance = rows + pad;
        let x: Vec<T> = (0..pad + columns * distance).map(number).collect();
        let pitch = columns + pad;
        for (width, [backwards, mirrored]) in Width::all()
            .into_iter()
            .flat_map(|w| [[false, false], [true, false], [false, true], [true, true]].map(|d| (w, d)))
        {
            let first = if mirrored { (columns - 1) * distance } else { 0 } + if backwards { rows - 1 } else { 0 };
            let step = if mirrored { -(distance as isize) } else { distance as isize };
            let from = (first + pad / 2) as isize;
            let mut out = vec![T::zeroed(); (rows + 1) * pitch];
            let block = TurnedBlock { from, step, backwards, rows, columns };
            width.limit(|| turn(&x, block, &mut Columns::of_rows(&mut out, pitch), [1, pad]));
            for (at, v) in out.iter().enumerate() {
                let (r, c) = (at / pitch, at % pitch);
                let expected = if r == 0 || c < pad {
                    T::zeroed()
                } else {
                    let down = if backwards { 1 - r as isize } else { r as isize - 1 };
                    x[(from + (c - pad) as isize * step + down) as usize]
                };
                prop_assert!(*v == expected, "{block:?}, {} bytes, {width:?}: {r}, {c}", size_of::<T>());
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn elements_of_every_size_change_rows_for_columns(rows in 16usize..70, n in 16usize..70, pad in 0usize..20) {
            let mixed = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            check(rows, n, pad, |i| (mixed(i) >> 56) as u8)?;
            check(rows, n, pad, |i| (mixed(i) >> 48) as u16)?;
            // Every pattern of bits, also those that are not numbers.
            check(rows, n, pad, |i| (mixed(i) >> 32) as u32 | 0x7f80_0000)?;
            check(rows, n, pad, |i| [mixed(i) as u8, (mixed(i) >> 8) as u8, i as u8, (i >> 8) as u8])?;
            check(rows, n, pad, mixed)?;
        }
    }

    #[test]
    #[should_panic(expected = "fits into 16 x 15")]
    fn a_matrix_smaller_than_a_square_is_refused() {
        let block = TurnedBlock { from: 0, step: 16, backwards: false, rows: 16, columns: 15 };
        turn(&[0u32; 240], block, &mut Columns::of_rows(&mut [0; 240], 15), [0, 0]);
    }

    #[test]
    #[should_panic(expected = "of 255 elements")]
    fn a_block_that_ends_outside_of_its_source_is_refused() {
        let block = TurnedBlock { from: 0, step: 16, backwards: false, rows: 16, columns: 16 };
        turn(&[0u32; 255], block, &mut Columns::of_rows(&mut [0; 256], 16), [0, 0]);
    }
}
