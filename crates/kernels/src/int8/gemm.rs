//! `C = A * Wᵀ` of bytes: rows of data by packed weights.

use super::band::{BAND, Band, BandArgs, Products};
use super::finish::Epilogue;
use super::pack;
use super::tile::{COLUMNS, GROUP, PANEL, Windows, sign_flip};
use super::{Int8Result, Level, RoundTo};
use crate::par::{Par, par_chunks_mut_scratch, par_columns_mut};
use crate::places::Places;
use std::ops::Range;

/// Rows of C from which on chunks have all columns.
const MANY_ROWS: usize = 16 * BAND;
/// Least products of a chunk that are worth a thread.
const LEAST_PRODUCTS: usize = 128 << 10;

/// Rows of data.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// the bytes, row by row
    pub bytes: &'a [u8],
    /// whether the bytes are `i8`
    pub signed: bool,
}

/// A product of any number of rows of `k` bytes with the `n` rows of the weights.
///
/// Signed data are shifted to unsigned numbers where they are copied for a tile. Packed weights
/// hold what that adds to each sum, which is subtracted again.
#[derive(Clone, Copy, Debug)]
pub struct Int8Gemm {
    n: usize,
    k: usize,
    level: Level,
}

impl Int8Gemm {
    /// A product with weights of this shape, `[n, k]`, on the given level or the best below it that
    /// the machine has.
    pub fn new(n: usize, k: usize, level: Level) -> Int8Gemm {
        Int8Gemm { n, k, level: level.or_best() }
    }

    /// The level it runs on.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Bytes from one copied row to the next.
    fn row_len(&self) -> usize {
        self.k.next_multiple_of(GROUP)
    }

    /// Bytes that [`pack`](Self::pack) writes; `None` where they cannot be counted.
    pub fn packed_len(&self) -> Option<usize> {
        pack::packed_len(self.n, self.k.checked_next_multiple_of(GROUP)?)
    }

    /// Packs the weights.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn pack(&self, weights: &[i8], packed: &mut [u8]) {
        assert!(weights.len() >= self.n * self.k, "weights need {} bytes, got {}", self.n * self.k, weights.len());
        pack::pack_rows(self.n, self.row_len(), |column| &weights[column * self.k..][..self.k], packed);
    }

    /// Computes all rows of C: the epilogue's results.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn run<T: Int8Result>(
        &self,
        par: &dyn Par,
        rows: Rows<'_>,
        packed: &[u8],
        epilogue: &dyn Epilogue<T>,
        out: &mut [T],
    ) {
        T::multiply(self, par, rows, packed, epilogue, out);
    }

    pub(super) fn run_as<T: RoundTo>(
        &self,
        par: &dyn Par,
        rows: Rows<'_>,
        packed: &[u8],
        epilogue: &dyn Epilogue<T>,
        out: &mut [T],
    ) {
        if self.n == 0 || out.is_empty() {
            return;
        }
        let (m, n) = (out.len() / self.n, self.n);
        assert!(rows.bytes.len() >= m * self.k, "A needs {} bytes, got {}", m * self.k, rows.bytes.len());
        let job = GemmJob { gemm: self, rows, stride: self.k, packed, epilogue };
        let scratch = self.scratch_len::<T>(m);
        if m >= MANY_ROWS {
            par_chunks_mut_scratch(par, out, BAND * n, scratch, |chunk, out, scratch| {
                let first = chunk * BAND;
                job.run(first..first + out.len() / n, 0..n, scratch, |row, column, results| {
                    out[(row - first) * n + column..][..results.len()].copy_from_slice(results);
                });
            });
            return;
        }
        let width = self.columns_of_chunk(m, par.parallelism());
        par_columns_mut(par, out, [1, m, n], width, scratch, |_, start, mut part, scratch| {
            job.run(0..m, start..start + part.width(), scratch, |row, column, results| {
                part.row(row)[column - start..][..results.len()].copy_from_slice(results);
            });
        });
    }

    /// Bytes of the copied rows of a band, which is no longer than all rows.
    fn copied_len(&self, rows: usize) -> usize {
        (BAND.min(rows) * self.row_len()).next_multiple_of(64)
    }

    /// Bytes of the scratch memory of a product of some rows.
    pub(super) fn scratch_len<T: RoundTo>(&self, rows: usize) -> usize {
        // A row alone is not widened.
        let widened = if rows > 1 { self.row_len() } else { 0 };
        self.copied_len(rows) + Band::<T>::bytes(self.level, widened)
    }

    /// Columns of a chunk: whole tiles, some chunks for each thread, none of which is idle at the
    /// end.
    fn columns_of_chunk(&self, m: usize, threads: usize) -> usize {
        let (tiles, threads) = (self.n.div_ceil(COLUMNS), threads.max(1));
        let least = (LEAST_PRODUCTS / (m * self.k).max(1)).div_ceil(COLUMNS);
        let least = (tiles / (4 * threads)).max(least).clamp(1, tiles);
        // Every chunk copies the rows, which takes an eighth of the time of a tile.
        let time = |width: &usize| tiles.div_ceil(*width).div_ceil(threads) * (8 * width + 1);
        let width = (least..=(4 * least).min(tiles)).min_by_key(time).unwrap_or(least);
        width * COLUMNS
    }
}

