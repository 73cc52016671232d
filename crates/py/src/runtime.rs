//! The process-wide engine, and waiting for it from Python threads.

use crate::errors;
use crate::exit::PythonCall;
use crate::imported::Imported;
use mxrt::internal::{Process, PushSite, Settings};
use mxrt_engine::{DeviceKind, FailureKind, WaitError};
use mxrt_tensor::DType;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::Cell;

/// Notes operators as pushed by the caller's line while the result lives, with `MXRT_DEBUG`.
pub(crate) fn push_site(py: Python<'_>) -> PyResult<Option<PushSite>> {
    if !runtime()?.debug {
        return Ok(None);
    }
    static FIND: Imported<PyAny> = Imported::new();
    let _call = PythonCall::enter(py);
    let place = FIND.import(py, "mxrt.base", "_push_site")?.call0()?;
    Ok(Some(PushSite::new(place.extract()?)))
}

/// The state that all arrays and models of the process share, including those of C programs.
pub(crate) fn runtime() -> PyResult<&'static Process> {
    Process::get().map_err(|message| errors::plain(FailureKind::Value, message))
}

/// The settings from the environment, read once.
pub(crate) fn environment() -> Result<&'static Settings, &'static String> {
    Process::settings()
}

thread_local! {
    /// Process and answer of the last time this thread asked whether it is Python's main thread.
    static IS_MAIN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
}

/// Whether this thread is the one that runs signal handlers. A forked child asks again: its only
/// thread is the main one.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let process = std::process::id();
    if let Some((asked_in, answer)) = IS_MAIN.get()
        && asked_in == process
    {
        return Ok(answer);
    }
    let _call = PythonCall::enter(py);
    // Behind the last exit handler modules are gone; no handler of a signal runs there.
    let Ok(threading) = py.import("threading") else { return Ok(false) };
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    let answer = threading.call_method0("get_ident")?.eq(main)?;
    IS_MAIN.set(Some((process, answer)));
    Ok(answer)
}

/// Runs a wait without the interpreter's lock. The hook given to it lets signal handlers run; when
/// one of them raises (Ctrl-C does), the wait is given up and that exception is returned.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, WaitError> + Send,
) -> PyResult<T> {
    let main = is_main_thread(py)?;
    let (result, raised) = py.detach(|| {
        let mut raised: Option<PyErr> = None;
        let mut poll = || {
            // What a handler raised once is not overwritten: nobody raises it again.
            if main && raised.is_none() {
                raised = Python::try_attach(|py| py.check_signals().err()).flatten();
            }
            raised.is_none()
        };
        (work(&mut poll), raised)
    });
    // The work may have come to its end although it was asked to stop; the signal counts all the
    // same.
    match (raised, result) {
        (Some(raised), _) => Err(raised),
        (None, Ok(value)) => Ok(value),
        (None, Err(WaitError::Interrupted)) => Err(PyKeyboardInterrupt::new_err(())),
        (None, Err(error)) => Err(errors::from_wait(py, error)),
    }
}

/// Waits like [`wait`]; only the main thread, which runs signal handlers, has a hook. The others
/// sleep until they are woken: with a thousand of them, waking twenty times a second takes a tenth
/// of two cores.
pub(crate) fn wait_for_value<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Option<&mut dyn FnMut() -> bool>) -> Result<T, WaitError> + Send,
) -> PyResult<T> {
    let main = is_main_thread(py)?;
    wait(py, move |poll| work(main.then_some(poll)))
}

/// Waits for everything pushed so far; raises failures that no wait has raised yet.
#[pyfunction]
pub(crate) fn wait_all(py: Python<'_>) -> PyResult<()> {
    let engine = runtime()?.engine;
    wait(py, move |poll| engine.wait_all_with(poll))
}

/// Starts the random stream again.
#[pyfunction]
pub(crate) fn seed(value: u64) -> PyResult<()> {
    runtime()?.random.seed(value);
    Ok(())
}

/// Bounds the memory of arrays, plans and running requests, in bytes; None: no bound. What is in
/// use already stays.
#[pyfunction]
#[pyo3(signature = (bytes))]
pub(crate) fn set_memory_limit(bytes: Option<usize>) -> PyResult<()> {
    runtime()?.engine.memory().set_limit(bytes);
    Ok(())
}

/// Facts about the build and the running engine.
#[pyfunction]
pub(crate) fn info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let runtime = runtime()?;
    let memory = runtime.engine.memory().stats();
    let facts = PyDict::new(py);
    facts.set_item("version", env!("CARGO_PKG_VERSION"))?;
    facts.set_item("engine", runtime.engine.kind().name())?;
    facts.set_item("cores", runtime.engine.cores())?;
    facts.set_item("operators", mxrt_ops::registry().ops().iter().filter(|op| !op.internal).count())?;
    facts.set_item("dtypes", dtype_names())?;
    facts.set_item("cpu_features", mxrt::internal::cpu_features())?;
    facts.set_item("memory_in_use", memory.in_use)?;
    facts.set_item("memory_peak", memory.peak)?;
    facts.set_item("memory_cached", memory.cached)?;
    facts.set_item("memory_limit", memory.limit)?;
    Ok(facts)
}

/// Every environment variable that is read: name, what it may be, default, what it decides,
/// subject.
#[pyfunction]
pub(crate) fn settings() -> Vec<(&'static str, &'static str, &'static str, &'static str, &'static str)> {
    mxrt::internal::settings::SETTINGS.iter().map(|s| (s.name, s.expects, s.default, s.doc, s.subject)).collect()
}

/// Names of the options of a model.
#[pyfunction]
pub(crate) fn model_options() -> Vec<&'static str> {
    mxrt_graph::CachedOpFlags::definitions().iter().map(|option| option.name).collect()
}

fn dtype_names() -> Vec<&'static str> {
    (0..).map_while(DType::from_code).map(DType::name).collect()
}

/// The features that MXNet tells, in its order, with whether each is there.
#[pyfunction]
pub(crate) fn features(py: Python<'_>) -> Vec<(&'static str, bool)> {
    let count = |settings: &Settings| py.detach(|| settings.device_count(DeviceKind::GPU));
    mxrt::internal::mxnet_features(environment().is_ok_and(|settings| count(settings) > 0))
}
