//! Matrix products of any strides: float32 and float64 in the register tiles of an instruction set
//! where the caller names one, everything else in plain code, with the same bits on every
//! instruction set.
//!
//! How an element is summed over k follows from the shapes alone, so no split changes a bit.

use crate::element::{Float, is_same};
use crate::error::check_len;
use crate::gemm::{BatchProduct, Matrices, MatricesMut, Places};
use crate::gemm_deep;
use crate::gemm_double;
use crate::isa::Isa;
use crate::matrix_vector;
use crate::par::{Columns, Par, par_columns_mut};
use crate::vectorize::vectorized;

/// Columns of a product that are computed from one packed panel.
const WIDTH: usize = 64;
/// Rows and columns that are held in registers.
pub(crate) const TILE_ROWS: usize = 4;
pub(crate) const TILE_COLUMNS: usize = 16;

/// A matrix product `c = alpha * op(a) op(b) + beta * c`, `batch` times over consecutive matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm {
    /// How many products.
    pub batch: usize,
    /// Rows of `c`.
    pub m: usize,
    /// Columns of `c`.
    pub n: usize,
    /// Columns of op(a), rows of op(b).
    pub k: usize,
    /// Whether `a` is stored as `[k, m]` and not `[m, k]`.
    pub transpose_a: bool,
    /// Whether `b` is stored as `[n, k]` and not `[k, n]`.
    pub transpose_b: bool,
    /// Scales the product.
    pub alpha: f64,
    /// Scales what `c` holds; with 0 it is not read.
    pub beta: f64,
    /// The instruction set whose register tiles compute products; none: plain code.
    pub tiles: Option<Isa>,
}

impl Gemm {
    /// One plain product `c = a b`.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Gemm { batch: 1, m, n, k, transpose_a: false, transpose_b: false, alpha: 1.0, beta: 0.0, tiles: None }
    }

    /// The product in register tiles of `isa`, where it fills them.
    pub fn on(self, isa: Isa) -> Self {
        Gemm { tiles: Some(isa), ..self }
    }

    /// Whether sums are so long that blocks of them are packed, and not the whole of an operand.
    pub fn is_deep(&self) -> bool {
        self.k >= gemm_deep::DEEP
    }

    /// The transpose of the product, which has the operands in the other order.
    fn turned(self) -> Self {
        Gemm { m: self.n, n: self.m, transpose_a: !self.transpose_b, transpose_b: !self.transpose_a, ..self }
    }

    /// The instruction set whose tiles compute the product.
    fn tiles_of<T: Float>(&self) -> Option<Isa> {
        let fills = self.m >= TILE_ROWS && self.n >= TILE_COLUMNS && self.k >= TILE_ROWS;
        self.tiles.filter(|isa| fills && is_same::<T, f32>() && isa.or_best() > Isa::Portable)
    }
}

/// The position of element (row, k) of op(a).
#[derive(Clone, Copy)]
struct Left {
    row: usize,
    k: usize,
}

/// Computes a [`Gemm`].
pub fn gemm<T: Float>(par: &dyn Par, p: Gemm, a: &[T], b: &[T], c: &mut [T]) {
    check_len("a", a.len(), p.batch * p.m * p.k);
    check_len("b", b.len(), p.batch * p.k * p.n);
    check_len("c", c.len(), p.batch * p.m * p.n);
    if c.is_empty() {
        return;
    }
    // One column is one row of the product the other way round.
    let (p, a, b) = if p.n == 1 && p.m > 1 { (p.turned(), b, a) } else { (p, a, b) };
    let p = Gemm { transpose_b: p.transpose_b || (p.n == 1 && p.is_deep()), ..p };
    if let Some(isa) = p.tiles_of::<T>() {
        let (a, b) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
        return gemm_in_tiles(par, p, isa, a, b, bytemuck::cast_slice_mut(c));
    }
    let is_vector = matrix_vector::fits(&p);
    let divided = gemm_deep::fits(&p) && !(is_vector && p.transpose_b);
    if divided && gemm_deep::multiply(par, p, a, b, c) {
        return;
    }
    if is_vector {
        return matrix_vector::multiply(par, p, a, b, c);
    }
    if p.tiles.is_some_and(|isa| isa.or_best() > Isa::Portable) && is_same::<T, f64>() && gemm_double::fits(&p) {
        let (a, b) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
        if gemm_double::gemm(par, p, a, b, bytemuck::cast_slice_mut(c)) {
            return;
        }
    }
    // Tall products are also cut into blocks of rows; a block must pay for packing its panel.
    let block = if p.batch == 1 && p.m >= 256 { 128 } else { p.m };
    let blocks = p.m / block;
    let left = if p.transpose_a { Left { row: 1, k: p.m } } else { Left { row: p.k, k: 1 } };
    let (panel_len, bytes) = (p.k * WIDTH, p.k * (WIDTH + TILE_ROWS) * size_of::<T>());
    let (most, rest) = c.split_at_mut(p.batch * blocks * block * p.n);
    let run = |c: &mut [T], outer: usize, rows: usize, first: usize| {
        par_columns_mut(par, c, [outer, rows, p.n], WIDTH, bytes, |o, start, mut band, scratch| {
            let (panel, lines) = bytemuck::cast_slice_mut(&mut scratch[..bytes]).split_at_mut(panel_len);
            let (batch, row) = if p.batch == 1 { (0, first + o * rows) } else { (o, 0) };
            pack(&b[batch * p.k * p.n..][..p.k * p.n], p, start, band.width(), panel);
            let a = &a[batch * p.m * p.k..][..p.m * p.k];
            multiply(a, left, row, rows, lines, panel, T::from_f64(p.alpha), T::from_f64(p.beta), &mut band);
        });
    };
    run(most, p.batch * blocks, block, 0);
    if !rest.is_empty() {
        run(rest, 1, p.m - blocks * block, blocks * block);
    }
}

