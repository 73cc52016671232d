//! Arrays that are put together of parts of others.

use super::Item;
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::scratch::Scratch;
use std::ops::Range;

/// A part along the middle axis of an array of shape `[outer, n, inner]`.
#[derive(Clone, Copy)]
pub struct Part<'a, T> {
    /// The array.
    pub array: &'a [T],
    /// Extent of the array along the axis.
    pub n: usize,
    /// The first place that the part has.
    pub start: usize,
    /// The number of places that it has.
    pub count: usize,
}

/// Joins arrays of shape `[outer, n_k, inner]`, given with their `n_k`, along the middle axis.
pub fn concat<T: Item>(par: &dyn Par, inputs: &[(&[T], usize)], outer: usize, inner: usize, out: &mut [T]) {
    let whole = inputs.iter().map(|&(array, n)| Part { array, n, start: 0, count: n });
    join(par, &Scratch::collect(par, inputs.len(), whole), outer, inner, out);
}

/// Joins parts along the middle axis: their places in turn, for each outer index.
///
/// # Panics
/// If a part is not inside of its array, or the lengths contradict the extents.
pub fn join<T: Item>(par: &dyn Par, parts: &[Part<'_, T>], outer: usize, inner: usize, out: &mut [T]) {
    for part in parts {
        check_len("an input", part.array.len(), outer * part.n * inner);
        assert!(part.start + part.count <= part.n, "places {} of {}", part.start + part.count, part.n);
    }
    // Where each part begins in a row of the output, and the end of the last.
    let mut row = 0;
    let ends = parts.iter().map(|part| {
        row += part.count * inner;
        row
    });
    let starts = Scratch::collect(par, parts.len() + 1, std::iter::once(0).chain(ends));
    check_len("the output", out.len(), outer * row);
    let parts = JoinedParts { parts, starts: &starts, inner };
    let chunk = chunk_elems::<T>();
    if row == 0 {
    } else if row <= MOST_NARROW {
        let rows = chunk / row;
        par_chunks_mut(par, out, rows * row, |i, out| parts.write_rows(i * rows, row, out));
    } else {
        par_chunks_mut(par, out, chunk, |i, out| parts.write(i * chunk, row, out));
    }
}

/// Elements of a row up to which one part of all rows is copied after another.
const MOST_NARROW: usize = 32;

struct JoinedParts<'a, T> {
    parts: &'a [Part<'a, T>],
    starts: &'a [usize],
    inner: usize,
}

impl<T: Item> JoinedParts<'_, T> {
    /// The elements of a part for one outer index.
    fn of(&self, part: usize, outer: usize) -> Range<usize> {
        let Part { n, start, count, .. } = self.parts[part];
        let first = (outer * n + start) * self.inner;
        first..first + count * self.inner
    }

    /// Writes the elements of the output from this one on.
    fn write(&self, first: usize, row: usize, out: &mut [T]) {
        let (mut outer, mut column, mut rest) = (first / row, first % row, out);
        let mut part = self.starts.partition_point(|start| *start <= column) - 1;
        while !rest.is_empty() {
            let from = &self.parts[part].array[self.of(part, outer)][column - self.starts[part]..];
            let (out, after) = rest.split_at_mut(from.len().min(rest.len()));
            out.copy_from_slice(&from[..out.len()]);
            (rest, part, column) = (after, part + 1, self.starts[part + 1]);
            if part == self.parts.len() {
                (outer, part, column) = (outer + 1, 0, 0);
            }
        }
    }

    /// Writes whole rows.
    fn write_rows(&self, first: usize, row: usize, out: &mut [T]) {
        for (part, start) in self.starts[..self.parts.len()].iter().enumerate() {
            let (array, step) = (self.parts[part].array, self.parts[part].n * self.inner);
            let from = &array[self.of(part, first).start.min(array.len())..];
            match self.parts[part].count * self.inner {
                0 => {}
                1 => {
                    let places = out[*start..].iter_mut().step_by(row);
                    places.zip(from.iter().step_by(step)).for_each(|(out, from)| *out = *from);
                }
                width => {
                    for (out, from) in out.chunks_mut(row).zip(from.chunks(step)) {
                        out[*start..][..width].copy_from_slice(&from[..width]);
                    }
                }
            }
        }
    }
}
