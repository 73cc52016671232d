//! `_random_pdf_dirichlet`: densities of Dirichlet distributions.

use super::density::{IS_LOG, infer_shape};
use crate::prelude::*;
use mxrt_kernels::density::dirichlet;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_random_pdf_dirichlet",
    aliases: &["random_pdf_dirichlet"],
    doc: "The density of Dirichlet distributions.\n\nThe last axis of sample holds the numbers \
          of one sample, and that of alpha the parameters for them. The axes of alpha before \
          it are the first ones of sample.",
    inputs: Inputs::Fixed(&["sample", "alpha"]),
    attrs: IS_LOG,
    infer_shape: |shapes| infer_shape(shapes, true),
    infer_dtype: |dtypes| dtypes.uniform(&["sample", "alpha"]),
    bind: bind_dirichlet,
    form: |attrs, signature| {
        for_floats(signature.inputs[0].dtype, KernelForm::DirichletDensity { log: attrs.bool("is_log") })
    },
    ..OpDef::BASE
}];

fn bind_dirichlet(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let log = attrs.bool("is_log");
    let k = signature.inputs[0].shape.last().copied().unwrap_or(0);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([sample, alpha], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        dirichlet::<T>(call.par, log, k, elements(sample)?, elements(alpha)?, elements_mut(out)?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn one_sample_has_one_density() {
        let flat = OpTest::new("random_pdf_dirichlet").f32([2], &[0.3, 0.7]).f32([2], &[1.0, 2.0]).run();
        assert_close(&f32s(&flat, [1]), &[1.4]);
    }
}
