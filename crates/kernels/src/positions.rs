//! Places of arrays: as one number, and as one for each axis.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_cells_mut, par_chunks_mut, par_columns_mut};
use crate::scratch::Scratch;
use crate::vectorize::vectorized;
use std::ops::Range;

/// Places that are computed together.
const BLOCK: usize = 256;
/// Numbers below it are whole in double precision, as are their quotients when cut off.
const SMALL: f64 = 2_147_483_648.0;

/// An axis: the distance of its neighbours in the flattened array, and its extent.
pub type Axis = [usize; 2];

/// `out[i]` is the place in the flattened array that the indices `x[.., i]` along each axis name.
pub fn ravel<T: Element>(par: &dyn Par, x: &[T], axes: &[Axis], out: &mut [T]) {
    let count = out.len();
    check_len("the indices", x.len(), axes.len() * count);
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |chunk_at, out| {
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = chunk_at * chunk + block * BLOCK;
            let mut sums = [0i64; BLOCK];
            for (axis, [step, _]) in axes.iter().enumerate() {
                let x = &x[axis * count + first..][..out.len()];
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = sum.wrapping_add(x.to_i64().wrapping_mul(*step as i64));
                }
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::from_i64(sum));
        }
    });
}

/// `out[.., i]` are the indices along each axis of the place `x[i]` of the flattened array. Those of
/// the first axis have no end.
pub fn unravel<T: Element>(par: &dyn Par, x: &[T], axes: &[Axis], out: &mut [T]) {
    check_len("the output", out.len(), axes.len() * x.len());
    let width = chunk_elems::<T>();
    par_columns_mut(par, out, [1, axes.len(), x.len()], width, 0, |_, first, mut columns, _| {
        let x = &x[first..][..columns.width()];
        for (axis, [step, size]) in axes.iter().map(|axis| axis.map(|n| n.max(1))).enumerate() {
            let size = (axis > 0).then_some(size);
            for (x, out) in x.chunks(BLOCK).zip(columns.row(axis).chunks_mut(BLOCK)) {
                let (mut wide, mut small) = ([0f64; BLOCK], true);
                widen(x, &mut wide[..x.len()], &mut small);
                if small && step.max(size.unwrap_or(0)) < SMALL as usize {
                    divide(&wide[..x.len()], step as f64, size.map(|size| size as f64), out);
                    continue;
                }
                for (out, x) in out.iter_mut().zip(x) {
                    let place = x.to_i64() / step as i64;
                    *out = T::from_i64(size.map_or(place, |size| place % size as i64));
                }
            }
        }
    });
}

vectorized! {
    /// Cuts off the fractions of numbers; whether all are small.
    fn widen[T: Element](x: &[T], out: &mut [f64], small: &mut bool) {
        let mut all = true;
        for (out, x) in out.iter_mut().zip(x) {
            *out = x.to_f64().trunc();
            all &= out.abs() < SMALL;
        }
        *small = all;
    }
}

vectorized! {
    /// Quotients of small whole numbers, or what is left of them after another division.
    fn divide[T: Element](x: &[f64], step: f64, size: Option<f64>, out: &mut [T]) {
        match size {
            // The sum makes +0 of -0.
            None => out.iter_mut().zip(x).for_each(|(out, x)| *out = T::from_f64((x / step).trunc() + 0.0)),
            Some(size) => {
                for (out, x) in out.iter_mut().zip(x) {
                    let place = (x / step).trunc();
                    *out = T::from_f64(place - (place / size).trunc() * size + 0.0);
                }
            }
        }
    }
}

/// `out[i]` are the indices of element `i` along some of the axes of `shape`.
pub fn own(par: &dyn Par, shape: &[usize], axes: &[usize], out: &mut [i64]) {
    check_len("the output", out.len(), shape.iter().product::<usize>() * axes.len());
    let rows = (chunk_elems::<i64>() / axes.len().max(1)).max(1);
    par_chunks_mut(par, out, rows * axes.len(), |chunk, out| {
        let mut index = Index::new(shape, chunk * rows);
        for out in out.chunks_mut(axes.len()) {
            out.iter_mut().zip(axes).for_each(|(out, axis)| *out = index.0[*axis]);
            index.advance(shape);
        }
    });
}

/// Indices along each axis of an array with elements.
struct Index(Vec<i64>);

impl Index {
    /// Finds those of a place of the flattened array.
    fn new(shape: &[usize], mut place: usize) -> Index {
        let mut index = vec![0; shape.len()];
        for (index, n) in index.iter_mut().zip(shape).rev() {
            *index = (place % n) as i64;
            place /= n;
        }
        Index(index)
    }

    /// Goes to the next element, from the last one to the first.
    fn advance(&mut self, shape: &[usize]) {
        for (index, n) in self.0.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < *n as i64 {
                return;
            }
            *index = 0;
        }
    }
}

/// How many marks are not 0.
pub fn count(par: &dyn Par, marks: &[u8]) -> usize {
    Marked::of(par, marks).before[marks.len().div_ceil(Marked::PART)]
}

/// Marks that are not 0: how many there are before each part.
struct Marked {
    before: Scratch<usize>,
}

impl Marked {
    /// Marks of a part.
    const PART: usize = 32 * 1024;

