//! `_contrib_MultiBoxPrior`, `_contrib_MultiBoxDetection`: anchors and detections of single-shot
//! detectors.

use super::image_dims;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::vision::multibox::{MultiBoxDetection, MultiBoxPrior};
use mxrt_tensor::PartialShape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_MultiBoxPrior",
        aliases: &["_npx_multibox_prior"],
        doc: "Anchors around every pixel of a feature map, as parts of the image.\n\n\
            data is (batch, channels, height, width); only its height and width matter. The output \
            is (1, height * width * (len(sizes) + len(ratios) - 1), 4), corners: all sizes with \
            the first ratio, then the other ratios with the first size. Liu et al., \"SSD: Single \
            Shot MultiBox Detector\" (2016).",
        attrs: &[
            AttrDef::new("sizes", AttrKind::Floats, "(1,)", "Sizes."),
            AttrDef::new("ratios", AttrKind::Floats, "(1,)", "Ratios of width and height."),
            AttrDef::new("clip", AttrKind::Bool, "False", "Whether anchors are cut to the image."),
            AttrDef::new(
                "steps",
                AttrKind::Floats,
                "(-1, -1)",
                "Distances between pixels (y, x); even ones if negative.",
            ),
            AttrDef::new("offsets", AttrKind::Floats, "(0.5, 0.5)", "Where in a pixel the center is (y, x)."),
        ],
        infer_shape: prior_shapes,
        bind: bind_prior,
        form: |attrs, signature| {
            let prior = PriorBoxes::new(attrs, signature)?;
            for_floats(signature.outputs[0].dtype, KernelForm::Anchors(prior.anchors()))
        },
        ..OpDef::BASE
    },
    OpDef {
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
            AttrDef::new(
                "background_id",
                AttrKind::Int,
                "0",
                "Without effect, as in MXNet: the background is class 0.",
            ),
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
    },
];

/// An attribute with exactly `N` numbers.
pub(super) fn numbers<const N: usize>(attrs: &Attrs, name: &str) -> Result<[f32; N], OpError> {
    let given = attrs.floats(name);
    let wrong = || value_error(format!("{name} must have {N} numbers, got {}", given.len()));
    <[f64; N]>::try_from(given).map(|v| v.map(|v| v as f32)).map_err(|_| wrong())
}

/// Sizes and ratios, of which there must be some.
fn sizes_and_ratios(attrs: &Attrs) -> Result<[Vec<f32>; 2], OpError> {
    let list = |name: &str| -> Vec<f32> { attrs.floats(name).iter().map(|v| *v as f32).collect() };
    let lists = ["sizes", "ratios"].map(list);
    if lists.iter().any(Vec::is_empty) {
        return Err(value_error("sizes and ratios must each have a number at least"));
    }
    Ok(lists)
}

fn prior_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let [sizes, ratios] = sizes_and_ratios(shapes.attrs)?;
    let anchors = match image_dims(shapes, 0, "data")? {
        Some([_, _, Some(height), Some(width)]) if height > 0 && width > 0 => {
            Some(checked_product(&[height, width, sizes.len() + ratios.len() - 1])?)
        }
        Some([_, _, Some(_), Some(_)]) => {
            return Err(shape_error(format!(
                "data has shape {}, but height and width must be positive",
                shapes.inputs[0]
            )));
        }
        _ => None,
    };
    shapes.set_output(0, PartialShape::from_dims([Some(1), anchors, Some(4)]))
}

/// The attributes of anchors, checked, for a feature map.
struct PriorBoxes {
    image: [usize; 2],
    sizes: Vec<f32>,
    ratios: Vec<f32>,
    steps: [f32; 2],
    offsets: [f32; 2],
    clip: bool,
}

impl PriorBoxes {
    fn new(attrs: &Attrs, signature: &Signature<'_>) -> Result<PriorBoxes, OpError> {
        let shape = &signature.inputs[0].shape;
        let image = [shape[2], shape[3]];
        let [sizes, ratios] = sizes_and_ratios(attrs)?;
        let mut steps = numbers::<2>(attrs, "steps")?;
        if steps[0] * steps[1] < 0.0 {
            return Err(value_error(format!("steps must both be given, got ({}, {})", steps[0], steps[1])));
        }
        if steps.iter().any(|s| *s <= 0.0) {
            steps = image.map(|n| 1.0 / n as f32);
        }
        let offsets = numbers::<2>(attrs, "offsets")?;
        if !offsets.iter().all(|v| (0.0..=1.0).contains(v)) {
            return Err(value_error(format!("offsets must be from 0 to 1, got ({}, {})", offsets[0], offsets[1])));
        }
        Ok(PriorBoxes { image, sizes, ratios, steps, offsets, clip: attrs.bool("clip") })
    }

    fn prior(&self) -> MultiBoxPrior<'_> {
        let PriorBoxes { image, ref sizes, ref ratios, steps, offsets, clip } = *self;
        MultiBoxPrior { image, sizes, ratios, steps, offsets, clip }
    }

    fn anchors(&self) -> Anchors {
        let (prior, PriorBoxes { image, steps, offsets, clip, .. }) = (self.prior(), self);
        let half_sides = (0..prior.per_pixel()).map(|anchor| prior.half_sides(anchor)).collect();
        Anchors { columns: image[1], half_sides, steps: *steps, offsets: *offsets, clip: *clip }
    }
}

fn bind_prior(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let boxes = PriorBoxes::new(attrs, signature)?;
    dispatch!(signature.outputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        boxes.prior().run(call.par, elements_mut::<T>(&mut call.outputs[0])?);
        Ok(())
    })))
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

fn bind_detection(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
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
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn anchors_of_one_pixel() {
        let prior = |attrs: &[(&str, &str)]| {
            attrs.iter().fold(OpTest::new("_contrib_MultiBoxPrior"), |t, (k, v)| t.attr(k, v)).f32([1, 1, 1, 1], &[0.0])
        };
        let y = prior(&[("sizes", "(0.5, 1.5)"), ("clip", "True")]).run();
        assert_close(&f32s(&y, [1, 2, 4]), &[0.25, 0.25, 0.75, 0.75, 0.0, 0.0, 1.0, 1.0]);
        prior(&[("steps", "(1, -1)")]).error();
        prior(&[("offsets", "(0.5,)")]).error();
        prior(&[("offsets", "(0.5, 2)")]).error();
        prior(&[("sizes", "()")]).error();
    }

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
