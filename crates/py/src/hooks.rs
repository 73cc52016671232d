//! Hooks of served models in Python.

use crate::exit::PythonCall;
use mxrt_serve::protocol::Datatype;
use mxrt_serve::{HookArray, HookError, HookLoader, HookRequest, HookTensor, HookTensors, Hooks};
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

/// Name of the element type of strings in Python.
const STRINGS: &str = "bytes";

type Parts = (String, String, Vec<usize>, Vec<u8>);
type Declared = Option<Vec<(String, String, Vec<i64>)>>;

impl Hooks for PythonHooks {
    fn read(&self, file: &Path) -> Result<Option<Vec<u8>>, HookError> {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let made = self.0.bind(py).call_method1("load", (file,));
            made.and_then(|made| made.extract()).map_err(|e| error(py, &e))
        })
    }

    fn takes_bodies(&self) -> Result<bool, HookError> {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let told = self.0.bind(py).call_method0("takes_bodies");
            told.and_then(|told| told.extract()).map_err(|e| error(py, &e))
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
            let made = self.0.bind(py).call_method1("after", (parts(py, outputs),));
            made.and_then(|made| made.extract()).map_err(|e| error(py, &e))
        })
    }

    fn tensors(&self) -> Result<HookTensors, HookError> {
        let tensor = |(name, datatype, shape)| HookTensor { name, datatype, shape };
        let tensors = |declared: Declared| declared.map(|all| all.into_iter().map(tensor).collect());
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let made = self.0.bind(py).call_method0("tensors");
            let made: (Declared, Declared) = made.and_then(|made| made.extract()).map_err(|e| error(py, &e))?;
            Ok(HookTensors { inputs: tensors(made.0), outputs: tensors(made.1) })
        })
    }

    fn decode(&self, inputs: &[HookArray]) -> Result<Vec<HookArray>, HookError> {
        self.arrays("decode", inputs)
    }

    fn encode(&self, outputs: &[HookArray]) -> Result<Vec<HookArray>, HookError> {
        self.arrays("encode", outputs)
    }
}

impl PythonHooks {
    /// Calls a hook that makes arrays of arrays.
    fn arrays(&self, hook: &str, of: &[HookArray]) -> Result<Vec<HookArray>, HookError> {
        Python::attach(|py| {
            let _call = PythonCall::enter(py);
            let made = self.0.bind(py).call_method1(hook, (parts(py, of),));
            let made: Vec<Parts> = made.and_then(|made| made.extract()).map_err(|e| error(py, &e))?;
            made.into_iter().map(array).collect()
        })
    }
}

/// Makes the tuples that Python gets of arrays.
fn parts<'py>(py: Python<'py>, arrays: &[HookArray]) -> Vec<(String, String, Vec<usize>, Bound<'py, PyBytes>)> {
    let part = |of: &HookArray| {
        let dtype = match of.datatype {
            Datatype::Number(dtype) => dtype.to_string(),
            Datatype::Bytes => STRINGS.to_owned(),
        };
        (of.name.clone(), dtype, of.shape.clone(), PyBytes::new(py, &of.bytes))
    };
    arrays.iter().map(part).collect()
}

fn array((name, dtype, shape, bytes): Parts) -> Result<HookArray, HookError> {
    let unknown = |_| HookError::Failed(format!("'{name}' is an array of {dtype}, which no tensor has"));
    let datatype = match dtype.as_str() {
        STRINGS => Datatype::Bytes,
        name => Datatype::Number(name.parse::<DType>().map_err(unknown)?),
    };
    Ok(HookArray { name, datatype, shape, bytes })
}

/// Converts an exception: a `ValueError` is the client's error, and others are the hook's.
fn error(py: Python<'_>, raised: &PyErr) -> HookError {
    if raised.is_instance_of::<PyValueError>(py) {
        let value = raised.value(py);
        // Errors of mxrt end with a code; the answer has its own.
        let words = value.getattr("code").and_then(|_| value.getattr("message")?.extract::<String>());
        return HookError::Refused(words.unwrap_or_else(|_| value.to_string()));
    }
    let trace = raised.traceback(py).and_then(|trace| trace.format().ok()).unwrap_or_default();
    HookError::Failed(format!("a hook failed: {trace}{raised}"))
}
