//! `C = A * Wᵀ` of bytes: rows of data by packed weights.

use super::Level;
use crate::isa::Isa;
use crate::par::{Par, par_chunks_mut_scratch, par_columns_mut};

/// Columns of C that a panel of packed weights holds.
pub(super) const PANEL: usize = 16;
/// Products that one sum takes together.
const GROUP: usize = 4;
/// Rows of C that are computed together.
pub(super) const TILE: usize = 8;
/// Difference between signed data and unsigned ones.
const SHIFT: i32 = 128;
/// Bytes of the corrections after the weights of a panel.
const CORRECTIONS: usize = PANEL * size_of::<i32>();

/// Sums of a tile.
pub(super) type Tile = [[i32; PANEL]; TILE];

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
    /// A product with weights of this shape, `[n, k]`.
    pub fn new(n: usize, k: usize, isa: Isa) -> Int8Gemm {
        Int8Gemm::on(n, k, Level::of(isa))
    }

    /// [`new`](Self::new) on the given level or the best below it that the machine has.
    pub fn on(n: usize, k: usize, level: Level) -> Int8Gemm {
        Int8Gemm { n, k, level: level.or_best() }
    }

    /// The level it runs on.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Bytes from one copied row to the next.
    pub(super) fn row_len(&self) -> usize {
        self.k.next_multiple_of(GROUP)
    }

    fn panel_len(&self) -> usize {
        self.row_len() * PANEL + CORRECTIONS
    }

    /// Bytes that [`pack`](Self::pack) writes; `None` where they cannot be counted.
    pub fn packed_len(&self) -> Option<usize> {
        let row = self.k.checked_next_multiple_of(GROUP)?;
        row.checked_mul(PANEL)?.checked_add(CORRECTIONS)?.checked_mul(self.n.div_ceil(PANEL))
    }

    /// Packs the weights: in lines of 64 bytes, four neighbours of each of 16 rows.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn pack(&self, weights: &[i8], packed: &mut [u8]) {
        assert!(weights.len() >= self.n * self.k, "weights need {} bytes, got {}", self.n * self.k, weights.len());
        let len = self.panel_len();
        for (p, panel) in packed[..len * self.n.div_ceil(PANEL)].chunks_exact_mut(len).enumerate() {
            let (bytes, corrections) = panel.split_at_mut(len - CORRECTIONS);
            bytes.fill(0);
            corrections.fill(0);
            for (column, correction) in corrections.chunks_exact_mut(size_of::<i32>()).enumerate() {
                let Some(row) =
                    (p * PANEL + column < self.n).then(|| &weights[(p * PANEL + column) * self.k..][..self.k])
                else {
                    continue;
                };
                for (i, w) in row.iter().enumerate() {
                    bytes[i / GROUP * GROUP * PANEL + column * GROUP + i % GROUP] = *w as u8;
                }
                let sum = row.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w)));
                correction.copy_from_slice(&sum.wrapping_mul(SHIFT).to_ne_bytes());
            }
        }
    }

    /// Computes all rows of C: `out[row, column] = epilogue(row, column, sum)`.
    ///
    /// # Panics
    /// If a slice is smaller than the shape says.
    pub fn run<T, E>(&self, par: &dyn Par, rows: Rows<'_>, packed: &[u8], epilogue: &E, out: &mut [T])
    where
        T: Send,
        E: Fn(usize, usize, i32) -> T + Sync,
    {
        if self.n == 0 || out.is_empty() {
            return;
        }
        let m = out.len() / self.n;
        assert!(rows.bytes.len() >= m * self.k, "A needs {} bytes, got {}", m * self.k, rows.bytes.len());
        let row_len = self.row_len();
        let copy = |first: usize, count: usize, to: &mut [u8]| {
            for (r, to) in to.chunks_exact_mut(row_len.max(1)).take(count).enumerate() {
                self.copy_row(rows, &rows.bytes[(first + r) * self.k..][..self.k], to);
            }
        };
        if m >= 2 * TILE {
            par_chunks_mut_scratch(par, out, TILE * self.n, TILE * row_len, |chunk, out, scratch| {
                let (first, count) = (chunk * TILE, out.len() / self.n);
                copy(first, count, scratch);
                self.for_sums(scratch, count, 0..self.n, packed, rows.signed, |row, column, sum| {
                    out[row * self.n + column] = epilogue(first + row, column, sum);
                });
            });
            return;
        }
        let width = self.columns_of_chunk(m);
        par_columns_mut(par, out, [1, m, self.n], width, m * row_len, |_, start, mut band, scratch| {
            copy(0, m, scratch);
            let columns = start..start + band.width();
            for first in (0..m).step_by(TILE) {
                let copied = &scratch[first * row_len..];
                self.for_sums(copied, TILE.min(m - first), columns.clone(), packed, rows.signed, |row, column, sum| {
                    band.row(first + row)[column - start] = epilogue(first + row, column, sum);
                });
            }
        });
    }

    /// Columns of a chunk: whole panels with about 256 thousand products.
    fn columns_of_chunk(&self, m: usize) -> usize {
        ((256 << 10) / (m * self.k * PANEL).max(1)).max(1) * PANEL
    }

    /// Copies a row of data as unsigned numbers.
    fn copy_row(&self, rows: Rows<'_>, from: &[u8], to: &mut [u8]) {
        let flip = sign_flip(rows.signed);
        let (data, rest) = to.split_at_mut(self.k);
        data.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ flip);
        rest.fill(0);
    }

    /// Calls `each(row, column, sum)` for some rows, at most [`TILE`], that were copied, and some
    /// columns, which begin at a panel.
    pub(super) fn for_sums(
        &self,
        copied: &[u8],
        rows: usize,
        columns: std::ops::Range<usize>,
        packed: &[u8],
        signed: bool,
        mut each: impl FnMut(usize, usize, i32),
    ) {
        let len = self.panel_len();
        for start in columns.clone().step_by(PANEL) {
            let panel = &packed[start / PANEL * len..][..len];
            let (bytes, corrections) = panel.split_at(len - CORRECTIONS);
            let mut tile: Tile = [[0; PANEL]; TILE];
            self.multiply(&copied[..rows * self.row_len()], rows, bytes, &mut tile);
            for column in 0..PANEL.min(columns.end - start) {
                let correction = if signed { read_i32(&corrections[column * size_of::<i32>()..]) } else { 0 };
                for (row, sums) in tile[..rows].iter().enumerate() {
                    each(row, start + column, sums[column].wrapping_sub(correction));
                }
            }
        }
    }

    fn multiply(&self, rows: &[u8], count: usize, panel: &[u8], tile: &mut Tile) {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Vnni => super::x86::multiply_vnni(rows, count, panel, tile),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => super::x86::multiply_avx2(rows, count, panel, tile),
            _ => multiply_portable(rows, count, panel, tile),
        }
    }
}

