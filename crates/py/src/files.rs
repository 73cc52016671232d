//! Files that are read or written whole.

use crate::ndarray::wrap;
use crate::operator::one_array;
use crate::{errors, np_shape, runtime};
use mxrt_engine::{OpError, WaitError};
use mxrt_io::params::{self, Params, ParamsError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;

fn to_python<'py>(py: Python<'py>, loaded: Result<Params, ParamsError>) -> PyResult<Bound<'py, PyAny>> {
    match loaded.map_err(|e| errors::from_op(py, &OpError::from(e)))? {
        Params::List(arrays) => {
            let arrays = arrays.into_iter().map(|a| wrap(py, a)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, arrays)?.into_any())
        }
        Params::Named(arrays) => {
            let dict = PyDict::new(py);
            for (name, array) in arrays {
                dict.set_item(name, wrap(py, array)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// The arrays of a parameter file: a list, or a dictionary when they have names.
#[pyfunction]
pub(crate) fn load_arrays<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
    let engine = runtime::runtime()?.engine;
    let meaning = np_shape::of_files();
    let loaded = py.detach(|| params::load(engine, &path, meaning));
    to_python(py, loaded)
}

/// Loads the content of such a file.
#[pyfunction]
pub(crate) fn load_buffer<'py>(py: Python<'py>, content: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let engine = runtime::runtime()?.engine;
    let bytes = content.as_bytes();
    let meaning = np_shape::of_files();
    let loaded = py.detach(|| params::load_from_bytes(engine, bytes, meaning));
    to_python(py, loaded)
}

/// Saves arrays, with or without names.
#[pyfunction]
pub(crate) fn save_arrays(
    py: Python<'_>,
    path: PathBuf,
    names: Option<Vec<String>>,
    arrays: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let arrays = arrays.iter().map(|a| Ok(one_array(a)?.get().array(py)?.clone())).collect::<PyResult<Vec<_>>>()?;
    let content = match names {
        None => Params::List(arrays),
        Some(names) => Params::Named(names.into_iter().zip(arrays).collect()),
    };
    let meaning = np_shape::of_files();
    let saved = runtime::wait(py, |poll| match params::save(&path, &content, meaning, poll) {
        Err(ParamsError::Wait(WaitError::Interrupted)) => Err(WaitError::Interrupted),
        other => Ok(other),
    })?;
    saved.map_err(|e| errors::from_op(py, &OpError::from(e)))
}

/// The content of an ordinary file; pipes, devices and directories are refused.
#[pyfunction]
pub(crate) fn read_file<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyBytes>> {
    let memory = runtime::runtime()?.engine.memory();
    let content = py.detach(|| mxrt_io::read_file_within(&path, memory));
    let content = content.map_err(|e| errors::from_op(py, &OpError::from(e)))?;
    PyBytes::new_with(py, content.len(), |bytes| {
        bytes.copy_from_slice(&content);
        Ok(())
    })
}

/// Describes a file of another kind by its first bytes, with advice.
#[pyfunction]
pub(crate) fn recognise(head: &[u8]) -> Option<&'static str> {
    mxrt_io::recognise(head)
}

/// Writes a file, whole or not at all.
#[pyfunction]
pub(crate) fn write_file(py: Python<'_>, path: PathBuf, content: &Bound<'_, PyBytes>) -> PyResult<()> {
    let bytes = content.as_bytes();
    let written = py.detach(|| mxrt_io::write_file(&path, bytes));
    written.map_err(|e| errors::from_op(py, &OpError::from(mxrt_io::DataError::from(e))))
}
