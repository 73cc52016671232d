//! Random numbers. Every element has its own piece of the stream, so results do not depend on
//! threads.

use crate::prelude::*;
use mxrt_engine::FailureKind;
use mxrt_kernels::random::{Formula, Stream, fill};
use mxrt_kernels::{Element, Par};

pub mod density;
pub mod density_dirichlet;
pub mod like;
pub mod multinomial;
pub mod randint;
pub mod sample;
pub mod scalar;
pub mod shuffle;
pub mod unique_zipfian;

/// A distribution with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Distribution {
    Uniform,
    Normal,
    /// shape and scale
    Gamma,
    /// rate
    Exponential,
    Poisson,
    /// successes and their probability
    NegativeBinomial,
    /// mean and dispersion
    GeneralizedNegativeBinomial,
}

impl Distribution {
    /// The form for a device, if the parameters make a distribution.
    fn form(self, a: f64, b: f64) -> Option<RandomForm> {
        self.check(a, b).ok()?;
        Some(match self {
            // The rate is 0 or less.
            Distribution::NegativeBinomial if b > 0.0 && (a == 0.0 || b >= 1.0) => RandomForm::Poisson(0.0),
            _ => self.form_with(a, b),
        })
    }

    /// The form with these parameters, whatever they are.
    fn form_with(self, a: f64, b: f64) -> RandomForm {
        match self {
            Distribution::Uniform => RandomForm::Uniform(a, b),
            Distribution::Normal => RandomForm::Normal(a, b),
            Distribution::Gamma => RandomForm::Gamma(a, b),
            Distribution::Exponential => RandomForm::Exponential(a),
            Distribution::Poisson => RandomForm::Poisson(a),
            Distribution::NegativeBinomial => RandomForm::NegativeBinomial(a, b),
            Distribution::GeneralizedNegativeBinomial => RandomForm::GeneralizedNegativeBinomial(a, b),
        }
    }

    /// How its numbers are made. Distributions with one parameter ignore the second. Parameters that
    /// make no distribution give NaN, or what the method gives.
    pub fn method(self) -> DrawMethod {
        match self {
            Distribution::Uniform => DrawMethod::Formula(Formula::Uniform),
            Distribution::Normal => DrawMethod::Formula(Formula::Normal),
            Distribution::Gamma => DrawMethod::Draw(|a, b, stream| b * stream.gamma(a)),
            Distribution::Exponential => DrawMethod::Formula(Formula::Exponential),
            Distribution::Poisson => DrawMethod::Draw(|a, _, stream| stream.poisson(a)),
            Distribution::NegativeBinomial => DrawMethod::Draw(|a, b, stream| {
                let rate = stream.gamma(a) * (1.0 - b) / b;
                stream.poisson(rate)
            }),
            Distribution::GeneralizedNegativeBinomial => DrawMethod::Draw(|a, b, stream| {
                let rate = if b == 0.0 { a } else { stream.gamma(1.0 / b) * b * a };
                stream.poisson(rate)
            }),
        }
    }

    /// Parameters that make no distribution are an error of the values: it comes when the operator
    /// runs.
    pub fn check(self, a: f64, b: f64) -> Result<(), OpError> {
        let (good, want) = match self {
            Distribution::Uniform => (a <= b, "low must be at most high"),
            Distribution::Normal => (b > 0.0, "scale must be positive"),
            Distribution::Gamma => (a > 0.0 && b > 0.0, "alpha and beta must be positive"),
            Distribution::Exponential => (a > 0.0, "lam must be positive"),
            Distribution::Poisson => (a >= 0.0, "lam must be 0 or more"),
            Distribution::NegativeBinomial => (a >= 0.0 && b >= 0.0, "k and p must be 0 or more"),
            Distribution::GeneralizedNegativeBinomial => (a >= 0.0 && b >= 0.0, "mu and alpha must be 0 or more"),
        };
        // The kind of a failed kernel, not of a bad argument: MXNet's class here is the plain
        // MXNetError.
        let got = if self.has_two() { format!("{a} and {b}") } else { a.to_string() };
        if good { Ok(()) } else { Err(OpError::new(FailureKind::Operator, format!("{want}, got {got}"))) }
    }

    /// Whether there is a second parameter.
    pub fn has_two(self) -> bool {
        !matches!(self, Distribution::Exponential | Distribution::Poisson)
    }
}

/// How the numbers of a distribution with up to two parameters are made.
#[derive(Clone, Copy)]
pub(crate) enum DrawMethod {
    /// a formula, in vectors
    Formula(Formula),
    /// a function that draws one number
    Draw(fn(f64, f64, &mut Stream) -> f64),
}

impl DrawMethod {
    /// Fills `out`. `parameters` writes those of as many elements as it is given room for, from the
    /// one of this number on.
    pub fn fill<T: Element>(
        self,
        par: &dyn Par,
        RandomKey { seed, position }: RandomKey,
        out: &mut [T],
        parameters: impl Fn(usize, [&mut [f64]; 2]) + Sync,
    ) {
        match self {
            DrawMethod::Formula(formula) => formula.fill(par, seed, position, out, parameters),
            DrawMethod::Draw(draw) => fill(par, seed, position, out, |i, stream| {
                let (mut a, mut b) = ([0.0], [0.0]);
                parameters(i, [&mut a, &mut b]);
                draw(a[0], b[0], stream)
            }),
        }
    }
}

/// This execution's piece of the random stream.
pub(crate) fn key(call: &KernelCall<'_, '_>) -> Result<RandomKey, OpError> {
    call.random.ok_or_else(|| value_error("a random operator was run without a random stream"))
}

/// The parameters with these names; a missing second one is 0.
fn parameters(attrs: &Attrs, names: &[&str]) -> [f64; 2] {
    [0, 1].map(|i| names.get(i).map_or(0.0, |name| attrs.float(name)))
}

/// The form of numbers that are all drawn with the same parameters.
pub(crate) fn constant_form(distribution: Distribution, a: f64, b: f64, signature: &Signature<'_>) -> MaybeForm {
    match distribution.form(a, b) {
        Some(form) => for_floats(signature.outputs[0].dtype, KernelForm::Random(form)),
        None => Ok(None),
    }
}

/// A kernel that draws every element with the same parameters.
pub(crate) fn bind_constant(distribution: Distribution, a: f64, b: f64, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.outputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        distribution.check(a, b)?;
        let key = key(call)?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        distribution.method().fill(call.par, key, out, |_, [first, second]| {
            first.fill(a);
            second.fill(b);
        });
        Ok(())
    })))
}
