//! The device work on a variable that may still be running: at most one event of its last writer,
//! and one of readers per stream.
//!
//! Everything here happens under the variable's lock, and nothing is dropped there: what is not
//! needed any more is handed out as [`Garbage`].

use super::event::EventRef;
use super::memory::DeviceBlock;
use super::outcome::{FailureSource, LastWriter};
use super::stream::WaitSet;
use crate::failure::Failure;
use crate::op::block::Mode;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU64;
use std::cell::UnsafeCell;
use std::time::Instant;

/// Rarely used state of a variable; made when first needed and freed with the variable.
pub(crate) struct Extra {
    /// Writes that make a version up to this one need not run. Changed under the variable's lock.
    pub cancelled: AtomicU64,
    /// The deadline of the last op with a deadline that writes the variable. A leaf: nothing is
    /// locked inside.
    pub deadline: Mutex<Option<Instant>>,
    /// Sync object; accessed only under the variable's lock.
    pub sync: UnsafeCell<SyncObject>,
}

impl Extra {
    pub fn new() -> Self {
        Extra { cancelled: AtomicU64::new(0), deadline: Mutex::new(None), sync: UnsafeCell::new(SyncObject::default()) }
    }
}

#[derive(Default)]
pub(crate) struct SyncObject {
    /// Events of readers, at most one of each stream, all later than the writer.
    readers: Vec<EventRef>,
    writer: Option<LastWriter>,
    /// The value's failure, found out after its op was submitted.
    late: Option<Failure>,
    /// Readers leave nothing here: the thread that writes waits for every stream.
    frozen: bool,
    memory: Option<DeviceBlock>,
}

/// References to be dropped after the variable is unlocked.
#[derive(Default)]
pub(crate) struct Garbage {
    _events: Vec<EventRef>,
    _writer: Option<LastWriter>,
    _failure: Option<Failure>,
}

impl SyncObject {
    /// Collects the events that an op on `stream` has to wait for, and returns the source of the
    /// old value's failure.
    pub fn before_device_op(&self, mode: Mode, stream: u32, waits: &mut WaitSet) -> Option<FailureSource> {
        let elsewhere = |event: &EventRef| event.stream.number != stream;
        // A reader of this stream came after the writer, so the stream comes after the writer.
        let ordered = mode == Mode::Read && self.readers.iter().any(|e| !elsewhere(e));
        if let Some(writer) = self.writer.as_ref().filter(|w| elsewhere(&w.event) && !ordered) {
            waits.add(&writer.event);
        }
        if mode != Mode::Read {
            self.readers.iter().filter(|e| elsewhere(e)).for_each(|e| waits.add(e));
            waits.every_stream |= self.frozen;
        }
        self.source()
    }

    /// The source of the value's failure: it has failed, or this op decides it.
    pub fn source(&self) -> Option<FailureSource> {
        match (&self.late, &self.writer) {
            (Some(failure), _) => Some(FailureSource::Failed(failure.clone())),
            (None, Some(writer)) => Some(FailureSource::Pending(writer.clone())),
            (None, None) => None,
        }
    }

    /// Collects the events that the host has to wait for before it uses the value.
    pub fn before_host(&self, mode: Mode, waits: &mut WaitSet) {
        self.writer.iter().for_each(|w| waits.add(&w.event));
        // Other readers do not disturb a reader.
        if mode != Mode::Read {
            self.readers.iter().for_each(|e| waits.add(e));
            waits.every_stream |= self.frozen;
        }
    }

    /// Whether [`before_host`](Self::before_host) may find something.
    pub fn concerns_host(&self, mode: Mode) -> bool {
        self.writer.is_some() || (mode != Mode::Read && (self.frozen || !self.readers.is_empty()))
    }

