//! Transpositions in squares that fit into registers: lines of both matrices are used whole.

use crate::shape::Item;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry, prefetch_near, request};
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

/// `out[r * n + c] = x[c * step + r]` for all rows that `out` has.
///
/// # Panics
/// If there is no square for `T`, it has more rows or columns than the matrix, or `x` ends before
/// the last element.
pub(crate) fn turn<T: Item>(x: &[T], step: usize, out: &mut [T], n: usize) {
    let rows = out.len() / n;
    let side = side(size_of::<T>()).filter(|side| *side <= n.min(rows));
    assert!(side.is_some(), "no square of elements of {} bytes fits into {rows} x {n}", size_of::<T>());
    assert!(x.len() >= (n - 1) * step + rows, "{rows} x {n} elements, {step} apart, of {}", x.len());
    if size_of::<T>() == size_of::<f32>()
        && let (Ok(x), Ok(out)) = (bytemuck::try_cast_slice(x), bytemuck::try_cast_slice_mut(out))
    {
        return turn_words(x, step, out, n);
    }
    turn_any(x, step, out, n);
}

/// The positions of squares that cover `range`, of a total of `len` elements: the last one may cover
/// some a second time.
fn squares(range: std::ops::Range<usize>, len: usize, side: usize) -> impl Iterator<Item = usize> {
    range.step_by(side).map(move |at| at.min(len - side))
}

/// Elements of four bytes.
fn turn_words(x: &[f32], step: usize, out: &mut [f32], n: usize) {
    let rows = out.len() / n;
    let body: Entry<TurnArgs> = entry::<Turn>(Width::widest().isa());
    for r in squares(0..rows, rows, LANES) {
        for (c, squares) in [(0, n / LANES), (n - LANES, usize::from(!n.is_multiple_of(LANES)))] {
            let (from, to) = (Src::new(&x[c * step + r..]), Dst::new(&mut out[r * n + c..]));
            // SAFETY: `turn` has seen that both matrices have 16 rows and columns and end after the
            // last square, of which none begins after element (n - 16, rows - 16).
            unsafe { body(&TurnArgs { from, distance: step, to, width: n, squares, soon: LANES * step }) }
        }
    }
}

/// Squares along 16 rows of `width` elements; each becomes of 16 runs of 16 elements, `distance`
/// apart. Lines `soon` elements after each run are requested.
pub(crate) struct TurnArgs {
    pub from: Src,
    pub distance: usize,
    pub to: Dst,
    pub width: usize,
    pub squares: usize,
    pub soon: usize,
}

/// The runs and the rows must be there.
pub(crate) struct Turn;

impl Body for Turn {
    type Args = TurnArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &TurnArgs) {
        for square in 0..x.squares {
            let (from, to) = (x.from.add(square * LANES * x.distance), x.to.add(square * LANES));
            let mut v = [s.zero(); LANES];
            for i in 0..LANES {
                prefetch_near(from, i * x.distance + x.soon);
                // SAFETY: the caller has 16 runs for each square.
                v[i] = unsafe { s.load(from, i * x.distance) };
            }
            s.transpose(&mut v);
            for i in 0..LANES {
                // SAFETY: the caller has 16 rows.
                unsafe { s.store(to, i * x.width, v[i]) }
            }
        }
    }
}

vectorized! {
    fn turn_any[T: Item](x: &[T], step: usize, out: &mut [T], n: usize) {
        if side(size_of::<T>()) == Some(8) {
            turn_squares::<T, 8>(x, step, out, n)
        } else {
            turn_squares::<T, 16>(x, step, out, n)
        }
    }
}

/// Elements of any size, in squares of N x N.
#[inline(always)]
fn turn_squares<T: Item, const N: usize>(x: &[T], step: usize, out: &mut [T], n: usize) {
    let rows = out.len() / n;
    let strip = LINE / size_of::<T>();
    for r0 in (0..rows).step_by(strip) {
        for c in squares(0..n, n, N) {
            for i in 0..N {
                request(x.as_ptr().wrapping_add((c + N + i) * step + r0).cast());
            }
            for r in squares(r0..rows.min(r0 + strip), rows, N) {
                let mut square = [[T::zeroed(); N]; N];
                for i in 0..N {
                    square[i].copy_from_slice(&x[(c + i) * step + r..][..N]);
                }
                turn_square(&mut square);
                for i in 0..N {
                    out[(r + i) * n + c..][..N].copy_from_slice(&square[i]);
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

    /// Compares a transposition with its definition at every width.
    fn check<T: Item + PartialEq>(
        rows: usize,
        n: usize,
        pad: usize,
        number: impl Fn(usize) -> T,
    ) -> Result<(), TestCaseError> {
        let (step, first) = (rows + pad, pad / 2);
        let x: Vec<T> = (0..first + n * step).map(number).collect();
        for width in Width::all() {
            let mut out = vec![T::zeroed(); rows * n];
            width.limit(|| turn(&x[first..], step, &mut out, n));
            for (at, v) in out.iter().enumerate() {
                let (r, c) = (at / n, at % n);
                prop_assert!(
                    *v == x[first + c * step + r],
                    "{rows} x {n}, {} bytes, {width:?}: {r}, {c}",
                    size_of::<T>()
                );
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn elements_of_every_size_change_rows_for_columns(rows in 16usize..100, n in 16usize..100, pad in 0usize..20) {
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
        turn(&[0u32; 240], 16, &mut [0; 240], 15);
    }
}
