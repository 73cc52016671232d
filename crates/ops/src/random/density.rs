//! `_random_pdf_uniform` and related operators: densities of distributions of numbers.

use crate::prelude::*;
use crate::shape::PartialDims;
use mxrt_kernels::density::Density;

macro_rules! density {
    ($name:literal, $alias:literal, $density:ident, $inputs:expr, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            doc: concat!(
                "The density of ",
                $doc,
                ".\n\nThe parameters have one shape, with which the shape of sample begins: they \
                 hold for all samples in the axes after it."
            ),
            inputs: Inputs::Fixed($inputs),
            attrs: IS_LOG,
            inputs_before_attrs: 2,
            infer_shape: |shapes| infer_shape(shapes, false),
            infer_dtype: |dtypes| dtypes.uniform($inputs),
            bind: |attrs, signature| bind(Density::$density, attrs, signature),
            form: |attrs, signature| {
                let form = KernelForm::Density { density: Density::$density, log: attrs.bool("is_log") };
                for_floats(signature.inputs[0].dtype, form)
            },
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    density!(
        "_random_pdf_uniform",
        "random_pdf_uniform",
        Uniform,
        &["sample", "low", "high"],
        "uniform distributions, also for samples beyond their ends, as in MXNet"
    ),
    density!(
        "_random_pdf_normal",
        "random_pdf_normal",
        Normal,
        &["sample", "mu", "sigma"],
        "normal distributions with mean mu and deviation sigma"
    ),
    density!(
        "_random_pdf_gamma",
        "random_pdf_gamma",
        Gamma,
        &["sample", "alpha", "beta"],
        "gamma distributions with shape alpha and rate beta"
    ),
    density!(
        "_random_pdf_exponential",
        "random_pdf_exponential",
        Exponential,
        &["sample", "lam"],
        "exponential distributions with rate lam"
    ),
    density!(
        "_random_pdf_poisson",
        "random_pdf_poisson",
        Poisson,
        &["sample", "lam"],
        "Poisson distributions with mean lam"
    ),
    density!(
        "_random_pdf_negative_binomial",
        "random_pdf_negative_binomial",
        NegativeBinomial,
        &["sample", "k", "p"],
        "negative binomial distributions with k failures, each of probability p"
    ),
    density!(
        "_random_pdf_generalized_negative_binomial",
        "random_pdf_generalized_negative_binomial",
        GeneralizedNegativeBinomial,
        &["sample", "mu", "alpha"],
        "negative binomial distributions with mean mu and dispersion alpha"
    ),
];

pub(super) const IS_LOG: &[AttrDef] =
    &[AttrDef::new("is_log", AttrKind::Bool, "False", "Whether the logarithm of the density is computed.")];

pub(super) fn infer_shape(shapes: &mut Shapes<'_>, vectors: bool) -> Result<(), OpError> {
    let mut parameters = PartialShape::UNKNOWN;
    for shape in &shapes.inputs[1..] {
        parameters.merge(shape).map_err(|e| shape_error(format!("the parameters must have one shape: {e}")))?;
    }
    let (Some(mut sample), Some(rank)) = (shapes.dims(0), parameters.rank()) else { return Ok(()) };
    if rank > sample.len() || (vectors && rank == 0) {
        return Err(shape_error(format!(
            "the parameters have shape {parameters}, but sample has shape {}, which must begin \
             with it",
            shapes.inputs[0]
        )));
    }
    let mut want: PartialDims = sample[..rank].into();
    if vectors && let (Some(want), Some(last)) = (want.last_mut(), sample.last()) {
        *want = *last;
    }
    for i in 1..shapes.inputs.len() {
        shapes.set_input(i, "a parameter", PartialShape::from_dims(want.iter().copied()))?;
    }
    if vectors {
        sample.pop();
        if sample.is_empty() {
            sample.push(Some(1));
        }
    }
    shapes.set_output(0, PartialShape::from_dims(sample))
}

fn bind(density: Density, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let log = attrs.bool("is_log");
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([sample, first, rest @ ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let second = rest.first().map(elements::<T>).transpose()?;
        density.run(call.par, log, elements(sample)?, elements(first)?, second, elements_mut(out)?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn shapes_must_begin_alike() {
        let normal = |mu: [usize; 1], sigma: [usize; 1]| {
            let zeros = [1.0; 4];
            let test = OpTest::new("random_pdf_normal").f32([2, 3], &[0.0; 6]);
            test.f32(mu, &zeros[..mu[0]]).f32(sigma, &zeros[..sigma[0]]).error().message.clone()
        };
        assert!(normal([3], [3]).starts_with("a parameter has shape (3,)"));
        assert!(normal([2], [1]).starts_with("the parameters must have one shape"));
    }

    #[test]
    fn parameters_hold_for_the_samples_behind_them() {
        let poisson = |log: &str| {
            let test = OpTest::new("random_pdf_poisson").attr("is_log", log);
            f32s(&test.f32([2, 2], &[0.0, 1.0, 0.0, 2.0]).f32([2], &[1.0, 2.0]).run(), [2, 2])
        };
        let e = (-1f32).exp();
        assert_close(&poisson("False"), &[e, e, e * e, 2.0 * e * e]);
        assert_close(&poisson("True"), &[-1.0, -1.0, -2.0, 2f32.ln() - 2.0]);
    }
}