    /// An op that reads has been submitted up to this event.
    pub fn register_read(&mut self, event: &EventRef, garbage: &mut Garbage) {
        if self.frozen {
            return;
        }
        match self.readers.iter_mut().find(|e| e.stream.number == event.stream.number) {
            None => self.readers.push(event.clone()),
            // Two readers of one stream may come here in either order.
            Some(known) if known.seq < event.seq => garbage._events.push(std::mem::replace(known, event.clone())),
            Some(_) => {}
        }
        self.check();
    }

    /// Invariant 12, in builds that check.
    fn check(&self) {
        let stream = |event: &EventRef| event.stream.number;
        let twice = |(i, e): (usize, &EventRef)| self.readers[..i].iter().any(|other| stream(other) == stream(e));
        debug_assert!(!self.readers.iter().enumerate().any(twice), "two readers of one stream");
        let before =
            |e: &EventRef| self.writer.as_ref().is_some_and(|w| stream(&w.event) == stream(e) && w.event.seq > e.seq);
        debug_assert!(!self.readers.iter().any(before), "a reader from before the writer");
    }

    /// An op that writes has been submitted up to this event; it waited for everything that was
    /// here.
    pub fn register_write(&mut self, event: &EventRef, access: usize, whole: bool, garbage: &mut Garbage) {
        garbage._events.append(&mut self.readers);
        garbage._writer = self.writer.replace(LastWriter { event: event.clone(), access });
        if whole {
            garbage._failure = self.late.take();
        }
        self.frozen = false;
    }

    /// Events that came with memory from another owner.
    pub fn inherit(&mut self, events: Vec<EventRef>, garbage: &mut Garbage) {
        for event in events {
            match self.readers.iter_mut().find(|e| e.stream.number == event.stream.number) {
                None => self.readers.push(event),
                Some(known) if known.seq < event.seq => garbage._events.push(std::mem::replace(known, event)),
                Some(_) => garbage._events.push(event),
            }
        }
        self.check();
    }

    /// The value was written by the host, as a whole: only then it has no old failure any more.
    pub fn healed(&mut self, garbage: &mut Garbage) {
        // The failure of a writer that is complete is history as well.
        self.prune(garbage);
        garbage._failure = self.late.take();
        self.frozen = false;
    }

    /// Forgets what is known to be complete.
    pub fn prune(&mut self, garbage: &mut Garbage) {
        let mut i = 0;
        while i < self.readers.len() {
            if self.readers[i].is_settled() {
                garbage._events.push(self.readers.swap_remove(i));
            } else {
                i += 1;
            }
        }
        if self.writer.as_ref().is_some_and(|w| w.event.is_settled()) {
            garbage._writer = self.writer.take();
            if let Some(writer) = &garbage._writer
                && let Some(failure) = writer.failure()
            {
                self.late = Some(failure);
            }
        }
    }

    /// The failure of the value, as far as it is known.
    pub fn failure(&self) -> Option<Failure> {
        if self.late.is_some() {
            return self.late.clone();
        }
        self.writer.as_ref().filter(|w| w.event.is_settled()).and_then(LastWriter::failure)
    }

    pub fn writer(&self) -> Option<&LastWriter> {
        self.writer.as_ref()
    }

    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    pub fn memory(&self) -> Option<&DeviceBlock> {
        self.memory.as_ref()
    }

    /// Exchanges the memory; the old one goes with the events of the variable.
    pub fn replace_memory(&mut self, block: DeviceBlock) -> Option<DeviceBlock> {
        let mut old = self.memory.replace(block);
        if let Some(old) = &mut old {
            old.use_until(self.events());
        }
        old
    }

    /// Everything a new owner of the memory must wait for.
    fn events(&self) -> Vec<EventRef> {
        let mut all = WaitSet::default();
        self.writer.iter().for_each(|w| all.add(&w.event));
        self.readers.iter().for_each(|e| all.add(e));
        all.into_events()
    }
}

impl Drop for SyncObject {
    fn drop(&mut self) {
        let events = self.events();
        if let Some(block) = &mut self.memory {
            if self.frozen {
                block.use_until_all();
            }
            block.use_until(events);
        }
    }
}
