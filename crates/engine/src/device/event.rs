//! Events: a place in a stream that others can wait for.
//!
//! A record holds its event handle until the last reference is dropped: variables, blocks, waiters,
//! exports. Only then the handle goes back to the pool and may be recorded again, so no record is
//! ever replaced while it is needed.

use super::api::{Device, DeviceError, EventHandle};
use super::outcome::Enqueued;
use super::stream::Stream;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::shared::Arc;

/// The free events of a device, of one flavour.
pub(crate) struct EventPool {
    free: Mutex<Vec<EventHandle>>,
    /// How many free events are kept; what is given back beyond that is destroyed.
    keep: usize,
    /// Events that exist.
    made: AtomicUsize,
    timing: bool,
}

impl EventPool {
    pub fn new(timing: bool, keep: usize) -> Self {
        let free = Mutex::new(Vec::with_capacity(keep.min(64)));
        EventPool { free, keep, made: AtomicUsize::new(0), timing }
    }

    /// An event without references.
    pub fn take(&self, backend: &dyn Device) -> Result<EventHandle, DeviceError> {
        if let Some(handle) = self.free.lock().pop() {
            return Ok(handle);
        }
        let handle = backend.new_event(self.timing)?;
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(handle)
    }

    /// Takes an event back.
    pub fn give(&self, backend: &dyn Device, handle: EventHandle) {
        let mut free = self.free.lock();
        if free.len() < self.keep {
            return free.push(handle);
        }
        drop(free);
        self.made.fetch_sub(1, Ordering::Relaxed);
        backend.free_event(handle);
    }

    /// Events that are referred to, and free ones.
    pub fn counts(&self) -> (usize, usize) {
        let free = self.free.lock().len();
        (self.made.load(Ordering::Relaxed) - free, free)
    }
}

/// One record of an event.
pub(crate) struct EventRecord {
    pub stream: &'static Stream,
    /// Counts the records of the stream, from 1, in their order.
    pub seq: u64,
    pub handle: EventHandle,
    /// Known to be complete, and its op's outcome is known.
    settled: AtomicBool,
    /// The op whose end it is; an import or export has none.
    pub op: Option<std::sync::Arc<Enqueued>>,
}

/// The reference to an event that variables, blocks and waiters keep.
pub(crate) type EventRef = Arc<EventRecord>;

impl EventRecord {
    pub fn new(
        stream: &'static Stream,
        seq: u64,
        handle: EventHandle,
        op: Option<std::sync::Arc<Enqueued>>,
    ) -> EventRef {
        Arc::new(EventRecord { stream, seq, handle, settled: AtomicBool::new(false), op })
    }

    /// Complete, as far as is known without asking the device; the outcome of its op is known then.
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    pub fn mark_settled(&self) {
        self.settled.store(true, Ordering::Release);
    }

    /// Asks the device, unless it is known. A lost device's events are over as well: their ops have
    /// failed.
    pub fn is_complete(&self) -> bool {
        if self.is_settled() || self.seq <= self.stream.completed() {
            return true;
        }
        let device = self.stream.device;
        if device.is_lost() {
            return true;
        }
        match device.backend.query(self.handle) {
            Ok(complete) => {
                if complete {
                    self.stream.note_complete(self.seq);
                }
                complete
            }
            Err(error) => device.note_error(&error, "looking at an event"),
        }
    }
}

/// The device refuses for good to say whether an event is complete. An op's values are unknown then,
/// and the device is lost. The end of a use by another library concerns nothing else: it was
/// captured, and what a library captures does not run by itself.
pub(crate) fn give_up(event: &EventRef, error: &DeviceError) {
    let device = event.stream.device;
    if event.op.is_none() && event.stream.foreign.is_some() {
        event.stream.withdraw(event);
    } else {
        device.lose(error, "waiting for an operator");
    }
}

impl Drop for EventRecord {
    fn drop(&mut self) {
        let device = self.stream.device;
        // A lost device is not touched any more; in a forked child it cannot be.
        if !device.is_lost() {
            device.events.give(&*device.backend, self.handle);
        }
    }
}
