//! `FullyConnected`: a dense layer.

use super::convolution_kernel::Epilogue;
use super::fully_connected_kernel::{bind_dense, dense_form};
use crate::prelude::*;
use crate::shape::known_product;
use mxrt_engine::OpError;
use mxrt_tensor::PartialShape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "FullyConnected",
    aliases: &["_npx_fully_connected", "_sparse_FullyConnected"],
    doc: "data times weight transposed, plus bias. With flatten all axes of data but the first are \
        joined, else the last one is multiplied.",
    inputs: Inputs::ByAttrs(
        |attrs| {
            if attrs.bool("no_bias") { &["data", "weight"] } else { &["data", "weight", "bias"] }
        },
    ),
    attrs: ATTRS,
    infer_shape: |shapes| infer_shape(shapes),
    infer_dtype: |dtypes| dtypes.uniform(&["data", "weight", "bias"]),
    bind: |attrs, signature| bind_dense(signature, Epilogue::of_layer(attrs), None),
    form: |attrs, signature| dense_form(signature, Epilogue::of_layer(attrs).form()),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

const ATTRS: &[AttrDef] = &ALL_ATTRS;

/// Attributes of a dense layer; fused ones add theirs.
pub(crate) const ALL_ATTRS: [AttrDef; 3] = [
    AttrDef::required("num_hidden", AttrKind::IntFrom(1), "Number of outputs."),
    AttrDef::new("no_bias", AttrKind::Bool, "False", "Without the input bias."),
    AttrDef::new("flatten", AttrKind::Bool, "True", "Join all axes of data but the first."),
];

/// Infers input, weight, bias and output; other inputs are left alone.
pub(crate) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let outputs = shapes.attrs.count("num_hidden");
    let flatten = shapes.attrs.bool("flatten");
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let Some(last) = dims.len().checked_sub(1) else {
        return Err(shape_error("data has no axes; at least one is needed"));
    };
    let inputs = if flatten { known_product(&dims[1..]) } else { dims[last] };
    infer_parameters(shapes, inputs, outputs)?;
    let mut out = dims.clone();
    if flatten {
        out.truncate(1);
        out.push(Some(outputs));
    } else {
        out[last] = Some(outputs);
    }
    shapes.set_output(0, PartialShape::from_dims(out))?;
    // The batch size may follow from the result only.
    if flatten || last > 0 {
        dims[0] = dims[0].or(shapes.outputs[0].dim(0));
    }
    shapes.set_input(0, "data", PartialShape::from_dims(dims))
}

fn infer_parameters(shapes: &mut Shapes<'_>, inputs: Option<usize>, outputs: usize) -> Result<(), OpError> {
    let (want, have) = (PartialShape::from_dims([Some(outputs), inputs]), shapes.inputs[1].clone());
    shapes.set_input(1, "weight", want.clone()).map_err(|_| {
        let flatten = if shapes.attrs.bool("flatten") { "True" } else { "False" };
        shape_error(format!(
            "weight has shape {have} but input {} with num_hidden={outputs} and flatten={flatten} \
             needs {want}",
            shapes.inputs[0]
        ))
    })?;
    if shapes.attrs.bool("no_bias") {
        return Ok(());
    }
    // MXNet also takes a bias that is a column.
    let column = PartialShape::from_dims([Some(outputs), Some(1)]);
    if shapes.rank(2) == Some(2) && shapes.set_input(2, "bias", column).is_ok() {
        return Ok(());
    }
    let have = shapes.inputs[2].clone();
    shapes
        .set_input(2, "bias", PartialShape::from_dims([Some(outputs)]))
        .map_err(|_| shape_error(format!("bias has shape {have} but num_hidden={outputs} needs ({outputs},)")))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn dense(attrs: &[(&str, &str)]) -> OpTest {
        attrs.iter().fold(OpTest::new("FullyConnected").attr("num_hidden", "2"), |t, (k, v)| t.attr(k, v))
    }

    #[test]
    fn axes_are_joined_unless_flatten_is_off() {
        let x = [1.0f32, 2.0, 3.0, 4.0];
        let y =
            dense(&[]).f32([1, 2, 2], &x).f32([2, 4], &[1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]).f32([2], &[0.0, 0.5]);
        assert_eq!(f32s(&y.run(), [1, 2]), [1.0, 10.5]);
        let y =
            dense(&[("flatten", "False"), ("no_bias", "True")]).f32([1, 2, 2], &x).f32([2, 2], &[1.0, 1.0, 0.0, 1.0]);
        assert_eq!(f32s(&y.run(), [1, 2, 2]), [3.0, 2.0, 7.0, 4.0]);
    }

    #[test]
    fn long_sums_of_few_outputs_need_no_packed_weights() {
        let k = 140_000;
        let x: Vec<f32> = (0..5 * k).map(|i| (i % 3) as f32 - 1.0).collect();
        let weight: Vec<f32> = (0..2 * k).map(|i| (i % 5) as f32 - 2.0).collect();
        let test = dense(&[]).f32([5, k], &x).f32([2, k], &weight).f32([2], &[0.5, -0.5]);
        assert!(test.kernel().packing().is_none());
        let of = |place: usize| (0..k).map(|i| x[place / 2 * k + i] * weight[place % 2 * k + i]).sum::<f32>();
        let want: Vec<f32> = (0..10).map(|place| of(place) + [0.5, -0.5][place % 2]).collect();
        assert_eq!(f32s(&test.run(), [5, 2]), want);
    }

    #[test]
    fn parameters_that_do_not_fit_are_named() {
        let error = dense(&[]).f32([2, 3], &[0.0; 6]).f32([2, 5], &[0.0; 10]).f32([2], &[0.0; 2]).error();
        assert!(error.message.starts_with("weight has shape (2, 5) but input (2, 3)"), "{}", error.message);
        assert!(error.message.ends_with("needs (2, 3)"), "{}", error.message);
        let error = dense(&[]).f32([2, 3], &[0.0; 6]).f32([2, 3], &[0.0; 6]).f32([5], &[0.0; 5]).error();
        assert!(error.message.starts_with("bias has shape (5,)"), "{}", error.message);
    }
}
