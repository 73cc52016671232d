//! Arrays that are put together of stretches along their axes, as copies on a device.

use crate::prelude::*;
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::TensorType;

/// Most copies that an operator is, since each is a launch.
const MOST_COPIES: usize = 256;

/// A stretch of the output along an axis: where it begins, its extent, the first element read, the
/// step to the next.
pub(crate) type Stretch = (usize, usize, usize, isize);

/// The form of an output whose axes have these stretches: each of an axis with each one of the
/// others. There is none if these are too many.
pub(crate) fn form_of_stretches(
    data: &TensorType,
    shape: &[usize],
    out: &[usize],
    stretches: &[Vec<Stretch>],
    fill: Option<f64>,
) -> MaybeForm {
    let copies = stretches.iter().fold(1usize, |all, parts| all.saturating_mul(parts.len()));
    if copies > MOST_COPIES {
        return Ok(None);
    }
    let (from, into) = (contiguous(shape), contiguous(out));
    let mut moves = vec![Move { input: 0, output: 0, shape: vec![], from: (0, vec![]), into: (0, vec![]) }];
    for (axis, parts) in stretches.iter().enumerate() {
        let with = |whole: &Move, (at, extent, first, step): Stretch| {
            let mut whole = whole.clone();
            whole.shape.push(extent);
            whole.from.0 += first * from[axis] as usize;
            whole.from.1.push(step * from[axis]);
            whole.into.0 += at * into[axis] as usize;
            whole.into.1.push(into[axis]);
            whole
        };
        moves = moves.iter().flat_map(|whole| parts.iter().map(move |part| with(whole, *part))).collect();
    }
    for_all(data.dtype, KernelForm::Move { fill, moves })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_tensor::DType;

    #[test]
    fn more_copies_than_are_worth_a_launch_have_no_form() {
        let copies = |axes: usize| {
            let (shape, halves) = (vec![2; axes], vec![(1, 1, 0, 1), (0, 1, 1, 1)]);
            let form =
                form_of_stretches(&TensorType::new(DType::F32, &*shape), &shape, &shape, &vec![halves; axes], None);
            match form.expect("no error") {
                Some(KernelForm::Move { moves, .. }) => moves.len(),
                _ => 0,
            }
        };
        assert_eq!([1, 8, 9, 40].map(copies), [2, 256, 0, 0]);
    }
}
