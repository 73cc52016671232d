//! Random numbers, those of the host: `random.h`.

use crate::arguments::RandomArgument;
use crate::launch::{Bound, code, each, known};
use mxrt_ops::{KernelForm, RandomForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let (random, each_parameter) = match *form {
        KernelForm::Random(random) => (random, None),
        KernelForm::RandomRows { distribution, each } => (distribution, Some(each)),
        _ => return None,
    };
    let output = signature.outputs.first().filter(|t| known(t))?;
    let (distribution, a, b, low, count) = numbers_of(random);
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    let parameter_dtype = match each_parameter {
        Some(_) => code(signature.inputs.first().filter(|t| known(t))?.dtype),
        None => 0,
    };
    Some(Bound::kernel(c"random_numbers", each(n), move |at| {
        let (seed, position) = at.random.map_or((0, 0), |key| (key.seed, key.position));
        let parameters = match (each_parameter, at.inputs) {
            (Some(_), [a, b, ..]) => [a.0, b.0],
            (Some(_), [a]) => [a.0, a.0],
            _ => [0, 0],
        };
        RandomArgument {
            to: at.outputs[0].0,
            parameters,
            n: n as i64,
            low,
            seed,
            position,
            count,
            a,
            b,
            each: each_parameter.unwrap_or(1) as i64,
            distribution,
            dtype,
            parameter_dtype,
            unused: 0,
        }
    }))
}

/// The number of a distribution in the source, its two parameters, and the least integer with the
/// count of those that it draws from.
fn numbers_of(random: RandomForm) -> (i32, f64, f64, i64, u64) {
    match random {
        RandomForm::Uniform(a, b) => (0, a, b, 0, 0),
        RandomForm::Normal(a, b) => (1, a, b, 0, 0),
        RandomForm::Exponential(a) => (2, a, 0.0, 0, 0),
        RandomForm::Gamma(a, b) => (3, a, b, 0, 0),
        RandomForm::Poisson(a) => (4, a, 0.0, 0, 0),
        RandomForm::NegativeBinomial(a, b) => (5, a, b, 0, 0),
        RandomForm::GeneralizedNegativeBinomial(a, b) => (6, a, b, 0, 0),
        RandomForm::Integers(low, high) => (7, 0.0, 0.0, low, high.wrapping_sub(low) as u64),
    }
}
