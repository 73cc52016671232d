//! Walking several arrays through one index space.

/// The row-major strides of `shape`.
pub fn contiguous(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1usize;
    for (stride, &n) in strides.iter_mut().zip(shape).rev() {
        *stride = step as isize;
        step = step.wrapping_mul(n);
    }
    strides
}

/// The strides with which an array of `shape` is read as if it had `out_shape`: axes are matched
/// from the right, axes of size 1 repeat.
///
/// # Panics
/// If `shape` does not broadcast to `out_shape`.
pub fn broadcast(shape: &[usize], out_shape: &[usize]) -> Vec<isize> {
    assert!(shape.len() <= out_shape.len(), "shape {shape:?} does not broadcast to {out_shape:?}");
    let lead = out_shape.len() - shape.len();
    let mut strides = vec![0; out_shape.len()];
    for (i, stride) in contiguous(shape).into_iter().enumerate() {
        assert!(
            shape[i] == out_shape[lead + i] || shape[i] == 1,
            "shape {shape:?} does not broadcast to {out_shape:?}"
        );
        strides[lead + i] = if shape[i] == 1 { 0 } else { stride };
    }
    strides
}

/// An index space with the strides of `K` arrays, its axes joined where all arrays allow it.
pub(crate) struct Space<const K: usize> {
    /// Sizes and strides of the outer axes, outermost first.
    outer: Vec<(usize, [isize; K])>,
    /// Size and strides of the innermost axis.
    pub inner: (usize, [isize; K]),
    /// How many rows there are: the product of the outer axes.
    pub rows: usize,
}

impl<const K: usize> Space<K> {
    pub fn new(shape: &[usize], strides: [&[isize]; K]) -> Self {
        let mut dims: Vec<(usize, [isize; K])> = Vec::with_capacity(shape.len());
        for (axis, &n) in shape.iter().enumerate() {
            if n == 1 {
                continue;
            }
            let step = strides.map(|s| s[axis]);
            if let Some((last_n, last)) = dims.last_mut()
                && (0..K).all(|k| last[k] == step[k] * n as isize)
            {
                *last_n *= n;
                *last = step;
            } else {
                dims.push((n, step));
            }
        }
        let inner = dims.pop().unwrap_or((1, [0; K]));
        let rows = dims.iter().map(|d| d.0).product();
        Space { outer: dims, inner, rows }
    }

    /// The axes outside of the innermost.
    pub fn outer(&self) -> &[(usize, [isize; K])] {
        &self.outer
    }

    /// A cursor at the start of row `row`.
    pub fn cursor(&self, mut row: usize) -> Cursor<'_, K> {
        let mut index = vec![0; self.outer.len()];
        let mut offset = [0; K];
        for (i, (n, step)) in self.outer.iter().enumerate().rev() {
            index[i] = row % n;
            row /= n;
            for k in 0..K {
                offset[k] += index[i] as isize * step[k];
            }
        }
        Cursor { space: self, index, offset }
    }

    /// Calls `body(offsets, column, start, len)` for every piece of a row in the flat range
    /// `start..start + len` of the index space; `start` counts from the beginning of the range.
    pub fn for_rows(&self, start: usize, len: usize, mut body: impl FnMut([isize; K], usize, usize, usize)) {
        let inner = self.inner.0;
        let mut cursor = self.cursor(start / inner.max(1));
        let (mut done, mut column) = (0, start % inner.max(1));
        while done < len {
            let n = (inner - column).min(len - done);
            body(cursor.offset, column, done, n);
            done += n;
            column = 0;
            cursor.advance();
        }
    }
}

/// A row of a [`Space`].
pub(crate) struct Cursor<'a, const K: usize> {
    space: &'a Space<K>,
    index: Vec<usize>,
    /// Beginning of the row in every array.
    pub offset: [isize; K],
}

impl<const K: usize> Cursor<'_, K> {
    /// Goes to the next row (from the last one to the first).
    pub fn advance(&mut self) {
        for (i, (n, step)) in self.space.outer.iter().enumerate().rev() {
            self.index[i] += 1;
            for k in 0..K {
                self.offset[k] += step[k];
            }
            if self.index[i] < *n {
                return;
            }
            self.index[i] = 0;
            for k in 0..K {
                self.offset[k] -= *n as isize * step[k];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_joined_where_every_array_is_contiguous() {
        let full = contiguous(&[2, 3, 4]);
        assert_eq!(full, [12, 4, 1]);
        let space = Space::new(&[2, 3, 4], [&full]);
        assert_eq!((space.rows, space.inner), (1, (24, [1])));
        let channel = broadcast(&[3, 1], &[2, 3, 4]);
        assert_eq!(channel, [0, 1, 0]);
        let space = Space::new(&[2, 3, 4], [&full, &channel]);
        assert_eq!((space.rows, space.inner), (6, (4, [1, 0])));
    }

    #[test]
    fn a_cursor_visits_rows_in_order_from_anywhere() {
        let (a, b) = (contiguous(&[2, 3, 4]), broadcast(&[3, 1], &[2, 3, 4]));
        let space = Space::new(&[2, 3, 4], [&a, &b]);
        for start in 0..6 {
            let mut cursor = space.cursor(start);
            for row in start..6 {
                assert_eq!(cursor.offset, [row as isize * 4, row as isize % 3]);
                cursor.advance();
            }
        }
    }

    #[test]
    #[should_panic(expected = "does not broadcast")]
    fn shapes_that_do_not_broadcast_are_refused() {
        broadcast(&[2], &[3]);
    }
}
