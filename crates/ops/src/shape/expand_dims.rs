//! `expand_dims`: a new axis of size 1.

use super::{PartialDims, bind_copy};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "expand_dims",
    aliases: &["_npi_expand_dims"],
    doc: "Inserts an axis of size 1.",
    attrs: &[AttrDef::required(
        "axis",
        AttrKind::Int,
        "Where the new axis stands in the result; negative counts from the end.",
    )],
    infer_shape,
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let from_output = shapes.outputs.first().and_then(PartialShape::rank).and_then(|r| r.checked_sub(1));
    let Some(rank) = shapes.rank(0).or(from_output) else { return Ok(()) };
    let axis = resolve_new_axis(shapes.attrs.int("axis"), rank)?;
    let data = shapes.dims(0).unwrap_or_else(|| smallvec::smallvec![None; rank]);
    let mut out = data;
    out.insert(axis, Some(1));
    shapes.set_output(0, PartialShape::from_dims(out))?;
    let mut data: PartialDims = (0..rank + 1).map(|i| shapes.outputs[0].dim(i)).collect();
    data.remove(axis);
    shapes.set_input(0, "data", PartialShape::from_dims(data))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn an_error_names_the_axes_of_the_input() {
        let error = OpTest::new("expand_dims").attr("axis", "5").f32([2], &[0.0; 2]).error();
        let want = "axis 5 is no place for a new axis in an input of 1 axis: expected -2 <= axis <= 1";
        assert_eq!(error.message, want);
    }
}
