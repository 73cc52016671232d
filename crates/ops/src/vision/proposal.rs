//! `_contrib_Proposal`, `_contrib_MultiProposal`: region proposals of Faster R-CNN.

use super::image_dims;
use crate::prelude::*;
use mxrt_kernels::vision::proposal::Proposals;

const PROPOSAL: OpDef = OpDef {
    inputs: Inputs::Fixed(&["cls_prob", "bbox_pred", "im_info"]),
    attrs: &[
        AttrDef::new(
            "rpn_pre_nms_top_n",
            AttrKind::Int,
            "6000",
            "How many of the best boxes take part in suppression; all if not positive.",
        ),
        AttrDef::new("rpn_post_nms_top_n", AttrKind::IntFrom(1), "300", "How many proposals there are for an image."),
        AttrDef::new(
            "threshold",
            AttrKind::Float,
            "0.699999988",
            "Intersection over union above which the lower score goes.",
        ),
        AttrDef::new("rpn_min_size", AttrKind::Int, "16", "Smallest side of a proposal at the scale of im_info."),
        AttrDef::new("scales", AttrKind::Floats, "(4, 8, 16, 32)", "Sizes of anchors in strides."),
        AttrDef::new("ratios", AttrKind::Floats, "(0.5, 1, 2)", "Ratios of height and width of anchors."),
        AttrDef::new("feature_stride", AttrKind::IntFrom(1), "16", "Pixels of the image for one of the feature map."),
        AttrDef::new("output_score", AttrKind::Bool, "False", "Whether the scores are an output, too."),
        AttrDef::new("iou_loss", AttrKind::Bool, "False", "Whether bbox_pred moves corners, not centers and sides."),
    ],
    outputs: Outputs::Named(|attrs| if attrs.bool("output_score") { &["output", "score"] } else { &["output"] }),
    hidden_outputs: |attrs| usize::from(!attrs.bool("output_score")),
    infer_dtype: |dtypes| {
        for (i, name) in ["cls_prob", "bbox_pred", "im_info"].into_iter().enumerate() {
            dtypes.set_input(i, name, DType::F32)?;
        }
        (0..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, DType::F32))
    },
    bind,
    form: |attrs, signature| Ok(Some(KernelForm::Proposals(proposals(attrs, signature)?))),
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_Proposal",
        doc: "Region proposals of one image.\n\n\
            cls_prob is (1, 2 * anchors, height, width) with the background first, bbox_pred (1, 4 \
            * anchors, height, width), im_info (1, 3): height, width and scale of the image. The \
            output is (rpn_post_nms_top_n, 5): image, left, top, right, bottom; best score first, \
            equal scores in the order rows, columns, anchors. Where fewer boxes remain they are \
            repeated. Ren et al., \"Faster R-CNN\" (2015).",
        infer_shape: |shapes| infer_shape(shapes, true),
        ..PROPOSAL
    },
    OpDef {
        name: "_contrib_MultiProposal",
        doc: "Region proposals of every image of a batch.\n\n\
            As _contrib_Proposal, with (batch, ...) inputs and an output of (batch * \
            rpn_post_nms_top_n, 5).",
        infer_shape: |shapes| infer_shape(shapes, false),
        ..PROPOSAL
    },
];

fn infer_shape(shapes: &mut Shapes<'_>, single: bool) -> Result<(), OpError> {
    let after = shapes.attrs.count("rpn_post_nms_top_n");
    let anchors = checked_product(&[shapes.attrs.floats("scales").len(), shapes.attrs.floats("ratios").len(), 2])?;
    let Some([batch, channels, height, width]) = image_dims(shapes, 0, "cls_prob")? else { return Ok(()) };
    if single && batch.is_some_and(|n| n != 1) {
        return Err(shape_error(format!(
            "cls_prob has shape {}; Proposal takes one image, MultiProposal several",
            shapes.inputs[0]
        )));
    }
    if channels.is_some_and(|c| c != anchors || c == 0) {
        return Err(shape_error(format!(
            "cls_prob has shape {}, but scales and ratios make {} anchors, which need {anchors} \
             channels",
            shapes.inputs[0],
            anchors / 2
        )));
    }
    shapes.set_input(1, "bbox_pred", PartialShape::from_dims([batch, channels.map(|c| c * 2), height, width]))?;
    shapes.set_input(2, "im_info", PartialShape::from_dims([batch, Some(3)]))?;
    let count = batch.map(|n| checked_product(&[n, after])).transpose()?;
    shapes.set_output(0, PartialShape::from_dims([count, Some(5)]))?;
    shapes.set_output(1, PartialShape::from_dims([count, Some(1)]))
}

