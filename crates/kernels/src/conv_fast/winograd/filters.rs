//! Filters of 3x3 taps, a block of output channels at a time, and their values at the points of a scheme, in f64.

use super::super::blocked::BLOCK;
use super::super::params::Conv2dParams;

/// The nine values of the filters of one input channel for a block of output channels; zero beyond the last of either.
pub(super) fn gather_filters(
    weights: &[f32],
    params: &Conv2dParams,
    block: usize,
    channel: usize,
) -> [[f64; BLOCK]; 9] {
    let (inputs, outputs) = (params.in_channels, params.out_channels);
    let mut filters = [[0.0; BLOCK]; 9];
    let lanes = if channel < inputs { BLOCK.min(outputs - block * BLOCK) } else { 0 };
    for lane in 0..lanes {
        let filter = &weights[((block * BLOCK + lane) * inputs + channel) * 9..][..9];
        filters.iter_mut().zip(filter).for_each(|(f, &w)| f[lane] = f64::from(w));
    }
    filters
}

/// Values of filters at the points of all groups.
pub(super) fn transform_filters(g: &[[f64; 3]], filters: &[[f64; BLOCK]; 9]) -> Vec<[f32; BLOCK]> {
    let mut values = Vec::with_capacity(g.len() * g.len());
    for rows in g {
        let row: [[f64; BLOCK]; 3] =
            std::array::from_fn(|j| combine(rows, [&filters[j], &filters[3 + j], &filters[6 + j]]));
        values.extend(g.iter().map(|cols| combine(cols, [&row[0], &row[1], &row[2]]).map(|v| v as f32)));
    }
    values
}

/// A linear combination of three vectors.
fn combine(factors: &[f64; 3], v: [&[f64; BLOCK]; 3]) -> [f64; BLOCK] {
    std::array::from_fn(|l| factors[0] * v[0][l] + factors[1] * v[1][l] + factors[2] * v[2][l])
}
