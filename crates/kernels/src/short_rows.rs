//! Softmax of rows of a few vectors, sixteen rows at a time. The maximum and the sum that one row
//! needs before it can continue take longer to arrive than everything else takes to compute;
//! sixteen transposed vectors give those of sixteen rows at once.

use crate::exponentials::{AT_ONCE, exp};
use crate::math::ln_f32;
use crate::simd::{Body, Dst, LANES, Simd, Src, across, entry, prefetch_near};
use crate::vectorize::Width;

/// Rows that are computed together.
pub(crate) const TOGETHER: usize = LANES;
/// Vectors whose exponentials are summed before they are added to the sum of a row.
const SUMMED: usize = 64;

/// The softmax, or its logarithm, of every row of `n` elements.
pub(crate) fn softmax(log: bool, x: &[f32], n: usize, out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "the input and the output differ in length");
    run(log, Src::new(x), n, Dst::new(out), out.len());
}

/// Computes softmax in place.
pub(crate) fn softmax_in_place(log: bool, x: &mut [f32], n: usize) {
    let dst = Dst::new(x);
    run(log, dst.as_src(), n, dst, x.len());
}

fn run(log: bool, x: Src, n: usize, out: Dst, len: usize) {
    let isa = Width::widest().isa();
    let body = if log { entry::<ShortRows<true>>(isa) } else { entry::<ShortRows<false>>(isa) };
    // SAFETY: both hold `len` elements, and those are at least as many as whole rows have.
    unsafe { body(&ShortRowsArgs { x, out, rows: len / n, n }) }
}

/// Computes softmax in place, of the first `n` elements of rows that are whole vectors apart.
///
/// # Panics
/// If a vector of a row is not in `x`.
pub(crate) fn softmax_of_vectors(x: &mut [f32], rows: &VectorRows, n: usize) {
    let Some(last) = rows.starts[..rows.count].iter().max() else { return };
    let end = last + n.div_ceil(LANES).saturating_sub(1) * rows.step + LANES;
    assert!(end <= x.len(), "rows end at {end} of {}", x.len());
    let body = entry::<ApartRows>(Width::widest().isa());
    // SAFETY: whole vectors of all rows are in `x`.
    unsafe { body(&ApartRowsArgs { x: Dst::new(x), rows: *rows, n }) }
}

/// Up to sixteen rows of vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorRows {
    /// The first element of each row.
    pub starts: [usize; TOGETHER],
    pub count: usize,
    /// Elements from a vector of a row to the next.
    pub step: usize,
}

struct ShortRowsArgs {
    x: Src,
    /// May be where `x` is.
    out: Dst,
    rows: usize,
    n: usize,
}

struct ShortRows<const LOG: bool>;

impl<const LOG: bool> Body for ShortRows<LOG> {
    type Args = ShortRowsArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ShortRowsArgs) {
        for first in (0..x.rows).step_by(TOGETHER) {
            let (at, count) = (first * x.n, TOGETHER.min(x.rows - first));
            let rows = VectorRows { starts: std::array::from_fn(|row| row * x.n), count, step: LANES };
            let some = SixteenRows::<S, LOG, true> { s, x: x.x.add(at), out: x.out.add(at), rows: &rows, n: x.n };
            // SAFETY: promised by the caller.
            unsafe { some.softmax() }
        }
    }
}

struct ApartRowsArgs {
    x: Dst,
    rows: VectorRows,
    n: usize,
}

struct ApartRows;

impl Body for ApartRows {
    type Args = ApartRowsArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ApartRowsArgs) {
        let some = SixteenRows::<S, false, false> { s, x: x.x.as_src(), out: x.x, rows: &x.rows, n: x.n };
        // SAFETY: promised by the caller.
        unsafe { some.softmax() }
    }
}

