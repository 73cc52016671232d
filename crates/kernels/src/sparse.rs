//! Products of sparse matrices. Positions must have been checked: columns of a csr matrix are below
//! the number of its columns, row pointers don't fall and end with the number of values.

use crate::Element;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::scratch::ScratchList;
use std::ops::{AddAssign, Mul, Range};

/// Numbers that products are computed in.
pub trait Number: Element + Mul<Output = Self> + AddAssign {}
impl Number for f32 {}
impl Number for f64 {}

/// Elements of a row whose sums are computed together.
const BLOCK: usize = 64;

/// A csr matrix.
#[derive(Clone, Copy)]
pub struct Csr<'a, T> {
    /// stored values, row after row
    pub values: &'a [T],
    /// the column of each value
    pub columns: &'a [i64],
    /// the position of the first value of each row, and the number of values
    pub pointers: &'a [i64],
}

impl<T> Csr<'_, T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.pointers.len().saturating_sub(1)
    }

    /// Positions of the values of a row.
    pub fn row(&self, row: usize) -> Range<usize> {
        self.pointers[row] as usize..self.pointers[row + 1] as usize
    }
}

crate::vectorize::vectorized! {
    /// Adds rows of `b`, each times a value.
    fn add_rows[T: Number](values: &[T], rows: &[usize], b: &[T], out: &mut [T]) {
        let width = out.len();
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        let begin = blocks.len() * BLOCK;
        for (i, out) in blocks.iter_mut().enumerate() {
            // A copy, which stays in registers.
            let mut sums = *out;
            for (value, row) in values.iter().zip(rows) {
                let first = row * width + i * BLOCK;
                let from = &b[first..first + BLOCK];
                sums.iter_mut().zip(from).for_each(|(sum, b)| *sum += *value * *b);
            }
            *out = sums;
        }
        if !rest.is_empty() {
            for (value, row) in values.iter().zip(rows) {
                let from = &b[row * width + begin..(row + 1) * width];
                rest.iter_mut().zip(from).for_each(|(out, b)| *out += *value * *b);
            }
        }
    }
}

/// Work of one row of a product, for the division into chunks.
fn rows_per_chunk<T>(a: &Csr<'_, T>, width: usize) -> usize {
    chunk_by_work(width.saturating_mul(1 + a.values.len() / a.rows().max(1)))
}

/// `out = a · b`: `b` has rows of `width` elements, of which `row_of(column)` says where the one for
/// a column of `a` is, if it is stored.
pub fn csr_times_rows<T: Number>(
    par: &dyn Par,
    a: Csr<'_, T>,
    b: &[T],
    width: usize,
    row_of: impl Fn(i64) -> Option<usize> + Sync,
    out: &mut [T],
) {
    if width == 0 {
        return;
    }
    let chunk = rows_per_chunk(&a, width);
    par_chunks_mut(par, out, chunk * width, |index, piece| {
        piece.fill(T::ZERO);
        let (mut values, mut rows) = (ScratchList::<T>::new(par), ScratchList::<usize>::new(par));
        for (i, out) in piece.chunks_exact_mut(width).enumerate() {
            let stored = a.row(index * chunk + i);
            values.clear();
            rows.clear();
            for (value, column) in a.values[stored.clone()].iter().zip(&a.columns[stored]) {
                if let Some(row) = row_of(*column) {
                    values.push(*value);
                    rows.push(row);
                }
            }
            add_rows(&values, &rows, b, out);
        }
    });
}

/// `out = aᵀ · b`, where row `row_of(column)` of `out` is that for a column of `a`, and `stored(row)`
/// says where the row of `b` for a row of `a` is.
pub fn transposed_csr_times_rows<T: Number>(
    a: Csr<'_, T>,
    b: &[T],
    width: usize,
    stored: impl Fn(usize) -> Option<usize>,
    row_of: impl Fn(i64) -> Option<usize>,
    out: &mut [T],
) {
    out.fill(T::ZERO);
    if width == 0 {
        return;
    }
    for row in 0..a.rows() {
        let Some(from) = stored(row) else { continue };
        let positions = a.row(row);
        for (value, column) in a.values[positions.clone()].iter().zip(&a.columns[positions]) {
            if let Some(to) = row_of(*column) {
                add_rows(&[*value], &[from], b, &mut out[to * width..(to + 1) * width]);
            }
        }
    }
}

/// `out = a · b` of a dense `a` with rows of `depth` elements and a csr `b`; each row of `out` has
/// `width` elements, at `column_of[i]` the one for value `i` of `b`.
pub fn rows_times_csr<T: Number>(
    par: &dyn Par,
    a: &[T],
    depth: usize,
    b: Csr<'_, T>,
    column_of: &[usize],
    width: usize,
    out: &mut [T],
) {
    if width == 0 {
        return;
    }
    let chunk = chunk_by_work(b.values.len() + depth);
    par_chunks_mut(par, out, chunk * width, |index, piece| {
        piece.fill(T::ZERO);
        for (i, out) in piece.chunks_exact_mut(width).enumerate() {
            let row = index * chunk + i;
            for (k, factor) in a[row * depth..(row + 1) * depth].iter().enumerate() {
                let stored = b.row(k);
                for (value, column) in b.values[stored.clone()].iter().zip(&column_of[stored]) {
                    out[*column] += *factor * *value;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    /// [[0, 2, 0], [3, 0, 4]]
    const A: Csr<'static, f32> = Csr { values: &[2.0, 3.0, 4.0], columns: &[1, 0, 2], pointers: &[0, 1, 3] };

    #[test]
    fn a_csr_matrix_times_dense_rows() {
        let b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut out = [9.0; 4];
        csr_times_rows(&Serial, A, &b, 2, |column| Some(column as usize), &mut out);
        assert_eq!(out, [6.0, 8.0, 23.0, 30.0]);
    }

    #[test]
    fn rows_of_the_right_side_that_are_not_stored_count_as_zeros() {
        let mut out = [9.0; 4];
        csr_times_rows(&Serial, A, &[5.0, 6.0], 2, |column| (column == 2).then_some(0), &mut out);
        assert_eq!(out, [0.0, 0.0, 20.0, 24.0]);
    }

    #[test]
    fn a_transposed_csr_matrix_times_dense_rows() {
        let mut out = [9.0; 6];
        transposed_csr_times_rows(A, &[1.0, 2.0, 3.0, 4.0], 2, Some, |column| Some(column as usize), &mut out);
        assert_eq!(out, [9.0, 12.0, 2.0, 4.0, 12.0, 16.0]);
    }

    #[test]
    fn dense_rows_times_a_csr_matrix() {
        let mut out = [9.0; 3];
        rows_times_csr(&Serial, &[10.0, 1.0], 2, A, &[1, 0, 2], 3, &mut out);
        assert_eq!(out, [3.0, 20.0, 4.0]);
    }
}
