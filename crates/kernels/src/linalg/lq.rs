//! Factorisation into a lower triangular and an orthonormal matrix.

use super::reflections::{BLOCK, Reflections, turned_units};
use super::{each_matrix2, reflect, reflection};
use crate::element::Float;
use crate::error::check_len;
use crate::par::Par;
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
    for start in (0..rows).step_by(BLOCK) {
        let end = (start + BLOCK).min(rows);
        for i in start..end {
            let (done, below) = work[..end * columns].split_at_mut((i + 1) * columns);
            let row = &mut done[i * columns..];
            l[i * rows..][..i].copy_from_slice(&row[..i]);
            l[i * rows + i] = T::from_f64(reflection(&mut row[i..]));
            below.chunks_exact_mut(columns).for_each(|other| reflect(&mut other[i..], &row[i..]));
        }
        if end < rows {
            let block = Reflections::new(par, &work, columns, 0, start..end);
            block.apply(par, &mut work[end * columns..], columns, true);
        }
    }
    turned_units(par, &work, columns, 0, rows, q);
}
