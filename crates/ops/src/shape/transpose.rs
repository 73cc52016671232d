//! `transpose`: axes in another order.

use super::{PartialDims, Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "transpose",
    doc: "Puts the axes into another order; without axes they are reversed.",
    attrs: &[AttrDef::new("axes", AttrKind::Shape, "()", "Axis of the input that each axis of the result is.")],
    infer_shape,
    bind: |attrs, signature| bind_strided(view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&view(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
            rows_of_data(attrs, signature, divided) && order(attrs, rank).is_ok_and(|order| order.first() == Some(&0))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// The axis of the input for every axis of the output.
fn order(attrs: &Attrs, rank: usize) -> Result<Dims, OpError> {
    let axes = attrs.ints("axes");
    if axes.is_empty() {
        return Ok((0..rank).rev().collect());
    }
    if axes.len() != rank {
        return Err(value_error(format!("axes names {} axes but the input has {rank}", axes.len())));
    }
    resolve_axes(axes, rank)?;
    axes.iter().map(|a| resolve_axis(*a, rank)).collect()
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(rank) = shapes.rank(0).or(shapes.outputs.first().and_then(PartialShape::rank)) else { return Ok(()) };
    let order = order(shapes.attrs, rank)?;
    shapes.inputs[0]
        .merge(&PartialShape::of_rank(rank))
        .map_err(|e| shape_error(format!("input and output differ in rank: {e}")))?;
    if let Some(data) = shapes.dims(0) {
        let out: PartialDims = order.iter().map(|a| data[*a]).collect();
        shapes.set_output(0, PartialShape::from_dims(out))?;
    }
    let mut data: PartialDims = smallvec::smallvec![None; rank];
    for (i, a) in order.iter().enumerate() {
        data[*a] = shapes.outputs[0].dim(i);
    }
    shapes.set_input(0, "data", PartialShape::from_dims(data))
}

/// The elements of the output.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let shape = &signature.inputs[0].shape;
    let strides = contiguous(shape);
    let strides = order(attrs, shape.len())?.into_iter().map(|a| strides[a]).collect();
    Ok(Strided { offset: 0, strides, shape: signature.outputs[0].shape.to_vec() })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn axes_come_in_the_order_given_or_reversed() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        assert_eq!(f32s(&OpTest::new("transpose").f32([2, 3], &x).run(), [3, 2]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let y = OpTest::new("transpose").attr("axes", "(1, 0, 2)").f32([1, 2, 3], &x).run();
        assert_eq!(f32s(&y, [2, 1, 3]), x);
        for axes in ["(0, 2)", "(0, 0)", "(0, 1, 2)"] {
            OpTest::new("transpose").attr("axes", axes).f32([2, 3], &x).error();
        }
    }
}