/// A running product.
pub(super) struct GemmJob<'a, T> {
    pub gemm: &'a Int8Gemm,
    pub rows: Rows<'a>,
    /// Bytes from one row to the next.
    pub stride: usize,
    pub packed: &'a [u8],
    pub epilogue: &'a dyn Epilogue<T>,
}

impl<T: RoundTo> GemmJob<'_, T> {
    /// Computes some rows and columns, which begin at a panel; `put(row, column, results)` takes
    /// neighbours of a row.
    pub fn run(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        scratch: &mut [u8],
        mut put: impl FnMut(usize, usize, &[T]),
    ) {
        let Int8Gemm { k, level, .. } = *self.gemm;
        let row_len = self.gemm.row_len();
        let (copied, scratch) = scratch.split_at_mut(self.gemm.copied_len(rows.len()));
        let mut band = Band::of(scratch);
        let limited = self.epilogue.limited();
        let in_place = !self.rows.signed && k == row_len;
        let len = pack::panel_len(row_len);
        for first in rows.clone().step_by(BAND) {
            let count = BAND.min(rows.end - first);
            let data = &self.rows.bytes[first * self.stride..];
            if !in_place {
                self.copy(data, count, copied);
            }
            let (data, stride) = if in_place { (data, self.stride) } else { (&copied[..count * row_len], row_len) };
            let windows = Windows::new(data, &[0], row_len / GROUP);
            let starts: [usize; BAND] = std::array::from_fn(|row| row * stride);
            let starts = Places::new(&starts[..count]);
            for column in columns.clone().step_by(COLUMNS) {
                let width = COLUMNS.min(columns.end - column);
                let args = BandArgs {
                    products: Products::Windows {
                        level,
                        windows,
                        panels: &self.packed[column / PANEL * len..][..width.div_ceil(PANEL) * len],
                    },
                    starts,
                    columns: [column, width],
                    signed: self.rows.signed,
                    epilogue: self.epilogue,
                    limited,
                    added: false,
                };
                if column == columns.start {
                    band.prepare(&args);
                }
                band.compute(&args);
                for (row, results) in band.results.iter().enumerate().take(count) {
                    put(first + row, column, &results[..width]);
                }
            }
        }
    }

    /// Copies rows as unsigned numbers.
    fn copy(&self, from: &[u8], rows: usize, to: &mut [u8]) {
        let (k, flip) = (self.gemm.k, sign_flip(self.rows.signed));
        for (row, to) in to.chunks_exact_mut(self.gemm.row_len().max(1)).enumerate().take(rows) {
            let (data, rest) = to.split_at_mut(k);
            data.iter_mut().zip(&from[row * self.stride..][..k]).for_each(|(to, from)| *to = from ^ flip);
            rest.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::int8::{EachSum, Function, ScaledSums};
    use crate::isa::Isa;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use proptest::prelude::*;

    fn product(gemm: Int8Gemm, par: &dyn Par, m: usize, rows: Rows<'_>, weights: &[i8]) -> Vec<i32> {
        let mut packed = vec![0xa5; gemm.packed_len().unwrap()];
        gemm.pack(weights, &mut packed);
        let mut out = vec![i32::MIN; m * gemm.n];
        gemm.run(par, rows, &packed, &EachSum(|_, sum| sum), &mut out);
        out
    }

    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // The largest magnitudes come often: they are what saturates.
            [0, 127, 128, 255, (state >> 40) as u8, (state >> 48) as u8][(state >> 32) as usize % 6]
        };
        (0..len).map(|_| next()).collect()
    }

    fn widened(signed: bool, byte: u8) -> i32 {
        if signed { i32::from(byte as i8) } else { i32::from(byte) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn every_level_gives_the_integers_of_the_definition(
            m in 0usize..40, n in 0usize..50, k in 0usize..90, signed: bool, seed: u64,
        ) {
            let (a, w) = (bytes(seed, m * k), bytes(seed ^ 77, n * k));
            let w: Vec<i8> = w.into_iter().map(|b| b as i8).collect();
            let sum = |i: usize, j: usize| -> i32 {
                (0..k).map(|x| widened(signed, a[i * k + x]) * i32::from(w[j * k + x])).sum()
            };
            let want: Vec<i32> = (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect();
            for &level in Level::ALL {
                for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                    let rows = Rows { bytes: &a, signed };
                    prop_assert_eq!(&product(Int8Gemm::new(n, k, level), par, m, rows, &w), &want, "{:?}", level);
                }
            }
        }
    }

    #[test]
    fn pairs_of_the_largest_products_do_not_saturate() {
        let (a, w) = (vec![255; 64], vec![-128i8; 64]);
        for &level in Level::ALL {
            let got = product(Int8Gemm::new(1, 64, level), &Serial, 1, Rows { bytes: &a, signed: false }, &w);
            assert_eq!(got, [-255 * 128 * 64], "{level:?}");
        }
    }

    #[test]
    fn bytes_of_sums_are_the_same_on_every_level() {
        for (m, n) in [(1, 10), (1, 30), (1, 40), (1, 64), (7, 150), (49, 70)] {
            for signed in [false, true] {
                for (factors, bias) in [
                    // Exact halves; the least and the largest results.
                    ([1e-3, 1.0 / 64.0, 1e30], [77.0, -2000.0]),
                    ([1e-3, 5e-4, 1.0 / 64.0], [77.0, -2000.0]),
                    ([1e-3, -5e-4, 0.0], [77.0, -2000.0]),
                    // No integers, and integers from which sums have more than 23 or 24 bits.
                    ([1e-3, 5e-4, 1.0 / 64.0], [77.25, -2000.5]),
                    ([1e-3, 5e-4, 1e-5], [77.0, 8_000_001.0]),
                    ([1e-3, 5e-4, 1e-5], [77.0, -16_000_001.0]),
                ] {
                    let factor: Vec<f32> = (0..n).map(|j| factors[j % 3]).collect();
                    let bias: Vec<f32> = (0..n).map(|j| bias[j / 3 % 2]).collect();
                    check_bytes([m, n], signed, &bias, &factor);
                }
            }
        }
    }

    /// Checks the bytes of a product with several functions against the definition.
    fn check_bytes([m, n]: [usize; 2], signed: bool, bias: &[f32], factor: &[f32]) {
        let k = 46;
        let (a, w) = (bytes(3, m * k), bytes(4, n * k));
        let w: Vec<i8> = w.into_iter().map(|b| b as i8).collect();
        let rows = Rows { bytes: &a, signed };
        let sums = product(Int8Gemm::new(n, k, Level::Portable), &Serial, m, rows, &w);
        for function in [None, Some(Function::Relu), Some(Function::Clip(-70.0, 60.0)), Some(Function::Clip(3.0, 90.5))]
        {
            let number = |(i, sum): (usize, &i32)| {
                let v = (*sum as f32 + bias[i % n]) * factor[i % n];
                function.map_or(v, |function| function.apply(v, 1.0))
            };
            let numbers: Vec<f32> = sums.iter().enumerate().map(number).collect();
            let mut epilogue = ScaledSums::new(bias.to_vec(), factor.to_vec());
            epilogue.functions[0] = function;
            for &level in Level::ALL {
                let gemm = Int8Gemm::new(n, k, level);
                let mut packed = vec![0xa5; gemm.packed_len().unwrap()];
                gemm.pack(&w, &mut packed);
                let (mut i8s, mut u8s) = (vec![99i8; m * n], vec![99u8; m * n]);
                gemm.run(&Serial, rows, &packed, &epilogue, &mut i8s);
                gemm.run(&Serial, rows, &packed, &epilogue, &mut u8s);
                let (want_i8, want_u8): (Vec<i8>, Vec<u8>) =
                    numbers.iter().map(|v| (i8::round_to(*v), u8::round_to(*v))).unzip();
                assert_eq!(i8s, want_i8, "{level:?} {m} {n} {signed} {function:?} {bias:?} {factor:?}");
                assert_eq!(u8s, want_u8, "{level:?} {m} {n} {signed} {function:?} {bias:?} {factor:?}");
            }
        }
    }

    #[test]
    fn each_level_that_the_machine_has_can_be_forced() {
        for level in Level::ALL.iter().copied().filter(|level| *level <= Level::of(Isa::detect(), true)) {
            assert_eq!(Int8Gemm::new(1, 1, level).level(), level);
        }
        assert_eq!(Level::of(Isa::Portable, true), Level::Portable);
        assert_ne!(Level::of(Isa::detect(), false), Level::Tiles);
        // The best level takes the place of one of another architecture.
        for level in [Level::DotProd, Level::I8mm, Level::Avx2, Level::Vnni, Level::Tiles] {
            assert!(Level::ALL.contains(&level.or_best()), "{level:?}");
        }
    }
}
