//! `_np_squeeze`: axes of size 1 removed.

use super::IDENTITY;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_squeeze",
    doc: "Without axes of size 1: those given, or all.",
    attrs: &[AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to remove.")],
    infer_shape: infer_squeeze,
    ..IDENTITY
}];

fn infer_squeeze(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.input(0) else { return Ok(()) };
    let removed = match shapes.attrs.opt_ints("axis") {
        None => data.iter().map(|n| *n == 1).collect(),
        Some(_) => crate::numpy::reduce::reduced_axes(shapes.attrs, data.len())?,
    };
    if let Some(axis) = (0..data.len()).find(|axis| removed[*axis] && data[*axis] != 1) {
        return Err(shape_error(format!(
            "cannot select an axis to squeeze out which has size not equal to one: axis {axis} of {data}"
        )));
    }
    shapes.set_output(0, data.iter().zip(&removed).filter(|(_, r)| !**r).map(|(n, _)| *n).collect::<Shape>())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_scalar_is_left_without_axes() {
        let y = OpTest::new("_np_squeeze").f32([1, 1], &[3.0]).run();
        assert_eq!(f32s(&y, []), [3.0]);
        assert!(OpTest::new("_np_squeeze").attr("axis", "(0,)").f32([2], &[0.0; 2]).error().message.contains("axis 0"));
    }
}
