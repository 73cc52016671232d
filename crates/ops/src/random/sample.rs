//! `_sample_uniform` and similar operators: for every element of the parameters an array of its own. Parameters
//! that make no distribution change their own array alone.

use super::{Distribution, key};
use crate::prelude::*;

const ATTRS: &[AttrDef] = &[
    AttrDef::new("shape", AttrKind::Shape, "()", "Shape drawn for every element of the parameters."),
    AttrDef::new(
        "dtype",
        AttrKind::DType(&["None", "float16", "float32", "float64"]),
        "None",
        "dtype of the result; float32 if not given.",
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
            inputs_before_attrs: 1,
            infer_shape,
            infer_dtype,
            bind: |_, signature| bind(Distribution::$distribution, signature),
            form: |_, signature| form(Distribution::$distribution, signature),
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
    let drawn = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::F32);
    dtypes.set_output(0, drawn)
}

/// Numbers drawn for every element of the parameters.
fn drawn_for_each(signature: &Signature<'_>) -> usize {
    let parameters = signature.inputs[0].shape.size();
    signature.outputs[0].shape.size().checked_div(parameters).unwrap_or(0).max(1)
}

fn form(distribution: Distribution, signature: &Signature<'_>) -> MaybeForm {
    let form =
        KernelForm::RandomRows { distribution: distribution.form_with(0.0, 0.0), each: drawn_for_each(signature) };
    for_floats(signature.outputs[0].dtype, form)
}

/// Numbers of which each comes `each` times, from place `first` on.
fn repeated(numbers: &[f64], each: usize, first: usize, mut out: &mut [f64]) {
    let mut at = first;
    while !out.is_empty() {
        let run = (each - at % each).min(out.len());
        let (same, rest) = out.split_at_mut(run);
        same.fill(numbers[at / each]);
        (at, out) = (at + run, rest);
    }
}

fn bind(distribution: Distribution, signature: &Signature<'_>) -> BoundKernel {
    let each = drawn_for_each(signature);
    let to = signature.outputs[0].dtype;
    check_numeric(signature.inputs[0].dtype)?;
    dispatch!(to, float, T => Ok(kernel_fn(signature, move |call| {
        let a = floats(call.par, &call.inputs[0])?;
        let b = if distribution.has_two() { &floats(call.par, &call.inputs[1])? } else { &a };
        let key = key(call)?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        distribution.method().fill(call.par, key, out, |first, given| {
            given.into_iter().zip([&a, b]).for_each(|(given, numbers)| repeated(numbers, each, first, given));
        });
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_tensor::DType;

    const NAN: f32 = f32::NAN;

    /// The first number of each row.
    fn rows(name: &str, a: &[f32], b: Option<&[f32]>) -> Vec<f32> {
        let test = OpTest::new(name).attr("shape", "(2,)").f32([a.len()], a);
        let test = b.iter().fold(test, |test, b| test.f32([b.len()], b));
        let drawn = f32s(&test.run(), [a.len(), 2]);
        drawn.chunks(2).map(|row| row[0]).collect()
    }

    #[test]
    fn the_result_is_float32_whatever_the_parameters_are() {
        for name in ["sample_normal", "sample_gamma"] {
            let test = OpTest::new(name).f16([1], &[1.0]).f16([1], &[1.0]);
            assert_eq!(test.run().tensor.dtype, DType::F32);
            assert_eq!(test.attr("dtype", "float64").run().tensor.dtype, DType::F64);
        }
        assert_eq!(OpTest::new("sample_poisson").f16([1], &[1.0]).run().tensor.dtype, DType::F32);
    }

    /// Expects what MXNet 1.9.1 gives for the rows that have one answer.
    #[test]
    fn each_row_has_an_answer_of_its_own() {
        let normal = rows("sample_normal", &[1.0, 2.0, NAN, 2.0, 0.0], Some(&[0.0, 0.0, 0.0, NAN, -1.0]));
        assert_eq!(normal[..2], [1.0, 2.0]);
        assert!(normal[2].is_nan() && normal[3].is_nan() && normal[4].is_finite(), "{normal:?}");
        let uniform = rows("sample_uniform", &[3.0, 2.0, NAN, 0.0], Some(&[1.0, 2.0, 1.0, 1.0]));
        assert!((1.0..=3.0).contains(&uniform[0]) && uniform[1] == 2.0, "{uniform:?}");
        assert!(uniform[2].is_nan() && (0.0..1.0).contains(&uniform[3]), "{uniform:?}");
        let gamma = rows("sample_gamma", &[1.0, 0.0, 1.0, -1.0, 1.0], Some(&[0.0, 1.0, -1.0, 1.0, NAN]));
        assert_eq!(gamma[..2], [0.0, 0.0]);
        assert!(gamma[2] < 0.0 && gamma[3].is_nan() && gamma[4].is_nan(), "{gamma:?}");
        let exponential = rows("sample_exponential", &[0.0, NAN, f32::INFINITY, -2.0], None);
        assert!(exponential[0] == f32::INFINITY && exponential[1].is_nan(), "{exponential:?}");
        assert!(exponential[2] == 0.0 && exponential[3] <= 0.0, "{exponential:?}");
        let poisson = rows("sample_poisson", &[0.0, -1.0, NAN], None);
        assert!(poisson[..2] == [0.0, 0.0] && poisson[2].is_nan(), "{poisson:?}");
        let binomial = rows("sample_negative_binomial", &[0.0, 0.0, 2.0, 2.0], Some(&[0.5, 1.0, 1.0, 1.5]));
        assert_eq!(binomial, [0.0; 4]);
        let binomial = rows("sample_generalized_negative_binomial", &[0.0, 0.0, -1.0], Some(&[0.5, 0.0, 0.5]));
        assert_eq!(binomial, [0.0; 3]);
        let scalar = OpTest::new("random_negative_binomial").attr("k", "0").attr("p", "0.5").attr("shape", "(2,)");
        assert_eq!(f32s(&scalar.run(), [2]), [0.0; 2]);
    }
}
