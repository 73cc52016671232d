//! A model of the instructions in plain Rust, with the same bits. Tests run kernels with it on
//! machines without tiles.

use super::parts::{LIMIT, PARTS, round, value};
use super::tiles::{LINE, ROWS, TILE, TileBytes, Tiles};

/// A tile's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tile(pub [u8; TILE]);

impl Tile {
    /// All zero.
    pub const ZERO: Tile = Tile([0; TILE]);

    /// The 32 bits of a column.
    pub fn word(&self, row: usize, column: usize) -> u32 {
        let at = row * LINE + column * 4;
        u32::from_le_bytes(std::array::from_fn(|i| self.0[at + i]))
    }

    /// Writes the 32 bits of a column.
    pub fn set(&mut self, row: usize, column: usize, word: u32) {
        let at = row * LINE + column * 4;
        self.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
}

/// TDPBF16PS. The sum over the first elements of the pairs and that over the second ones are made
/// apart, each from zero, by fused multiply-adds; the two are added, and the result is added to
/// `c`. Every step rounds to nearest even, takes denormal operands for zero and makes denormal
/// results zero.
fn multiply(c: &mut Tile, a: &Tile, b: &Tile) {
    for at in 0..ROWS * ROWS {
        let (m, n) = (at / ROWS, at % ROWS);
        let mut sums = [0.0f32; 2];
        for k in 0..ROWS {
            let (x, y) = (a.word(m, k), b.word(k, n));
            sums[0] = fma(f32::from_bits(x << 16), f32::from_bits(y << 16), sums[0]);
            sums[1] = fma(f32::from_bits(x & 0xffff_0000), f32::from_bits(y & 0xffff_0000), sums[1]);
        }
        let sum = add(sums[0], sums[1]);
        c.set(m, n, add(f32::from_bits(c.word(m, n)), sum).to_bits());
    }
}

/// TDPBUSD: unsigned bytes of `a` by signed ones of `b`, four for each sum, modulo 2^32.
fn multiply_bytes(c: &mut Tile, a: &Tile, b: &Tile) {
    let [a, b] = [&a.0, &b.0].map(|tile| tile.as_chunks::<4>().0);
    for (c, a) in c.0.chunks_exact_mut(LINE).zip(a.chunks_exact(ROWS)) {
        let mut sums = [0u32; ROWS];
        for (x, b) in a.iter().zip(b.chunks_exact(ROWS)) {
            for (sum, y) in sums.iter_mut().zip(b) {
                let products = [0, 1, 2, 3].map(|i| i32::from(x[i]) * i32::from(y[i] as i8));
                *sum = sum.wrapping_add(products.iter().sum::<i32>() as u32);
            }
        }
        for (c, sum) in c.as_chunks_mut::<4>().0.iter_mut().zip(sums) {
            *c = u32::from_le_bytes(*c).wrapping_add(sum).to_le_bytes();
        }
    }
}

/// The only NaN that the processor makes out of numbers.
const INDEFINITE: f32 = f32::from_bits(0xffc0_0000);

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { f32::from_bits(x.to_bits() & 0x8000_0000) } else { x }
}

/// The first NaN of the operands, made quiet.
fn nan_of(operands: &[f32]) -> Option<f32> {
    let nan = operands.iter().find(|x| x.is_nan())?;
    Some(f32::from_bits(nan.to_bits() | 0x0040_0000))
}

fn fma(a: f32, b: f32, c: f32) -> f32 {
    if let Some(nan) = nan_of(&[a, b, c]) {
        return nan;
    }
    let (a, b, c) = (flush(a), flush(b), flush(c));
    let sum = a.mul_add(b, c);
    if sum.is_nan() {
        return INDEFINITE;
    }
    if sum.abs() != f32::MIN_POSITIVE {
        return flush(sum);
    }
    // Exactly the least normal number: it is flushed, too, if the exact result is below it even
    // when it is rounded to 24 bits as though exponents had no end.
    let exact = f64::from(a).mul_add(f64::from(b), f64::from(c));
    let limit = f64::from(f32::MIN_POSITIVE) * (1.0 - f64::from(f32::EPSILON) / 4.0);
    if exact.abs() < limit { f32::from_bits(sum.to_bits() & 0x8000_0000) } else { sum }
}

