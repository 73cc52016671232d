//! `_cvimresize`: an image of another size.

use super::resize::{INTERP, bind, form, infer_shape};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_cvimresize",
    aliases: &["_npi_cvimresize"],
    doc: "Resizes (height, width, channels).",
    inputs: Inputs::Fixed(&["src"]),
    attrs: &[
        AttrDef::required("w", AttrKind::IntFrom(1), "Width."),
        AttrDef::required("h", AttrKind::IntFrom(1), "Height."),
        INTERP,
    ],
    infer_shape: |shapes| {
        let axis = match shapes.dims(0) {
            Some(dims) if dims.len() != 3 => {
                let have = &shapes.inputs[0];
                return Err(shape_error(format!("src has shape {have}; expected (height, width, channels)")));
            }
            dims => dims.map(|_| 0),
        };
        infer_shape(shapes, axis, |attrs, _| Ok([Some(attrs.count("h")), Some(attrs.count("w"))]))
    },
    bind,
    form,
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn an_image_that_keeps_its_size_is_copied_whatever_the_interpolation() {
        let values: Vec<f32> = (0..24).map(|v| v as f32).collect();
        for interp in ["5", "9", "-1"] {
            let test = OpTest::new("_cvimresize").attr("w", "6").attr("h", "4").attr("interp", interp);
            assert_eq!(f32s(&test.f32([4, 6, 1], &values).run(), [4, 6, 1]), values);
        }
    }

    #[test]
    fn width_and_height_are_given() {
        let y = OpTest::new("_cvimresize").attr("w", "1").attr("h", "2").f32([4, 6, 1], &[1.0; 24]).run();
        assert_eq!(f32s(&y, [2, 1, 1]), [1.0, 1.0]);
    }
}
