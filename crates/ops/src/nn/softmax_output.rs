//! `SoftmaxOutput`: softmax at inference; the label only matters in training.

use super::softmax::{bind_softmax, softmax_form};
use crate::prelude::*;
use crate::shape::{PartialDims, known_product};
use mxrt_kernels::softmax::SoftmaxParams;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SoftmaxOutput",
    aliases: &["Softmax"],
    doc: "Softmax of data; label does not matter for the result.\n\n\
        Normalises all but the batch axis together; with multi_output axis 1, with preserve_shape \
        the last axis.",
    inputs: Inputs::Fixed(&["data", "label"]),
    attrs: &[
        AttrDef::new("grad_scale", AttrKind::Float, "1", "For training."),
        AttrDef::new("ignore_label", AttrKind::Float, "-1", "For training."),
        AttrDef::new("multi_output", AttrKind::Bool, "False", "Normalise axis 1."),
        AttrDef::new("use_ignore", AttrKind::Bool, "False", "For training."),
        AttrDef::new("preserve_shape", AttrKind::Bool, "False", "Normalise the last axis."),
        AttrDef::new("normalization", AttrKind::Enum(&["batch", "null", "valid"]), "null", "For training."),
        AttrDef::new("out_grad", AttrKind::Bool, "False", "For training."),
        AttrDef::new("smooth_alpha", AttrKind::Float, "0", "For training."),
    ],
    infer_shape,
    bind: |attrs, signature| {
        let (split, signature) = of_data(attrs, signature);
        bind_softmax(SoftmaxParams::default(), split, &signature)
    },
    form: |attrs, signature| {
        let (split, signature) = of_data(attrs, signature);
        softmax_form(SoftmaxParams::default(), split, &signature)
    },
    // The label is not looked at.
    rewrites: &Rewrites {
        row_wise: |_, signature, divided| divided.first() == Some(&true) && is_within_rows(-1, signature),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(data) = shapes.dims(0) else { return Ok(()) };
    if data.is_empty() {
        return Err(shape_error("data has no axes; at least the batch axis is needed"));
    }
    let label = shapes.inputs[1].clone();
    // A label of the data's shape holds probabilities.
    if label.is_complete() && label == shapes.inputs[0] {
        return Ok(());
    }
    let allowed = label_shapes(shapes.attrs, &data);
    for want in &allowed {
        if shapes.set_input(1, "label", want.clone()).is_ok() {
            return Ok(());
        }
    }
    let mut list: Vec<String> = Vec::new();
    for shape in allowed.iter().map(|s| s.to_string()) {
        if !list.contains(&shape) {
            list.push(shape);
        }
    }
    Err(shape_error(format!("label has shape {label} but input {} needs {}", shapes.inputs[0], list.join(" or "))))
}

/// Shapes that a label may have; the first is taken where nothing is known.
fn label_shapes(attrs: &Attrs, data: &[Option<usize>]) -> Vec<PartialShape> {
    if !attrs.bool("multi_output") || data.len() < 2 {
        return vec![PartialShape::from_dims(data[..data.len() - 1].iter().copied())];
    }
    let mut without: PartialDims = data.iter().copied().collect();
    let mut with_one = without.clone();
    without.remove(1);
    with_one[1] = Some(1);
    [PartialDims::from_slice(&[data[0], known_product(&data[2..])]), without, with_one]
        .map(PartialShape::from_dims)
        .to_vec()
}

/// The whole of data with one axis in float32, where MXNet normalises the last axis. Of other types
/// it makes every element a row.
pub(crate) fn of_one_axis(signature: &Signature<'_>) -> Option<[usize; 3]> {
    let data = &signature.inputs[0];
    (data.dtype == DType::F32 && data.shape.len() == 1).then(|| [1, data.shape[0], 1])
}

/// The axes around that of the softmax, and the signature without the label.
fn of_data<'a>(attrs: &Attrs, signature: &Signature<'a>) -> ([usize; 3], Signature<'a>) {
    let shape = &signature.inputs[0].shape;
    let (batch, rest) = (shape[0], shape[1..].iter().product());
    let split = if let Some(split) = of_one_axis(signature).filter(|_| !attrs.bool("multi_output")) {
        split
    } else if attrs.bool("multi_output") && shape.len() > 1 {
        [batch, shape[1], shape[2..].iter().product()]
    } else if attrs.bool("preserve_shape") {
        let last = shape[shape.len() - 1];
        [shape[..shape.len() - 1].iter().product(), last, 1]
    } else {
        [batch, rest, 1]
    };
    let data_only =
        Signature { inputs: &signature.inputs[..1], outputs: signature.outputs, options: signature.options };
    (split, data_only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    #[test]
    fn everything_but_the_batch_is_normalised_together() {
        let y = OpTest::new("SoftmaxOutput").f32([1, 2, 2], &[0.0; 4]).f32([1, 2], &[0.0; 2]).run();
        assert_close(&f32s(&y, [1, 2, 2]), &[0.25; 4]);
        let y = OpTest::new("Softmax").attr("multi_output", "1").f32([1, 2, 2], &[0.0; 4]).f32([1, 2], &[0.0; 2]).run();
        assert_close(&f32s(&y, [1, 2, 2]), &[0.5; 4]);
    }

    /// Recorded from MXNet 1.9.1.
    #[test]
    fn data_of_one_axis_is_normalised_in_float32_alone() {
        let x = [0.1, 0.75, 0.3];
        let want = [0.241_724_36, 0.463_032_87, 0.295_242_8];
        assert_close(&f32s(&OpTest::new("SoftmaxOutput").f32([3], &x).f32([3], &x).run(), [3]), &want);
        assert_close(&f32s(&OpTest::new("SoftmaxActivation").f32([3], &x).run(), [3]), &want);
        let half = OpTest::new("SoftmaxOutput").f16([3], &x).f16([3], &x).run();
        assert_eq!(f16s(&half, [3]), [1.0; 3]);
        OpTest::new("SoftmaxActivation").f16([3], &x).error();
        OpTest::new("SoftmaxActivation").attr("mode", "channel").f32([3], &x).error();
    }

    #[test]
    fn an_error_lists_each_shape_of_a_label_once() {
        let test = OpTest::new("SoftmaxOutput").attr("multi_output", "1");
        let error = test.f32([3, 2], &[0.0; 6]).f32([5, 7], &[0.0; 35]).error();
        assert!(error.message.ends_with("needs (3, 1) or (3,)"), "{}", error.message);
    }

    #[test]
    fn the_shape_of_the_label_is_inferred() -> Result<(), OpError> {
        let def = &OPS[0];
        let attrs = def.parse_attrs([])?;
        let mut inputs = [PartialShape::from_dims([Some(8), Some(10)]), PartialShape::UNKNOWN];
        let mut outputs = [PartialShape::UNKNOWN];
        (def.infer_shape)(&mut Shapes { attrs: &attrs, inputs: &mut inputs, outputs: &mut outputs })?;
        assert_eq!(inputs[1].to_string(), "(8,)");
        assert_eq!(outputs[0].to_string(), "(8, 10)");
        Ok(())
    }
}
