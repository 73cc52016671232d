//! Objects for anchors: `multibox_target.h`, with backgrounds that `order.h` sorts.

use crate::arguments::MultiBoxTargetArgument;
use crate::launch::{Bound, code, each, each_row, launch, of_floats};
use crate::order::sorted_rows;
use mxrt_engine::{DeviceCtx, DevicePtr, FailureKind, OpError};
use mxrt_kernels::sort::Order;
use mxrt_kernels::vision::multibox_target::{FEW_BACKGROUNDS, MultiBoxTarget, WRONG_LABEL};
use mxrt_ops::{DeviceOperands, KernelForm, Signature};
use mxrt_tensor::DType;
use std::ffi::CStr;

/// Targets of a batch of images.
struct Targets {
    images: usize,
    anchors: usize,
    labels: usize,
    argument: MultiBoxTargetArgument,
    /// kernels for overlaps, matches, predictions and results
    names: [&'static CStr; 4],
}

const SINGLE: [&CStr; 4] =
    [c"target_overlaps_f32", c"target_match_f32", c"target_predictions_f32", c"target_store_f32"];
const DOUBLE: [&CStr; 4] =
    [c"target_overlaps_f64", c"target_match_f64", c"target_predictions_f64", c"target_store_f64"];

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::MultiBoxTarget(target) = form else { return None };
    let (labels, dtype) = (signature.inputs.get(1)?, signature.inputs.first()?.dtype);
    let targets = Targets {
        images: labels.shape[0],
        anchors: target.anchors,
        labels: target.labels,
        argument: argument(target, labels.shape[0], code(dtype))?,
        names: of_floats(dtype, [SINGLE, DOUBLE])?,
    };
    Some(Bound::new(move |ctx, at| targets.enqueue(ctx, at)))
}

/// The argument without addresses; `None` if a number does not fit.
fn argument(target: &MultiBoxTarget, images: usize, dtype: i32) -> Option<MultiBoxTargetArgument> {
    let extent = target.anchors.max(target.labels);
    // Anchors and objects are numbered in 32 bits with a sign.
    i32::try_from(extent).ok()?;
    Some(MultiBoxTargetArgument {
        locations: 0,
        mask: 0,
        classes: 0,
        anchors: 0,
        labels: 0,
        predictions: 0,
        overlaps: 0,
        objects: 0,
        left_overlaps: 0,
        left_objects: 0,
        shows: 0,
        taken: 0,
        counts: 0,
        backgrounds: 0,
        positions: 0,
        status: 0,
        images: images as i64,
        count: target.anchors as i64,
        extent: extent as i64,
        most: target.labels as i64,
        width: target.width as i64,
        predicted: target.classes as i64,
        padded: 0,
        overlap: target.overlap,
        ignore: target.ignore,
        negatives: target.negatives,
        negative_overlap: target.negative_overlap,
        variances: target.variances,
        dtype,
        unused: 0,
    })
}

impl Targets {
    fn enqueue(&self, ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<(), OpError> {
        let Targets { images, anchors, labels, names: [overlaps, matches, predictions, store], .. } = *self;
        let total = images * anchors;
        let (Some(of_all), Some(of_anchors), Some(of_images)) =
            (each(images * anchors.max(labels)), each(total), each_row(images))
        else {
            return Ok(());
        };
        let argument = self.argument_at(ctx, at)?;
        launch(ctx, overlaps, of_all, &argument)?;
        launch(ctx, matches, of_images, &argument)?;
        if argument.negatives > 0.0 {
            launch(ctx, predictions, of_anchors, &argument)?;
            let order = Order { ascending: true, k: anchors };
            let sorted = sorted_rows(ctx, DevicePtr(argument.backgrounds), DType::F64, [images, anchors], order)?;
            let (positions, padded) = (sorted.positions, sorted.padded);
            let argument = MultiBoxTargetArgument { positions, padded, ..argument };
            launch(ctx, c"target_backgrounds", of_images, &argument)?;
        }
        launch(ctx, store, of_anchors, &argument)
    }

    /// The argument of a call, with memory for what its kernels pass on.
    fn argument_at(&self, ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<MultiBoxTargetArgument, OpError> {
        let (labels, total) = (self.images * self.labels, self.images * self.anchors);
        // Numbers of 8 bytes, then numbers of 4 bytes.
        let parts = [2 * total, total, total, total, total, total, labels, self.images];
        let memory = ctx.scratch(4 * parts.iter().sum::<usize>())?;
        let part = |number: usize| memory.offset(4 * parts[..number].iter().sum::<usize>());
        Ok(MultiBoxTargetArgument {
            locations: at.outputs[0].0,
            mask: at.outputs[1].0,
            classes: at.outputs[2].0,
            anchors: at.inputs[0].0,
            labels: at.inputs[1].0,
            predictions: at.inputs[2].0,
            backgrounds: part(0).0,
            overlaps: part(1).0,
            objects: part(2).0,
            left_overlaps: part(3).0,
            left_objects: part(4).0,
            shows: part(5).0,
            taken: part(6).0,
            counts: part(7).0,
            status: ctx.status_word(refusal)?.0,
            ..self.argument
        })
    }
}

/// The error of what a kernel reports, of the kind of a failed kernel, as in MXNet.
fn refusal(said: u64) -> OpError {
    OpError::new(FailureKind::Operator, if said == 1 { WRONG_LABEL } else { FEW_BACKGROUNDS })
}
