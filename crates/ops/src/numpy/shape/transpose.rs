//! `_np_transpose`: axes in another order.

use super::{MOVED, bind_order, different, infer_order, ordered};
use crate::prelude::*;
use crate::shape::strided_form;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_transpose",
    doc: "Axes in another order; without axes they are reversed.",
    attrs: &[AttrDef::new("axes", AttrKind::Shape, "None", "Axis of the input that each axis of the result is.")],
    infer_shape: |shapes| infer_order(shapes, transposed),
    bind: |attrs, signature| bind_order(transposed, attrs, signature),
    form: |attrs, signature| strided_form(&ordered(transposed, attrs, signature)?),
    ..MOVED
}];

fn transposed(attrs: &Attrs, rank: usize) -> Result<Dims, OpError> {
    let Some(axes) = attrs.opt_ints("axes") else { return Ok((0..rank).rev().collect()) };
    if axes.len() != rank {
        return Err(value_error(format!("axes names {} axes, but the array has {rank}", axes.len())));
    }
    different("axes", axes, rank)
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn an_axis_named_twice_is_refused() {
        let error = OpTest::new("_np_transpose").attr("axes", "(0, 0)").f32([2, 3], &[0.0; 6]).error();
        assert!(error.message.contains("repeated axis 0"), "{}", error.message);
    }
}