/// Up to sixteen rows. If they are `STREAMED`, the next sixteen follow them and come from memory.
#[derive(Clone, Copy)]
struct SixteenRows<'a, S, const LOG: bool, const STREAMED: bool> {
    s: S,
    x: Src,
    out: Dst,
    rows: &'a VectorRows,
    n: usize,
}

impl<S: Simd, const LOG: bool, const STREAMED: bool> SixteenRows<'_, S, LOG, STREAMED> {
    /// # Safety
    /// The rows must be there.
    #[inline(always)]
    unsafe fn softmax(self) {
        let (s, rows) = (self.s, self.rows.count);
        let (mut lanes, mut max, mut sum) = ([s.zero(); LANES], [0.0; LANES], [0.0; LANES]);
        let mut ends = [s.zero(); LANES];
        let together = rows / AT_ONCE * AT_ONCE;
        // SAFETY: promised by the caller; the arrays have an element for each row.
        unsafe {
            for row in (0..together).step_by(AT_ONCE) {
                self.largest::<AT_ONCE>(row, &mut lanes);
            }
            for row in together..rows {
                self.largest::<1>(row, &mut lanes);
            }
            s.store(Dst::new(&mut max), 0, across::<S, true>(s, &mut lanes));
            for row in (0..together).step_by(AT_ONCE) {
                self.exponentials::<AT_ONCE>(row, &max, &mut lanes, &mut ends);
            }
            for row in together..rows {
                self.exponentials::<1>(row, &max, &mut lanes, &mut ends);
            }
            s.store(Dst::new(&mut sum), 0, across::<S, false>(s, &mut lanes));
            for i in 0..LANES {
                sum[i] = if LOG { ln_f32(sum[i]) } else { 1.0 / sum[i] };
            }
            for row in 0..rows {
                self.shares(row, max[row], sum[row], ends[row]);
            }
        }
    }

    /// The beginnings of N rows.
    #[inline(always)]
    fn starts<const N: usize>(self, row: usize) -> [usize; N] {
        let mut starts = [0; N];
        starts.copy_from_slice(&self.rows.starts[row..row + N]);
        starts
    }

    /// The lanes' largest of N rows; NaN does not count.
    ///
    /// # Safety
    /// The rows must be there, and have places in `lanes`.
    #[inline(always)]
    unsafe fn largest<const N: usize>(self, row: usize, lanes: &mut [S::V; LANES]) {
        let (s, starts, rest) = (self.s, self.starts::<N>(row), self.n % LANES);
        let lowest = s.splat(f32::NEG_INFINITY);
        let (mut max, mut at) = ([lowest; N], 0);
        // SAFETY: promised by the caller.
        unsafe {
            for _ in 0..self.n / LANES {
                for i in 0..N {
                    max[i] = s.max(s.load(self.x, starts[i] + at), max[i]);
                }
                at += self.rows.step;
            }
            if rest > 0 {
                for i in 0..N {
                    max[i] = s.max(s.load_part(self.x, starts[i] + at, rest, lowest), max[i]);
                }
            }
        }
        lanes[row..row + N].copy_from_slice(&max);
    }

    /// Exponentials of N rows, which are kept unless logarithms are wanted, and the lanes' sums of
    /// them. Meanwhile the rows that are sixteen further on are requested, as are their places in
    /// the output.
    ///
    /// # Safety
    /// The rows must be there, and have places in `lanes`.
    #[inline(always)]
    unsafe fn exponentials<const N: usize>(
        self,
        row: usize,
        max: &[f32; LANES],
        lanes: &mut [S::V; LANES],
        ends: &mut [S::V; LANES],
    ) {
        let (s, starts, whole, rest) = (self.s, self.starts::<N>(row), self.n / LANES, self.n % LANES);
        let (mut total, mut at) = ([s.zero(); N], 0);
        // SAFETY: promised by the caller.
        unsafe {
            for part in (0..whole).step_by(SUMMED) {
                let mut sum = [s.zero(); N];
                for _ in part..whole.min(part + SUMMED) {
                    let mut e = [s.zero(); N];
                    for i in 0..N {
                        let at = starts[i] + at;
                        if STREAMED {
                            prefetch_near(self.x, at + TOGETHER * self.n);
                            prefetch_near(self.out.as_src(), at + TOGETHER * self.n);
                        }
                        e[i] = s.sub(s.load(self.x, at), s.splat(max[row + i]));
                    }
                    exp(s, &mut e);
                    for i in 0..N {
                        if !LOG {
                            s.store(self.out, starts[i] + at, e[i]);
                        }
                        sum[i] = s.add(sum[i], e[i]);
                    }
                    at += self.rows.step;
                }
                for i in 0..N {
                    total[i] = s.add(total[i], sum[i]);
                }
            }
            if rest > 0 {
                let nothing = s.splat(f32::NEG_INFINITY);
                let mut e = [s.zero(); N];
                for i in 0..N {
                    // What is beyond the end adds nothing.
                    e[i] = s.sub(s.load_part(self.x, starts[i] + at, rest, nothing), s.splat(max[row + i]));
                }
                exp(s, &mut e);
                for i in 0..N {
                    ends[row + i] = e[i];
                    total[i] = s.add(total[i], e[i]);
                }
            }
        }
        lanes[row..row + N].copy_from_slice(&total);
    }

    /// The shares of a row from its exponentials and `sum`, 1 / their sum; or from its elements,
    /// and `sum` is the logarithm.
    ///
    /// # Safety
    /// The row must be there.
    #[inline(always)]
    unsafe fn shares(self, row: usize, max: f32, sum: f32, end: S::V) {
        let (s, [mut at], rest) = (self.s, self.starts::<1>(row), self.n % LANES);
        let (max, sum) = (s.splat(max), s.splat(sum));
        let from = if LOG { self.x } else { self.out.as_src() };
        // SAFETY: promised by the caller.
        unsafe {
            for _ in 0..self.n / LANES {
                s.store(self.out, at, share::<S, LOG>(s, s.load(from, at), max, sum));
                at += self.rows.step;
            }
            if rest > 0 {
                let v = if LOG { s.load_part(self.x, at, rest, max) } else { end };
                s.store_part(self.out, at, rest, share::<S, LOG>(s, v, max, sum));
            }
        }
    }
}