fn add(a: f32, b: f32) -> f32 {
    if let Some(nan) = nan_of(&[a, b]) {
        return nan;
    }
    let sum = flush(a) + flush(b);
    if sum.is_nan() { INDEFINITE } else { flush(sum) }
}

/// Eight tiles in memory.
pub(crate) struct Modelled(pub [Tile; 8]);

impl Default for Modelled {
    fn default() -> Modelled {
        Modelled(std::array::from_fn(|_| Tile::ZERO))
    }
}

impl Tiles for Modelled {
    fn configure() -> Modelled {
        Modelled::default()
    }

    unsafe fn zero<const T: usize>(&mut self) {
        self.0[T] = Tile::ZERO;
    }

    unsafe fn load<const T: usize>(&mut self, from: *const u8, stride: usize) {
        for (row, bytes) in self.0[T].0.chunks_exact_mut(LINE).enumerate() {
            // SAFETY: promised by the caller.
            bytes.copy_from_slice(unsafe { std::slice::from_raw_parts(from.add(row * stride), LINE) });
        }
    }

    unsafe fn load_once<const T: usize>(&mut self, from: *const u8, stride: usize) {
        // SAFETY: promised by the caller.
        unsafe { self.load::<T>(from, stride) }
    }

    unsafe fn store<const T: usize>(&mut self, to: *mut u8, stride: usize) {
        for (row, bytes) in self.0[T].0.chunks_exact(LINE).enumerate() {
            // SAFETY: promised by the caller.
            unsafe { to.add(row * stride).copy_from_nonoverlapping(bytes.as_ptr(), LINE) };
        }
    }

    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        let (a, b) = (self.0[A].clone(), self.0[B].clone());
        multiply(&mut self.0[C], &a, &b);
    }

    unsafe fn multiply_bytes<const C: usize, const A: usize, const B: usize>(&mut self) {
        let [c, a, b] = self.0.get_disjoint_mut([C, A, B]).expect("three tiles");
        multiply_bytes(c, a, b);
    }

    unsafe fn gather(&mut self, rows: &[*const u8; ROWS], len: usize, to: &mut TileBytes) {
        for (row, line) in rows.iter().zip(to) {
            // SAFETY: promised by the caller.
            line[..len].copy_from_slice(unsafe { std::slice::from_raw_parts(*row, len) });
            line[len..].fill(0);
        }
    }

    unsafe fn split(&mut self, numbers: [&[f32; ROWS]; 2], count: usize, to: *mut u8, apart: usize) -> bool {
        for (i, x) in numbers.into_iter().flatten().enumerate() {
            for (part, bits) in parts_of(*x).into_iter().enumerate().take(count) {
                // SAFETY: the caller promised `count` lines.
                unsafe { to.add(part * apart + i * 2).cast::<[u8; 2]>().write_unaligned(bits.to_le_bytes()) };
            }
        }
        numbers.into_iter().flatten().all(|x| x.abs() < LIMIT)
    }
}

/// The parts of a number as bits of bf16, the largest first: each is what those before it left,
/// rounded to nearest even. Denormal rests count as zero, as they do for the processor, so that
/// numbers below 2^-103 may lose up to 2^-126.
fn parts_of(x: f32) -> [u16; PARTS] {
    let mut rest = x;
    std::array::from_fn(|_| {
        let part = round(rest);
        rest -= value(part);
        part
    })
}

mod tests {
    use super::*;
    use crate::amx::parts::sum_of;

    #[test]
    fn a_number_is_the_sum_of_its_parts() {
        let mut bits = 12345u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let x = f32::from_bits(bits);
            let sum = sum_of(parts_of(x));
            if x.abs() < LIMIT && x.abs() >= 2f32.powi(-103) {
                assert_eq!(sum.to_bits(), bits, "{x}");
            } else if x.abs() < LIMIT {
                // Parts may be denormal, which count as zero.
                assert!((sum - x).abs() <= f32::MIN_POSITIVE, "{x}");
            }
        }
        assert_eq!(sum_of(parts_of(0.0)), 0.0);
    }
}
