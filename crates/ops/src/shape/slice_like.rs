//! `slice_like`: the leading part of an array, as large as another array.

use super::slice::{Range, bind_ranges, ranges_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "slice_like",
    doc: "The leading part of data that is as large as shape_like, along all axes or those given.",
    inputs: Inputs::Fixed(&["data", "shape_like"]),
    attrs: &[AttrDef::new("axes", AttrKind::Shape, "()", "Axes along which to cut; all if empty, none if None.")],
    infer_shape,
    infer_dtype: |dtypes| match dtypes.inputs[0] {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind: |_, signature| bind_ranges(&leading(signature), signature),
    form: |_, signature| ranges_form(&leading(signature), signature),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let axes = attrs.ints("axes");
            let rows_stay = !axes.is_empty() && axes.iter().all(|axis| is_within_rows(*axis, signature));
            matches!(divided, [true, like] if *like || rows_stay)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn leading(signature: &Signature<'_>) -> Vec<Range> {
    signature.outputs[0].shape.iter().map(|n| Range { start: 0, step: 1, len: *n }).collect()
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(mut dims), Some(like)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let Some(named) = shapes.attrs.opt_ints("axes") else {
        return shapes.set_output(0, shapes.inputs[0].clone());
    };
    if named.is_empty() && dims.len() != like.len() {
        return Err(shape_error(format!(
            "data {} and shape_like {} have different numbers of axes; name the axes to cut with \
             axes",
            shapes.inputs[0], shapes.inputs[1]
        )));
    }
    let axes: Dims = match named {
        [] => (0..dims.len()).collect(),
        named => named.iter().map(|a| resolve_axis(*a, dims.len())).collect::<Result<_, OpError>>()?,
    };
    for axis in axes {
        let want = *like
            .get(axis)
            .ok_or_else(|| shape_error(format!("shape_like {} has no axis {axis}", shapes.inputs[1])))?;
        if let (Some(have), Some(want)) = (dims[axis], want)
            && want > have
        {
            return Err(shape_error(format!(
                "axis {axis} of data has {have} elements, fewer than the {want} of shape_like"
            )));
        }
        dims[axis] = want;
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn no_axes_cut_nothing_and_an_empty_tuple_cuts_all() {
        let of = |axes: &str| {
            OpTest::new("slice_like").attr("axes", axes).f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).f32([1, 1], &[0.0]).run()
        };
        assert_eq!(f32s(&of("()"), [1, 1]), [1.0]);
        assert_eq!(f32s(&of("(1,)"), [2, 1]), [1.0, 3.0]);
        assert_eq!(f32s(&of("None"), [2, 2]), [1.0, 2.0, 3.0, 4.0]);
    }

    /// Expects what MXNet 1.9.1 gives for tuples that are `None`, in calls and in files of models.
    #[test]
    fn other_operators_take_none_for_a_tuple_too() {
        let x = |op: &str| OpTest::new(op).f32([2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let stays = [
            x("tile").attr("reps", "None"),
            x("broadcast_axis").attr("axis", "None").attr("size", "None"),
            x("Dropout").attr("axes", "None"),
        ];
        stays.iter().for_each(|test| assert_eq!(f32s(&test.run_all()[0], [2, 2]), [1.0, 2.0, 3.0, 4.0]));
        let reshaped = x("Reshape").attr("shape", "(4,)").attr("target_shape", "None").run();
        assert_eq!(f32s(&reshaped, [4]), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(x("_split_v2").attr("indices", "None").attr("sections", "2").run_all().len(), 2);
        let image = |op: &str| OpTest::new(op).f32([1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let pooled = |op: &str| image(op).attr("kernel", "None").attr("global_pool", "True").attr("pool_type", "max");
        assert_eq!(f32s(&pooled("Pooling").run(), [1, 1, 1, 1]), [4.0]);
        assert_eq!(f32s(&pooled("Pooling_v1").run(), [1, 1, 1, 1]), [4.0]);
        let mean = image("_contrib_AdaptiveAvgPooling2D").attr("output_size", "None").run();
        assert_eq!(f32s(&mean, [1, 1, 1, 1]), [2.5]);
        // What needs a tuple says so.
        image("Pooling").attr("kernel", "None").error();
        x("broadcast_axis").attr("axis", "None").attr("size", "(2,)").error();
        x("broadcast_to").attr("shape", "None").error();
        image("Pad").attr("mode", "constant").attr("pad_width", "None").error();
        image("_image_resize").attr("size", "None").error();
    }
}
