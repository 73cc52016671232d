//! Exponentials of shifted values and their sums, in vectors written out: every operation of an
//! exponential waits for the one before, so that several vectors have to be in progress at once,
//! which compiled loops do not see to.

use crate::math::EXP;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry, request};
use crate::vectorize::Width;

/// Elements that are summed in single precision.
const BLOCK: usize = 64 * LANES;

/// `e^(x - max)` in place of every element of a row; their sum. Where the row comes from memory, so
/// does what follows: the lines at the addresses `soon`, which need not be valid, are requested
/// meanwhile.
pub(crate) fn of_row(x: &mut [f32], max: f32, mut soon: [*const u8; 2]) -> f64 {
    let body = pick::<false>();
    let mut sum = 0.0;
    for block in x.chunks_mut(BLOCK) {
        let mut lanes = [0.0; LANES];
        run(body, block, &[max; LANES], &mut lanes, soon);
        soon = soon.map(|p| p.wrapping_add(size_of_val(block)));
        sum += folded(lanes);
    }
    sum
}

/// `e^(x - max)` in place of every element of a row of columns, each with a maximum of its own;
/// added to the sum of its column.
///
/// # Panics
/// If there is not a maximum and a sum for every column, or they do not fill vectors of 16.
pub(crate) fn of_columns(x: &mut [f32], max: &[f32], sums: &mut [f32], soon: [*const u8; 2]) {
    let padded = x.len().next_multiple_of(LANES);
    assert!(max.len() >= padded && sums.len() >= padded, "{} columns need as many maxima and sums", x.len());
    run(pick::<true>(), x, max, sums, soon);
}

/// The sum of all lanes, in halves, so that it is not sixteen additions one after the other.
fn folded(lanes: [f32; LANES]) -> f64 {
    let mut sums = lanes.map(f64::from);
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
    }
    sums[0]
}

