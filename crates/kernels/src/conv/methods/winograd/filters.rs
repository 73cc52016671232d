//! Filters, one block of output channels after the other, and their values at the points of a
//! scheme, in f64.

use crate::blocked::BLOCK;
use crate::conv::params::Conv2dParams;

/// The taps of the filters of one input channel for a block of output channels, row by row; zero
/// beyond the last of either.
pub(super) fn gather_filters(
    weights: &[f32],
    params: &Conv2dParams,
    block: usize,
    channel: usize,
) -> Vec<[f64; BLOCK]> {
    let (inputs, outputs, taps) = (params.in_channels, params.out_channels, params.taps());
    let mut filters = vec![[0.0; BLOCK]; taps];
    let lanes = if channel < inputs { BLOCK.min(outputs - block * BLOCK) } else { 0 };
    for lane in 0..lanes {
        let filter = &weights[((block * BLOCK + lane) * inputs + channel) * taps..][..taps];
        filters.iter_mut().zip(filter).for_each(|(f, &w)| f[lane] = f64::from(w));
    }
    filters
}

/// Values of filters at the points of all groups, from the matrices for their rows and columns.
pub(super) fn transform_filters(g: &[Vec<Vec<f64>>; 2], filters: &[[f64; BLOCK]]) -> Vec<[f32; BLOCK]> {
    let [rows, cols] = g;
    let width = cols[0].len();
    let mut values = Vec::with_capacity(rows.len() * cols.len());
    for factors in rows {
        let row: Vec<[f64; BLOCK]> = (0..width).map(|j| combine(factors, filters[j..].iter().step_by(width))).collect();
        values.extend(cols.iter().map(|factors| combine(factors, row.iter()).map(|v| v as f32)));
    }
    values
}

/// A linear combination of vectors.
fn combine<'a>(factors: &[f64], vectors: impl Iterator<Item = &'a [f64; BLOCK]>) -> [f64; BLOCK] {
    let mut sum = [0.0; BLOCK];
    for (factor, vector) in factors.iter().zip(vectors) {
        sum.iter_mut().zip(vector).for_each(|(sum, v)| *sum += factor * v);
    }
    sum
}
