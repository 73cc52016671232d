//! `_contrib_MultiBoxTarget`: what single-shot detectors should predict.

use super::multibox_detection::numbers;
use crate::prelude::*;
use mxrt_engine::FailureKind;
use mxrt_kernels::KernelError;
use mxrt_kernels::vision::multibox_target::{MultiBoxTarget, MultiBoxTargets};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_MultiBoxTarget",
    aliases: &["_npx_multibox_target"],
    doc: "What a single-shot detector should predict for labelled images.\n\nanchor is (1, \
          anchors, 4), label (batch, labels, 5 or more): class, corners; labels after the first of \
          class -1 are not there. cls_pred is (batch, classes, anchors). Outputs: loc_target \
          (batch, anchors * 4), boxes relative to the anchors; loc_mask of the same shape, 1 where \
          an anchor shows an object; cls_target (batch, anchors): class plus 1, 0 for the \
          background, ignore_label for anchors that do not count and for images without labels. \
          Each object goes to the anchor that it overlaps most, the best pair first, of equal ones \
          the first anchor, then the first object.",
    inputs: Inputs::Fixed(&["anchor", "label", "cls_pred"]),
    outputs: Outputs::Named(|_| &["loc_target", "loc_mask", "cls_target"]),
    attrs: &[
        AttrDef::new(
            "overlap_threshold",
            AttrKind::Float,
            "0.5",
            "Intersection over union above which an anchor shows an object, even if another shows \
             it better; not looked at if not positive.",
        ),
        AttrDef::new("ignore_label", AttrKind::Float, "-1", "Class of anchors that do not count."),
        AttrDef::new(
            "negative_mining_ratio",
            AttrKind::Float,
            "-1",
            "Background anchors for each anchor with an object, those predicted worst; all if not \
             positive.",
        ),
        AttrDef::new(
            "negative_mining_thresh",
            AttrKind::Float,
            "0.5",
            "Intersection over union from which on an anchor is not taken for background.",
        ),
        AttrDef::new("minimum_negative_samples", AttrKind::Int, "0", "Without effect, as in MXNet."),
        AttrDef::new("variances", AttrKind::Floats, "(0.1, 0.1, 0.2, 0.2)", "What the encoded numbers are divided by."),
    ],
    infer_shape,
    infer_dtype: |dtypes| dtypes.uniform(&["anchor", "label", "cls_pred"]),
    bind,
    form: |attrs, signature| {
        for_floats(signature.inputs[0].dtype, KernelForm::MultiBoxTarget(target(attrs, signature)?))
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let three = |shapes: &Shapes<'_>, index: usize, want: &str| match shapes.dims(index) {
        None => Ok([None; 3]),
        Some(dims) => <[Option<usize>; 3]>::try_from(&dims[..])
            .map_err(|_| shape_error(format!("{} has shape {}", want, shapes.inputs[index]))),
    };
    let [_, boxes, _] = three(shapes, 0, "anchor must be (1, anchors, 4), but")?;
    let [batch, labels, width] = three(shapes, 1, "label must be (batch, labels, 5 or more), but")?;
    let [images, _, anchors] = three(shapes, 2, "cls_pred must be (batch, classes, anchors), but")?;
    if boxes == Some(0) || labels == Some(0) || width.is_some_and(|width| width < 5) {
        return Err(shape_error(format!(
            "anchor {} and label {} must have an anchor, a label and 5 numbers for each label at \
             least",
            shapes.inputs[0], shapes.inputs[1]
        )));
    }
    let (anchors, batch) = (boxes.or(anchors), batch.or(images));
    shapes.set_input(0, "anchor", PartialShape::from_dims([Some(1), anchors, Some(4)]))?;
    shapes.set_input(1, "label", PartialShape::from_dims([batch, None, None]))?;
    shapes.set_input(2, "cls_pred", PartialShape::from_dims([batch, None, anchors]))?;
    let numbers = anchors.map(|n| checked_product(&[n, 4])).transpose()?;
    shapes.set_output(0, PartialShape::from_dims([batch, numbers]))?;
    shapes.set_output(1, PartialShape::from_dims([batch, numbers]))?;
    shapes.set_output(2, PartialShape::from_dims([batch, anchors]))
}

fn target(attrs: &Attrs, signature: &Signature<'_>) -> Result<MultiBoxTarget, OpError> {
    let [anchors, label, predictions] = [0, 1, 2].map(|i| &signature.inputs[i].shape);
    let single = |name: &str| attrs.float(name) as f32;
    let target = MultiBoxTarget {
        anchors: anchors[1],
        labels: label[1],
        width: label[2],
        classes: predictions[1],
        overlap: single("overlap_threshold"),
        ignore: single("ignore_label"),
        negatives: single("negative_mining_ratio"),
        negative_overlap: single("negative_mining_thresh"),
        variances: numbers(attrs, "variances")?,
    };
    if target.negatives > 0.0 && (target.classes == 0 || target.negative_overlap <= 0.0) {
        return Err(value_error(
            "with a positive negative_mining_ratio there must be a class, and \
             negative_mining_thresh must be positive",
        ));
    }
    Ok(target)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let target = target(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([anchors, labels, predictions], [locations, mask, classes]) = (call.inputs, &mut *call.outputs) else {
            return Err(wrong_arity());
        };
        let targets = MultiBoxTargets {
            locations: elements_mut::<T>(locations)?,
            mask: elements_mut(mask)?,
            classes: elements_mut(classes)?,
        };
        let result =
            target.run(call.par, elements(anchors)?, elements(labels)?, elements(predictions)?, targets);
        // The kind of a failed kernel, as in MXNet.
        result.map_err(|e: KernelError| OpError::new(FailureKind::Operator, e.to_string()))
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn target(attrs: &[(&str, &str)], labels: &[f32]) -> OpTest {
        OpTest::new("_contrib_MultiBoxTarget")
            .attrs(attrs)
            .f32([1, 2, 4], &[0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0])
            .f32([1, labels.len() / 5, 5], labels)
            .f32([1, 2, 2], &[0.0; 4])
    }

    #[test]
    fn an_object_goes_to_its_anchor() {
        let out = target(&[], &[1.0, 0.5, 0.5, 0.75, 1.0]).run_all();
        // Half as wide, a quarter of the width further left, over the variances.
        let want = [0.0, 0.0, 0.0, 0.0, -0.25 / 0.1, 0.0, 0.5f32.ln() / 0.2, 0.0];
        assert_close(&f32s(&out[0], [1, 8]), &want);
        assert_close(&f32s(&out[1], [1, 8]), &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_close(&f32s(&out[2], [1, 2]), &[0.0, 2.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(target(&[], &[-1.0, 0.0, 0.0, 0.0, 0.0]).error().message.contains("class -1"));
        assert!(
            target(&[("negative_mining_ratio", "1"), ("negative_mining_thresh", "0")], &[1.0; 5])
                .error()
                .message
                .contains("positive")
        );
        assert!(target(&[("variances", "(1,)")], &[1.0; 5]).error().message.contains("variances"));
        let wide = OpTest::new("_contrib_MultiBoxTarget").f32([2, 1, 4], &[0.0; 8]).f32([1, 1, 5], &[0.0; 5]);
        assert!(wide.f32([1, 2, 1], &[0.0; 2]).error().message.starts_with("anchor"));
    }
}
