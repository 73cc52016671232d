//! The switch between MXNet's shapes and NumPy's, and what depends on it.

use crate::errors;
use mxrt_engine::FailureKind;
use mxrt_io::params::NpShape;
use mxrt_tensor::{NpShapeScope, PartialShape, np_shape_scope, set_np_shape_scope};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

fn code(scope: NpShapeScope) -> i32 {
    match scope {
        NpShapeScope::Off => 0,
        NpShapeScope::Thread => 1,
        NpShapeScope::Process => 2,
    }
}

/// Sets where shapes are NumPy's: 0 nowhere, 1 in this thread, 2 in all threads. Returns what was
/// set before.
#[pyfunction]
pub(crate) fn set_np_shape(scope: i32) -> PyResult<i32> {
    let wanted = [NpShapeScope::Off, NpShapeScope::Thread, NpShapeScope::Process];
    let Some(wanted) = wanted.into_iter().find(|known| code(*known) == scope) else {
        return Err(errors::plain(FailureKind::Value, &format!("scope is {scope}; expected 0, 1 or 2")));
    };
    let before = np_shape_scope();
    set_np_shape_scope(wanted);
    Ok(code(before))
}

/// Whether shapes are NumPy's in this thread.
#[pyfunction]
pub(crate) fn is_np_shape() -> bool {
    mxrt_tensor::is_np_shape()
}

/// How this thread reads and writes files of parameters. With NumPy's shapes it reads those of both
/// ways.
pub(crate) fn of_files() -> NpShape {
    if mxrt_tensor::is_np_shape() { NpShape::Global } else { NpShape::Off }
}

/// A shape as programs write it. -1 is unknown with NumPy's shapes; otherwise 0 and `()` are.
pub(crate) fn partial(dims: &[i64]) -> PyResult<PartialShape> {
    let numpy = mxrt_tensor::is_np_shape();
    let extent = |dim: &i64| match usize::try_from(*dim) {
        Ok(extent) => Ok(Some(extent).filter(|extent| numpy || *extent != 0)),
        Err(_) if numpy && *dim == -1 => Ok(None),
        Err(_) => Err(PyOverflowError::new_err(format!("the extent {dim} of a shape is negative"))),
    };
    if dims.is_empty() && !numpy {
        return Ok(PartialShape::UNKNOWN);
    }
    Ok(PartialShape::from_dims(dims.iter().map(extent).collect::<PyResult<Vec<_>>>()?))
}

/// Extents as MXNet shows them. An unknown one is -1 with NumPy's shapes, otherwise 0. `None` is an
/// unknown rank with NumPy's shapes, and `()` otherwise.
pub(crate) fn shown<'py>(py: Python<'py>, shape: &PartialShape) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let numpy = mxrt_tensor::is_np_shape();
    let unknown = if numpy { -1 } else { 0 };
    let Some(dims) = shape.dims() else {
        return if numpy { Ok(None) } else { PyTuple::new(py, [0i64; 0]).map(Some) };
    };
    PyTuple::new(py, dims.iter().map(|dim| dim.map_or(unknown, |dim| dim as i64))).map(Some)
}
