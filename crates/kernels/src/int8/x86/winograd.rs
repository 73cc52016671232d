//! Transforms and products of exact Winograd convolutions with AVX2; see
//! [`winograd`](super::super::winograd).

use super::super::tile::{COLUMNS, PANEL, ROWS, Sums};
use super::super::winograd::{MOST_POINTS, Scheme};
use std::arch::x86_64::*;

/// Numbers of 16 bits in a vector.
const SHORTS: usize = 16;
/// Sums of a vector.
const LANES: usize = 8;
/// Vectors of the sums of a panel.
const HALVES: usize = PANEL / LANES;

/// Numbers along a side of a tile.
type TileLine = [__m256i; MOST_POINTS];

/// Transforms `channels`, a multiple of 16, of the inputs of a tile. The first point goes to `to`,
/// and each other one `pitch` numbers after the one before it.
///
/// # Safety
/// The machine has AVX2, there are these channels at every place, and all points may be written.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn transform(
    scheme: Scheme,
    data: *const u8,
    places: [&[usize; MOST_POINTS]; 2],
    channels: usize,
    to: (*mut i16, usize),
) {
    // SAFETY: promised by the caller.
    unsafe {
        match scheme {
            Scheme::Two => transform_to::<4>(scheme, data, places, channels, to),
            Scheme::Four => transform_to::<6>(scheme, data, places, channels, to),
        }
    }
}

/// Transforms inputs to N points along each side.
///
/// # Safety
/// The caller promises what [`transform`] asks for.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn transform_to<const N: usize>(
    scheme: Scheme,
    data: *const u8,
    [rows, columns]: [&[usize; MOST_POINTS]; 2],
    channels: usize,
    (to, pitch): (*mut i16, usize),
) {
    for c in (0..channels).step_by(SHORTS) {
        let mut half = [[_mm256_setzero_si256(); MOST_POINTS]; N];
        for x in 0..N {
            for y in 0..N {
                // SAFETY: promised by the caller.
                let bytes = unsafe { _mm_loadu_si128(data.add(rows[y] + columns[x] + c).cast()) };
                half[x][y] = _mm256_cvtepu8_epi16(bytes);
            }
            inputs(scheme, &mut half[x]);
        }
        for y in 0..N {
            let mut line: TileLine = [_mm256_setzero_si256(); MOST_POINTS];
            for x in 0..N {
                line[x] = half[x][y];
            }
            inputs(scheme, &mut line);
            for x in 0..N {
                // SAFETY: promised by the caller.
                unsafe { _mm256_storeu_si256(to.add((y * N + x) * pitch + c).cast(), line[x]) }
            }
        }
    }
}

/// Transforms inputs along a side.
#[inline]
#[target_feature(enable = "avx2")]
fn inputs(scheme: Scheme, d: &mut TileLine) {
    let (add, sub) = (|a, b| _mm256_add_epi16(a, b), |a, b| _mm256_sub_epi16(a, b));
    let four = |v| _mm256_slli_epi16::<2>(v);
    let [a, b, c, e, f, g] = *d;
    *d = match scheme {
        Scheme::Two => [sub(a, c), add(b, c), sub(c, b), sub(b, e), f, g],
        Scheme::Four => {
            let (even, odd) = (sub(f, four(c)), sub(e, four(b)));
            let (near, twice) = (sub(f, c), add(sub(e, b), sub(e, b)));
            [
                add(four(sub(a, c)), near),
                add(even, odd),
                sub(even, odd),
                add(near, twice),
                sub(near, twice),
                sub(sub(g, e), add(twice, twice)),
            ]
        }
    };
}

/// Multiplies `tiles` rows, a multiple of six and `pitch` numbers apart, of pairs of channels with a
/// panel of weights. `to` takes 16 sums of each row.
///
/// # Safety
/// The machine has AVX2, and the operands are as long as this says. The weights may have any
/// alignment.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn products(
    (data, pitch): (*const i16, usize),
    tiles: usize,
    weights: *const i16,
    pairs: usize,
    to: *mut i32,
) {
    for tile in (0..tiles).step_by(ROWS) {
        let rows: [*const i16; ROWS] = std::array::from_fn(|r| data.wrapping_add((tile + r) * pitch));
        let mut sums = [[_mm256_setzero_si256(); HALVES]; ROWS];
        // SAFETY: promised by the caller.
        unsafe {
            for i in 0..pairs {
                let line = weights.add(i * 2 * PANEL);
                let [low, high] = [_mm256_loadu_si256(line.cast()), _mm256_loadu_si256(line.add(PANEL).cast())];
                for r in 0..ROWS {
                    let pair = _mm256_set1_epi32(rows[r].add(i * 2).cast::<i32>().read_unaligned());
                    sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(pair, low));
                    sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(pair, high));
                }
            }
            for r in 0..ROWS {
                for h in 0..HALVES {
                    _mm256_storeu_si256(to.add((tile + r) * PANEL + h * LANES).cast(), sums[r][h]);
                }
            }
        }
    }
}

