//! Variances, averages with weights and percentiles, computed in double precision.

pub mod average;
pub mod moments;
pub mod percentile;

/// Elements that are reduced to one.
fn counted(shape: &[usize], reduced: &[bool]) -> usize {
    shape.iter().zip(reduced).filter(|(_, r)| **r).map(|(n, _)| n).product()
}
