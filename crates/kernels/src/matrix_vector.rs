//! Products of one to three rows with a matrix, which would cost more to pack than to multiply: it is
//! read once, in the order of its storage. Every instruction set gives the same bits.

use crate::element::{Float, is_same};
use crate::gemm_plain::{Gemm, TILE_ROWS};
use crate::par::{Par, chunk_by_work, par_chunks_mut, par_columns_mut, par_static_mut};
use crate::scratch::Scratch;
use crate::simd::{Body, Dst, LANES, Simd, Src, across, entry, prefetch_near, request};
use crate::squares::LINE;
use crate::vectorize::{Width, vectorized};

/// Products of a sum from which on its parts are computed by all threads; those of a part.
const LONG: usize = 128 << 10;
const PART: usize = 32 << 10;

/// Whether the product has few rows, whose elements follow each other.
pub(crate) fn fits(p: &Gemm) -> bool {
    p.m < TILE_ROWS && (p.m == 1 || !p.transpose_a)
}

/// Computes a product that [`fits`].
pub(crate) fn multiply<T: Float>(par: &dyn Par, p: Gemm, a: &[T], b: &[T], c: &mut [T]) {
    if p.transpose_b { multiply_by_columns(par, p, a, b, c) } else { multiply_by_rows(par, p, a, b, c) }
}

/// Stores a sum as the product asks.
pub(crate) fn store<T: Float>(p: &Gemm, c: &mut T, sum: T) {
    let (alpha, beta) = (T::from_f64(p.alpha), T::from_f64(p.beta));
    *c = if beta == T::ZERO { alpha * sum } else { alpha * sum + beta * *c };
}

/// The matrix is stored by columns: every element is a dot product.
fn multiply_by_columns<T: Float>(par: &dyn Par, p: Gemm, a: &[T], b: &[T], c: &mut [T]) {
    // The row of `a`, and the columns of `b` from the one of this element on.
    let operands = |place: usize| {
        let (row, column) = (place / p.n, place % p.n);
        (&a[row * p.k..][..p.k], &b[(row / p.m * p.n + column) * p.k..])
    };
    if p.k >= LONG {
        for (place, c) in c.iter_mut().enumerate() {
            let (a, b) = operands(place);
            store(&p, c, dot_in_parts(par, a, &b[..p.k]));
        }
        return;
    }
    let unit = chunk_by_work(p.k);
    par_static_mut(par, c, unit, |i, c| {
        let (mut sums, mut done) = ([T::ZERO; LANES], 0);
        while done < c.len() {
            let place = i * unit + done;
            let columns = LANES.min(c.len() - done).min(p.n - place % p.n);
            let (a, b) = operands(place);
            dots(a, &b[..columns * p.k], &mut sums[..columns]);
            c[done..][..columns].iter_mut().zip(&sums).for_each(|(c, sum)| store(&p, c, *sum));
            done += columns;
        }
    });
}

/// The dot product of long rows, as the sum of those of parts in double precision.
fn dot_in_parts<T: Float>(par: &dyn Par, a: &[T], b: &[T]) -> T {
    let mut sums = Scratch::<T>::new(par, a.len().div_ceil(PART));
    par_chunks_mut(par, &mut sums, 1, |part, sum| {
        let part = part * PART..a.len().min((part + 1) * PART);
        dot(&a[part.clone()], &b[part], &mut sum[0]);
    });
    T::from_f64(sums.iter().map(|sum| sum.to_f64()).sum())
}

/// Lanes of a dot product.
const DOT_LANES: usize = 2 * LANES;

/// The dot product of two rows.
pub(crate) fn dot<T: Float>(a: &[T], b: &[T], result: &mut T) {
    let n = a.len().min(b.len());
    dots(&a[..n], &b[..n], std::slice::from_mut(result));
}

/// The dot products of `a` with each of up to 16 rows that follow each other in `b`.
fn dots<T: Float>(a: &[T], b: &[T], results: &mut [T]) {
    assert!(results.len() <= LANES && b.len() == a.len() * results.len(), "{} rows of {}", results.len(), a.len());
    if !is_same::<T, f32>() {
        let rows = results.iter_mut().enumerate();
        return rows.for_each(|(i, result)| dot_in_lanes(a, &b[i * a.len()..][..a.len()], result));
    }
    let (a, b, out) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b), bytemuck::cast_slice_mut(results));
    let body = entry::<Dots>(Width::widest().isa());
    let (k, rows) = (a.len(), out.len());
    // SAFETY: `b` has these rows and there is a result for each, as just asserted.
    unsafe { body(&DotsArgs { a: Src::new(a), b: Src::new(b), k, rows, out: Dst::new(out) }) }
}

