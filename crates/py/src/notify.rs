//! Telling Python that arrays are ready. Workers only leave numbers here and never attach to Python; one Python thread
//! takes the numbers and calls what belongs to them.

use crate::ndarray::NDArrayBase;
use crate::runtime;
use mxrt_engine::WaitError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often the notifying thread looks whether the interpreter is ending.
const POLL: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Notices {
    process: u32,
    inbox: Mutex<Inbox>,
    arrived: Condvar,
}

#[derive(Default)]
struct Inbox {
    numbers: Vec<u64>,
    stopped: bool,
}

static NOTICES: AtomicPtr<Notices> = AtomicPtr::new(std::ptr::null_mut());

/// The notices of this process. A forked child gets its own: its copy of the lock may be held by a thread it lacks.
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

impl Notices {
    fn change(&self, f: impl FnOnce(&mut Inbox)) {
        f(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        self.arrived.notify_all();
    }
}

/// Leaves this number for the notifying thread when the array is ready or has failed.
#[pyfunction]
pub(crate) fn notify_when_ready(array: &Bound<'_, NDArrayBase>, number: u64) {
    let array = &array.get().array;
    array.engine().on_ready(array.var(), move |_| notices().change(|inbox| inbox.numbers.push(number)));
}

/// Waits for numbers; None once [`stop_notices`] was called.
#[pyfunction]
pub(crate) fn next_notices(py: Python<'_>) -> PyResult<Option<Vec<u64>>> {
    let notices = notices();
    runtime::wait(py, move |poll| {
        let mut inbox = notices.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if inbox.stopped {
                return Ok(None);
            }
            if !inbox.numbers.is_empty() {
                return Ok(Some(std::mem::take(&mut inbox.numbers)));
            }
            let (guard, timeout) = notices.arrived.wait_timeout(inbox, POLL).unwrap_or_else(PoisonError::into_inner);
            inbox = guard;
            if timeout.timed_out() && !inbox.stopped {
                drop(inbox);
                if !poll() {
                    return Err(WaitError::Interrupted);
                }
                inbox = notices.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    })
}

/// Ends the notifying thread.
#[pyfunction]
pub(crate) fn stop_notices() {
    notices().change(|inbox| inbox.stopped = true);
}
