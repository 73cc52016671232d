//! The engine's profiler, for `mxrt.profiler`.

use crate::runtime;
use mxrt_engine::profile;
use pyo3::prelude::*;

/// Starts or stops recording operators.
#[pyfunction]
pub(crate) fn profiler_switch(on: bool) {
    profile::set_on(on);
}

/// The number by which records know the calling thread.
#[pyfunction]
pub(crate) fn profiler_thread() -> u32 {
    profile::this_thread()
}

/// Operators that this thread calls from now on stand below this one; None: under their own names.
#[pyfunction]
#[pyo3(signature = (name))]
pub(crate) fn profiler_inside(name: Option<&str>) {
    mxrt_ops::name_operators_inside(name);
}

/// Microseconds on the clock of the records.
#[pyfunction]
pub(crate) fn profiler_now() -> f64 {
    profile::now_micros()
}

/// Waits for what was submitted to devices: only then it is known when it ran.
#[pyfunction]
pub(crate) fn profiler_finish(py: Python<'_>) -> PyResult<()> {
    let engine = runtime::runtime()?.engine;
    runtime::wait(py, move |poll| engine.wait_for_devices(poll))
}

/// The records as JSON objects of the Chrome trace format.
#[pyfunction]
pub(crate) fn profiler_events(py: Python<'_>, clear: bool) -> PyResult<Vec<String>> {
    Ok(py.detach(move || profile::snapshot(clear).trace_events()))
}

type Row = (String, u64, f64, f64, f64);

/// Totals by operator: name, number of calls, and sum, shortest and longest of the times in
/// milliseconds. Then the same for operators on devices, by the times there.
#[pyfunction]
pub(crate) fn profiler_totals(py: Python<'_>, clear: bool) -> PyResult<(Vec<Row>, Vec<Row>)> {
    let (host, devices) = py.detach(move || {
        let found = profile::snapshot(clear);
        (found.totals(), found.device_totals())
    });
    let rows = |totals: Vec<profile::Total>| {
        totals.into_iter().map(|t| (t.name, t.count, t.total / 1e3, t.min / 1e3, t.max / 1e3)).collect()
    };
    Ok((rows(host), rows(devices)))
}