/// A row of `k`, some rows that follow each other, and their results: at most 16.
struct DotsArgs {
    a: Src,
    b: Src,
    k: usize,
    rows: usize,
    out: Dst,
}

struct Dots;

impl Body for Dots {
    type Args = DotsArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &DotsArgs) {
        let mut lanes = [s.zero(); LANES];
        let pairs = x.rows / 2 * 2;
        // SAFETY: promised by the caller.
        unsafe {
            for row in (0..pairs).step_by(2) {
                lanes_of_dots::<S, 2>(s, x, row, &mut lanes);
            }
            if pairs < x.rows {
                lanes_of_dots::<S, 1>(s, x, pairs, &mut lanes);
            }
            let sums = if x.rows == 1 { sum_in_memory(s, lanes[0]) } else { across::<S, false>(s, &mut lanes) };
            s.store_part(x.out, 0, x.rows, sums);
        }
    }
}

/// The lanes' sums of N rows.
///
/// # Safety
/// The rows must be there, and have places in `lanes`.
#[inline(always)]
unsafe fn lanes_of_dots<S: Simd, const N: usize>(s: S, x: &DotsArgs, row: usize, lanes: &mut [S::V; LANES]) {
    let (mut low, mut high) = ([s.zero(); N], [s.zero(); N]);
    let (whole, rest) = (x.k / DOT_LANES * DOT_LANES, x.k % DOT_LANES);
    let b = x.b.add(row * x.k);
    // SAFETY: promised by the caller.
    unsafe {
        for at in (0..whole).step_by(DOT_LANES) {
            let a = [s.load(x.a, at), s.load(x.a, at + LANES)];
            for i in 0..N {
                let next = (i + N) * x.k + at;
                prefetch_near(b, next);
                prefetch_near(b, next + LANES);
                low[i] = s.add(low[i], s.mul(a[0], s.load(b, i * x.k + at)));
                high[i] = s.add(high[i], s.mul(a[1], s.load(b, i * x.k + at + LANES)));
            }
        }
        if rest > 0 {
            let (n, more, zero) = (rest.min(LANES), rest.saturating_sub(LANES), s.zero());
            let a = [s.load_part(x.a, whole, n, zero), s.load_part(x.a, whole + n, more, zero)];
            for i in 0..N {
                let at = i * x.k + whole;
                low[i] = s.add(low[i], s.mul(a[0], s.load_part(b, at, n, zero)));
                high[i] = s.add(high[i], s.mul(a[1], s.load_part(b, at + n, more, zero)));
            }
        }
    }
    for i in 0..N {
        lanes[row + i] = s.add(low[i], high[i]);
    }
}

/// The sum of the lanes of one vector in every lane, with the bits of [`across`] and without its
/// fifteen other vectors.
#[inline(always)]
fn sum_in_memory<S: Simd>(s: S, lanes: S::V) -> S::V {
    let mut sums = [0.0; LANES];
    // SAFETY: there are 16 elements.
    unsafe { s.store(Dst::new(&mut sums), 0, lanes) }
    s.splat(sum_of_lanes(&sums))
}

/// The sum of lanes, added in halves.
#[inline(always)]
fn sum_of_lanes<T: Float>(lanes: &[T; LANES]) -> T {
    let eight: [T; 8] = add_halves(lanes);
    let four: [T; 4] = add_halves(&eight);
    let two: [T; 2] = add_halves(&four);
    two[0] + two[1]
}

#[inline(always)]
fn add_halves<T: Float, const N: usize, const HALF: usize>(lanes: &[T; N]) -> [T; HALF] {
    let mut sums = [T::ZERO; HALF];
    for i in 0..HALF {
        sums[i] = lanes[i] + lanes[i + HALF];
    }
    sums
}

