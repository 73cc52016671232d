//! Telling Python that arrays are ready. Workers only leave numbers here and never attach to
//! Python; one Python thread takes the numbers and calls what belongs to them.

use crate::ndarray::NDArrayBase;
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

/// Waits for numbers.
#[pyfunction]
pub(crate) fn next_notices(py: Python<'_>) -> Vec<u64> {
    py.detach(|| {
        let notices = notices();
        let numbers = notices.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = notices.arrived.wait_while(numbers, |numbers| numbers.is_empty());
        std::mem::take(&mut *wait.unwrap_or_else(PoisonError::into_inner))
    })
}
