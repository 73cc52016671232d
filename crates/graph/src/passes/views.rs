//! Arrays that are read where another array stores them: reshaped, transposed and sliced ones.

use crate::ir::Value;
use mxrt_ops::Move;

/// Elements of an array, in order, in the memory of another array.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The array that stores them.
    pub source: Value,
    /// The place of the first element.
    pub first: usize,
    /// Extents and steps of axes that together are the array. How they form its shape is not kept,
    /// as no reshaping changes the order of elements.
    pub axes: Vec<[usize; 2]>,
}

impl View {
    /// An array in its own memory.
    pub fn whole(source: Value, shape: &[usize]) -> View {
        View { source, first: 0, axes: vec![[shape.iter().product(), 1]] }
    }

    /// An array that is broadcast, its axes matched from the last, to a shape; None if it does not
    /// fit.
    pub fn broadcast(source: Value, shape: &[usize], to: &[usize]) -> Option<View> {
        let missing = to.len().checked_sub(shape.len())?;
        let mut step = 1;
        let mut axes = vec![[1, 0]; to.len()];
        for (axis, extent) in shape.iter().enumerate().rev() {
            let whole = to[axis + missing];
            axes[axis + missing] = match *extent {
                1 => [whole, 0],
                extent if extent == whole => [extent, step],
                _ => return None,
            };
            step *= extent;
        }
        (0..missing).for_each(|axis| axes[axis] = [to[axis], 0]);
        Some(View { source, first: 0, axes })
    }

    /// The place of an element.
    fn place(&self, element: usize) -> usize {
        let (mut rest, mut place) = (element, self.first);
        for [extent, step] in self.axes.iter().rev() {
            place += rest % extent.max(&1) * step;
            rest /= extent.max(&1);
        }
        place
    }

    /// Extents and steps of the axes through the elements `from`, `from + step`, ... of which there
    /// are `extent`, the fewest that do; None if they are not at such places.
    pub fn axis(&self, from: usize, extent: usize, step: usize) -> Option<Vec<[usize; 2]>> {
        if extent == 1 {
            return Some(Vec::new());
        }
        if step == 0 {
            return Some(vec![[extent, 0]]);
        }
        if extent == 0 || self.axes.iter().any(|[extent, _]| *extent == 0) {
            return None;
        }
        // From the innermost axis outward: `below` elements are inside of it.
        let (mut below, mut left, mut found) = (1usize, extent, Vec::new());
        for [size, apart] in self.axes.iter().rev() {
            let inside = below.checked_mul(*size)?;
            if left > 1 && inside > step {
                // Steps within this axis, which begin at its start, or where `step` says.
                let stride = if found.is_empty() { step } else { below };
                if stride % below != 0 || (found.is_empty() && inside % step != 0) {
                    return None;
                }
                let (jump, there) = (stride / below, inside / stride);
                let begin = from % inside / stride;
                let ends_within = left <= there - begin;
                if !ends_within && (begin != 0 || left % there != 0) {
                    return None;
                }
                let taken = left.min(there);
                found.push([taken, apart * jump]);
                left /= taken;
            }
            below = inside;
        }
        found.reverse();
        (left == 1).then(|| merged(found))
    }

    /// The elements that a move reads, in the order of its result.
    pub fn moved(&self, moved: &Move) -> Option<View> {
        let (start, steps) = &moved.from;
        let mut axes = Vec::new();
        for (extent, step) in moved.shape.iter().zip(steps) {
            axes.extend(self.axis(*start, *extent, usize::try_from(*step).ok()?)?);
        }
        Some(View { source: self.source, first: self.place(*start), axes: merged(axes) })
    }

    /// The place of the first element from `from` on, and one step along each of two axes, the last
    /// ones of a matrix; then the axes of a batch of matrices.
    pub fn matrices(&self, from: usize, batch: &[[usize; 2]], matrix: [[usize; 2]; 2]) -> Option<MatrixPlaces> {
        let mut axes = Vec::new();
        for [extent, step] in batch {
            axes.extend(self.axis(from, *extent, *step)?);
        }
        let single = |[extent, step]: [usize; 2]| match self.axis(from, extent, step)?[..] {
            [] => Some(0),
            [[_, step]] => Some(step),
            _ => None,
        };
        let steps = [single(matrix[0])?, single(matrix[1])?];
        Some(MatrixPlaces { source: self.source, first: self.place(from), batch: merged(axes), steps })
    }
}

/// Matrices in the memory of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixPlaces {
    /// The array.
    pub source: Value,
    /// The place of the first element.
    pub first: usize,
    /// Extents and steps of axes from matrix to matrix.
    pub batch: Vec<[usize; 2]>,
    /// Steps from row to row and from column to column.
    pub steps: [usize; 2],
}

impl MatrixPlaces {
    /// The steps between matrices of a batch with these two extents.
    pub fn batch_steps(&self, [outer, inner]: [usize; 2]) -> Option<[usize; 2]> {
        match self.batch[..] {
            [] if outer * inner == 1 => Some([0, 0]),
            [[extent, step]] if extent == outer * inner => Some([step * inner, step]),
            [[o, by_outer], [i, by_inner]] if [o, i] == [outer, inner] => Some([by_outer, by_inner]),
            _ => None,
        }
    }
}

/// Removes axes of one element, and joins axes that continue each other.
fn merged(axes: Vec<[usize; 2]>) -> Vec<[usize; 2]> {
    let mut all: Vec<[usize; 2]> = Vec::new();
    for [extent, step] in axes.into_iter().filter(|[extent, _]| *extent != 1) {
        match all.last_mut() {
            Some([before, by]) if *by == extent * step => (*before, *by) = (*before * extent, step),
            _ => all.push([extent, step]),
        }
    }
    all
}

