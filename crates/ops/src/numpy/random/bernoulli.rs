//! `_npi_bernoulli`: events with given probabilities.

use super::{CTX, SIZE, infer_shape, required, write_parameters};
use crate::prelude::*;
use crate::random::key;
use mxrt_engine::FailureKind;
use mxrt_kernels::random::Formula;
use mxrt_kernels::strides::broadcast;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_bernoulli",
    doc: "1 with a probability, else 0; the probability is given as such or by its logit.",
    inputs: Inputs::ByAttrs(|attrs| match (attrs.opt_float("prob"), attrs.opt_float("logit")) {
        (None, None) => &["input1"],
        _ => &[],
    }),
    attrs: &[
        required("prob", "Probability; an array if both are None."),
        required("logit", "Logit of the probability."),
        SIZE,
        CTX,
        AttrDef::new(
            "dtype",
            AttrKind::OptDType(&["bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "float32",
            "dtype of the result.",
        ),
        AttrDef::required("is_logit", AttrKind::Bool, "Whether the array holds logits."),
    ],
    infer_shape: |shapes| infer_shape(shapes, false),
    infer_dtype: crate::create::dtype_from_attr,
    bind: |attrs, signature| {
        let (shape, logit) = (signature.outputs[0].shape.clone(), attrs.bool("is_logit"));
        let number = attrs.opt_float("prob").or(attrs.opt_float("logit").map(sigmoid));
        let steps = signature.inputs.first().map(|t| broadcast(&t.shape, &shape)).unwrap_or_default();
        dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
            let probabilities = match number {
                Some(number) => Scratch::filled(call.par, 1, number),
                None => {
                    let mut given = floats(call.par, &call.inputs[0])?;
                    given.iter_mut().filter(|_| logit).for_each(|p| *p = sigmoid(*p));
                    given
                }
            };
            if let Some(wrong) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
                return Err(OpError::new(FailureKind::Value, format!("{wrong} is not a probability")));
            }
            let RandomKey { seed, position } = key(call)?;
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            let values = [(probabilities, number.is_none().then_some(&steps[..]))];
            Formula::Event.fill(call.par, seed, position, out, |first, given| {
                write_parameters(&values, &shape, first, given);
            });
            Ok(())
        })))
    },
    random: true,
    ..OpDef::BASE
}];

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_quarter_of_the_events_takes_place() {
        let test = OpTest::new("_npi_bernoulli").attr("prob", "0.25").attr("logit", "None").attr("is_logit", "0");
        let events = f32s(&test.attr("size", "(20000,)").run(), [20000]);
        assert!(events.iter().all(|event| [0.0, 1.0].contains(event)));
        let share = events.iter().sum::<f32>() / 20000.0;
        assert!((share - 0.25).abs() < 0.05, "{share}");
    }
}
