//! `SwapAxis`: two axes exchanged.

use super::{Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SwapAxis",
    aliases: &["_npi_swapaxes", "swapaxes"],
    doc: "Exchanges two axes.",
    attrs: &[
        AttrDef::new("dim1", AttrKind::Int, "0", "One axis."),
        AttrDef::new("dim2", AttrKind::Int, "0", "The other axis."),
    ],
    infer_shape,
    bind: |attrs, signature| bind_strided(view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&view(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
            let rows_stay = |(a, b): (usize, usize)| a == b || (a > 0 && b > 0);
            rows_of_data(attrs, signature, divided) && axes(attrs, rank).is_ok_and(rows_stay)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn axes(attrs: &Attrs, rank: usize) -> Result<(usize, usize), OpError> {
    Ok((resolve_axis(attrs.int("dim1"), rank)?, resolve_axis(attrs.int("dim2"), rank)?))
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let (a, b) = axes(shapes.attrs, dims.len())?;
    dims.swap(a, b);
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The elements of the output.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let mut strides = contiguous(&signature.inputs[0].shape);
    let (a, b) = axes(attrs, strides.len())?;
    strides.swap(a, b);
    Ok(Strided { offset: 0, strides, shape: signature.outputs[0].shape.to_vec() })
}
