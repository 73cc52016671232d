//! The driver calls of the completion thread, and the choice of the thread that may itself poll for
//! long.

use crate::api::Api;
use crate::completion::{Asked, Garbage};
use crate::context::{Context, RELAXED};
use cudarc::driver::sys::{CUevent, CUgraphExec};
use mxrt_engine::device::{EventHandle, RecordingHandle};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn raw_event(event: EventHandle) -> CUevent {
    std::ptr::with_exposed_provenance_mut(event.0 as usize)
}

pub(crate) fn raw_graph(graph: RecordingHandle) -> CUgraphExec {
    std::ptr::with_exposed_provenance_mut(graph.0 as usize)
}

/// The driver as the completion thread uses it.
pub(crate) struct Thread {
    pub api: &'static Api,
    pub context: Context,
}

impl Asked for Thread {
    fn begin(&self) {
        // SAFETY: numbers; without it the system may add 50 µs to each pause.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000usize) };
        // SAFETY: a context lives as long as the process; this thread has no other user.
        let _ = unsafe { (self.api.cuCtxSetCurrent)(self.context.0) };
        let mut mode = RELAXED;
        // SAFETY: a variable.
        let _ = unsafe { (self.api.cuThreadExchangeStreamCaptureMode)(&mut mode) };
    }

    fn query(&self, event: EventHandle) -> i32 {
        // SAFETY: the caller of the wait keeps the event.
        unsafe { (self.api.cuEventQuery)(raw_event(event)) }
    }

    fn release(&self, garbage: Garbage) {
        // SAFETY: nothing refers to it any more; a lost device refuses, and that is all the same.
        let _ = unsafe {
            match garbage {
                Garbage::Event(event) => (self.api.cuEventDestroy_v2)(raw_event(event)),
                Garbage::Memory(at) => (self.api.cuMemFree_v2)(at),
                Garbage::Pinned(at) => (self.api.cuMemFreeHost)(std::ptr::with_exposed_provenance_mut(at)),
                Garbage::Recording(graph) => (self.api.cuGraphExecDestroy)(raw_graph(graph)),
            }
        };
    }
}

/// One thread at a time has this.
pub(crate) struct Alone<'a>(&'a AtomicBool);

impl<'a> Alone<'a> {
    pub fn enter(taken: &'a AtomicBool) -> Option<Alone<'a>> {
        (!taken.swap(true, Ordering::Acquire)).then_some(Alone(taken))
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
