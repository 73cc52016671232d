//! Uses of arrays by other libraries, and captures of their streams. While a library captures a
//! stream, as `torch.cuda.graph` does, an event that is recorded there becomes a part of its graph
//! and is never complete, and a wait for work outside of the capture makes the capture fail. So the
//! end of a use is recorded when the capture is over; until then nothing gets the memory.

use super::api::DeviceError;
use super::open::OpenDevice;
use super::stream::Stream;
use super::sync_object::Garbage;
use crate::var::Var;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A use of a variable's memory by another library, on its stream.
pub(super) struct ForeignUse {
    pub var: Var,
    pub stream: &'static Stream,
}

/// Uses of a device's memory that are over, but not the captures of their streams.
#[derive(Default)]
pub(super) struct CapturedUses {
    list: Mutex<Vec<ForeignUse>>,
    /// Length of the list, for threads that only look whether there is something to do.
    count: AtomicUsize,
}

impl CapturedUses {
    fn lock(&self) -> MutexGuard<'_, Vec<ForeignUse>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, uses: Vec<ForeignUse>) {
        let mut list = self.lock();
        list.extend(uses);
        self.count.store(list.len(), Ordering::Relaxed);
    }

    fn take(&self) -> Vec<ForeignUse> {
        std::mem::take(&mut *self.lock())
    }
}

impl ForeignUse {
    /// Orders the next use of the memory after what the library has submitted. Returns the use if
    /// its stream is captured: then it has to end later.
    fn end(self) -> Option<ForeignUse> {
        let device = self.stream.device;
        if device.is_lost() {
            return None;
        }
        match self.mark() {
            Ok(true) => None,
            Ok(false) => Some(self),
            // The capture began meanwhile.
            Err(_) if self.stream.is_captured() == Ok(true) => Some(self),
            // The stream is gone, so only the whole device can be waited for.
            Err(_) => {
                if let Err(error) = device.backend.synchronize() {
                    device.note_error(&error, "waiting for another library");
                }
                None
            }
        }
    }

    /// Records the end of the use, unless the stream is captured.
    fn mark(&self) -> Result<bool, DeviceError> {
        if self.stream.is_captured()? {
            return Ok(false);
        }
        let event = self.stream.record(None)?;
        // The record may belong to a capture that began meanwhile.
        if self.stream.is_captured()? {
            self.stream.withdraw(&event);
            return Ok(false);
        }
        let (events, mut garbage) = (vec![event], Garbage::default());
        self.var.inner().with_new_sync(|sync| sync.inherit(events, &mut garbage));
        Ok(true)
    }
}

impl OpenDevice {
    /// Ends a use by another library, now or when the capture of its stream is over.
    pub(super) fn end_use(&'static self, one: ForeignUse) {
        self.engine.without_fork(|| {
            if let Some(kept) = one.end() {
                self.captured.add(vec![kept]);
            }
        });
    }

    /// Ends the uses whose captures are over. Threads look when they push work, ask for memory or
    /// exchange arrays, for the driver tells nobody that a capture ends. Called under no lock.
    #[inline]
    pub(super) fn end_captured_uses(&self) {
        if self.captured.count.load(Ordering::Relaxed) > 0 && !self.is_lost() {
            self.look_at_captures();
        }
    }

    #[cold]
    fn look_at_captures(&self) {
        self.engine.without_fork(|| {
            let kept = self.captured.take().into_iter().filter_map(ForeignUse::end).collect();
            self.captured.add(kept);
        });
    }
}
