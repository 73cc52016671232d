//! Joined calls of a graph.

use crate::cached_op::{BoundOp, arrays, call_options};
use crate::ndarray::Class;
use crate::operator::results;
use crate::{errors, runtime};
use mxrt_engine::FailureKind;
use mxrt_graph::JoinedRows;
use mxrt_serve::{Joining, LocalBatcher};
use mxrt_tensor::{Shape, TensorType};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::time::Duration;

/// Joins calls of a graph from any number of threads.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct Batcher {
    calls: LocalBatcher,
    class: Class,
}

fn wrong(words: &str) -> PyErr {
    errors::plain(FailureKind::Value, words)
}

/// Gives a type two rows. `None` if it has no rows.
fn two_rows(tensor: TensorType) -> Option<TensorType> {
    let mut extents = tensor.shape.to_vec();
    *extents.first_mut()? = 2;
    Some(TensorType { dtype: tensor.dtype, shape: Shape::from(extents) })
}

#[pymethods]
impl Batcher {
    /// Joins calls of a graph whose arrays are like those of `sample`.
    #[new]
    fn new(
        py: Python<'_>,
        bound: &BoundOp,
        sample: &Bound<'_, PyTuple>,
        rows: usize,
        sizes: Vec<usize>,
        max_delay: f64,
    ) -> PyResult<Batcher> {
        let runtime = runtime::runtime()?;
        let types =
            arrays(sample.iter())?.iter().map(|array| two_rows(array.tensor_type())).collect::<Option<Vec<_>>>();
        let types = types.ok_or_else(|| wrong("an input has no axes, and so no rows to be joined"))?;
        match py.detach(|| bound.op.joined_rows(&types)).map_err(|error| errors::from_op(py, &error))? {
            JoinedRows::Dependent => {
                return Err(wrong("rows of this network depend on each other, or on more than the inputs"));
            }
            JoinedRows::Gain | JoinedRows::NoGain => {}
        }
        if rows < 2 || sizes.contains(&0) {
            return Err(wrong("expected batches of 2 rows or more"));
        }
        let mut joining = Joining::of_rows(rows);
        if !sizes.is_empty() {
            joining.sizes = sizes;
            joining.sizes.sort_unstable();
        }
        let delay = Duration::try_from_secs_f64(max_delay);
        joining.max_delay =
            delay.map_err(|_| wrong(&format!("max_delay is {max_delay}; expected seconds, 0 or more")))?;
        let made = LocalBatcher::new(runtime.engine, bound.op.clone(), joining);
        made.map(|calls| Batcher { calls, class: bound.class })
            .map_err(|error| errors::plain(FailureKind::Operator, &error.to_string()))
    }

    /// Calls the graph, alone or with the calls of other threads, and waits for the results.
    #[pyo3(signature = (*inputs, **options))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = call_options(options)?;
        let inputs = arrays(inputs.iter())?.into_vec();
        let made = runtime::wait_for_value(py, |hook| {
            self.calls.call(inputs, options, hook).ok_or(mxrt_engine::WaitError::Interrupted)
        })?;
        let made = made.map_err(|error| errors::from_op(py, &error))?;
        results(py, made.into_iter().collect(), None, self.class)
    }

    /// Number of calls with the rows of several callers, and number of these rows.
    fn counts(&self) -> (u64, u64) {
        self.calls.counts()
    }
}
