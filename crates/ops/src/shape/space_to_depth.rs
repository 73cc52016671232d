//! `space_to_depth`: blocks of pixels become channels.

use super::{Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "space_to_depth",
    doc: "Moves the pixels of each block_size x block_size block into channels: (n, c, h, w) \
        becomes (n, c * b * b, h / b, w / b).",
    attrs: ATTRS,
    infer_shape: |shapes| {
        infer(shapes, |[n, c, h, w], b| {
            let (h, w) = (divided("height", h, b)?, divided("width", w, b)?);
            Ok([n, c.map(|c| checked_product(&[c, b, b])).transpose()?, h, w])
        })
    },
    bind: |attrs, signature| bind_strided(space_view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&space_view(attrs, signature)?),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

pub(super) const ATTRS: &[AttrDef] =
    &[AttrDef::required("block_size", AttrKind::IntFrom(1), "Edge of the square blocks.")];

type FourExtents = [Option<usize>; 4];

pub(super) fn divided(what: &str, extent: Option<usize>, by: usize) -> Result<Option<usize>, OpError> {
    match extent {
        Some(n) if n % by != 0 => Err(shape_error(format!("{what} is {n}, expected a multiple of {by}"))),
        extent => Ok(extent.map(|n| n / by)),
    }
}

pub(super) fn infer(
    shapes: &mut Shapes<'_>,
    output: fn(FourExtents, usize) -> Result<FourExtents, OpError>,
) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let Ok(four) = FourExtents::try_from(&dims[..]) else {
        return Err(shape_error(format!(
            "data must have 4 axes (batch, channel, height, width), got {}",
            shapes.inputs[0]
        )));
    };
    // To MXNet such an extent is one that is not known, which these operators refuse.
    if four.contains(&Some(0)) {
        return Err(shape_error(format!("data of shape {} has no elements to be moved", shapes.inputs[0])));
    }
    shapes.set_output(0, PartialShape::from_dims(output(four, shapes.attrs.count("block_size"))?))
}

/// A function of four extents and the block size that returns six extents and the order in which
/// the output reads them.
type SplitAxes = fn([usize; 4], usize) -> ([usize; 6], [usize; 6]);

/// The output of `space_to_depth`.
fn space_view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    // (n, c, h/b, bh, w/b, bw) is read in the order (n, bh, bw, c, h/b, w/b).
    view(attrs, &signature.outputs[0].shape, |[n, c, h, w], b| ([n, c / (b * b), h, b, w, b], [0, 3, 5, 1, 2, 4]))
}

/// `split` cuts the four extents into six and tells in which order the output reads them.
pub(super) fn view(attrs: &Attrs, four: &Shape, split: SplitAxes) -> Result<Strided, OpError> {
    let four = <[usize; 4]>::try_from(&four[..]).map_err(|_| wrong_arity())?;
    let (six, order) = split(four, attrs.count("block_size"));
    let steps = contiguous(&six);
    Ok(Strided {
        offset: 0,
        strides: order.iter().map(|i| steps[*i]).collect(),
        shape: order.iter().map(|i| six[*i]).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn an_error_names_the_extent_and_what_was_expected() {
        let error = OpTest::new("space_to_depth").attr("block_size", "2").f32([1, 4, 3, 2], &[0.0; 24]).error();
        assert_eq!(error.message, "height is 3, expected a multiple of 2");
    }
}
