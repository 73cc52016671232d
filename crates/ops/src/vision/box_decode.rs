//! `_contrib_box_decode`: boxes from offsets and anchors.

use super::boxes::{FORMATS, box_axes, format};
use crate::prelude::*;
use mxrt_kernels::vision::boxes::{BoxDecoding, decode_boxes};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_box_decode",
    doc: "Boxes (corners) out of numbers relative to anchors.\n\n\
        data is (batch, n, 4), anchors (1, n, 4).",
    inputs: Inputs::Fixed(&["data", "anchors"]),
    attrs: &[
        AttrDef::new("std0", AttrKind::Float, "1", "What the first number is multiplied by."),
        AttrDef::new("std1", AttrKind::Float, "1", "What the second number is multiplied by."),
        AttrDef::new("std2", AttrKind::Float, "1", "What the third number is multiplied by."),
        AttrDef::new("std3", AttrKind::Float, "1", "What the fourth number is multiplied by."),
        AttrDef::new("clip", AttrKind::Float, "-1", "Limit of the logarithms of the sides, if positive."),
        AttrDef::new("format", FORMATS, "center", "Format of the anchors."),
    ],
    infer_shape: decode_shapes,
    infer_dtype: |dtypes| dtypes.uniform(&["data", "anchors"]),
    bind: bind_decode,
    form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::DecodeBoxes(decoding(attrs))),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn decode_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(leading) = box_axes(shapes, 0, "data")? else { return Ok(()) };
    let [batch, n] = leading[..] else {
        return Err(shape_error(format!("data has shape {}; expected (batch, n, 4)", shapes.inputs[0])));
    };
    shapes.set_input(1, "anchors", PartialShape::from_dims([Some(1), n, Some(4)]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, n, Some(4)]))
}

fn decoding(attrs: &Attrs) -> BoxDecoding {
    BoxDecoding {
        format: format(attrs, "format"),
        scale: ["std0", "std1", "std2", "std3"].map(|name| attrs.float(name)),
        clip: Some(attrs.float("clip")).filter(|clip| *clip > 0.0),
    }
}

fn bind_decode(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let decoding = decoding(attrs);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, anchors) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        decode_boxes(call.par, decoding, x, anchors, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