/// An array as elements of its transpose: the places that a move which only changes the order of
/// elements gives them.
pub fn transposed(moved: &Move, result: Value) -> Option<View> {
    let ((0, from), (0, into)) = (&moved.from, &moved.into) else { return None };
    if moved.shape.contains(&0) {
        return None;
    }
    let mut axes: Vec<[usize; 3]> = Vec::new();
    for ((extent, from), into) in moved.shape.iter().zip(from).zip(into).filter(|((extent, _), _)| **extent != 1) {
        axes.push([usize::try_from(*from).ok()?, *extent, usize::try_from(*into).ok()?]);
    }
    axes.sort_unstable_by(|a, b| b.cmp(a));
    let mut inside = 1;
    for [step, extent, _] in axes.iter().rev() {
        if *step != inside {
            return None;
        }
        inside *= extent;
    }
    let axes = axes.into_iter().map(|[_, extent, into]| [extent, into]).collect();
    Some(View { source: result, first: 0, axes: merged(axes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Value = Value::Input(0);

    /// A transpose of an array of this shape.
    fn transpose(shape: &[usize], order: &[usize]) -> Move {
        let steps = |shape: &[usize]| -> Vec<isize> {
            (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<usize>() as isize).collect()
        };
        let (given, moved): (_, Vec<usize>) = (steps(shape), order.iter().map(|axis| shape[*axis]).collect());
        let from = order.iter().map(|axis| given[*axis]).collect();
        let into = steps(&moved);
        Move { input: 0, output: 0, shape: moved, from: (0, from), into: (0, into) }
    }

    #[test]
    fn heads_are_read_where_a_layer_wrote_them() {
        // (batch 2, time 5, heads 3 of 4) as (2 * 3, 5, 4)
        let view = View::whole(X, &[2, 5, 12]).moved(&transpose(&[2, 5, 3, 4], &[0, 2, 1, 3])).expect("a view");
        let heads = view.matrices(0, &[[6, 20]], [[5, 4], [4, 1]]).expect("they are matrices");
        assert_eq!(heads, MatrixPlaces { source: X, first: 0, batch: vec![[2, 60], [3, 4]], steps: [12, 1] });
        assert_eq!([heads.batch_steps([2, 3]), heads.batch_steps([3, 2])], [Some([60, 4]), None]);
        // The way back: elements of (2 * 3, 5, 4) in the memory of (2, 5, 12).
        let back = transposed(&transpose(&[2, 3, 5, 4], &[0, 2, 1, 3]), X).expect("only the order changes");
        assert_eq!(back.matrices(0, &[[6, 20]], [[5, 4], [4, 1]]), Some(heads));
        assert!(view.matrices(0, &[], [[30, 4], [4, 1]]).is_none(), "rows of several heads are no matrix");
    }

    #[test]
    fn slices_are_read_in_place_and_what_ends_within_an_axis_is_not() {
        // Columns 4 .. 8 of (6, 12).
        let slice = Move { input: 0, output: 0, shape: vec![6, 4], from: (4, vec![12, 1]), into: (0, vec![4, 1]) };
        let view = View::whole(X, &[6, 12]).moved(&slice).expect("a view");
        assert_eq!(view, View { source: X, first: 4, axes: vec![[6, 12], [4, 1]] });
        let matrix = view.matrices(0, &[[3, 8]], [[2, 4], [4, 1]]).expect("matrices");
        assert_eq!((matrix.first, matrix.batch, matrix.steps), (4, vec![[3, 24]], [12, 1]));
        assert!(view.axis(0, 3, 3).is_none() && view.axis(0, 12, 2).is_some() && view.axis(0, 8, 1).is_some());
    }

    #[test]
    fn what_is_broadcast_has_steps_of_zero() {
        let view = View::broadcast(X, &[2, 1, 7], &[2, 5, 7]).expect("it fits");
        let mask = view.matrices(0, &[[2, 35]], [[5, 7], [7, 1]]).expect("matrices");
        assert_eq!((mask.batch, mask.steps), (vec![[2, 7]], [0, 1]));
        assert_eq!(View::broadcast(X, &[3, 7], &[2, 5, 7]), None);
    }

    /// Every place that `axis` names is that of the element.
    #[test]
    fn axes_lead_to_the_places_of_elements() {
        let views = [
            View::whole(X, &[4, 6, 2]),
            View { source: X, first: 3, axes: vec![[2, 100], [6, 7], [4, 1]] },
            View { source: X, first: 0, axes: vec![[3, 0], [4, 5], [4, 50]] },
        ];
        let mut known = 0;
        for view in &views {
            for (from, extent, step) in (0..20).flat_map(|f| (1..13).flat_map(move |e| (1..25).map(move |s| (f, e, s))))
            {
                if from + (extent - 1) * step >= 48 {
                    continue;
                }
                let Some(axes) = view.axis(from, extent, step) else { continue };
                known += 1;
                assert_eq!(axes.iter().map(|[extent, _]| extent).product::<usize>(), extent, "{view:?} {from} {step}");
                for i in 0..extent {
                    let along = View { source: X, first: view.place(from), axes: axes.clone() };
                    assert_eq!(along.place(i), view.place(from + i * step), "{view:?} {from} {extent} {step} {axes:?}");
                }
            }
        }
        assert!(known > 500, "{known} of the axes are known");
    }
}
