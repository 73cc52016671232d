//! The engine as Python programs steer it: kind, bulks, what it is doing.

use crate::ndarray::NDArrayBase;
use crate::{errors, runtime};
use mxrt::internal::Process;
use mxrt_engine::{EngineKind, FailureKind};
use pyo3::prelude::*;

/// Chooses the kind of engine, before anything uses it.
#[pyfunction]
pub(crate) fn set_engine_type(name: &str) -> PyResult<()> {
    let kind: EngineKind = name.parse().map_err(|e| errors::plain(FailureKind::Value, &format!("set_type: {e}")))?;
    Process::choose_engine(kind).map_err(|engine| {
        let text = format!(
            "set_type: the engine runs already, as {}; call this before the first array is \
             made, or set MXNET_ENGINE_TYPE={kind}",
            engine.kind()
        );
        errors::plain(FailureKind::Value, &text)
    })
}

/// Sets how many small operators of this thread are joined; returns the number before.
#[pyfunction]
pub(crate) fn set_bulk_size(py: Python<'_>, size: usize) -> PyResult<usize> {
    let engine = runtime::runtime()?.engine;
    Ok(py.detach(move || engine.set_bulk_size(size)))
}

/// Takes denormal numbers for zeros in operators, or does not; returns what was set before.
#[pyfunction]
pub(crate) fn set_flush_denormals(flush: bool) -> PyResult<bool> {
    // The environment is read first: it would change the setting later.
    runtime::runtime()?;
    mxrt_engine::set_flush_denormals(flush).map_err(|message| errors::plain(FailureKind::NotImplemented, message))
}

/// Describes the running and queued operators, and each waiting thread with its variable and since
/// when.
#[pyfunction]
pub(crate) fn dump_engine(py: Python<'_>) -> PyResult<String> {
    let engine = runtime::runtime()?.engine;
    Ok(py.detach(move || engine.dump()))
}

/// Whether the value is there, or the failure that took its place.
#[pyfunction]
pub(crate) fn is_ready(array: &Bound<'_, NDArrayBase>) -> bool {
    let array = array.get();
    array.engine().is_ready(array.var())
}

/// Operators that should compute the array and have not started do not run, unless another result
/// of theirs is wanted.
#[pyfunction]
pub(crate) fn cancel(array: &Bound<'_, NDArrayBase>) {
    let array = array.get();
    array.engine().cancel(array.var());
}
