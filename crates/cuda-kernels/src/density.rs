//! Densities of distributions: `density.h`.

use crate::arguments::{DensitiesArgument, DirichletArgument};
use crate::launch::{Bound, code, each, of_floats};
use mxrt_kernels::density::Density;
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match *form {
        KernelForm::Density { density, log } => bind_densities(density, log, signature),
        KernelForm::DirichletDensity { log } => bind_dirichlet(log, signature),
        _ => None,
    }
}

/// The number of a distribution in `Distribution` of the source.
fn number(density: Density) -> i32 {
    match density {
        Density::Uniform => 0,
        Density::Normal => 1,
        Density::Exponential => 2,
        Density::Gamma => 3,
        Density::Poisson => 4,
        Density::NegativeBinomial => 5,
        Density::GeneralizedNegativeBinomial => 6,
    }
}

fn bind_densities(density: Density, log: bool, signature: &Signature<'_>) -> Option<Bound> {
    let ([samples, first, ..], output) = (signature.inputs, signature.outputs.first()?) else { return None };
    of_floats(samples.dtype, [(); 2])?;
    let n = output.shape.size();
    let argument = DensitiesArgument {
        to: 0,
        samples: 0,
        parameters: [0; 2],
        n: n as i64,
        each: n.checked_div(first.shape.size()).unwrap_or(1).max(1) as i64,
        distribution: number(density),
        dtype: code(samples.dtype),
        log: i32::from(log),
        unused: 0,
    };
    Some(Bound::kernel(c"densities", each(n), move |at| {
        let first = at.inputs[1].0;
        let parameters = [first, at.inputs.get(2).map_or(first, |second| second.0)];
        DensitiesArgument { to: at.outputs[0].0, samples: at.inputs[0].0, parameters, ..argument }
    }))
}

fn bind_dirichlet(log: bool, signature: &Signature<'_>) -> Option<Bound> {
    let ([samples, alpha], output) = (signature.inputs, signature.outputs.first()?) else { return None };
    of_floats(samples.dtype, [(); 2])?;
    let (n, extent) = (output.shape.size(), samples.shape.last().copied()?);
    let distributions = alpha.shape.size().checked_div(extent).unwrap_or(1).max(1);
    let argument = DirichletArgument {
        to: 0,
        samples: 0,
        alpha: 0,
        n: n as i64,
        extent: extent as i64,
        each: (n / distributions).max(1) as i64,
        dtype: code(samples.dtype),
        log: i32::from(log),
    };
    // A warp for each.
    Some(Bound::kernel(c"dirichlet", each(n.saturating_mul(32)), move |at| DirichletArgument {
        to: at.outputs[0].0,
        samples: at.inputs[0].0,
        alpha: at.inputs[1].0,
        ..argument
    }))
}
