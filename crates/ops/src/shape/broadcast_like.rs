//! `broadcast_like`: axes of size 1 repeated to the shape of another array.

use super::PartialDims;
use super::broadcast_to::{bind_broadcast, broadcast_extent, broadcast_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "broadcast_like",
    doc: "Repeats axes of size 1 of lhs until it has the shape of rhs, or the extents of rhs along \
        chosen axes.",
    inputs: Inputs::Fixed(&["lhs", "rhs"]),
    attrs: &[
        AttrDef::new("lhs_axes", AttrKind::OptShape, "None", "Axes of lhs to repeat; all if either is not given."),
        AttrDef::new(
            "rhs_axes",
            AttrKind::OptShape,
            "None",
            "Axes of rhs that give the extents; all if either is not given.",
        ),
    ],
    infer_shape,
    infer_dtype: |dtypes| match dtypes.inputs[0] {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind: bind_broadcast,
    form: broadcast_form,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(lhs), Some(rhs)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let mut out: PartialDims = lhs.clone();
    match (shapes.attrs.opt_ints("lhs_axes"), shapes.attrs.opt_ints("rhs_axes")) {
        // Axes of one of them alone count for nothing, as in MXNet.
        (None, _) | (_, None) => {
            if lhs.len() != rhs.len() {
                return Err(shape_error(format!(
                    "lhs {} and rhs {} must have the same number of axes; or give lhs_axes and \
                     rhs_axes",
                    shapes.inputs[0], shapes.inputs[1]
                )));
            }
            for axis in 0..lhs.len() {
                out[axis] = broadcast_extent(lhs[axis], rhs[axis], axis)?;
            }
        }
        (Some(from), Some(to)) if from.len() == to.len() && !from.is_empty() => {
            for (a, b) in from.iter().zip(to) {
                let (a, b) = (resolve_axis(*a, lhs.len())?, resolve_axis(*b, rhs.len())?);
                out[a] = broadcast_extent(lhs[a], rhs[b], a)?;
            }
        }
        _ => return Err(value_error("lhs_axes and rhs_axes must name as many axes, at least one")),
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn axes_of_one_array_alone_count_for_nothing() {
        let like = |name: &str| {
            OpTest::new("broadcast_like").attr(name, "(0,)").f32([1, 2], &[3.0, 4.0]).f32([2, 2], &[0.0; 4])
        };
        for name in ["lhs_axes", "rhs_axes"] {
            assert_eq!(f32s(&like(name).run(), [2, 2]), [3.0, 4.0, 3.0, 4.0]);
        }
        like("lhs_axes").attr("rhs_axes", "(0, 1)").error();
    }
}
