//! `_contrib_box_encode`: boxes as offsets from anchors.

use super::boxes::box_axes;
use crate::prelude::*;
use mxrt_kernels::vision::boxes::{BoxEncoding, encode_boxes};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_box_encode",
    doc: "Encodes reference boxes relative to anchors.\n\n\
        samples (batch, n): anchors above 0.5 are encoded; matches (batch, n): which of the m \
        boxes in refs (batch, m, 4) belongs to the anchor; anchors (batch, n, 4); means and \
        stds (4,). Boxes are corners. Outputs: targets and masks, both (batch, n, 4).",
    inputs: Inputs::Fixed(&["samples", "matches", "anchors", "refs", "means", "stds"]),
    outputs: Outputs::Count(|_| 2),
    infer_shape: encode_shapes,
    infer_dtype: |dtypes| dtypes.uniform(&["samples", "matches", "anchors", "refs", "means", "stds"]),
    bind: bind_encode,
    form: |_, signature| for_floats(signature.inputs[0].dtype, KernelForm::EncodeBoxes),
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

fn encode_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.set_input(4, "means", PartialShape::from_dims([Some(4)]))?;
    shapes.set_input(5, "stds", PartialShape::from_dims([Some(4)]))?;
    let Some(anchors) = box_axes(shapes, 2, "anchors")? else { return Ok(()) };
    let [batch, n] = anchors[..] else {
        return Err(shape_error(format!("anchors has shape {}; expected (batch, n, 4)", shapes.inputs[2])));
    };
    shapes.set_input(0, "samples", PartialShape::from_dims([batch, n]))?;
    shapes.set_input(1, "matches", PartialShape::from_dims([batch, n]))?;
    shapes.set_input(3, "refs", PartialShape::from_dims([batch, None, Some(4)]))?;
    for output in 0..2 {
        shapes.set_output(output, PartialShape::from_dims([batch, n, Some(4)]))?;
    }
    Ok(())
}

fn bind_encode(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (anchors, references) = (&signature.inputs[2].shape, &signature.inputs[3].shape);
    let sizes = [anchors[0], anchors[1], references[1]];
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([samples, matches, anchors, references, means, deviations], [targets, masks]) =
            (call.inputs, &mut *call.outputs)
        else {
            return Err(wrong_arity());
        };
        let inputs = BoxEncoding {
            samples: elements::<T>(samples)?,
            matches: elements(matches)?,
            anchors: elements(anchors)?,
            references: elements(references)?,
            means: elements(means)?,
            deviations: elements(deviations)?,
        };
        encode_boxes(call.par, inputs, sizes, elements_mut(targets)?, elements_mut(masks)?);
        Ok(())
    })))
}
