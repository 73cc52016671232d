//! Parameter files and data iterators.

use crate::convert;
use crate::ndarray::wrap;
use crate::operator::one_array;
use crate::{errors, runtime};
use mxrt_engine::{OpError, WaitError};
use mxrt_io::DataError;
use mxrt_io::csv::{CsvIter, CsvParams};
use mxrt_io::params::{self, NpShape, Params, ParamsError};
use mxrt_io::prefetch::Problem;
use mxrt_tensor::Shape;
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
    let loaded = runtime::detached(py, || params::load(engine, &path, NpShape::Off))?;
    to_python(py, loaded)
}

/// The same from the content of such a file.
#[pyfunction]
pub(crate) fn load_buffer<'py>(py: Python<'py>, content: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let engine = runtime::runtime()?.engine;
    let bytes = content.as_bytes();
    let loaded = runtime::detached(py, || params::load_from_bytes(engine, bytes, NpShape::Off))?;
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
    let arrays = arrays.iter().map(|a| Ok(one_array(a)?.get().array.clone())).collect::<PyResult<Vec<_>>>()?;
    let content = match names {
        None => Params::List(arrays),
        Some(names) => Params::Named(names.into_iter().zip(arrays).collect()),
    };
    let saved = runtime::wait(py, |poll| match params::save(&path, &content, NpShape::Off, poll) {
        Err(ParamsError::Wait(WaitError::Interrupted)) => Err(WaitError::Interrupted),
        other => Ok(other),
    })?;
    saved.map_err(|e| errors::from_op(py, &OpError::from(e)))
}

/// Rows of numbers in text files, as batches that are made ahead in the background.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct CSVReader {
    iter: CsvIter,
}

type Batch<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, usize, Vec<u64>);

#[pymethods]
impl CSVReader {
    #[new]
    #[pyo3(signature = (data_csv, data_shape, label_csv, label_shape, batch_size, round_batch, prefetch_buffer, dtype))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        data_csv: String,
        data_shape: Vec<usize>,
        label_csv: Option<String>,
        label_shape: Vec<usize>,
        batch_size: usize,
        round_batch: bool,
        prefetch_buffer: usize,
        dtype: Option<&str>,
    ) -> PyResult<CSVReader> {
        let engine = runtime::runtime()?.engine;
        let mut params = CsvParams::new(data_csv, Shape::from(data_shape), batch_size);
        params.label_csv = label_csv;
        params.label_shape = Shape::from(label_shape);
        params.round_batch = round_batch;
        params.prefetch_buffer = prefetch_buffer;
        params.dtype = dtype.map(convert::dtype).transpose()?;
        let made = runtime::detached(py, || CsvIter::new(engine, params))?;
        Ok(CSVReader { iter: made.map_err(|e| errors::from_op(py, &OpError::from(e)))? })
    }

    /// Data, label, number of rows at the end that do not count, and numbers of the rows; `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Batch<'py>>> {
        let next = runtime::wait(py, |poll| match self.iter.next_with(poll) {
            Err(DataError::Prefetch(Problem::Interrupted)) => Err(WaitError::Interrupted),
            other => Ok(other),
        })?;
        match next.map_err(|e| errors::from_op(py, &OpError::from(e)))? {
            None => Ok(None),
            Some(batch) => Ok(Some((wrap(py, batch.data)?, wrap(py, batch.label)?, batch.pad, batch.index))),
        }
    }

    /// Begins again; also the way out of an error.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let done = runtime::detached(py, || self.iter.reset())?;
        done.map_err(|e| errors::from_op(py, &OpError::from(e)))
    }
}
