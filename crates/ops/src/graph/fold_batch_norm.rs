//! `_fold_batch_norm`: weights and bias of a layer with the following BatchNorm folded in.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fold_batch_norm",
    doc: "The weight (output channels first) and bias with which a layer computes itself and the \
        BatchNorm after it.",
    inputs: Inputs::ByAttrs(|attrs| {
        if attrs.bool("with_bias") {
            &["weight", "bias", "gamma", "beta", "moving_mean", "moving_var"]
        } else {
            &["weight", "gamma", "beta", "moving_mean", "moving_var"]
        }
    }),
    outputs: Outputs::Named(|_| &["weight", "bias"]),
    attrs: &[
        AttrDef::new("eps", AttrKind::Float, "0.0010000000474974513", "Added to the variance.").wide(),
        AttrDef::new("fix_gamma", AttrKind::Bool, "True", "Take gamma as 1, whatever it holds."),
        AttrDef::new("with_bias", AttrKind::Bool, "False", "Whether the layer has a bias."),
        AttrDef::new("factor", AttrKind::Float, "1", "What the result is multiplied by.").wide(),
    ],
    infer_shape,
    infer_dtype,
    bind,
    form: |attrs, signature| {
        let (eps, fix_gamma, factor) = numbers(attrs);
        for_floats(signature.inputs[0].dtype, KernelForm::FoldBatchNorm { eps, fix_gamma, factor })
    },
    internal: true,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let Some(channels) = dims.first() else { return Err(shape_error("weight has no axes")) };
    let channels = PartialShape::from_dims([*channels]);
    for i in 1..shapes.inputs.len() {
        shapes.set_input(i, "a parameter of the folded BatchNorm", channels.clone())?;
    }
    shapes.set_output(1, channels)
}

/// Statistics of half-precision layers are kept in single precision, as BatchNorm's.
fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(weight) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
    let layer = dtypes.inputs.len().saturating_sub(4);
    let statistics = if weight == DType::F16 { DType::F32 } else { weight };
    for i in 0..dtypes.inputs.len() {
        let (name, dtype) = if i < layer {
            ("a parameter of the layer", weight)
        } else {
            ("a parameter of the folded BatchNorm", statistics)
        };
        dtypes.set_input(i, name, dtype)?;
    }
    (0..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, weight))
}

fn numbers(attrs: &Attrs) -> (f64, bool, f64) {
    (attrs.float("eps"), attrs.bool("fix_gamma"), attrs.float("factor"))
}

/// Computed in double precision: folding happens once, its rounding would stay.
fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (eps, fix_gamma, factor) = numbers(attrs);
    let channels = signature.outputs[1].shape.size();
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (weight, bias, statistics) = match call.inputs {
            [weight, bias, rest @ ..] if rest.len() == 4 => (weight, Some(bias), rest),
            [weight, rest @ ..] => (weight, None, rest),
            [] => return Err(wrong_arity()),
        };
        let [gamma, beta, mean, variance] = statistics else { return Err(wrong_arity()) };
        let (read, of_layer) = (elements::<<T as Element>::Acc>, elements::<T>);
        let (gamma, beta, mean, variance) = (read(gamma)?, read(beta)?, read(mean)?, read(variance)?);
        let bias = bias.map(of_layer).transpose()?;
        let [folded, offsets] = &mut *call.outputs else { return Err(wrong_arity()) };
        let (weight, folded, offsets) = (of_layer(weight)?, elements_mut::<T>(folded)?, elements_mut::<T>(offsets)?);
        let each = weight.len().checked_div(channels).unwrap_or(0).max(1);
        for (c, (from, to)) in weight.chunks(each).zip(folded.chunks_mut(each)).enumerate() {
            let gamma = if fix_gamma { 1.0 } else { gamma[c].to_f64() };
            let scale = factor * gamma / (variance[c].to_f64() + eps).sqrt();
            for (from, to) in from.iter().zip(to) {
                *to = T::from_f64(from.to_f64() * scale);
            }
            let before = bias.map_or(0.0, |b| b[c].to_f64());
            offsets[c] = T::from_f64(factor * beta[c].to_f64() + (before - mean[c].to_f64()) * scale);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close};

    #[test]
    fn a_layer_with_folded_parameters_gives_what_layer_and_norm_give() {
        let two = |v: [f32; 2]| v;
        let (w, b) = ([1.0f32, 2.0, 3.0, 4.0], two([0.5, -0.5]));
        let (gamma, beta, mean, var) = (two([2.0, 3.0]), two([0.1, 0.2]), two([1.0, -1.0]), two([4.0, 9.0]));
        let folded = OpTest::new("_fold_batch_norm")
            .attr("fix_gamma", "False")
            .attr("with_bias", "True")
            .attr("factor", "-0.25")
            .f32([2, 2], &w)
            .f32([2], &b)
            .f32([2], &gamma)
            .f32([2], &beta)
            .f32([2], &mean)
            .f32([2], &var)
            .run_all();
        let x = [0.7f32, -1.3];
        let layer = |w: &[f32], b: &[f32]| {
            OpTest::new("FullyConnected").attr("num_hidden", "2").f32([1, 2], &x).f32([2, 2], w).f32([2], b).run()
        };
        let expected = OpTest::new("BatchNorm")
            .attr("fix_gamma", "False")
            .array(layer(&w, &b))
            .f32([2], &gamma)
            .f32([2], &beta)
            .f32([2], &mean)
            .f32([2], &var)
            .run();
        let expected: Vec<f32> = expected.values::<f32>().iter().map(|y| y * -0.25).collect();
        let got = layer(&folded[0].values::<f32>(), &folded[1].values::<f32>());
        assert_close(&got.values::<f32>(), &expected);
    }
}
