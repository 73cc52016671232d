//! Pairs of boxes: `box_pairs.h`.

use crate::arguments::{BoxOverlapsArgument, DecodeBoxesArgument, EncodeBoxesArgument};
use crate::launch::{Bound, code, each, of_floats};
use mxrt_kernels::vision::boxes::{BoxDecoding, BoxFormat};
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match *form {
        KernelForm::BoxOverlaps(format) => bind_overlaps(format, signature),
        KernelForm::DecodeBoxes(decoding) => bind_decoding(decoding, signature),
        KernelForm::EncodeBoxes => bind_encoding(signature),
        _ => None,
    }
}

fn bind_overlaps(format: BoxFormat, signature: &Signature<'_>) -> Option<Bound> {
    let ([_, others], [output]) = (signature.inputs, signature.outputs) else { return None };
    let name = of_floats(output.dtype, [c"box_overlaps_f32", c"box_overlaps_f64"])?;
    let (n, count, dtype) = (output.shape.size(), others.shape.size() / 4, code(output.dtype));
    Some(Bound::kernel(name, each(n), move |at| BoxOverlapsArgument {
        to: at.outputs[0].0,
        a: at.inputs[0].0,
        b: at.inputs[1].0,
        n: n as i64,
        count: count as i64,
        center: i32::from(format == BoxFormat::Center),
        dtype,
    }))
}

fn bind_decoding(decoding: BoxDecoding, signature: &Signature<'_>) -> Option<Bound> {
    let ([_, anchors], [output]) = (signature.inputs, signature.outputs) else { return None };
    let name = of_floats(output.dtype, [c"decode_boxes_f32", c"decode_boxes_f64"])?;
    let n = output.shape.size() / 4;
    let argument = DecodeBoxesArgument {
        to: 0,
        from: 0,
        anchors: 0,
        n: n as i64,
        count: (anchors.shape.size() / 4) as i64,
        scale: decoding.scale,
        clip: decoding.clip.unwrap_or(0.0),
        clips: i32::from(decoding.clip.is_some()),
        corner: i32::from(decoding.format == BoxFormat::Corner),
        dtype: code(output.dtype),
        unused: 0,
    };
    Some(Bound::kernel(name, each(n), move |at| DecodeBoxesArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        anchors: at.inputs[1].0,
        ..argument
    }))
}

fn bind_encoding(signature: &Signature<'_>) -> Option<Bound> {
    let ([_, _, anchors, references, ..], [output, ..]) = (signature.inputs, signature.outputs) else { return None };
    let name = of_floats(output.dtype, [c"encode_boxes_f32", c"encode_boxes_f64"])?;
    let (n, dtype) = (output.shape.size() / 4, code(output.dtype));
    let (count, of_image) = (anchors.shape[1] as i64, references.shape[1] as i64);
    Some(Bound::kernel(name, each(n), move |at| EncodeBoxesArgument {
        targets: at.outputs[0].0,
        masks: at.outputs[1].0,
        samples: at.inputs[0].0,
        matches: at.inputs[1].0,
        anchors: at.inputs[2].0,
        references: at.inputs[3].0,
        means: at.inputs[4].0,
        deviations: at.inputs[5].0,
        n: n as i64,
        count,
        of_image,
        dtype,
        unused: 0,
    }))
}
