//! `_contrib_MultiBoxDetection`: detections of single-shot detectors.

use crate::prelude::*;
use mxrt_kernels::vision::multibox::MultiBoxDetection;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_MultiBoxDetection",
    aliases: &["_npx_multibox_detection"],
    doc: "Detections out of class probabilities and boxes relative to anchors.\n\n\
        cls_prob is (batch, classes, anchors) with the background first, loc_pred (batch, \
        anchors * 4), anchor (1, anchors, 4). The output is (batch, anchors, 6): class, score, \
        corners; best score first, equal scores in the order of the anchors; class -1 for what \
        shows nothing or was suppressed.",
    inputs: Inputs::Fixed(&["cls_prob", "loc_pred", "anchor"]),
    attrs: &[
        AttrDef::new("clip", AttrKind::Bool, "True", "Whether boxes are cut to the image."),
        AttrDef::new("threshold", AttrKind::Float, "0.00999999978", "Lowest score of a detection."),
        AttrDef::new("background_id", AttrKind::Int, "0", "Without effect, as in MXNet: the background is class 0."),
        AttrDef::new(
            "nms_threshold",
            AttrKind::Float,
            "0.5",
            "Intersection over union from which on the lower score goes; outside of (0, 1] \
            nothing is sorted or suppressed.",
        ),
        AttrDef::new(
            "force_suppress",
            AttrKind::Bool,
            "False",
            "Whether boxes of different classes suppress each other.",
        ),
        AttrDef::new(
            "variances",
            AttrKind::Floats,
            "(0.1, 0.1, 0.2, 0.2)",
            "What the encoded numbers are multiplied by.",
        ),
        AttrDef::new("nms_topk", AttrKind::Int, "-1", "How many of the best boxes stay; all if not positive."),
    ],
    infer_shape: detection_shapes,
    infer_dtype: |dtypes| dtypes.uniform(&["cls_prob", "loc_pred", "anchor"]),
    bind: bind_detection,
    form: |attrs, signature| {
        for_floats(signature.inputs[0].dtype, KernelForm::Detections(detection(attrs, signature)?))
    },
    rewrites: &Rewrites { row_wise: |_, _, divided| divided == [true, true, false], ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// An attribute with exactly `N` numbers.
pub(super) fn numbers<const N: usize>(attrs: &Attrs, name: &str) -> Result<[f32; N], OpError> {
    let given = attrs.floats(name);
    let wrong = || value_error(format!("{name} must have {N} numbers, got {}", given.len()));
    <[f64; N]>::try_from(given).map(|v| v.map(|v| v as f32)).map_err(|_| wrong())
}

fn detection_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [batch, _, anchors] = dims[..] else {
        return Err(shape_error(format!(
            "cls_prob has shape {}; expected (batch, classes, anchors)",
            shapes.inputs[0]
        )));
    };
    if anchors == Some(0) {
        return Err(shape_error("there must be an anchor at least"));
    }
    let numbers = anchors.map(|n| checked_product(&[n, 4])).transpose()?;
    shapes.set_input(1, "loc_pred", PartialShape::from_dims([batch, numbers]))?;
    shapes.set_input(2, "anchor", PartialShape::from_dims([None, anchors, Some(4)]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, anchors, Some(6)]))
}

fn detection(attrs: &Attrs, signature: &Signature<'_>) -> Result<MultiBoxDetection, OpError> {
    let (shape, overlap) = (&signature.inputs[0].shape, attrs.float("nms_threshold"));
    if signature.inputs[2].shape[0] == 0 {
        return Err(shape_error("anchor has shape (0, ...), but its first axis must be 1"));
    }
    if u32::try_from(shape[2]).is_err() {
        return Err(shape_error(format!("{} anchors are more than can be sorted", shape[2])));
    }
    Ok(MultiBoxDetection {
        classes: shape[1],
        anchors: shape[2],
        clip: attrs.bool("clip"),
        threshold: attrs.float("threshold"),
        variances: numbers(attrs, "variances")?,
        overlap: (overlap > 0.0 && overlap <= 1.0).then_some(overlap),
        across_classes: attrs.bool("force_suppress"),
        limit: usize::try_from(attrs.int("nms_topk")).ok().filter(|k| *k > 0),
    })
}

fn bind_detection(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let detection = detection(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([probabilities, locations, anchors], [out]) = (call.inputs, &mut *call.outputs) else {
            return Err(wrong_arity());
        };
        // Anchors of further images are not looked at, as in MXNet.
        let anchors = &elements::<T>(anchors)?[..detection.anchors * 4];
        detection.run(call.par, elements(probabilities)?, elements(locations)?, anchors, elements_mut(out)?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn shapes_of_detections_must_fit() {
        let error = |locations: [usize; 2], anchors: [usize; 3]| {
            let zeros = vec![0.0; 64];
            OpTest::new("_contrib_MultiBoxDetection")
                .f32([1, 2, 3], &[0.5; 6])
                .f32(locations, &zeros[..locations.iter().product()])
                .f32(anchors, &zeros[..anchors.iter().product()])
                .error()
                .message
                .clone()
        };
        assert!(error([1, 11], [1, 3, 4]).starts_with("loc_pred"));
        assert!(error([1, 12], [1, 2, 4]).starts_with("anchor"));
        assert!(error([1, 12], [0, 3, 4]).starts_with("anchor"));
    }
}
