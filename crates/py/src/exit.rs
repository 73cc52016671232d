//! The end of the interpreter.
//!
//! While exit handlers run everything works as usual, in all threads: a handler may join a thread
//! that computes, whatever was imported first. The interpreter drops its handlers after the last of
//! them has returned, and then ends the threads that want its lock. Dropping [`ExitHook`], which
//! only the list of handlers holds, marks that moment: the engine closes.
//!
//! A thread that comes back from [`Python::detach`] too late never gets the interpreter's lock
//! again: PyO3 lets it sleep until the process is gone. In Python code that Rust calls it would be
//! unwound through Rust's frames, which must not be: [`PythonCall`] counts those, and the hook
//! waits for them.

use mxrt::internal::Process;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long the end waits for threads that are in Python code called from Rust. Such code is short.
/// A child that was forked in such a moment waits in vain.
const PATIENCE: Duration = Duration::from_millis(100);

/// The interpreter ends its threads.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads in Python code called from Rust.
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread ends the interpreter.
    static ENDS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Python code runs that Rust has called, until this is dropped.
pub(crate) struct PythonCall(());

impl PythonCall {
    pub(crate) fn enter(py: Python<'_>) -> PythonCall {
        CALLS.fetch_add(1, Ordering::SeqCst);
        if ENDING.load(Ordering::SeqCst) && !ENDS_HERE.get() {
            CALLS.fetch_sub(1, Ordering::SeqCst);
            py.detach(|| {
                loop {
                    std::thread::park();
                }
            });
        }
        PythonCall(())
    }
}

impl Drop for PythonCall {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The exit handler: `atexit.register(ExitHook())` must be the only reference to it.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct ExitHook {
    called: AtomicBool,
}

#[pymethods]
impl ExitHook {
    #[new]
    fn new() -> ExitHook {
        ExitHook { called: AtomicBool::new(false) }
    }

    /// Handlers have begun to run.
    fn __call__(&self) {
        self.called.store(true, Ordering::Relaxed);
    }
}

impl Drop for ExitHook {
    fn drop(&mut self) {
        // Handlers may also be dropped by a program that does not end.
        if !self.called.load(Ordering::Relaxed) {
            return;
        }
        ENDS_HERE.set(true);
        ENDING.store(true, Ordering::SeqCst);
        let begin = Instant::now();
        Python::attach(|py| {
            while CALLS.load(Ordering::SeqCst) > 0 && begin.elapsed() < PATIENCE {
                py.detach(|| std::thread::sleep(Duration::from_micros(100)));
            }
        });
        if let Some(engine) = Process::started() {
            engine.close();
        }
    }
}
