//! Anchors and detections: `detection.h`.

use crate::arguments::{ANCHORS, AnchorsArgument, DetectionsArgument};
use crate::launch::{Bound, code, each, each_group, launch, of_floats};
use mxrt_engine::DevicePtr;
use mxrt_kernels::vision::multibox::MultiBoxDetection;
use mxrt_ops::{Anchors, KernelForm, Signature};

/// Numbers of a detection.
const ROW: usize = 6;

impl AnchorsArgument {
    // In a method: rustc 1.95 breaks on a closure that captures the fields one by one, with the array
    // of arrays among them.
    fn at(&self, to: DevicePtr) -> AnchorsArgument {
        AnchorsArgument { to: to.0, ..*self }
    }
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::Anchors(anchors) => bind_anchors(anchors, signature),
        KernelForm::Detections(detection) => bind_detections(detection, signature),
        _ => None,
    }
}

fn bind_anchors(anchors: &Anchors, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|output| output.dtype.is_float())?;
    let mut half_sides = [[0.0; 2]; ANCHORS];
    half_sides.get_mut(..anchors.half_sides.len())?.copy_from_slice(&anchors.half_sides);
    let n = output.shape.size() / 4;
    let argument = AnchorsArgument {
        to: 0,
        n: n as i64,
        columns: i32::try_from(anchors.columns).ok()?,
        per_pixel: anchors.half_sides.len() as i32,
        steps: anchors.steps,
        offsets: anchors.offsets,
        half_sides,
        clip: i32::from(anchors.clip),
        dtype: code(output.dtype),
    };
    Some(Bound::kernel(c"anchors", each(n), move |at| argument.at(at.outputs[0])))
}

/// The argument without addresses.
fn detections_argument(detection: &MultiBoxDetection, batch: usize, dtype: i32) -> DetectionsArgument {
    let count = detection.anchors;
    DetectionsArgument {
        to: 0,
        rows: 0,
        stays: 0,
        probabilities: 0,
        locations: 0,
        anchors: 0,
        batch: batch as i64,
        count: count as i64,
        classes: detection.classes as i64,
        limit: detection.limit.filter(|_| detection.overlap.is_some()).unwrap_or(count) as i64,
        threshold: detection.threshold,
        overlap: detection.overlap.unwrap_or(0.0),
        variances: detection.variances,
        clip: i32::from(detection.clip),
        sorts: i32::from(detection.overlap.is_some()),
        across_classes: i32::from(detection.across_classes),
        dtype,
    }
}

fn bind_detections(detection: &MultiBoxDetection, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let single = [c"detect_f32", c"detect_places_f32", c"detect_suppress_f32"];
    let double = [c"detect_f64", c"detect_places_f64", c"detect_suppress_f64"];
    let [detect, places, suppress] = of_floats(output.dtype, [single, double])?;
    let total = output.shape.size() / ROW;
    let batch = total.checked_div(detection.anchors).unwrap_or(0);
    let rows = (total * ROW * output.dtype.size()).next_multiple_of(8);
    let argument = detections_argument(detection, batch, code(output.dtype));
    Some(Bound::new(move |ctx, at| {
        let (Some(grid), Some(of_images)) = (each(total), each_group(batch)) else { return Ok(()) };
        let memory = ctx.scratch(rows + total * size_of::<i32>())?;
        let argument = DetectionsArgument {
            to: at.outputs[0].0,
            rows: memory.0,
            stays: memory.offset(rows).0,
            probabilities: at.inputs[0].0,
            locations: at.inputs[1].0,
            anchors: at.inputs[2].0,
            ..argument
        };
        launch(ctx, detect, grid, &argument)?;
        launch(ctx, places, grid, &argument)?;
        if argument.sorts == 0 { Ok(()) } else { launch(ctx, suppress, of_images, &argument) }
    }))
}
