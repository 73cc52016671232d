//! Answers about whole arrays, and counts: `counting.h`.

use crate::arguments::{AllCloseArgument, AllFiniteArgument, HistogramArgument};
use crate::launch::{Bound, Computes, code, computes, each, known, launch};
use crate::moving::fill;
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match *form {
        KernelForm::AllFinite => bind_finite(signature),
        KernelForm::AllClose { relative, absolute, equal_nan } => {
            bind_close([relative, absolute], equal_nan, signature)
        }
        KernelForm::Histogram(range) => bind_histogram(range, signature),
        _ => None,
    }
}

fn bind_finite(signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?.clone();
    if !signature.inputs.iter().all(known) {
        return None;
    }
    let arrays: Vec<(usize, i32)> =
        signature.inputs.iter().map(|input| (input.shape.size(), code(input.dtype))).collect();
    Some(Bound::new(move |ctx, at| {
        fill(ctx, at.outputs[0], &output, 1.0)?;
        for ((n, dtype), from) in arrays.iter().zip(at.inputs) {
            let Some(grid) = each(*n) else { continue };
            let argument =
                AllFiniteArgument { to: at.outputs[0].0, from: from.0, n: *n as i64, dtype: *dtype, unused: 0 };
            launch(ctx, c"all_finite", grid, &argument)?;
        }
        Ok(())
    }))
}

fn bind_close([relative, absolute]: [f64; 2], equal_nan: bool, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first().filter(|input| known(input))?, signature.outputs.first()?.clone());
    let (n, dtype) = (input.shape.size(), code(input.dtype));
    Some(Bound::new(move |ctx, at| {
        fill(ctx, at.outputs[0], &output, 1.0)?;
        let Some(grid) = each(n) else { return Ok(()) };
        let argument = AllCloseArgument {
            to: at.outputs[0].0,
            a: at.inputs[0].0,
            b: at.inputs[1].0,
            n: n as i64,
            relative,
            absolute,
            dtype,
            equal_nan: i32::from(equal_nan),
        };
        launch(ctx, c"all_close", grid, &argument)
    }))
}

fn bind_histogram(range: Option<[f64; 2]>, signature: &Signature<'_>) -> Option<Bound> {
    let ([input, ..], [counts, edges]) = (signature.inputs, signature.outputs) else { return None };
    let name = match computes(input.dtype)? {
        Computes::Whole => c"histogram_i64",
        Computes::Single | Computes::Double => c"histogram_f64",
    };
    let (n, bins) = (input.shape.size(), counts.shape.size());
    let ([low, high], edge_bytes) = (range.unwrap_or_default(), edges.bytes());
    let argument = HistogramArgument {
        counts: 0,
        edges: 0,
        from: 0,
        bins: 0,
        n: n as i64,
        low,
        high,
        count: i32::try_from(bins).ok()?,
        dtype: code(input.dtype),
    };
    Some(Bound::new(move |ctx, at| {
        let mut argument = argument;
        (argument.counts, argument.edges, argument.from) = (at.outputs[0].0, at.outputs[1].0, at.inputs[0].0);
        if range.is_none() {
            argument.bins = at.inputs[1].0;
            // SAFETY: arrays of the running op, of that size.
            unsafe { ctx.copy(at.outputs[1], at.inputs[1], edge_bytes) }?;
        }
        let Some(of_edges) = each(bins + 1) else { return Ok(()) };
        launch(ctx, c"histogram_edges", of_edges, &argument)?;
        match each(n).filter(|_| bins > 0) {
            Some(grid) => launch(ctx, name, grid, &argument),
            None => Ok(()),
        }
    }))
}
