//! `argmax`, `argmin`, `argmax_channel`: positions of extremes.

use super::reduce::without_elements;
use crate::prelude::*;
use mxrt_kernels::reduce;

const ATTRS: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::OptInt, "None", "The axis; the flattened array if not given."),
    AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep the axis with size 1."),
];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "argmax",
        doc: "Where the largest element along an axis is; of equals the first. The result has the \
            dtype of the input.",
        attrs: ATTRS,
        infer_shape,
        bind: |attrs, signature| bind(attrs.opt_int("axis"), true, signature),
        form: |attrs, signature| form(attrs.opt_int("axis"), true, signature),
        rewrites: &Rewrites {
            row_wise: |attrs, signature, divided| {
                rows_stay(attrs.opt_int("axis"), signature) && rows_of_data(attrs, signature, divided)
            },
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "argmin",
        doc: "Where the smallest element along an axis is; of equals the first. The result has the \
            dtype of the input.",
        attrs: ATTRS,
        infer_shape,
        bind: |attrs, signature| bind(attrs.opt_int("axis"), false, signature),
        form: |attrs, signature| form(attrs.opt_int("axis"), false, signature),
        rewrites: &Rewrites {
            row_wise: |attrs, signature, divided| {
                rows_stay(attrs.opt_int("axis"), signature) && rows_of_data(attrs, signature, divided)
            },
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "argmax_channel",
        doc: "Where the largest element along the second axis is; of equals the first.",
        ignores_unknown_attrs: true,
        infer_shape: |shapes| {
            let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
            dims.remove(resolve_axis(1, dims.len())?);
            shapes.set_output(0, PartialShape::from_dims(dims))
        },
        bind: |_, signature| bind(Some(1), true, signature),
        form: |_, signature| form(Some(1), true, signature),
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
];

fn rows_stay(axis: Option<i64>, signature: &Signature<'_>) -> bool {
    axis.is_some_and(|axis| is_within_rows(axis, signature))
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let keep = shapes.attrs.bool("keepdims");
    let Some(axis) = shapes.attrs.opt_int("axis") else {
        let out: Shape = if keep { dims.iter().map(|_| 1).collect() } else { Shape::new(&[1]) };
        return shapes.set_output(0, out);
    };
    let axis = resolve_axis(axis, dims.len())?;
    if keep {
        dims[axis] = Some(1);
    } else {
        dims.remove(axis);
    }
    if dims.is_empty() {
        dims.push(Some(1));
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}

fn form(axis: Option<i64>, largest: bool, signature: &Signature<'_>) -> MaybeForm {
    let data = &signature.inputs[0];
    for_numeric(data.dtype, KernelForm::Extreme { largest, split: split_or_all(axis, &data.shape)? })
}

fn bind(axis: Option<i64>, largest: bool, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let split = split_or_all(axis, shape)?;
    if split[1] == 0 && signature.outputs[0].shape.size() > 0 {
        return Err(without_elements(shape));
    }
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
        if largest { reduce::argmax(call.par, x, split, out) } else { reduce::argmin(call.par, x, split, out) }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn channels_are_the_second_axis() {
        let x: Vec<f32> = [1, 5, 9, 2, 8, 5].into_iter().map(|x| x as f32).collect();
        let test = |shape: &[usize]| OpTest::new("argmax_channel").floats(shape, &x);
        assert_eq!(f32s(&test(&[2, 3]).run(), [2]), [2.0, 1.0]);
        assert_eq!(f32s(&test(&[1, 3, 2]).run(), [1, 2]), [1.0, 0.0]);
        assert!(test(&[6]).error().message.contains("axis 1"));
    }
}
