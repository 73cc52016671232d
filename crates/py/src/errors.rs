//! The one place where failures become Python exceptions.

use crate::custom;
use crate::exit::PythonCall;
use mxrt_engine::{Details, Failure, FailureKind, OpError, WaitError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyTuple};

/// Calls a class of `mxrt.base`.
fn make<'py>(
    py: Python<'py>,
    class: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
    facts: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _call = PythonCall::enter(py);
    PyModule::import(py, "mxrt.base")?.getattr(class)?.call(args, facts)
}

/// The exception object of a failure, with what is known about it as attributes.
fn object<'py>(py: Python<'py>, details: &Details) -> PyResult<Bound<'py, PyAny>> {
    let attrs = PyDict::new(py);
    for (name, value) in &details.attrs {
        attrs.set_item(name, value)?;
    }
    let shapes: Vec<Bound<'py, PyTuple>> =
        details.shapes.iter().map(|s| PyTuple::new(py, s)).collect::<Result<_, _>>()?;
    let facts = PyDict::new(py);
    facts.set_item("kind", details.kind.name())?;
    facts.set_item("op", details.op.as_deref().filter(|op| !op.is_empty()))?;
    facts.set_item("node", details.node.as_deref())?;
    facts.set_item("attrs", attrs)?;
    facts.set_item("shapes", PyTuple::new(py, shapes)?)?;
    facts.set_item("dtypes", PyTuple::new(py, &details.dtypes)?)?;
    facts.set_item("device", details.device.as_deref())?;
    facts.set_item("pushed_at", details.pushed_at.as_deref())?;
    facts.set_item("request", details.request)?;
    let input = details.input.as_ref();
    facts.set_item("input", input.map(|input| input.name.as_str()).filter(|name| !name.is_empty()))?;
    facts.set_item("got", input.and_then(|input| input.got.as_deref()))?;
    facts.set_item("wanted", input.and_then(|input| input.wanted.as_deref()))?;
    let exception = make(py, details.kind.python_class(), (details.full_message(),), Some(&facts))?;
    if let Some(cause) = custom::cause(py, details) {
        exception.setattr("__cause__", cause)?;
    }
    Ok(exception)
}

fn raise(py: Python<'_>, details: &Details) -> PyErr {
    match object(py, details) {
        Ok(exception) => PyErr::from_value(exception),
        // Only while the interpreter ends can mxrt.base be out of reach.
        Err(_) => PyRuntimeError::new_err(details.full_message()),
    }
}

fn several(py: Python<'_>, failures: &[Failure], more: u64) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let list = failures.iter().map(|f| object(py, f.details())).collect::<PyResult<Vec<_>>>()?;
        make(py, "MultipleErrors", (list, more), None)
    };
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A failure as it is raised where a result is awaited.
pub(crate) fn from_failure(py: Python<'_>, failure: &Failure) -> PyErr {
    raise(py, failure.details())
}

/// An error found at the call.
pub(crate) fn from_op(py: Python<'_>, error: &OpError) -> PyErr {
    match error.inherited() {
        Some(failure) => {
            failure.mark_observed();
            from_failure(py, failure)
        }
        None => raise(py, error),
    }
}

/// Converts the error of a wait.
pub(crate) fn from_wait(py: Python<'_>, error: WaitError) -> PyErr {
    match error {
        WaitError::Failed(failure) => from_failure(py, &failure),
        WaitError::Failures(failures, 0) if failures.len() == 1 => from_failure(py, &failures[0]),
        WaitError::Failures(failures, more) => several(py, &failures, more),
        WaitError::Closed => plain(FailureKind::Shutdown, &error.to_string()),
        WaitError::InsideOp | WaitError::InsideCall | WaitError::Interrupted => {
            plain(FailureKind::Operator, &error.to_string())
        }
    }
}

/// An error that belongs to no operator.
pub(crate) fn plain(kind: FailureKind, message: &str) -> PyErr {
    let error = OpError::new(kind, message);
    Python::attach(|py| raise(py, &error))
}

/// The name of every kind of failure, the class of `mxrt.base` that is raised, its built-in base
/// class, and its code.
#[pyfunction]
pub(crate) fn failure_kinds() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    FailureKind::ALL.iter().map(|kind| (kind.name(), kind.python_class(), kind.python_base(), kind.code())).collect()
}