#[inline(always)]
fn share<S: Simd, const LOG: bool>(s: S, v: S::V, max: S::V, sum: S::V) -> S::V {
    if LOG { s.sub(s.sub(v, max), sum) } else { s.mul(v, sum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    fn softmax_of(width: Width, log: bool, x: &[f32], n: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; x.len()];
        width.limit(|| softmax(log, x, n, &mut out));
        out
    }

    fn bits(x: &[f32]) -> Vec<u32> {
        x.iter().map(|v| v.to_bits()).collect()
    }

    #[test]
    fn rows_of_every_length_agree_with_double_precision() {
        for n in (1..50).chain([63, 64, 65, 100, 255, 256, 1000, 1024]) {
            for rows in [1, 3, 4, 15, 16, 21, 40] {
                let x: Vec<f32> = random(rows * n, 3).iter().map(|v| v * 9.0).collect();
                for (log, width) in
                    [false, true].into_iter().flat_map(|log| Width::all().into_iter().map(move |w| (log, w)))
                {
                    let got = softmax_of(width, log, &x, n);
                    for (x, got) in x.chunks(n).zip(got.chunks(n)) {
                        let sum: f64 = x.iter().map(|v| f64::from(*v).exp()).sum();
                        for (v, got) in x.iter().zip(got) {
                            let (v, got) = (f64::from(*v), f64::from(*got));
                            let (want, allowed) =
                                if log { (v - sum.ln(), 3e-6) } else { (v.exp() / sum, 2e-6 * v.exp() / sum) };
                            assert!(
                                (got - want).abs() <= allowed,
                                "{rows} rows of {n}, {log}, {width:?}: {got} {want}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_wherever_it_stands_and_whatever_is_beside_it() {
        for n in [1, 7, 16, 30, 64, 100] {
            let row = random(n, 5);
            for log in [false, true] {
                let alone = bits(&softmax_of(Width::widest(), log, &row, n));
                for (place, width) in (0..37).flat_map(|place| Width::all().into_iter().map(move |w| (place, w))) {
                    let mut x = vec![f32::NAN; 37 * n];
                    for (i, other) in x.chunks_mut(n).enumerate() {
                        other.fill([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30][i % 4]);
                    }
                    x[place * n..][..n].copy_from_slice(&row);
                    let got = softmax_of(width, log, &x, n);
                    assert_eq!(bits(&got[place * n..][..n]), alone, "row {place} of {n}, {log}, {width:?}");
                }
            }
        }
    }

    #[test]
    fn in_place_gives_the_same_bits() {
        for (n, log) in [(5, false), (16, true), (70, false), (70, true)] {
            let x = random(19 * n, 6);
            let mut y = x.clone();
            softmax_in_place(log, &mut y, n);
            assert_eq!(bits(&y), bits(&softmax_of(Width::widest(), log, &x, n)), "{n} {log}");
        }
    }

    #[test]
    fn rows_of_vectors_that_are_apart_have_the_same_bits() {
        for (n, count) in [(1, 3), (16, 16), (70, 6), (200, 1)] {
            let x = random(count * n, 7);
            let (step, vectors) = (count * LANES, n.div_ceil(LANES));
            let place = |row: usize, i: usize| i / LANES * step + row * LANES + i % LANES;
            // What follows a row in its last vector does not count.
            let mut apart = vec![1e30; vectors * step];
            for (row, i) in (0..count).flat_map(|row| (0..n).map(move |i| (row, i))) {
                apart[place(row, i)] = x[row * n + i];
            }
            let rows = VectorRows { starts: std::array::from_fn(|row| row * LANES), count, step };
            for width in Width::all() {
                let (expected, mut got) = (softmax_of(width, false, &x, n), apart.clone());
                width.limit(|| softmax_of_vectors(&mut got, &rows, n));
                let got = (0..count * n).map(|at| got[place(at / n, at % n)]).collect::<Vec<_>>();
                assert_eq!(bits(&got), bits(&expected), "{count} rows of {n}, {width:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "rows end at 33 of 32")]
    fn rows_of_vectors_that_end_too_late_are_refused() {
        let rows = VectorRows { starts: [1; TOGETHER], count: 1, step: LANES };
        softmax_of_vectors(&mut [0.0; 32], &rows, 17);
    }

    #[test]
    fn nan_stays_in_its_row_and_infinities_are_what_arithmetic_makes_of_them() {
        const NAN: f32 = f32::NAN;
        const INF: f32 = f32::INFINITY;
        let x = [[NAN, 0.0, 0.0], [0.0, -INF, 0.0], [INF, 0.0, 0.0], [-INF, -INF, -INF], [200.0, -200.0, 200.0]];
        let same = |got: f32, want: f32| got == want || (got.is_nan() && want.is_nan());
        let shares = [[NAN; 3], [0.5, 0.0, 0.5], [NAN; 3], [NAN; 3], [0.5, 0.0, 0.5]];
        let half = -std::f32::consts::LN_2;
        let logs = [[NAN; 3], [half, -INF, half], [NAN; 3], [NAN; 3], [half, -400.0 + half, half]];
        for width in Width::all() {
            for (log, want) in [(false, shares), (true, logs)] {
                let got = softmax_of(width, log, x.as_flattened(), 3);
                let all = got.iter().zip(want.as_flattened()).all(|(got, want)| same(*got, *want));
                assert!(all, "{log} {width:?}: {got:?}");
            }
        }
    }
}
