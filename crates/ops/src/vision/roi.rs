//! Regions of interest: their attributes and shapes.

use crate::prelude::*;
use mxrt_kernels::vision::roi::Regions;

pub(super) const SCALE: AttrDef = AttrDef::required(
    "spatial_scale",
    AttrKind::FloatIn(0.0, 1.0),
    "Pixels of data for a unit of the coordinates of rois.",
);
pub(super) const POOLED: AttrDef = AttrDef::required("pooled_size", AttrKind::Shape, "Rows and columns of the output.");

pub(super) const DATA_AND_ROIS: OpDef = OpDef {
    inputs: Inputs::Fixed(&["data", "rois"]),
    infer_dtype: |dtypes| dtypes.uniform(&["data", "rois"]),
    ..OpDef::BASE
};

pub(super) fn pooled_size(attrs: &Attrs) -> Result<[usize; 2], OpError> {
    match extents("pooled_size", attrs.ints("pooled_size"))?[..] {
        [rows, columns] if rows > 0 && columns > 0 => Ok([rows, columns]),
        _ => Err(value_error("pooled_size must be two positive numbers: (rows, columns)")),
    }
}

/// The regions, and the output for this number of channels.
pub(super) fn region_shapes(
    shapes: &mut Shapes<'_>,
    channels: Option<usize>,
    [rows, columns]: [usize; 2],
) -> Result<(), OpError> {
    shapes.set_input(1, "rois", PartialShape::from_dims([None, Some(5)]))?;
    let count = shapes.inputs[1].dim(0);
    shapes.set_output(0, PartialShape::from_dims([count, channels, Some(rows), Some(columns)]))
}

pub(super) fn regions(signature: &Signature<'_>, scale: f64) -> Result<Regions, OpError> {
    let ([data, ..], [out]) = (signature.inputs, signature.outputs) else { return Err(wrong_arity()) };
    let (data, out) = (&data.shape, &out.shape);
    if out.size() > 0 && data.size() == 0 {
        return Err(shape_error(format!("data has shape {data}: there are no pixels to pool")));
    }
    Ok(Regions { data: [data[0], data[1], data[2], data[3]], pooled: [out[2], out[3]], scale })
}
