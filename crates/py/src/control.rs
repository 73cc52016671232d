//! The engine as Python programs steer it: kind, bulks, what it is doing.

use crate::ndarray::NDArrayBase;
use crate::{errors, runtime};
use mxrt_engine::EngineKind;
use pyo3::prelude::*;
use std::sync::Mutex;

/// The kind a program asked for before the engine was started.
static KIND: Mutex<Option<EngineKind>> = Mutex::new(None);

/// What MXNet joins if bulks are switched on without a number.
const BULK_SIZE: usize = 15;

pub(crate) fn chosen_kind() -> Option<EngineKind> {
    *KIND.lock().unwrap_or_else(|e| e.into_inner())
}

/// How many small operators a thread joins: MXNet's variables. Without them none: they run at once in the calling thread.
pub(crate) fn bulk_size(env: &dyn Fn(&str) -> Option<String>) -> Result<usize, String> {
    let size = runtime::number(env, "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN")?;
    Ok(match runtime::number(env, "MXNET_EXEC_BULK_EXEC_INFERENCE")? {
        Some(0) => 0,
        Some(_) => size.unwrap_or(BULK_SIZE),
        None => size.unwrap_or(0),
    })
}

/// Chooses the kind of engine, before anything uses it.
#[pyfunction]
pub(crate) fn set_engine_type(name: &str) -> PyResult<()> {
    let kind: EngineKind = name.parse().map_err(|e| errors::plain("value", &format!("set_type: {e}")))?;
    match runtime::started() {
        Some(engine) if engine.kind() != kind => {
            let text = format!(
                "set_type: the engine runs already, as {}; call this before the first array is made, or set MXNET_ENGINE_TYPE={kind}",
                engine.kind()
            );
            Err(errors::plain("value", &text))
        }
        _ => {
            *KIND.lock().unwrap_or_else(|e| e.into_inner()) = Some(kind);
            Ok(())
        }
    }
}

/// Sets how many small operators of this thread are joined; returns the number before.
#[pyfunction]
pub(crate) fn set_bulk_size(py: Python<'_>, size: usize) -> PyResult<usize> {
    let engine = runtime::runtime()?.engine;
    runtime::detached(py, move || engine.set_bulk_size(size))
}

/// What runs, what is queued, who waits for what and since when.
#[pyfunction]
pub(crate) fn dump_engine(py: Python<'_>) -> PyResult<String> {
    let engine = runtime::runtime()?.engine;
    runtime::detached(py, move || engine.dump())
}

/// Whether the value is there, or the failure that took its place.
#[pyfunction]
pub(crate) fn is_ready(array: &Bound<'_, NDArrayBase>) -> bool {
    let array = &array.get().array;
    array.engine().is_ready(array.var())
}

/// Operators that should compute the array and have not started do not run, unless somebody wants another result of them.
#[pyfunction]
pub(crate) fn cancel(array: &Bound<'_, NDArrayBase>) {
    let array = &array.get().array;
    array.engine().cancel(array.var());
}
