//! `_np_roll`: elements shifted along axes.

use super::different;
use crate::prelude::*;
use crate::shape::stretches::{Stretch, form_of_stretches};
use bytemuck::Pod;
use mxrt_kernels::shape::{self, Part};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_roll",
    doc: "Elements shifted along axes, those that leave at one end entering at the other; without \
          axes along the flattened array.",
    inputs: Inputs::Fixed(&["data"]),
    attrs: &[
        AttrDef::new("shift", AttrKind::OptShape, "None", "Places to shift by: one number, or one for each axis."),
        AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to shift along."),
    ],
    infer_shape: |shapes| {
        if let Some(rank) = shapes.rank(0) {
            shifts(shapes.attrs, rank)?;
        }
        shapes.same_as_first()
    },
    bind: bind_roll,
    form: roll_form,
    ..OpDef::BASE
}];

/// Axes and how far each is shifted; no axes for the flattened array.
fn shifts(attrs: &Attrs, rank: usize) -> Result<(Option<Dims>, Vec<i64>), OpError> {
    let Some(shift) = attrs.opt_ints("shift") else { return Err(value_error("roll needs shift")) };
    let Some(axes) = attrs.opt_ints("axis") else {
        return match shift {
            [one] => Ok((None, vec![*one])),
            _ => Err(value_error("shift must be one number where no axis is given")),
        };
    };
    let axes = different("axis", axes, rank)?;
    match shift {
        [one] => Ok((Some(axes.clone()), vec![*one; axes.len()])),
        all if all.len() == axes.len() => Ok((Some(axes), all.to_vec())),
        all => Err(value_error(format!("shift has {} numbers for {} axes", all.len(), axes.len()))),
    }
}

/// The form of shifts: along an axis one stretch moves up, and the rest moves to the beginning.
fn roll_form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shape = &signature.inputs[0].shape;
    let (axes, shift) = shifts(attrs, shape.len())?;
    let extents = if axes.is_some() { shape.to_vec() } else { vec![shape.size()] };
    let mut up = vec![0; extents.len()];
    for (i, by) in shift.into_iter().enumerate() {
        let axis = axes.as_ref().map_or(0, |axes| axes[i]);
        up[axis] = by.rem_euclid(extents[axis].max(1) as i64) as usize;
    }
    let stretches = |(n, up): (&usize, &usize)| {
        let parts = [(*up, n - up, 0, 1), (0, *up, n - up, 1)];
        parts.into_iter().filter(|part| part.1 > 0).collect()
    };
    let stretches: Vec<Vec<Stretch>> = extents.iter().zip(&up).map(stretches).collect();
    form_of_stretches(&signature.inputs[0], &extents, &extents, &stretches, None)
}

fn bind_roll(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let (axes, shift) = shifts(attrs, shape.len())?;
    let rolls: Vec<([usize; 3], i64)> = match axes {
        None => vec![([1, shape.size(), 1], shift[0])],
        Some(axes) => axes.iter().zip(shift).map(|(axis, by)| (split_around(*axis, &shape), by)).collect(),
    };
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        let mut rolls = rolls.iter().filter(|([outer, n, inner], _)| outer * n * inner > 0);
        let Some((split, by)) = rolls.next() else {
            shape::copy(call.par, x, out);
            return Ok(());
        };
        roll(call.par, x, *split, *by, out);
        for (split, by) in rolls {
            let before = Scratch::copy_of(call.par, out);
            roll(call.par, &before, *split, *by, out);
        }
        Ok(())
    })))
}

/// The elements of an array, shifted along its middle axis.
fn roll<T: Pod + Send + Sync>(par: &dyn Par, x: &[T], [outer, n, inner]: [usize; 3], by: i64, out: &mut [T]) {
    let by = by.rem_euclid(n as i64) as usize;
    let part = |start, count| Part { array: x, n, start, count };
    shape::join(par, &[part(n - by, by), part(0, n - by)], outer, inner, out);
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn elements_that_leave_enter_at_the_other_end() {
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let y = OpTest::new("_np_roll").attr("shift", "(1,)").attr("axis", "(1,)").f32([2, 3], &x).run();
        assert_eq!(f32s(&y, [2, 3]), [2.0, 0.0, 1.0, 5.0, 3.0, 4.0]);
    }
}
