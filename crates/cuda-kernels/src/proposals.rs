//! Region proposals: `proposals.h`, with scores that `order.h` sorts.

use crate::arguments::{PROPOSAL_ANCHORS, ProposalsArgument};
use crate::launch::{Bound, each, each_group, launch};
use crate::order::sorted_rows;
use mxrt_engine::{DeviceCtx, FailureKind, OpError};
use mxrt_kernels::sort::Order;
use mxrt_kernels::vision::proposal::Proposals;
use mxrt_ops::{DeviceOperands, KernelForm, Signature};
use mxrt_tensor::DType;

/// Proposals of a batch of images.
struct Proposing {
    images: usize,
    /// boxes of an image, those that take part in suppression, and proposals
    count: usize,
    sorted: usize,
    after: usize,
    /// rows and columns of the feature map, and pixels between its pixels
    size: [usize; 2],
    stride: usize,
    argument: ProposalsArgument,
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Proposals(how) = form else { return None };
    let images = signature.inputs.first()?.shape[0];
    let (count, sorted, after) = (how.boxes(), how.sorted(), how.after);
    let mut base = [[0.0; 4]; PROPOSAL_ANCHORS];
    base.get_mut(..how.anchors())?.copy_from_slice(&how.base());
    // Boxes are numbered in 32 bits with a sign.
    i32::try_from(count.max(after)).ok()?;
    let argument = ProposalsArgument {
        to: 0,
        to_scores: 0,
        scores: 0,
        deltas: 0,
        sizes: 0,
        boxes: 0,
        box_scores: 0,
        positions: 0,
        stays: 0,
        chosen: 0,
        kept: 0,
        status: 0,
        images: images as i64,
        count: count as i64,
        after: after as i64,
        anchors: how.anchors() as i64,
        columns: how.size[1] as i64,
        rows: how.size[0] as i64,
        sorted: sorted as i64,
        padded: 0,
        step: i64::try_from(how.stride).ok()?,
        base,
        least: how.least,
        overlap: how.overlap,
        corner_deltas: i32::from(how.corner_deltas),
        unused: 0,
    };
    let Proposals { size, stride, .. } = *how;
    let proposing = Proposing { images, count, sorted, after, size, stride, argument };
    Some(Bound::new(move |ctx, at| proposing.enqueue(ctx, at)))
}

impl Proposing {
    fn enqueue(&self, ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<(), OpError> {
        let Proposing { images, count, sorted, after, size, stride, .. } = *self;
        let (Some(of_boxes), Some(of_images)) = (each(images * count), each_group(images)) else { return Ok(()) };
        // Numbers of 4 bytes each.
        let parts = [4 * images * count, images * count, images * sorted, images * after, images];
        let memory = ctx.scratch(4 * parts.iter().sum::<usize>())?;
        let part = |number: usize| memory.offset(4 * parts[..number].iter().sum::<usize>());
        let argument = ProposalsArgument {
            to: at.outputs[0].0,
            to_scores: at.outputs.get(1).map_or(0, |scores| scores.0),
            scores: at.inputs[0].0,
            deltas: at.inputs[1].0,
            sizes: at.inputs[2].0,
            boxes: part(0).0,
            box_scores: part(1).0,
            stays: part(2).0,
            chosen: part(3).0,
            kept: part(4).0,
            status: ctx.status_word(move |said| refusal(said, size, stride))?.0,
            ..self.argument
        };
        launch(ctx, c"propose_boxes", of_boxes, &argument)?;
        let order = Order { ascending: false, k: sorted };
        let ordered = sorted_rows(ctx, part(1), DType::F32, [images, count], order)?;
        let argument = ProposalsArgument { positions: ordered.positions, padded: ordered.padded, ..argument };
        launch(ctx, c"propose_suppress", of_images, &argument)?;
        each(images * after).map_or(Ok(()), |grid| launch(ctx, c"propose_store", grid, &argument))
    }
}

/// The error of an image that the feature map does not cover.
fn refusal(said: u64, size: [usize; 2], stride: usize) -> OpError {
    let [height, width] = [said >> 32, said & 0xffff_ffff].map(|bits| f32::from_bits(bits as u32));
    OpError::new(FailureKind::Value, Proposals::too_large([height, width], size, stride))
}
