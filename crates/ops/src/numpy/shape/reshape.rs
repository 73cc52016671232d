//! `_np_reshape`: the same elements in another shape.

use super::{IDENTITY, ORDER, check_order, misfit};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_reshape",
    doc: "The same elements in another shape, in which one extent may be -1.",
    attrs: &[AttrDef::required("newshape", AttrKind::Shape, "The new shape."), ORDER],
    infer_shape: infer_reshape,
    ..IDENTITY
}];

fn infer_reshape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    check_order(shapes.attrs)?;
    let newshape = shapes.attrs.ints("newshape");
    let negative: Vec<i64> = newshape.iter().copied().filter(|n| *n < 0).collect();
    if negative.len() > 1 || negative.iter().any(|n| *n != -1) {
        return Err(value_error("newshape can have one unknown extent, which is -1"));
    }
    let dims = newshape.iter().map(|n| usize::try_from(*n).ok());
    let Some(data) = shapes.input(0) else { return shapes.set_output(0, PartialShape::from_dims(dims)) };
    let known = checked_product(&dims.clone().flatten().collect::<Dims>())?;
    let size = data.size();
    let rest = match negative.is_empty() {
        true if known == size => 0,
        false if known > 0 && size % known == 0 => size / known,
        _ => return Err(misfit(&data, newshape)),
    };
    shapes.set_output(0, dims.map(|d| d.unwrap_or(rest)).collect::<Shape>())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn one_element_is_a_scalar_as_well() {
        let y = OpTest::new("_np_reshape").attr("newshape", "()").f32([1, 1], &[3.0]).run();
        assert_eq!(f32s(&y, []), [3.0]);
    }
}