    fn of(par: &dyn Par, marks: &[u8]) -> Marked {
        let parts = marks.len().div_ceil(Marked::PART);
        let mut before = Scratch::filled(par, parts + 1, 0);
        par_chunks_mut(par, &mut before[1..], 1, |part, count| {
            let marks = &marks[Marked::range(part, marks.len())];
            // Bytes are counted in bytes, as many at once as fit a vector.
            count[0] = marks.chunks(255).map(|marks| usize::from(count_few(marks))).sum();
        });
        for part in 0..parts {
            before[part + 1] += before[part];
        }
        Marked { before }
    }

    fn range(part: usize, len: usize) -> Range<usize> {
        part * Marked::PART..len.min((part + 1) * Marked::PART)
    }
}

/// How many of at most 255 marks are not 0.
fn count_few(marks: &[u8]) -> u8 {
    marks.iter().map(|mark| u8::from(*mark != 0)).sum()
}

/// Writes the indices along each axis of `shape` of the elements with a mark that is not 0: a row for
/// each, in order. An array without axes has one index.
///
/// # Panics
/// If there is another number of rows than of such marks.
pub fn nonzero(par: &dyn Par, marks: &[u8], shape: &[usize], out: &mut [i64]) {
    let shape = if shape.is_empty() { &[1] } else { shape };
    check_len("the marks", marks.len(), shape.iter().product());
    let (rank, last) = (shape.len(), shape[shape.len() - 1]);
    let marked = Marked::of(par, marks);
    check_len("the output", out.len(), marked.before.last().copied().unwrap_or(0) * rank);
    par_cells_mut(par, out, rank, &marked.before, rank, 0, |part, _, mut rows, _| {
        let range = Marked::range(part, marks.len());
        let mut row = Index::new(&shape[..rank - 1], range.start / last);
        let (mut at, mut found) = (range.start, 0);
        while at < range.end {
            let column = at % last;
            let n = (last - column).min(range.end - at);
            for (j, _) in marks[at..at + n].iter().enumerate().filter(|(_, mark)| **mark != 0) {
                let out = rows.row(found);
                out[..rank - 1].copy_from_slice(&row.0);
                out[rank - 1] = (column + j) as i64;
                found += 1;
            }
            row.advance(&shape[..rank - 1]);
            at += n;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reverse, Threads};

    #[test]
    fn places_become_indices_and_places_again() {
        let axes = [[35, 40], [7, 5], [1, 7]];
        let places: Vec<i32> = (0..30_000).map(|i| i * 7919 % 1400).collect();
        for par in [&Threads(3) as &dyn Par, &Reverse] {
            let mut indices = vec![-1; 3 * places.len()];
            unravel(par, &places, &axes, &mut indices);
            let at = |axis: usize, i: usize| indices[axis * places.len() + i];
            assert!(
                (0..places.len())
                    .all(|i| [at(0, i), at(1, i), at(2, i)] == [places[i] / 35, places[i] / 7 % 5, places[i] % 7])
            );
            let mut back = vec![-1; places.len()];
            ravel(par, &indices, &axes, &mut back);
            assert_eq!(back, places);
        }
    }

    #[test]
    fn places_that_are_negative_or_large_are_divided_as_whole_numbers() {
        let x = [-1i64, -36, 1 << 53, (1 << 53) + 1, i64::MIN, 9];
        let mut out = [0; 12];
        unravel(&Threads(2), &x, &[[35, 40], [1, 35]], &mut out);
        assert_eq!(out[..6], x.map(|x| x / 35));
        assert_eq!(out[6..], x.map(|x| x % 35));
        let mut out = [0f32; 4];
        unravel(&Threads(2), &[-0.5f32, -36.5], &[[35, 40], [1, 35]], &mut out);
        assert_eq!(out.map(f32::to_bits), [0.0f32, -1.0, 0.0, -1.0].map(f32::to_bits));
    }

    #[test]
    fn every_element_knows_its_indices() {
        let (shape, mut out) = ([3, 41, 70], vec![0; 2 * 3 * 41 * 70]);
        own(&Reverse, &shape, &[2, 0], &mut out);
        for (i, row) in out.chunks(2).enumerate() {
            assert_eq!(row, [i as i64 % 70, i as i64 / 2870]);
        }
    }

    #[test]
    fn marks_that_are_not_zero_are_found_in_order() {
        for shape in [vec![70_001], vec![3, 300, 100], vec![50_000, 2], vec![]] {
            let n: usize = shape.iter().product();
            let marks: Vec<u8> = (0..n as u32).map(|i| (i.wrapping_mul(2654435761) >> 30) as u8 & 2).collect();
            let places: Vec<usize> = (0..n).filter(|i| marks[*i] != 0).collect();
            assert_eq!(count(&Threads(2), &marks), places.len());
            let mut out = vec![-1; places.len() * shape.len().max(1)];
            nonzero(&Threads(3), &marks, &shape, &mut out);
            let expected: Vec<i64> = places.iter().flat_map(|place| Index::new(&shape, *place).0).collect();
            assert_eq!(out, if shape.is_empty() { vec![0; places.len()] } else { expected });
        }
    }
}
