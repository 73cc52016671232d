//! Files that are read or written whole.

use crate::ndarray::wrap;
use crate::operator::one_array;
use crate::{errors, np_shape, runtime};
use mxrt_engine::{OpError, WaitError};
use mxrt_io::model_files::{self, FindError, ModelFiles, ModelPlace, Wanted};
use mxrt_io::params::{self, Params, ParamsError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::{Path, PathBuf};

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

/// Symbol file and parameter file of a model, as the system writes their names. The files of an
/// archive are unpacked into the folder that `new_folder` names, which is asked for no others.
#[pyfunction]
pub(crate) fn find_model<'py>(
    py: Python<'py>,
    path: PathBuf,
    params: Option<PathBuf>,
    epoch: Option<u64>,
    most_unpacked: usize,
    new_folder: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)> {
    let place = found(py, |_| ModelPlace::of(&path))?;
    let folder: Option<PathBuf> = if place.is_archive() { Some(new_folder.call0()?.extract()?) } else { None };
    let wanted = Wanted { params: params.as_deref(), epoch, most_unpacked, folder: folder.as_deref() };
    let files = found(py, |poll| ModelFiles::at(place, &wanted, poll))?;
    let named = |path: &Path| PyBytes::new(py, path.as_os_str().as_encoded_bytes());
    Ok((named(&files.symbol), files.params.as_deref().map(named)))
}

/// Unpacks an archive into a new folder. False if the path is no archive.
#[pyfunction]
pub(crate) fn unpack_archive(py: Python<'_>, path: PathBuf, most_unpacked: usize, folder: PathBuf) -> PyResult<bool> {
    found(py, |poll| model_files::unpack_archive(&path, most_unpacked, &folder, poll))
}

fn found<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, FindError> + Send,
) -> PyResult<T> {
    let found = runtime::wait(py, |poll| match work(poll) {
        Err(FindError::Interrupted) => Err(WaitError::Interrupted),
        other => Ok(other),
    })?;
    found.map_err(|e| errors::from_op(py, &OpError::from(e)))
}

/// The name of a model for which none is given.
#[pyfunction]
pub(crate) fn own_name_of_model(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    model_files::own_name(&path).map_err(|e| errors::from_op(py, &OpError::from(e)))
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
