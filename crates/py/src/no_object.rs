//! The error of a call for which Python has no memory for an object.
//!
//! PyO3 makes texts, numbers, tuples and lists by functions that panic where Python returns null,
//! and its `PanicException` is no `Exception`. The class belongs to this library alone: others have
//! a copy of PyO3 of their own. Such a panic becomes a MemoryError in one place, the function that
//! Python calls to make the exception. Other panics keep theirs.

use pyo3::exceptions::{PyBaseException, PyMemoryError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// Words of PyO3's panic.
const NULL_OBJECT: &str = "PyObject pointer is null";

/// Prepares the exception.
pub(crate) fn set_up(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.py().get_type::<PanicException>().setattr("__new__", wrap_pyfunction!(new_exception, module)?)
}

/// Makes the exception of a panic, or raises the MemoryError that Python has ready.
#[pyfunction]
#[pyo3(signature = (class, *words))]
fn new_exception<'py>(class: &Bound<'py, PyType>, words: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let first = words.get_item(0).ok();
    if first.is_some_and(|first| first.extract::<&str>().is_ok_and(|text| text == NULL_OBJECT)) {
        return Err(PyMemoryError::new_err(()));
    }
    // The arguments are set by `__init__`.
    class.py().get_type::<PyBaseException>().getattr("__new__")?.call1((class,))
}