vectorized! {
    fn dot_in_lanes[T: Float](a: &[T], b: &[T], result: &mut T) {
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<DOT_LANES>(), b.as_chunks::<DOT_LANES>());
        let (mut own, k) = ([T::ZERO; DOT_LANES], a.len() * DOT_LANES + a_rest.len());
        for (a, b) in a.iter().zip(b) {
            request_block(b.as_ptr().wrapping_add(k));
            for i in 0..DOT_LANES {
                own[i] += a[i] * b[i];
            }
        }
        // A copy, so that those of the loop are in registers.
        let mut sums = own;
        for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum += a * b;
        }
        *result = sum_of_lanes(&add_halves(&sums));
    }
}

/// Requests the lines of a block, which need not exist.
#[inline(always)]
fn request_block<T>(p: *const T) {
    for line in 0..BLOCK * size_of::<T>() / LINE {
        request(p.cast::<u8>().wrapping_add(line * LINE));
    }
}

/// Columns whose sums stay in the first-level cache, those that stay in registers, and rows that are
/// added meanwhile.
const BAND: usize = 512;
const BLOCK: usize = 32;
const ROWS: usize = 8;
const _: () = assert!(BLOCK == DOT_LANES, "lines are requested by blocks");

/// The matrix is stored by rows: their multiples are added.
fn multiply_by_rows<T: Float>(par: &dyn Par, p: Gemm, a: &[T], b: &[T], c: &mut [T]) {
    let width = chunk_by_work(p.k).next_multiple_of(BLOCK).max(BAND / 2);
    par_columns_mut(par, c, [p.batch, p.m, p.n], width, 0, |item, start, mut band, _| {
        let mut sums = [T::ZERO; BAND];
        for row in 0..p.m {
            let a = &a[(item * p.m + row) * p.k..][..p.k];
            for (i, c) in band.row(row).chunks_mut(BAND).enumerate() {
                let sums = &mut sums[..c.len()];
                sums.fill(T::ZERO);
                let first = item * p.k * p.n + start + i * BAND;
                add_rows(a, b.get(first..).unwrap_or_default(), p.n, sums);
                c.iter_mut().zip(sums).for_each(|(c, sum)| store(&p, c, *sum));
            }
        }
    });
}

vectorized! {
    fn add_rows[T: Float](a: &[T], b: &[T], pitch: usize, sums: &mut [T]) {
        let (groups, rest) = a.as_chunks::<ROWS>();
        for (i, a) in groups.iter().enumerate() {
            add_some_rows(a, &b[i * ROWS * pitch..], pitch, sums);
        }
        for (i, a) in rest.iter().enumerate() {
            add_some_rows(&[*a], &b[(groups.len() * ROWS + i) * pitch..], pitch, sums);
        }
    }
}

