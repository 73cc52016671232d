//! Axes and extents: resolved from attributes, read from shapes that are only partly known.

use super::Shapes;
use super::errors::{shape_error, value_error};
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::PartialShape;
use smallvec::SmallVec;

/// A list of axes or extents.
pub(crate) type Dims = SmallVec<[usize; 6]>;

/// The axis counted from the front; negative ones count from the end.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Result<usize, OpError> {
    let from_front = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    from_front.and_then(|a| usize::try_from(a).ok()).filter(|a| *a < rank).ok_or_else(|| {
        value_error(format!(
            "axis {axis} exceeds the input dimension of {rank}: expected {} <= axis < {rank}",
            -(rank as i64)
        ))
    })
}

/// The place of a new axis among those of an input, counted from the front; negative ones count from
/// the end of the result.
pub(crate) fn resolve_new_axis(axis: i64, rank: usize) -> Result<usize, OpError> {
    resolve_axis(axis, rank + 1).map_err(|_| {
        let axes = if rank == 1 { "axis" } else { "axes" };
        value_error(format!(
            "axis {axis} is no place for a new axis in an input of {rank} {axes}: expected {} <= axis <= {rank}",
            -(rank as i64) - 1
        ))
    })
}

/// Several different axes, counted from the front, in ascending order.
pub(crate) fn resolve_axes(axes: &[i64], rank: usize) -> Result<Dims, OpError> {
    let mut resolved = axes.iter().map(|a| resolve_axis(*a, rank)).collect::<Result<Dims, OpError>>()?;
    resolved.sort_unstable();
    if resolved.windows(2).any(|pair| pair[0] == pair[1]) {
        let list: Vec<String> = axes.iter().map(i64::to_string).collect();
        return Err(value_error(format!("axes ({}) name one axis more than once", list.join(", "))));
    }
    Ok(resolved)
}

/// The extents before an axis together, its own, and those after it together.
pub(crate) fn split_around(axis: usize, shape: &[usize]) -> [usize; 3] {
    [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()]
}

/// [`split_around`] for an axis that may count from the end. As in MXNet, a scalar has an axis of one
/// element.
pub(crate) fn split_at(axis: i64, shape: &[usize]) -> Result<[usize; 3], OpError> {
    let shape = if shape.is_empty() && matches!(axis, 0 | -1) { &[1] } else { shape };
    Ok(split_around(resolve_axis(axis, shape.len())?, shape))
}

/// [`split_at`]; without an axis all elements are one.
pub(crate) fn split_or_all(axis: Option<i64>, shape: &[usize]) -> Result<[usize; 3], OpError> {
    match axis {
        Some(axis) => split_at(axis, shape),
        None => Ok([1, shape.iter().product(), 1]),
    }
}

/// Extents given as an attribute, none of which may be negative.
pub(crate) fn extents(name: &str, values: &[i64]) -> Result<Dims, OpError> {
    values
        .iter()
        .map(|v| usize::try_from(*v).map_err(|_| value_error(format!("{name} has the negative extent {v}"))))
        .collect()
}

/// Number of elements, or an error when it does not fit.
pub(crate) fn checked_product(dims: &[usize]) -> Result<usize, OpError> {
    dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).ok_or_else(|| {
        let list: Vec<String> = dims.iter().map(usize::to_string).collect();
        OpError::new(
            FailureKind::Memory,
            format!("an array of shape ({}) is larger than the address space", list.join(", ")),
        )
    })
}

impl Shapes<'_> {
    /// The rank of an input, if known.
    pub(crate) fn rank(&self, index: usize) -> Option<usize> {
        self.inputs.get(index).and_then(PartialShape::rank)
    }

    /// The known extents of an input, as a list to be worked on.
    pub(crate) fn dims(&self, index: usize) -> Option<SmallVec<[Option<usize>; 6]>> {
        self.inputs.get(index).and_then(PartialShape::dims).map(SmallVec::from_slice)
    }

    /// Input and output `0` have one shape, whatever the other inputs have.
    pub(crate) fn same_as_first(&mut self) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (self.inputs.first_mut(), self.outputs.first_mut()) else { return Ok(()) };
        PartialShape::unify(input, output).map_err(|e| shape_error(format!("input and output differ: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_both_ends_and_no_further() {
        assert_eq!(resolve_axis(-1, 3).ok(), Some(2));
        assert_eq!(resolve_axis(2, 3).ok(), Some(2));
        for axis in [3, -4, i64::MIN, i64::MAX] {
            assert!(resolve_axis(axis, 3).is_err(), "{axis}");
        }
        assert!(resolve_axes(&[0, -3], 3).is_err_and(|e| e.message.contains("more than once")));
        assert_eq!(resolve_axes(&[2, 0], 3).ok().map(|a| a.to_vec()), Some(vec![0, 2]));
    }

    #[test]
    fn sizes_that_overflow_are_errors() {
        assert!(checked_product(&[usize::MAX, 2]).is_err());
        assert_eq!(checked_product(&[3, 4]).ok(), Some(12));
    }
}
