//! The steps of a product that count: a step at which all rows of A are zero adds nothing.

use super::Matrix;

/// Steps are left out if at least one in this many is; otherwise looking them up takes longer than
/// skipping them saves.
const LEAST_PART: usize = 16;
/// More rows have hardly a step in common that none of them needs.
const MOST_ROWS: usize = 4;

/// Steps of a product, in ascending order, and the values of A at them.
pub(super) struct Live<'a> {
    steps: &'a [u32],
    /// Rows of as many values as there are steps.
    values: &'a [f32],
    row_stride: usize,
}

impl<'a> Live<'a> {
    /// Elements of memory for a list of up to `k` steps.
    pub(super) fn room(rows: usize, k: usize) -> usize {
        let values = if rows <= MOST_ROWS { rows.max(1) * k } else { 0 };
        (k + 1) + values
    }

    /// The steps of `a`, `[rows, k]`, with a value that is not zero, if `some` is true and those
    /// are clearly fewer than all; otherwise all.
    ///
    /// # Panics
    /// If the rows of `a` are not contiguous.
    pub(super) fn of(a: Matrix<'a>, rows: usize, k: usize, some: bool, room: &'a mut [f32]) -> Live<'a> {
        assert!(a.col_stride == 1, "rows of A must be contiguous, but their values are {} apart", a.col_stride);
        let (steps, values) = room[..Self::room(rows, k)].split_at_mut(k + 1);
        let steps: &mut [u32] = bytemuck::cast_slice_mut(steps);
        if some && rows <= MOST_ROWS {
            let count = list_used(a, rows, bytemuck::cast_slice_mut(&mut values[..k]), steps);
            if k - count >= k.div_ceil(LEAST_PART) {
                return Self::listed(a, &steps[..count], &mut values[..rows * count]);
            }
        }
        steps.iter_mut().zip(0..).for_each(|(step, i)| *step = i);
        Live { steps: &steps[..k], values: a.data, row_stride: a.row_stride }
    }

    /// Gathers the values of the listed steps.
    fn listed(a: Matrix<'_>, steps: &'a [u32], values: &'a mut [f32]) -> Live<'a> {
        for (row, values) in values.chunks_exact_mut(steps.len().max(1)).enumerate() {
            let row = &a.data[row * a.row_stride..];
            values.iter_mut().zip(steps).for_each(|(value, step)| *value = row[*step as usize]);
        }
        Live { steps, values, row_stride: steps.len() }
    }

    /// The numbers of the steps.
    pub(super) fn steps(&self) -> &'a [u32] {
        self.steps
    }

    /// The values of a row at the steps.
    pub(super) fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.row_stride..][..self.steps.len()]
    }
}

/// Lists the columns of `a` in which a value is not zero, of either sign; their number. `used` has
/// room for a mark of each.
fn list_used(a: Matrix<'_>, rows: usize, used: &mut [u32], steps: &mut [u32]) -> usize {
    used.fill(0);
    for row in 0..rows {
        let row = &a.data[row * a.row_stride..];
        used.iter_mut().zip(row).for_each(|(used, value)| *used |= value.to_bits() << 1);
    }
    let mut count = 0;
    for (step, used) in used.iter().enumerate() {
        // Without a branch, which could not be foreseen.
        steps[count] = step as u32;
        count += usize::from(*used != 0);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::tests::values;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_step_is_left_out_if_no_row_needs_it(
            rows in 1usize..7, k in 1usize..70, zeros in 0usize..8, apart in 0usize..3, some: bool, seed: u64,
        ) {
            let stride = k + apart;
            let mut data = values(seed, rows * stride);
            for (i, value) in values(!seed, rows * stride).iter().enumerate() {
                if value.abs() * 8.0 < zeros as f32 {
                    data[i] = if i % 2 == 0 { 0.0 } else { -0.0 };
                }
            }
            let row = |row: usize| &data[row * stride..][..k];
            let used: Vec<u32> = (0..k as u32).filter(|s| (0..rows).any(|r| row(r)[*s as usize] != 0.0)).collect();
            let mut room = vec![f32::NAN; Live::room(rows, k)];
            let live = Live::of(Matrix::rows(&data, stride), rows, k, some, &mut room);
            if some && rows <= MOST_ROWS && k - used.len() >= k.div_ceil(LEAST_PART) {
                prop_assert_eq!(live.steps(), used);
            } else {
                prop_assert_eq!(live.steps(), (0..k as u32).collect::<Vec<_>>());
            }
            for r in 0..rows {
                let values: Vec<f32> = live.steps().iter().map(|s| row(r)[*s as usize]).collect();
                prop_assert_eq!(live.row(r), &values);
            }
        }
    }
}
