//! `_layer_norm_of_sum`: an addition and the normalisation of its result in one pass.

use crate::prelude::*;
use mxrt_kernels::norm::layer_norm_of_sum;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_layer_norm_of_sum",
    doc: "LayerNorm of data + residual along the last axis.",
    inputs: Inputs::Fixed(&["data", "residual", "gamma", "beta"]),
    attrs: &[AttrDef::new("eps", AttrKind::Float, "9.99999975e-06", "Added to the variance.")],
    infer_shape: |shapes| shapes.same_as_first(),
    infer_dtype: |dtypes| dtypes.uniform(&["data", "residual", "gamma", "beta"]),
    bind: |attrs, signature| {
        let eps = attrs.float("eps");
        dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
            let ([x, residual, gamma, beta], [out]) = (call.inputs, &mut *call.outputs) else {
                return Err(wrong_arity());
            };
            let terms = [elements::<T>(x)?, elements(residual)?];
            layer_norm_of_sum(call.par, terms, elements(gamma)?, elements(beta)?, eps, elements_mut(out)?);
            Ok(())
        })))
    },
    internal: true,
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn it_has_the_bits_of_an_addition_and_a_normalisation() {
        let of = |scale: f32| (0..7 * 45).map(|i| (i as f32 * scale).sin()).collect::<Vec<f32>>();
        let (x, y, gamma, beta) = (of(0.37), of(1.7), &of(0.2)[..45], &of(0.9)[..45]);
        let sum: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        let parameters = |test: OpTest| test.f32([45], gamma).f32([45], beta).attr("eps", "1e-3");
        let together = parameters(OpTest::new("_layer_norm_of_sum").f32([7, 45], &x).f32([7, 45], &y)).run();
        let apart = parameters(OpTest::new("LayerNorm").f32([7, 45], &sum)).run_all();
        assert_eq!(f32s(&together, [7, 45]), f32s(&apart[0], [7, 45]));
    }
}
