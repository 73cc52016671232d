//! `_sample_uniform` and its kin: for every element of the parameters an array of its own.

use super::{Distribution, key};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::random::fill;
use mxrt_tensor::{DType, PartialShape};

const ATTRS: &[AttrDef] = &[
    AttrDef::new("shape", AttrKind::Shape, "()", "Shape drawn for every element of the parameters."),
    AttrDef::new(
        "dtype",
        AttrKind::DType(&["None", "float16", "float32", "float64"]),
        "None",
        "dtype of the result; that of the parameters if they are floats, else float32.",
    ),
];

macro_rules! sample_op {
    ($name:literal, $alias:literal, $distribution:ident, $inputs:expr, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            doc: $doc,
            inputs: Inputs::Fixed($inputs),
            attrs: ATTRS,
            infer_shape,
            infer_dtype,
            bind: |_, signature| bind(Distribution::$distribution, signature),
            random: true,
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    sample_op!("_sample_uniform", "sample_uniform", Uniform, &["low", "high"], "Numbers drawn uniformly from ranges."),
    sample_op!("_sample_normal", "sample_normal", Normal, &["mu", "sigma"], "Numbers drawn from normal distributions."),
    sample_op!("_sample_gamma", "sample_gamma", Gamma, &["alpha", "beta"], "Numbers drawn from gamma distributions."),
    sample_op!(
        "_sample_exponential",
        "sample_exponential",
        Exponential,
        &["lam"],
        "Numbers drawn from exponential distributions."
    ),
    sample_op!("_sample_poisson", "sample_poisson", Poisson, &["lam"], "Numbers drawn from Poisson distributions."),
    sample_op!(
        "_sample_negative_binomial",
        "sample_negative_binomial",
        NegativeBinomial,
        &["k", "p"],
        "Numbers drawn from negative binomial distributions."
    ),
    sample_op!(
        "_sample_generalized_negative_binomial",
        "sample_generalized_negative_binomial",
        GeneralizedNegativeBinomial,
        &["mu", "alpha"],
        "Numbers drawn from negative binomial distributions, given by mean and dispersion."
    ),
];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let mut common = PartialShape::UNKNOWN;
    for shape in shapes.inputs.iter() {
        common.merge(shape).map_err(|e| shape_error(format!("the parameters must have one shape: {e}")))?;
    }
    shapes.inputs.iter_mut().for_each(|s| *s = common.clone());
    let Some(dims) = common.dims() else { return Ok(()) };
    let drawn = extents("shape", shapes.attrs.ints("shape"))?;
    shapes.set_output(0, PartialShape::from_dims(dims.iter().copied().chain(drawn.into_iter().map(Some))))
}

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let common = dtypes.inputs.iter().find_map(|d| *d);
    if let Some(dtype) = common {
        for i in 0..dtypes.inputs.len() {
            dtypes.set_input(i, "a parameter", dtype)?;
        }
    }
    let drawn = dtypes.attrs.opt_dtype("dtype").or(common.filter(|d| d.is_float())).unwrap_or(DType::F32);
    dtypes.set_output(0, drawn)
}

fn bind(distribution: Distribution, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let parameters = signature.inputs[0].shape.size();
    let each = signature.outputs[0].shape.size().checked_div(parameters).unwrap_or(0).max(1);
    let to = signature.outputs[0].dtype;
    check_numeric(signature.inputs[0].dtype)?;
    dispatch!(to, float, T => Ok(kernel_fn(signature, move |call| {
        let a = floats(&call.inputs[0])?;
        let b = if distribution.has_two() { &floats(&call.inputs[1])? } else { &a };
        for (a, b) in a.iter().zip(b) {
            distribution.check(*a, *b)?;
        }
        let RandomKey { seed, position } = key(call)?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        fill(call.par, seed, position, out, |i, stream| distribution.draw(a[i / each], b[i / each], stream));
        Ok(())
    })))
}