fn proposals(attrs: &Attrs, signature: &Signature<'_>) -> Result<Proposals, OpError> {
    let shape = &signature.inputs[0].shape;
    let list = |name: &str| attrs.floats(name).iter().map(|v| *v as f32).collect::<Vec<f32>>();
    let size = [shape[2], shape[3]];
    if size.contains(&0) || u32::try_from(checked_product(&[shape[1], size[0], size[1]])?).is_err() {
        return Err(shape_error(format!("cls_prob has shape {shape}: no boxes, or more than can be sorted")));
    }
    Ok(Proposals {
        size,
        stride: attrs.count("feature_stride"),
        scales: list("scales"),
        ratios: list("ratios"),
        before: usize::try_from(attrs.int("rpn_pre_nms_top_n")).ok().filter(|n| *n > 0).unwrap_or(usize::MAX),
        after: attrs.count("rpn_post_nms_top_n"),
        overlap: attrs.float("threshold") as f32,
        least: attrs.int("rpn_min_size") as f32,
        corner_deltas: attrs.bool("iou_loss"),
    })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let proposals = proposals(attrs, signature)?;
    let scores_len = shape[0] * proposals.after;
    Ok(Box::new(ProposalKernel { proposals, scores_len, boxes: shape.size() / 2 }))
}

/// The scores go to memory of the call where they are no output.
struct ProposalKernel {
    proposals: Proposals,
    scores_len: usize,
    boxes: usize,
}

impl Kernel for ProposalKernel {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([scores, deltas, images], [out, rest @ ..]) = (call.inputs, &mut *call.outputs) else {
            return Err(wrong_arity());
        };
        let images = elements::<f32>(images)?;
        let stride = self.proposals.stride as f32;
        for image in images.chunks_exact(3) {
            let fits = |length: f32, size: usize| (length / stride) as usize <= size;
            if !(fits(image[0], self.proposals.size[0]) && fits(image[1], self.proposals.size[1])) {
                let Proposals { size, stride, .. } = self.proposals;
                return Err(value_error(Proposals::too_large([image[0], image[1]], size, stride)));
            }
        }
        let out_scores = match rest {
            [out_scores, ..] => elements_mut(out_scores)?,
            [] => scratch(call.workspace, self.scores_len)?,
        };
        let (scores, deltas) = (elements(scores)?, elements(deltas)?);
        self.proposals.run(call.par, scores, deltas, images, elements_mut(out)?, out_scores);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.scores_len * size_of::<f32>()
    }

    fn cost_ns(&self) -> u64 {
        2_000 + 100 * self.boxes as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn proposal(attrs: &[(&str, &str)], info: [f32; 3]) -> OpTest {
        let mut scores = [0.0; 8];
        scores[4 + 3] = 0.5;
        OpTest::new("_contrib_Proposal")
            .attrs(attrs)
            .attr("ratios", "(1,)")
            .attr("rpn_post_nms_top_n", "2")
            .f32([1, 2, 2, 2], &scores)
            .f32([1, 4, 2, 2], &[0.0; 16])
            .f32([1, 3], &info)
    }

    #[test]
    fn the_best_anchor_comes_first() {
        let attrs = [("scales", "(1,)"), ("output_score", "True")];
        let y = proposal(&attrs, [32.0, 32.0, 1.0]).run_all();
        assert_eq!(f32s(&y[0], [2, 5])[..5], [0.0, 16.0, 16.0, 31.0, 31.0]);
        assert_eq!(f32s(&y[1], [2, 1]), [0.5, 0.0]);
        assert_eq!(proposal(&attrs[..1], [32.0, 32.0, 1.0]).run_all().len(), 1);
    }

    #[test]
    fn anchors_and_image_must_fit_the_scores() {
        assert!(proposal(&[("scales", "(1, 2)")], [32.0, 32.0, 1.0]).error().message.contains("2 anchors"));
        assert!(proposal(&[("scales", "(1,)")], [64.0, 32.0, 1.0]).error().message.contains("64 x 32"));
    }
}
