//! Data iterators: what is known about them, and reading batches.

use crate::ndarray::wrap;
use crate::operator::attr_pairs;
use crate::{errors, runtime};
use mxrt_engine::{FailureKind, OpError, WaitError};
use mxrt_io::DataError;
use mxrt_io::iterators::batch::BatchIter;
use mxrt_io::iterators::prefetch::Problem;
use mxrt_io::iterators::{ITERATORS, IterDef};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Name, type, default as files spell it (`None` when it has to be given), documentation.
type Parameter = (&'static str, String, Option<&'static str>, &'static str);

/// All data iterators: name, documentation, parameters.
#[pyfunction]
pub(crate) fn iterators() -> Vec<(&'static str, &'static str, Vec<Parameter>)> {
    let parameters =
        |def: &IterDef| def.all_parameters().iter().map(|p| (p.name, p.type_name(), p.default, p.doc)).collect();
    ITERATORS.iter().map(|def| (def.name, def.doc, parameters(def))).collect()
}

/// Batches of samples, made ahead in the background.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct BatchReader {
    iter: BatchIter,
}

/// Data, label, number of rows at the end that do not count, and numbers of the rows.
type Batch<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, usize, Bound<'py, PyAny>);

/// A batch, problems of samples before it, and a label that is inexact.
type IteratorStep<'py> = (Option<Batch<'py>>, Vec<Bound<'py, PyAny>>, Option<f32>);

#[pymethods]
impl BatchReader {
    /// Starts the iterator of this name.
    #[new]
    fn new(py: Python<'_>, name: &str, parameters: &Bound<'_, PyDict>) -> PyResult<BatchReader> {
        let engine = runtime::runtime()?.engine;
        let pairs = attr_pairs(Some(parameters))?;
        let given = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let made = match IterDef::find(name) {
            Some(definition) => py.detach(|| definition.start(engine, given)).map_err(OpError::from),
            None => {
                let message = format!("Cannot find iterator {name}: this build of mxrt does not have it");
                Err(OpError::new(FailureKind::NotImplemented, message))
            }
        };
        Ok(BatchReader { iter: made.map_err(|e| errors::from_op(py, &e))? })
    }

    /// Shape and element type of the data and of the labels of a batch.
    #[getter]
    fn types(&self) -> [(Vec<usize>, &'static str); 2] {
        let (data, label) = self.iter.types();
        [data, label].map(|tensor| (tensor.shape.to_vec(), tensor.dtype.name()))
    }

    /// The next batch, or `None` at the end, what was wrong with samples that were left out, and a
    /// label that float32 may not have as it is in the file.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<IteratorStep<'py>> {
        let mut skipped = Vec::new();
        let next = runtime::wait(py, |poll| match self.iter.next_with(poll, &mut |error| skipped.push(error)) {
            Err(DataError::Prefetch(Problem::Interrupted)) => Err(WaitError::Interrupted),
            other => Ok(other),
        })?;
        let raised = |e: DataError| errors::from_op(py, &OpError::from(e));
        let skipped = skipped.into_iter().map(|e| raised(e).into_value(py).into_bound(py).into_any()).collect();
        let Some(batch) = next.map_err(raised)? else { return Ok((None, skipped, None)) };
        // `from_vec` does not look whether NumPy has memory for the array.
        let index = PyArray1::from_slice(py, &batch.index).into_any();
        let arrays = (wrap(py, batch.data)?, wrap(py, batch.label)?, batch.pad, index);
        Ok((Some(arrays), skipped, batch.inexact_label))
    }

    /// Damaged samples that were left out so far.
    #[getter]
    fn skipped(&self) -> u64 {
        self.iter.skipped()
    }

    /// Begins again, also after an error.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let done = py.detach(|| self.iter.reset());
        done.map_err(|e| errors::from_op(py, &OpError::from(e)))
    }
}
