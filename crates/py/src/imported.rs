//! Objects of Python modules that are found at their first use.

use mxrt_engine::ForkSafeOnce;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeCheck;

/// An object of a module. A child of a fork never waits for a thread that was storing it in the
/// parent, for which pyo3's own lock gives up the interpreter.
pub(crate) struct Imported<T>(ForkSafeOnce<Py<T>>);

impl<T: PyTypeCheck> Imported<T> {
    /// An object that is not found yet.
    pub(crate) const fn new() -> Imported<T> {
        Imported(ForkSafeOnce::new())
    }

    /// The object, if it was found.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, T>> {
        self.0.get().map(|found| found.bind(py))
    }

    /// The object, which is imported if it was not yet.
    pub(crate) fn import<'py>(&self, py: Python<'py>, module: &str, name: &str) -> PyResult<&Bound<'py, T>> {
        if let Some(found) = self.0.get() {
            return Ok(found.bind(py));
        }
        let found = PyModule::import(py, module)?.getattr(name)?.cast_into::<T>()?.unbind();
        Ok(self.0.get_or_init(|| found).bind(py))
    }
}
