//! `_np_diagonal`: diagonals of the planes of two axes.

use super::{AXIS1, AXIS2, OFFSET, of_plane};
use crate::prelude::*;
use crate::shape::{bind_strided, strided_form};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_diagonal",
    doc: "A diagonal of the plane of two axes, as the last axis.",
    attrs: &[OFFSET, AXIS1, AXIS2],
    infer_shape: |shapes| {
        let Some(data) = shapes.input(0) else { return Ok(()) };
        shapes.set_output(0, Shape::from(of_plane(shapes.attrs, &data)?.shape))
    },
    bind: |attrs, signature| bind_strided(of_plane(attrs, &signature.inputs[0].shape)?, signature),
    form: |attrs, signature| strided_form(&of_plane(attrs, &signature.inputs[0].shape)?),
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn a_plane_has_two_axes() {
        let error = OpTest::new("_np_diagonal").attr("axis2", "0").f32([2, 3], &[0.0; 6]).error();
        assert!(error.message.contains("axis1 and axis2"), "{}", error.message);
    }
}
