//! `repeat`: every element several times.

use super::{Strided, bind_strided, known_product, strided_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "repeat",
    aliases: &["_np_repeat"],
    doc: "Repeats every element, along one axis or in the flattened array.",
    attrs: &[
        AttrDef::required("repeats", AttrKind::IntFrom(0), "How often each element stands in the result."),
        AttrDef::new("axis", AttrKind::OptInt, "None", "Axis along which to repeat; flattened if not given."),
    ],
    infer_shape,
    bind: |attrs, signature| bind_strided(view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&view(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            attrs.count("repeats") > 0
                && rows_of_data(attrs, signature, divided)
                && attrs.opt_int("axis").is_some_and(|a| is_within_rows(a, signature))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// Infers a vector without elements of no repetitions, whatever the axis is, as in MXNet.
fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let repeats = shapes.attrs.count("repeats");
    if repeats == 0 {
        return shapes.set_output(0, PartialShape::from_dims([Some(0)]));
    }
    match shapes.attrs.opt_int("axis") {
        None => {
            let total = known_product(&dims).map(|n| checked_product(&[n, repeats])).transpose()?;
            shapes.set_output(0, PartialShape::from_dims([total]))
        }
        Some(axis) => {
            let axis = resolve_axis(axis, dims.len())?;
            dims[axis] = dims[axis].map(|n| checked_product(&[n, repeats])).transpose()?;
            shapes.set_output(0, PartialShape::from_dims(dims))
        }
    }
}

/// The elements of the output.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let data = &signature.inputs[0].shape;
    let (outer, inner) = match attrs.opt_int("axis") {
        None => (data.size(), 1),
        Some(axis) => {
            let axis = resolve_axis(axis, data.len())?;
            (data[..=axis].iter().product(), data[axis + 1..].iter().product())
        }
    };
    let strides = vec![inner as isize, 0, 1];
    Ok(Strided { offset: 0, strides, shape: vec![outer, attrs.count("repeats"), inner] })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn no_repetitions_give_a_vector_without_elements() {
        let repeated = |times: &str| OpTest::new("repeat").attr("axis", "1").attr("repeats", times);
        let x = [1.0, 2.0];
        assert_eq!(f32s(&repeated("2").f32([1, 2], &x).run(), [1, 4]), [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(f32s(&repeated("0").f32([1, 2], &x).run(), [0]), [0.0; 0]);
    }
}
