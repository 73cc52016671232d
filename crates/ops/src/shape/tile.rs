//! `tile`: an array laid side by side with itself.

use super::{PartialDims, Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "tile",
    aliases: &["_npi_tile"],
    doc: "Repeats the whole array along every axis. Missing axes or repetitions count as 1, on the \
        left.",
    attrs: &[AttrDef::required("reps", AttrKind::Shape, "Repetitions for each axis, matched from the last.")],
    infer_shape,
    bind: |attrs, signature| bind_strided(view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&view(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
            let reps = attrs.ints("reps");
            rows_of_data(attrs, signature, divided)
                && (reps.len() < rank || (reps.len() == rank && reps.first() == Some(&1)))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.dims(0) else { return Ok(()) };
    let reps = extents("reps", shapes.attrs.ints("reps"))?;
    let rank = data.len().max(reps.len());
    let mut out = PartialDims::new();
    for i in 0..rank {
        let own = (i + data.len()).checked_sub(rank).map_or(Some(1), |i| data[i]);
        let times = (i + reps.len()).checked_sub(rank).map_or(1, |i| reps[i]);
        out.push(own.map(|n| checked_product(&[n, times])).transpose()?);
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// Every axis becomes two: the repetitions, which do not move, and the elements.
/// The elements of the output.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let data = &signature.inputs[0].shape;
    let reps = extents("reps", attrs.ints("reps"))?;
    let steps = contiguous(data);
    let rank = data.len().max(reps.len());
    let (mut strides, mut shape) = (Vec::new(), Vec::new());
    for i in 0..rank {
        strides.push(0);
        shape.push((i + reps.len()).checked_sub(rank).map_or(1, |i| reps[i]));
        let own = (i + data.len()).checked_sub(rank);
        strides.push(own.map_or(0, |i| steps[i]));
        shape.push(own.map_or(1, |i| data[i]));
    }
    Ok(Strided { offset: 0, strides, shape })
}