/// Bits that turn a byte into an unsigned number.
pub(super) fn sign_flip(signed: bool) -> u8 {
    if signed { 0x80 } else { 0 }
}

fn read_i32(bytes: &[u8]) -> i32 {
    let mut number = [0; size_of::<i32>()];
    number.copy_from_slice(&bytes[..size_of::<i32>()]);
    i32::from_ne_bytes(number)
}

fn multiply_portable(rows: &[u8], count: usize, panel: &[u8], tile: &mut Tile) {
    let row_len = rows.len() / count.max(1);
    for (row, sums) in rows.chunks_exact(row_len.max(1)).zip(tile) {
        for (data, weights) in row.chunks_exact(GROUP).zip(panel.chunks_exact(GROUP * PANEL)) {
            for (sum, weights) in sums.iter_mut().zip(weights.chunks_exact(GROUP)) {
                let products = data.iter().zip(weights).map(|(a, w)| i32::from(*a) * i32::from(*w as i8));
                *sum = sum.wrapping_add(products.sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use proptest::prelude::*;

    fn product(gemm: Int8Gemm, par: &dyn Par, m: usize, rows: Rows<'_>, weights: &[i8]) -> Vec<i32> {
        let mut packed = vec![0xa5; gemm.packed_len().unwrap()];
        gemm.pack(weights, &mut packed);
        let mut out = vec![i32::MIN; m * gemm.n];
        gemm.run(par, rows, &packed, &|_, _, sum| sum, &mut out);
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
            for level in Level::ALL {
                for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                    let rows = Rows { bytes: &a, signed };
                    prop_assert_eq!(&product(Int8Gemm::on(n, k, level), par, m, rows, &w), &want, "{:?}", level);
                }
            }
        }
    }

    #[test]
    fn pairs_of_the_largest_products_do_not_saturate() {
        let (a, w) = (vec![255; 64], vec![-128i8; 64]);
        for level in Level::ALL {
            let got = product(Int8Gemm::on(1, 64, level), &Serial, 1, Rows { bytes: &a, signed: false }, &w);
            assert_eq!(got, [-255 * 128 * 64], "{level:?}");
        }
    }

    #[test]
    fn each_level_that_the_machine_has_can_be_forced() {
        for level in Level::ALL.into_iter().filter(|level| *level <= Level::of(Isa::detect())) {
            assert_eq!(Int8Gemm::on(1, 1, level).level(), level);
        }
        assert_eq!(Level::of(Isa::Portable), Level::Portable);
    }
}
