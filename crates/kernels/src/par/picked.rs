//! Rows of a matrix that were chosen.

use super::Columns;
use crate::places::Places;
use std::ops::Range;

/// Rows of some columns of a matrix that were chosen by their numbers.
pub struct PickedRows<'a, T> {
    pub(super) matrix: Columns<'a, T>,
    pub(super) rows: Places<'a>,
}

impl<T> PickedRows<'_, T> {
    /// Number of rows.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.rows.values().len()
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.matrix.width
    }

    /// Some of the rows, and the columns from a column on.
    ///
    /// # Panics
    /// If there are no such rows, or fewer columns.
    pub fn part(&mut self, rows: Range<usize>, from: usize) -> PickedRows<'_, T> {
        let Columns { base, rows: count, inner, width, owner } = self.matrix;
        assert!(from <= width, "columns from {from} on of {width}");
        // An offset of a matrix without rows is never used.
        let matrix = Columns { base: base.wrapping_add(from), rows: count, inner, width: width - from, owner };
        PickedRows { matrix, rows: self.rows.part(rows) }
    }

    /// Address of row 0 of the matrix, elements from a row to the next, and the chosen rows, each of
    /// which has at least these columns.
    ///
    /// # Panics
    /// If a row is none of the matrix, or there are fewer columns.
    pub fn addresses(&mut self, columns: usize) -> (*mut T, usize, &[usize]) {
        let (rows, most) = (self.rows.values(), self.rows.most());
        assert!(rows.is_empty() || most < self.matrix.rows, "row {most} of {}", self.matrix.rows);
        assert!(columns <= self.matrix.width, "{columns} of {} columns", self.matrix.width);
        (self.matrix.base, self.matrix.inner, rows)
    }

    /// The columns of one of the rows.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&mut self, i: usize) -> &mut [T] {
        self.matrix.row(self.rows.values()[i])
    }
}
