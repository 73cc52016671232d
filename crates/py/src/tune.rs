//! Measuring convolutions on request. Nothing else ever measures: the same model gives the same
//! bits on every run.

use crate::{errors, runtime};
use mxrt::internal::FailureKind;
use mxrt::internal::{ConvSignature, ConvTable, Method};
use pyo3::prelude::*;
use std::time::Duration;

/// Method, kernel and nanoseconds.
type Measured = (&'static str, String, u64);

/// The method chosen without a table, and the time of each method on one core, the fastest first.
/// Measures for about the given number of seconds.
#[pyfunction]
pub(crate) fn measure_convolution(
    py: Python<'_>,
    signature: &str,
    seconds: f64,
) -> PyResult<(Option<&'static str>, Vec<Measured>)> {
    let signature: ConvSignature = signature.parse().map_err(|e: String| errors::plain(FailureKind::Value, &e))?;
    let budget = Duration::try_from_secs_f64(seconds).map_err(|e| errors::plain(FailureKind::Value, &e.to_string()))?;
    let allowed = runtime::runtime()?.plans.kernel.transforms();
    let measured = py.detach(|| mxrt::internal::measure(&signature, allowed, budget));
    let rows = measured.into_iter().map(|one| (one.method.name(), one.name, one.ns)).collect();
    Ok((mxrt::internal::chosen(&signature, allowed).map(Method::name), rows))
}

/// The text of a table with further entries: signature, method, nanoseconds.
#[pyfunction]
pub(crate) fn tuned_table(text: &str, entries: Vec<(String, String, u64)>) -> PyResult<String> {
    let wrong = |e: String| errors::plain(FailureKind::Value, &e);
    let mut table: ConvTable = text.parse().map_err(wrong)?;
    for (signature, method, ns) in entries {
        table.insert(signature.parse().map_err(wrong)?, method.parse().map_err(wrong)?, ns);
    }
    Ok(table.to_string())
}