/// Adds the sums of a panel of a tile to `out`, which has a row for each of the wanted outputs. The
/// first of 16 products is at `from`, those of each other point `pitch` numbers after the ones
/// before it.
///
/// # Safety
/// The machine has AVX2, and there are these products.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn finish(
    scheme: Scheme,
    from: (*const i32, usize),
    wanted: [usize; 2],
    panel: usize,
    out: &mut [Sums],
) {
    // SAFETY: promised by the caller.
    unsafe {
        match scheme {
            Scheme::Two => finish_of::<4, 2>(scheme, from, wanted, panel, out),
            Scheme::Four => finish_of::<6, 4>(scheme, from, wanted, panel, out),
        }
    }
}

/// Makes up to M outputs along each side of N points.
///
/// # Safety
/// The caller promises what [`finish`] asks for.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn finish_of<const N: usize, const M: usize>(
    scheme: Scheme,
    (from, pitch): (*const i32, usize),
    [height, width]: [usize; 2],
    panel: usize,
    out: &mut [Sums],
) {
    let out = &mut out[..height * width];
    assert!(height <= M && width <= M && (panel + 1) * PANEL <= COLUMNS, "{height} x {width}, panel {panel}");
    for half in 0..HALVES {
        let mut lines = [[_mm256_setzero_si256(); MOST_POINTS]; N];
        for x in 0..N {
            for y in 0..N {
                // SAFETY: promised by the caller.
                lines[x][y] = unsafe { _mm256_loadu_si256(from.add((y * N + x) * pitch + half * LANES).cast()) };
            }
            outputs(scheme, &mut lines[x]);
        }
        for y in 0..M {
            if y == height {
                break;
            }
            let mut line: TileLine = [_mm256_setzero_si256(); MOST_POINTS];
            for x in 0..N {
                line[x] = lines[x][y];
            }
            outputs(scheme, &mut line);
            let to = out.as_mut_ptr().wrapping_add(y * width).cast::<i32>();
            for x in 0..M {
                if x == width {
                    break;
                }
                // SAFETY: `out` has this row, which has 64 columns.
                unsafe {
                    let to = to.add(x * COLUMNS + panel * PANEL + half * LANES);
                    let sum = _mm256_add_epi32(_mm256_loadu_si256(to.cast()), divided(scheme, line[x]));
                    _mm256_storeu_si256(to.cast(), sum);
                }
            }
        }
    }
}

/// Makes outputs of products along a side.
#[inline]
#[target_feature(enable = "avx2")]
fn outputs(scheme: Scheme, m: &mut TileLine) {
    let (add, sub) = (|a, b| _mm256_add_epi32(a, b), |a, b| _mm256_sub_epi32(a, b));
    let (twice, four) = (|v| _mm256_slli_epi32::<1>(v), |v| _mm256_slli_epi32::<2>(v));
    let [a, b, c, d, e, f] = *m;
    match scheme {
        Scheme::Two => [m[0], m[1]] = [add(twice(a), add(b, c)), sub(sub(b, c), twice(d))],
        Scheme::Four => {
            let (sum, difference) = (four(add(b, c)), four(sub(b, c)));
            let (far, other) = (add(d, e), twice(sub(d, e)));
            [m[0], m[1], m[2], m[3]] = [
                add(sub(twice(add(twice(a), a)), sum), far),
                sub(other, difference),
                sub(four(far), sum),
                add(sub(four(other), difference), twice(four(add(twice(f), f)))),
            ];
        }
    }
}

/// Divides an output by what its products have too much, of which it is a multiple.
#[inline]
#[target_feature(enable = "avx2")]
fn divided(scheme: Scheme, v: __m256i) -> __m256i {
    match scheme {
        Scheme::Two => _mm256_srai_epi32::<2>(v),
        // 576 = 64 * 9, and this is the inverse of 9.
        Scheme::Four => _mm256_srai_epi32::<6>(_mm256_mullo_epi32(v, _mm256_set1_epi32(0x38e3_8e39))),
    }
}
