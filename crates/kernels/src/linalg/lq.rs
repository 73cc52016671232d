//! Factorisation into a lower triangular and an orthonormal matrix.

use super::{each_matrix2, reflect, reflect_back, reflection};
use crate::element::Float;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::scratch::Scratch;

/// Factorises `A = L Q`: matrices of `rows` rows of `columns` elements, no more rows than columns.
/// `Q` has orthonormal rows and the shape of `A`. Signs are those of Householder's reflections, as
/// in LAPACK.
///
/// # Panics
/// If the lengths contradict each other, or there are more rows than columns.
pub fn lq<T: Float>(par: &dyn Par, [rows, columns]: [usize; 2], a: &[T], q: &mut [T], l: &mut [T]) {
    assert!(rows <= columns, "{rows} rows of {columns} elements cannot be orthonormal");
    check_len("q", q.len(), a.len());
    if a.is_empty() {
        return;
    }
    let size = rows * columns;
    check_len("l", l.len(), a.len() / size * rows * rows);
    let result = each_matrix2(par, (q, size), (l, rows * rows), columns, |par, i, q, l| {
        one(par, [rows, columns], &a[i * size..][..size], q, l);
        Ok(())
    });
    debug_assert!(result.is_ok(), "a factorisation by reflections has no errors");
}

fn one<T: Float>(par: &dyn Par, [rows, columns]: [usize; 2], a: &[T], q: &mut [T], l: &mut [T]) {
    let mut work = Scratch::copy_of(par, a);
    l.fill(T::ZERO);
    for i in 0..rows {
        let (done, below) = work.split_at_mut((i + 1) * columns);
        let row = &mut done[i * columns..];
        l[i * rows..][..i].copy_from_slice(&row[..i]);
        l[i * rows + i] = T::from_f64(reflection(&mut row[i..]));
        let row: &[T] = row;
        let band = chunk_by_work(4 * (columns - i));
        par_chunks_mut(par, below, band * columns, |_, others| {
            others.chunks_exact_mut(columns).for_each(|other| reflect(&mut other[i..], &row[i..]));
        });
    }
    let band = chunk_by_work(2 * rows * columns);
    par_chunks_mut(par, q, band * columns, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(columns).enumerate() {
            let row = chunk * band + i;
            out.fill(T::ZERO);
            out[row] = T::ONE;
            reflect_back(out, &work, columns, 0, 0..row + 1);
        }
    });
}