/// Adds N rows, `pitch` apart, each times its number, one after another.
#[inline(always)]
fn add_some_rows<T: Float, const N: usize>(a: &[T; N], b: &[T], pitch: usize, sums: &mut [T]) {
    let width = sums.len();
    let (blocks, rest) = sums.as_chunks_mut::<BLOCK>();
    for (j, sums) in blocks.iter_mut().enumerate() {
        let mut own = *sums;
        for i in 0..N {
            let Some(row) = b[i * pitch + j * BLOCK..].first_chunk::<BLOCK>() else { continue };
            request_block(row.as_ptr().wrapping_add(N * pitch));
            for l in 0..BLOCK {
                own[l] += a[i] * row[l];
            }
        }
        *sums = own;
    }
    for i in 0..N {
        let row = &b[i * pitch..][..width];
        rest.iter_mut().zip(&row[width / BLOCK * BLOCK..]).for_each(|(sum, v)| *sum += a[i] * *v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm_plain::gemm;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, random};
    use proptest::prelude::*;

    /// A product in double precision, and the sum of the magnitudes of its terms, for an element.
    fn by_definition<T: Float>(p: Gemm, a: &[T], b: &[T], old: &[T], at: usize) -> (f64, f64) {
        let (item, row, column) = (at / (p.m * p.n), at / p.n % p.m, at % p.n);
        let (a, b) = (&a[item * p.m * p.k..], &b[item * p.k * p.n..]);
        let terms = (0..p.k).map(|k| {
            let a = if p.transpose_a { a[k * p.m + row] } else { a[row * p.k + k] };
            let b = if p.transpose_b { b[column * p.k + k] } else { b[k * p.n + column] };
            p.alpha * a.to_f64() * b.to_f64()
        });
        let before = if p.beta == 0.0 { 0.0 } else { p.beta * old[at].to_f64() };
        terms.fold((before, before.abs() + 1e-30), |(sum, all), term| (sum + term, all + term.abs()))
    }

    /// Compares a product with its definition, and the bits of all widths and threads.
    fn check<T: Float>(p: Gemm, seed: u64, tolerance: f64) -> Result<(), TestCaseError> {
        let numbers =
            |n: usize, seed: u64| random(n, seed).iter().map(|v| T::from_f64((*v).into())).collect::<Vec<T>>();
        let (a, b) = (numbers(p.batch * p.m * p.k, seed), numbers(p.batch * p.k * p.n, seed + 1));
        let old = numbers(p.batch * p.m * p.n, seed + 2);
        let run = |width: Width, par: &dyn Par| {
            let mut c = if p.beta == 0.0 { vec![T::from_f64(f64::NAN); old.len()] } else { old.clone() };
            width.limit(|| gemm(par, p, &a, &b, &mut c));
            c
        };
        let first = run(Width::Baseline, &Serial);
        for (at, got) in first.iter().enumerate() {
            let (want, scale) = by_definition(p, &a, &b, &old, at);
            let got = got.to_f64();
            prop_assert!((got - want).abs() <= tolerance * scale, "{p:?}, element {at}: {got}, expected {want}");
        }
        for width in Width::all() {
            prop_assert!(bytemuck::cast_slice::<T, u8>(&run(width, &Serial)) == bytemuck::cast_slice::<T, u8>(&first));
        }
        for par in [&Reverse as &dyn Par, &Threads(3)] {
            let again = run(Width::Baseline, par);
            prop_assert!(bytemuck::cast_slice::<T, u8>(&again) == bytemuck::cast_slice::<T, u8>(&first));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]

        #[test]
        fn few_rows_or_one_column_agree_with_their_definition_at_every_width(
            batch in 1usize..4, few in 1usize..4, many in prop_oneof![1usize..80, 200usize..900],
            k in prop_oneof![1usize..70, 90usize..400], [transpose_a, transpose_b, is_column]: [bool; 3],
            scaled: bool, seed in 0u64..1000,
        ) {
            let [m, n] = if is_column { [many, 1] } else { [few, many] };
            let (alpha, beta) = if scaled { (0.5, -1.5) } else { (1.0, 0.0) };
            let p = Gemm { batch, transpose_a, transpose_b, alpha, beta, ..Gemm::new(m, n, k) };
            check::<f32>(p, seed, 2e-6)?;
            check::<f64>(p, seed, 1e-14)?;
        }
    }

    #[test]
    fn a_row_has_the_same_bits_whatever_stands_around_it() {
        for k in [1, 16, 31, 45, 100] {
            let (a, row) = (random(k, 1), random(k, 2));
            let mut alone = 0.0;
            dot(&a, &row, &mut alone);
            for place in 0..18 {
                let mut b = vec![f32::NAN; 18 * k];
                b[place * k..][..k].copy_from_slice(&row);
                let mut c = [0.0; 18];
                gemm(&Serial, Gemm { transpose_b: true, ..Gemm::new(1, 18, k) }, &a, &b, &mut c);
                assert_eq!(c[place].to_bits(), alone.to_bits(), "row {place} of {k}");
                assert!(c.iter().enumerate().all(|(i, v)| i == place || v.is_nan()));
            }
        }
    }

    #[test]
    fn long_dot_products_are_sums_of_parts_whatever_the_threads() {
        let p = Gemm { transpose_b: true, ..Gemm::new(1, 2, LONG + 17) };
        let (a, b) = (random(p.k, 1), random(2 * p.k, 2));
        let run = |par: &dyn Par| {
            let mut c = [0.0f32; 2];
            gemm(par, p, &a, &b, &mut c);
            c
        };
        let exact = |b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        let got = run(&Serial);
        assert!((f64::from(got[1]) - exact(&b[p.k..])).abs() < 1e-2, "{got:?}");
        assert!(got == run(&Reverse) && got == run(&Threads(3)));
    }
}
