//! The one place where failures become Python exceptions.

use mxrt_engine::{Details, Failure, FailureKind, OpError, WaitError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// The name by which `mxrt.base` knows a kind.
fn kind_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Operator => "operator",
        FailureKind::Value => "value",
        FailureKind::Type => "type",
        FailureKind::Shape => "shape",
        FailureKind::Index => "index",
        FailureKind::NotImplemented => "not_implemented",
        FailureKind::Memory => "memory",
        FailureKind::Panic => "panic",
        FailureKind::NotCompleted => "not_completed",
        FailureKind::Shutdown => "shutdown",
        FailureKind::Deadline => "deadline",
        FailureKind::Cancelled => "cancelled",
        FailureKind::Data => "data",
        FailureKind::Device => "device",
        _ => "operator",
    }
}

/// What an exception carries.
#[derive(Default)]
struct Facts<'a> {
    kind: &'a str,
    message: &'a str,
    op: &'a str,
    node: Option<&'a str>,
    attrs: &'a [(String, String)],
    shapes: &'a [Vec<usize>],
    dtypes: &'a [&'static str],
    device: Option<&'a str>,
    pushed_at: Option<&'a str>,
    request: Option<u64>,
}

/// What is being done, in front of what went wrong.
fn full_message(facts: &Facts<'_>) -> String {
    let subject = match (facts.op, facts.node) {
        ("", None) => return facts.message.to_owned(),
        ("", Some(node)) => format!("'{node}'"),
        (op, None) => op.to_owned(),
        (op, Some(node)) => format!("{op} '{node}'"),
    };
    if facts.message.starts_with(&subject) { facts.message.to_owned() } else { format!("{subject}: {}", facts.message) }
}

/// The exception object; `mxrt.base` chooses the class.
fn object<'py>(py: Python<'py>, facts: &Facts<'_>) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = MAKE.get_or_try_init(py, || PyResult::Ok(py.import("mxrt.base")?.getattr("_make_error")?.unbind()))?;
    let attrs = PyDict::new(py);
    for (name, value) in facts.attrs {
        attrs.set_item(name, value)?;
    }
    let shapes: Vec<Bound<'py, PyTuple>> =
        facts.shapes.iter().map(|s| PyTuple::new(py, s)).collect::<Result<_, _>>()?;
    make.bind(py).call1((
        facts.kind,
        full_message(facts),
        (!facts.op.is_empty()).then_some(facts.op),
        facts.node,
        attrs,
        PyTuple::new(py, shapes)?,
        PyTuple::new(py, facts.dtypes)?,
        facts.device,
        facts.pushed_at,
        facts.request,
    ))
}

fn raise(py: Python<'_>, facts: &Facts<'_>) -> PyErr {
    match object(py, facts) {
        Ok(exception) => PyErr::from_value(exception),
        // Only while the interpreter ends can mxrt.base be out of reach.
        Err(_) => PyRuntimeError::new_err(full_message(facts)),
    }
}

fn failure_object<'py>(py: Python<'py>, failure: &Failure) -> PyResult<Bound<'py, PyAny>> {
    object(py, &failure_facts(failure))
}

fn failure_facts(failure: &Failure) -> Facts<'_> {
    Facts {
        kind: kind_name(failure.kind()),
        message: failure.message(),
        op: failure.op(),
        node: failure.node(),
        attrs: failure.attrs(),
        shapes: failure.shapes(),
        dtypes: failure.dtypes(),
        device: failure.device(),
        pushed_at: failure.pushed_at(),
        request: failure.request(),
    }
}

fn several(py: Python<'_>, failures: &[Failure], more: u64) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let list = failures.iter().map(|f| failure_object(py, f)).collect::<PyResult<Vec<_>>>()?;
        py.import("mxrt.base")?.getattr("MultipleErrors")?.call1((list, more))
    };
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A failure as it is raised where a result is awaited.
pub(crate) fn from_failure(py: Python<'_>, failure: &Failure) -> PyErr {
    raise(py, &failure_facts(failure))
}

/// An error found at the call.
pub(crate) fn from_op(py: Python<'_>, error: &OpError) -> PyErr {
    if let Some(failure) = error.inherited() {
        failure.mark_observed();
        return from_failure(py, failure);
    }
    let details: &Details = error;
    raise(
        py,
        &Facts {
            kind: kind_name(details.kind),
            message: &details.message,
            op: details.op.as_deref().unwrap_or(""),
            node: details.node.as_deref(),
            attrs: &details.attrs,
            shapes: &details.shapes,
            dtypes: &details.dtypes,
            device: details.device.as_deref(),
            pushed_at: details.pushed_at.as_deref(),
            request: details.request,
        },
    )
}

/// What a wait raised.
pub(crate) fn from_wait(py: Python<'_>, error: WaitError) -> PyErr {
    match error {
        WaitError::Failed(failure) => from_failure(py, &failure),
        WaitError::Failures(failures, 0) if failures.len() == 1 => from_failure(py, &failures[0]),
        WaitError::Failures(failures, more) => several(py, &failures, more),
        WaitError::Closed => plain("shutdown", &error.to_string()),
        other => plain("operator", &other.to_string()),
    }
}

/// An error that belongs to no operator.
pub(crate) fn plain(kind: &str, message: &str) -> PyErr {
    let facts = Facts { kind, message, ..Facts::default() };
    Python::attach(|py| raise(py, &facts))
}