/// A product in float32 that fills register tiles.
fn gemm_in_tiles(par: &dyn Par, p: Gemm, isa: Isa, a: &[f32], b: &[f32], c: &mut [f32]) {
    let batch = [1, p.batch];
    let places = |rows: usize, columns: usize, transposed: bool| {
        let [stored_rows, stored_columns] = if transposed { [columns, rows] } else { [rows, columns] };
        let places = Places::contiguous(batch, stored_rows, stored_columns);
        if transposed { places.transposed() } else { places }
    };
    let (a_at, b_at) = (places(p.m, p.k, p.transpose_a), places(p.k, p.n, p.transpose_b));
    // Of a deep product parts are packed, and added to C one after the other.
    let part = if p.k >= gemm_deep::DEEP { gemm_deep::PART } else { p.k };
    for k0 in (0..p.k).step_by(part) {
        let (depth, beta) = (part.min(p.k - k0), if k0 == 0 { p.beta as f32 } else { 1.0 });
        let product = BatchProduct::new(batch, [p.m, p.n, depth], isa).scaled(p.alpha as f32, beta);
        let a = Matrices { data: a, at: Places { first: k0 * a_at.column, ..a_at } };
        let b = Matrices { data: b, at: Places { first: k0 * b_at.row, ..b_at } };
        product.run(par, a, b, MatricesMut { data: &mut *c, at: places(p.m, p.n, false) });
    }
}

/// Copies `width` columns of op(b) to `[k][WIDTH]`, padded with zeros.
fn pack<T: Float>(b: &[T], p: Gemm, start: usize, width: usize, panel: &mut [T]) {
    for (k, row) in panel.chunks_exact_mut(WIDTH).enumerate() {
        if p.transpose_b {
            row[..width].iter_mut().enumerate().for_each(|(j, v)| *v = b[(start + j) * p.k + k]);
        } else {
            row[..width].copy_from_slice(&b[k * p.n + start..][..width]);
        }
        row[width..].fill(T::ZERO);
    }
}