fn run(body: Entry<ExponentialArgs>, x: &mut [f32], max: &[f32], sums: &mut [f32], soon: [*const u8; 2]) {
    let (max, sums) = (Src::new(max), Dst::new(sums));
    let (whole, rest) = x.split_at_mut(x.len() / LANES * LANES);
    // SAFETY: whole vectors of elements; rows have one of maxima and sums, columns as many as of
    // elements.
    unsafe { body(&ExponentialArgs { x: Dst::new(whole), n: whole.len(), max, sums, first: 0, soon }) }
    if !rest.is_empty() {
        // What is beyond the end adds nothing.
        let mut last = [f32::NEG_INFINITY; LANES];
        last[..rest.len()].copy_from_slice(rest);
        // SAFETY: as above, for the last vector.
        unsafe { body(&ExponentialArgs { x: Dst::new(&mut last), n: LANES, max, sums, first: whole.len(), soon }) }
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// The body for this machine.
fn pick<const COLUMNS: bool>() -> Entry<ExponentialArgs> {
    entry::<Exponentials<COLUMNS>>(Width::widest().isa())
}

/// `n` elements, whole vectors, and what belongs to columns from `first` on; rows have one vector
/// of maxima and of sums.
struct ExponentialArgs {
    x: Dst,
    n: usize,
    max: Src,
    sums: Dst,
    first: usize,
    /// Addresses to request, as many as there are elements.
    soon: [*const u8; 2],
}

struct Exponentials<const COLUMNS: bool>;

/// Vectors in progress at once; as many on every instruction set, so that sums are the same.
pub(crate) const AT_ONCE: usize = 4;

impl<const COLUMNS: bool> Body for Exponentials<COLUMNS> {
    type Args = ExponentialArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ExponentialArgs) {
        let together = x.n / (AT_ONCE * LANES) * AT_ONCE * LANES;
        // SAFETY: promised by the caller.
        unsafe {
            let mut acc = [s.zero(); AT_ONCE];
            for at in (0..together).step_by(AT_ONCE * LANES) {
                // A vector is a line.
                let vectors = (at..at + AT_ONCE * LANES).step_by(LANES);
                vectors.for_each(|at| x.soon.iter().for_each(|p| request(p.wrapping_add(at * size_of::<f32>()))));
                some::<S, COLUMNS, AT_ONCE>(s, x, at, &mut acc);
            }
            let mut sum = [s.zero()];
            for at in (together..x.n).step_by(LANES) {
                some::<S, COLUMNS, 1>(s, x, at, &mut sum);
            }
            if !COLUMNS {
                let mut sum = s.add(s.load(x.sums.as_src(), 0), sum[0]);
                for lanes in acc {
                    sum = s.add(sum, lanes);
                }
                s.store(x.sums, 0, sum);
            }
        }
    }
}

/// N vectors.
///
/// # Safety
/// N vectors from `at` must be there.
#[inline(always)]
unsafe fn some<S: Simd, const COLUMNS: bool, const N: usize>(
    s: S,
    x: &ExponentialArgs,
    at: usize,
    acc: &mut [S::V; N],
) {
    let mut e = [s.zero(); N];
    // SAFETY: promised by the caller.
    unsafe {
        for i in 0..N {
            let max = s.load(x.max, if COLUMNS { x.first + at + i * LANES } else { 0 });
            e[i] = s.sub(s.load(x.x.as_src(), at + i * LANES), max);
        }
        exp(s, &mut e);
        for i in 0..N {
            s.store(x.x, at + i * LANES, e[i]);
            if COLUMNS {
                let column = x.first + at + i * LANES;
                s.store(x.sums, column, s.add(s.load(x.sums.as_src(), column), e[i]));
            } else {
                acc[i] = s.add(acc[i], e[i]);
            }
        }
    }
}

/// e to the power of N vectors, step by step; the same operations as
/// [`exp_f32`](crate::math::exp_f32), so the same bits.
#[inline(always)]
pub(crate) fn exp<S: Simd, const N: usize>(s: S, v: &mut [S::V; N]) {
    let (mut n, mut r) = ([s.zero(); N], [s.zero(); N]);
    for i in 0..N {
        r[i] = s.max(s.splat(EXP.least), s.min(s.splat(EXP.most), v[i]));
    }
    for i in 0..N {
        let t = s.add(s.mul(r[i], s.splat(std::f32::consts::LOG2_E)), s.splat(EXP.round));
        n[i] = s.sub(t, s.splat(EXP.round));
    }
    for i in 0..N {
        r[i] = s.sub(s.sub(r[i], s.mul(n[i], s.splat(EXP.ln2[0]))), s.mul(n[i], s.splat(EXP.ln2[1])));
    }
    let [c7, c6, c5, c4, c3, c2] = EXP.series;
    for i in 0..N {
        let square = s.mul(r[i], r[i]);
        let high = s.add(s.mul(r[i], s.splat(c7)), s.splat(c6));
        let high = s.add(s.mul(high, square), s.add(s.mul(r[i], s.splat(c5)), s.splat(c4)));
        let all = s.add(s.mul(high, square), s.add(s.mul(r[i], s.splat(c3)), s.splat(c2)));
        v[i] = s.add(s.add(s.mul(all, square), r[i]), s.splat(1.0));
    }
    for i in 0..N {
        v[i] = s.times_pow2(v[i], n[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::exp_f32;

    /// Nothing to request.
    const NOTHING: [*const u8; 2] = [std::ptr::null(); 2];

    fn values(n: usize) -> Vec<f32> {
        (0..n).map(|i| (i * 7919 % 2003) as f32 / 8.0 - 125.0).collect()
    }

    #[test]
    fn they_have_the_bits_of_the_function_at_every_width_and_their_sum_is_that_in_f64() {
        for n in [1, 15, 16, 17, 64, 100, 1000, 3001] {
            let x = values(n);
            let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let expected: Vec<u32> = x.iter().map(|v| exp_f32(v - max).to_bits()).collect();
            for width in Width::all() {
                let mut y = x.clone();
                let sum = width.limit(|| of_row(&mut y, max, NOTHING));
                let bits: Vec<u32> = y.iter().map(|v| v.to_bits()).collect();
                assert_eq!(bits, expected, "{n} {width:?}");
                let exact: f64 = y.iter().map(|v| f64::from(*v)).sum();
                assert!((sum - exact).abs() <= 1e-6 * exact, "{n} {width:?}: {sum} {exact}");
            }
        }
    }

    #[test]
    fn columns_have_maxima_and_sums_of_their_own() {
        for n in [1, 16, 37, 200] {
            let (x, max) = (values(2 * n), values(n.next_multiple_of(LANES)));
            for width in Width::all() {
                let mut sums = vec![0.0; max.len()];
                for row in x.chunks(n) {
                    let mut y = row.to_vec();
                    width.limit(|| of_columns(&mut y, &max, &mut sums, NOTHING));
                    assert!(y.iter().zip(row).zip(&max).all(|((y, v), max)| *y == exp_f32(v - max)), "{n} {width:?}");
                }
                for i in 0..n {
                    assert_eq!(sums[i], 0.0 + exp_f32(x[i] - max[i]) + exp_f32(x[n + i] - max[i]), "{n} {width:?}");
                }
            }
        }
    }

    #[test]
    fn nan_infinities_and_numbers_below_the_normal_ones_are_those_of_the_function() {
        let x = [f32::NAN, f32::NEG_INFINITY, -88.0, -95.5, -103.0, -104.5, 88.7, 95.0, f32::INFINITY];
        for width in Width::all() {
            let mut y = x;
            let sum = width.limit(|| of_row(&mut y, 0.0, NOTHING));
            assert!(sum.is_nan() && y[0].is_nan(), "{width:?}");
            assert!(y[1..].iter().zip(&x[1..]).all(|(y, x)| y.to_bits() == exp_f32(*x).to_bits()), "{width:?}: {y:?}");
        }
    }
}
