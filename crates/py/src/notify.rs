//! Telling Python that arrays are ready. Workers only leave numbers here and never attach to
//! Python; one Python thread takes the numbers and calls what belongs to them.

use crate::ndarray::NDArrayBase;
use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
struct Notices {
    process: u32,
    numbers: Mutex<Vec<u64>>,
    arrived: Condvar,
}

static NOTICES: AtomicPtr<Notices> = AtomicPtr::new(std::ptr::null_mut());

/// The notices of this process. A forked child gets its own: its copy of the lock may be held by a
/// thread it lacks.
fn notices() -> &'static Notices {
    let process = std::process::id();
    let known = NOTICES.load(Ordering::Acquire);
    // SAFETY: notices are never freed.
    if let Some(notices) = unsafe { known.as_ref() }
        && notices.process == process
    {
        return notices;
    }
    let fresh: &'static Notices = Box::leak(Box::new(Notices { process, ..Notices::default() }));
    match NOTICES.compare_exchange(known, std::ptr::from_ref(fresh).cast_mut(), Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        // SAFETY: as above; another thread of this process was first.
        Err(theirs) => unsafe { &*theirs },
    }
}

/// Leaves this number for the notifying thread when the array is ready or has failed.
#[pyfunction]
pub(crate) fn notify_when_ready(array: &Bound<'_, NDArrayBase>, number: u64) {
    let array = array.get();
    array.engine().on_ready(array.var(), move |_| {
        let notices = notices();
        notices.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        notices.arrived.notify_all();
    });
}

/// Waits for numbers, and returns them in their order. Where Python has no memory for the list this
/// is a MemoryError, and the next call returns them.
#[pyfunction]
pub(crate) fn next_notices(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let numbers = py.detach(|| {
        let notices = notices();
        let numbers = notices.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = notices.arrived.wait_while(numbers, |numbers| numbers.is_empty());
        std::mem::take(&mut *wait.unwrap_or_else(PoisonError::into_inner))
    });
    list_of(py, &numbers).inspect_err(|_| {
        let mut later = notices().numbers.lock().unwrap_or_else(PoisonError::into_inner);
        drop(later.splice(0..0, numbers));
    })
}

/// A list of numbers, or the error of Python, for which the conversion of a vector panics.
fn list_of<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the calls return a new object or null with an error; the list is one.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(0))?;
        for number in numbers {
            let number = Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromUnsignedLongLong(*number))?;
            if ffi::PyList_Append(list.as_ptr(), number.as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(list)
    }
}
