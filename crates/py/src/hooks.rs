//! Hooks of served models in Python.

use crate::exit::PythonCall;
use mxrt_serve::{HookArray, HookError, HookLoader, HookRequest, Hooks};
use mxrt_tensor::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyModule};
use std::path::Path;
use std::sync::Arc;

/// An object of `mxrt.serve._hooks`.
struct PythonHooks(Py<PyAny>);

/// Loads files of hooks.
pub(crate) fn loader() -> HookLoader {
    Arc::new(|file: &Path| {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let made =
                PyModule::import(py, "mxrt.serve._hooks").and_then(|module| module.call_method1("Hooks", (file,)));
            match made {
                Ok(made) => Ok(Arc::new(PythonHooks(made.unbind())) as Arc<dyn Hooks>),
                Err(error) => Err(format!("{}: {}", file.display(), error.value(py))),
            }
        })
    })
}

type Parts = (String, String, Vec<usize>, Vec<u8>);

impl Hooks for PythonHooks {
    fn read(&self, file: &Path) -> Result<Option<Vec<u8>>, HookError> {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let made = self.0.bind(py).call_method1("load", (file,));
            made.and_then(|made| made.extract()).map_err(|e| error(py, &e))
        })
    }

    fn before(&self, request: &HookRequest<'_>) -> Result<Option<Vec<HookArray>>, HookError> {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let body = PyBytes::new(py, request.body);
            let made = self.0.bind(py).call_method1("before", (body, request.headers.to_vec()));
            let parts: Option<Vec<Parts>> = made.and_then(|made| made.extract()).map_err(|e| error(py, &e))?;
            parts.map(|parts| parts.into_iter().map(array).collect()).transpose()
        })
    }

    fn after(&self, outputs: &[HookArray]) -> Result<Option<(Vec<u8>, String)>, HookError> {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let part =
                |of: &HookArray| (of.name.clone(), of.dtype.to_string(), of.shape.clone(), PyBytes::new(py, &of.bytes));
            let parts: Vec<_> = outputs.iter().map(part).collect();
            let made = self.0.bind(py).call_method1("after", (parts,));
            made.and_then(|made| made.extract()).map_err(|e| error(py, &e))
        })
    }
}

fn array((name, dtype, shape, bytes): Parts) -> Result<HookArray, HookError> {
    let dtype: DType = dtype.parse().map_err(|_| HookError::Failed(format!("'{name}' is an array of {dtype}")))?;
    Ok(HookArray { name, dtype, shape, bytes })
}

/// Converts an exception: a `ValueError` is the client's error, and others are the hook's.
fn error(py: Python<'_>, raised: &PyErr) -> HookError {
    if raised.is_instance_of::<PyValueError>(py) {
        return HookError::Refused(raised.value(py).to_string());
    }
    let trace = raised.traceback(py).and_then(|trace| trace.format().ok()).unwrap_or_default();
    HookError::Failed(format!("a hook failed: {trace}{raised}"))
}