vectorized! {
    fn multiply[T: Float](
        a: &[T],
        left: Left,
        first: usize,
        rows: usize,
        lines: &mut [T],
        panel: &[T],
        alpha: T,
        beta: T,
        band: &mut Columns<'_, T>,
    ) {
        let width = band.width();
        let (panel, _) = panel.as_chunks::<WIDTH>();
        let (lines, _) = lines.as_chunks_mut::<TILE_ROWS>();
        for r0 in (0..rows).step_by(TILE_ROWS) {
            let count = TILE_ROWS.min(rows - r0);
            for r in 0..TILE_ROWS {
                // Rows beyond the last repeat it and are not stored.
                let row = a.get((first + r0 + r.min(count - 1)) * left.row..).unwrap_or_default();
                lines.iter_mut().zip(row.iter().step_by(left.k)).for_each(|(line, v)| line[r] = *v);
            }
            for j0 in (0..width).step_by(TILE_COLUMNS) {
                let mut sums = [[T::ZERO; TILE_COLUMNS]; TILE_ROWS];
                for (line, row) in lines.iter().zip(panel) {
                    let Some(row) = row[j0..].first_chunk::<TILE_COLUMNS>() else { continue };
                    for r in 0..TILE_ROWS {
                        for j in 0..TILE_COLUMNS {
                            sums[r][j] += line[r] * row[j];
                        }
                    }
                }
                let columns = TILE_COLUMNS.min(width - j0);
                for (r, sums) in sums.iter().enumerate().take(count) {
                    for (c, &sum) in band.row(r0 + r)[j0..][..columns].iter_mut().zip(sums) {
                        *c = if beta == T::ZERO { alpha * sum } else { alpha * sum + beta * *c };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads, assert_close, random, random64};

    fn by_definition(p: Gemm, a: &[f64], b: &[f64], c: &[f64]) -> Vec<f64> {
        let mut out = c.to_vec();
        for i in 0..out.len() {
            let (batch, row, column) = (i / (p.m * p.n), i / p.n % p.m, i % p.n);
            let sum: f64 = (0..p.k)
                .map(|k| {
                    let a_at = if p.transpose_a { k * p.m + row } else { row * p.k + k };
                    let b_at = if p.transpose_b { column * p.k + k } else { k * p.n + column };
                    a[batch * p.m * p.k + a_at] * b[batch * p.k * p.n + b_at]
                })
                .sum();
            out[i] = p.alpha * sum + if p.beta == 0.0 { 0.0 } else { p.beta * out[i] };
        }
        out
    }

    #[test]
    fn products_agree_with_their_definition_for_every_transposition() {
        for (batch, m, n, k) in [(1, 5, 7, 9), (3, 4, 64, 17), (1, 300, 70, 33), (2, 1, 130, 8), (1, 6, 1, 40)] {
            for flags in 0..4 {
                let (transpose_a, transpose_b) = (flags & 1 != 0, flags & 2 != 0);
                let beta = if flags == 1 { 0.5 } else { 0.0 };
                let p = Gemm { batch, transpose_a, transpose_b, alpha: 1.5, beta, ..Gemm::new(m, n, k) };
                let (a, b) = (random(batch * m * k, 1), random(batch * k * n, 2));
                let old = if beta == 0.0 { vec![f32::NAN; batch * m * n] } else { random(batch * m * n, 3) };
                let wide = |v: &[f32]| v.iter().map(|&v| v as f64).collect::<Vec<_>>();
                let want = by_definition(p, &wide(&a), &wide(&b), &wide(&old));
                for isa in Isa::ALL {
                    let mut tiled = old.clone();
                    gemm(&Serial, p.on(isa), &a, &b, &mut tiled);
                    assert_close(&tiled, &want, 2e-6);
                }
                let doubles = [wide(&a), wide(&b)];
                let mut double = wide(&old);
                gemm(&Serial, p.on(Isa::detect()), &doubles[0], &doubles[1], &mut double);
                assert!(double.iter().zip(&want).all(|(c, w)| (c - w).abs() < 1e-12), "{p:?}");
                let mut first = old.clone();
                gemm(&Serial, p, &a, &b, &mut first);
                assert_close(&first, &want, 2e-6);
                for par in [&Reverse as &dyn Par, &Threads(3)] {
                    let mut again = old.clone();
                    gemm(par, p, &a, &b, &mut again);
                    assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
                }
            }
        }
    }

    #[test]
    fn double_precision_keeps_its_digits() {
        let p = Gemm::new(20, 30, 50);
        let (a, b) = (random64(1000, 4), random64(1500, 5));
        let mut c = vec![0.0; 600];
        gemm(&Serial, p, &a, &b, &mut c);
        let want = by_definition(p, &a, &b, &c);
        assert!(c.iter().zip(&want).all(|(c, w)| (c - w).abs() < 1e-12));
    }

    #[test]
    fn products_in_double_precision_have_the_same_bits_for_all_threads_and_in_a_batch() {
        for p in [Gemm::new(100, 70, 600), Gemm { batch: 9, transpose_b: true, ..Gemm::new(50, 20, 30) }] {
            let p = Gemm { alpha: 0.5, beta: 2.0, ..p }.on(Isa::detect());
            let (a, b) = (random64(p.batch * p.m * p.k, 1), random64(p.batch * p.k * p.n, 2));
            let old = random64(p.batch * p.m * p.n, 3);
            let run = |par: &dyn Par| {
                let mut c = old.clone();
                gemm(par, p, &a, &b, &mut c);
                c
            };
            let want = by_definition(p, &a, &b, &old);
            let all = run(&Serial);
            assert!(all.iter().zip(&want).all(|(c, w)| (c - w).abs() < 1e-12 * p.k as f64));
            assert!(all == run(&Reverse) && all == run(&Threads(3)));
            let (one, size) = (Gemm { batch: 1, ..p }, p.m * p.n);
            let mut last = old[(p.batch - 1) * size..].to_vec();
            gemm(&Serial, one, &a[(p.batch - 1) * p.m * p.k..], &b[(p.batch - 1) * p.k * p.n..], &mut last);
            assert_eq!(all[(p.batch - 1) * size..], last);
        }
    }

    #[test]
    fn a_product_over_nothing_is_zero() {
        let mut c = [7.0f32; 6];
        gemm(&Serial, Gemm::new(2, 3, 0), &[], &[], &mut c);
        assert_eq!(c, [0.0; 6]);
    }
}
