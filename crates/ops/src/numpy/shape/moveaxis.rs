//! `_np_moveaxis`: some axes at other positions.

use super::{MOVED, bind_order, different, infer_order, ordered};
use crate::prelude::*;
use crate::shape::strided_form;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_moveaxis",
    doc: "Some axes at other positions; the others keep their order.",
    attrs: &[
        AttrDef::required("source", AttrKind::Shape, "Axes to move."),
        AttrDef::required("destination", AttrKind::Shape, "Position of each of them in the result."),
    ],
    infer_shape: |shapes| infer_order(shapes, moved),
    bind: |attrs, signature| bind_order(moved, attrs, signature),
    form: |attrs, signature| strided_form(&ordered(moved, attrs, signature)?),
    ..MOVED
}];

fn moved(attrs: &Attrs, rank: usize) -> Result<Dims, OpError> {
    let (from, to) = (attrs.ints("source"), attrs.ints("destination"));
    if from.len() != to.len() {
        return Err(value_error("source and destination must name as many axes"));
    }
    let (from, to) = (different("source", from, rank)?, different("destination", to, rank)?);
    let mut others = (0..rank).filter(|axis| !from.contains(axis));
    let place = |i: usize| to.iter().position(|t| *t == i).map(|k| from[k]);
    Ok((0..rank).filter_map(|i| place(i).or_else(|| others.next())).collect())
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn an_axis_moves_to_the_end() {
        let test = OpTest::new("_np_moveaxis").attr("source", "(0,)").attr("destination", "(-1,)");
        assert_eq!(test.f32([1, 2, 3], &[0.0; 6]).run().tensor.shape.to_vec(), [2, 3, 1]);
    }
}
