//! Streams: everything about the order of submissions that is not the device's own business.

use super::api::{DeviceError, ErrorClass, StreamHandle, StreamKind};
use super::event::{EventRecord, EventRef};
use super::open::{Devices, OpenDevice};
use super::outcome::{Enqueued, settle};
use crate::op::spec::DeviceKind;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

/// "Operation not supported", in CUDA's numbers.
const NOT_SUPPORTED: i32 = 801;
/// The number of the default stream that other streams wait for, and that waits for them.
pub(super) const LEGACY_STREAM: u64 = 1;
/// Records in flight that a submission looks at.
const LOOKS: usize = 4;

pub(crate) struct Stream {
    pub device: &'static OpenDevice,
    /// Unique in the engine.
    pub number: u32,
    pub handle: StreamHandle,
    pub kind: StreamKind,
    /// Number by which another library names its stream.
    pub foreign: Option<u64>,
    submission: Mutex<Submission>,
    /// Records up to this one are known to be complete.
    completed: AtomicU64,
}

struct Submission {
    /// The last record's number.
    seq: u64,
    in_flight: VecDeque<EventRef>,
    /// Records of other streams, by number, that this stream already waits for.
    behind: Vec<(u32, u64)>,
}

/// Events to wait for: of each stream the latest.
#[derive(Default)]
pub(crate) struct WaitSet {
    events: Vec<EventRef>,
    /// Whether to wait for the last record of every stream, too, because readers of a frozen
    /// variable have left no event.
    pub every_stream: bool,
}

impl WaitSet {
    /// One stream is a queue, so the later record implies the earlier.
    pub fn add(&mut self, event: &EventRef) {
        match self.events.iter_mut().find(|known| known.stream.number == event.stream.number) {
            None => self.events.push(event.clone()),
            Some(known) if known.seq < event.seq => *known = event.clone(),
            Some(_) => {}
        }
    }

    /// Adds the last records of all streams, or of those of one driver, if they are wanted. Under no
    /// lock.
    pub fn complete(mut self, devices: &Devices, of: Option<DeviceKind>) -> Self {
        if self.every_stream {
            let concerns = |e: &&EventRef| of.is_none_or(|kind| e.stream.device.id.kind() == kind);
            devices.last_events().iter().filter(concerns).for_each(|e| self.add(e));
        }
        self
    }

    pub fn events(&self) -> &[EventRef] {
        &self.events
    }

    pub fn into_events(self) -> Vec<EventRef> {
        self.events
    }
}

impl Stream {
    pub fn new(device: &'static OpenDevice, number: u32, handle: StreamHandle, kind: StreamKind) -> Self {
        let submission = Submission { seq: 0, in_flight: VecDeque::new(), behind: Vec::new() };
        let (submission, completed) = (Mutex::new(submission), AtomicU64::new(0));
        Stream { device, number, handle, kind, foreign: None, submission, completed }
    }

    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// A record is known to be complete, and so are those before it.
    pub fn note_complete(&self, seq: u64) {
        self.completed.fetch_max(seq, Ordering::AcqRel);
    }

    /// Whether a library captures it; then its other users have to leave it alone.
    pub fn is_captured(&self) -> Result<bool, DeviceError> {
        self.device.backend.is_capturing(self.handle)
    }

    /// Whether another library's stream is known by its handle alone. The library may destroy the
    /// stream and make one of the same handle, which has not waited for what the old one waited
    /// for.
    fn is_by_handle(&self) -> bool {
        self.foreign.is_some_and(|number| number != LEGACY_STREAM)
    }

    /// Orders all later work, for this op, after these events. Never blocks the host.
    pub fn wait_for(&self, waits: &WaitSet, op: u64) -> Result<(), DeviceError> {
        if let Some(event) = waits.events().iter().find(|e| self.is_stranger(e) && !e.is_complete()) {
            let (here, there) = (self.device.id, event.stream.device.id);
            let message = format!("{here} cannot wait for {there}: their drivers know nothing of each other");
            return Err(DeviceError::new(ErrorClass::Recoverable, NOT_SUPPORTED, message));
        }
        let mut submission = self.submission.lock();
        for event in waits.events() {
            let source = event.stream;
            // One stream is a queue.
            let own = source.number == self.number && !self.is_by_handle();
            if own || event.seq <= source.completed() || event.is_settled() {
                continue;
            }
            // A lost device's events will never be complete, and the ops that depend on them have
            // failed.
            if source.device.is_lost() || self.is_stranger(event) {
                continue;
            }
            if self.is_by_handle() {
                self.device.backend.stream_wait(self.handle, event.handle, op)?;
                continue;
            }
            let place = submission.behind.iter().position(|(stream, _)| *stream == source.number);
            if place.is_some_and(|i| submission.behind[i].1 >= event.seq) {
                continue;
            }
            // Noted only once it is submitted: another thread may be submitting to this stream.
            self.device.backend.stream_wait(self.handle, event.handle, op)?;
            match place {
                Some(i) => submission.behind[i].1 = event.seq,
                None => submission.behind.push((source.number, event.seq)),
            }
        }
        Ok(())
    }

    /// Whether an event is of a device of another driver: nothing but the host can wait for it
    /// then.
    fn is_stranger(&self, event: &EventRef) -> bool {
        event.stream.device.id.kind() != self.device.id.kind()
    }

    /// Marks the end of what was submitted so far, and with it that of an op: the order of the
    /// numbers is that of the records.
    pub fn record(&'static self, op: Option<Arc<Enqueued>>) -> Result<EventRef, DeviceError> {
        let number = op.as_ref().map_or(0, |op| op.id);
        self.record_for(number, op)
    }

    /// Records like `record`, in the middle of the op of this number, whose end it is not.
    pub fn mark(&'static self, op: u64) -> Result<EventRef, DeviceError> {
        self.record_for(op, None)
    }

    fn record_for(&'static self, number: u64, op: Option<Arc<Enqueued>>) -> Result<EventRef, DeviceError> {
        let backend = &*self.device.backend;
        let handle = self.device.events.take(backend)?;
        let mut submission = self.submission.lock();
        // A later record implies the earlier ones, also those of another stream of this handle.
        let before = submission.in_flight.back().filter(|_| self.is_by_handle());
        let ordered = before.map_or(Ok(()), |last| backend.stream_wait(self.handle, last.handle, number));
        if let Err(error) = ordered.and_then(|()| backend.record(self.handle, handle, number)) {
            drop(submission);
            self.device.events.give(backend, handle);
            return Err(error);
        }
        submission.seq += 1;
        let event = EventRecord::new(self, submission.seq, handle, op);
        submission.in_flight.push_back(event.clone());
        let oldest: Vec<EventRef> = match submission.in_flight.len() {
            0..=LOOKS => Vec::new(),
            _ => submission.in_flight.iter().take(LOOKS).cloned().collect(),
        };
        drop(submission);
        if !oldest.is_empty() {
            oldest.iter().take_while(|e| e.is_complete()).for_each(settle);
            self.reap();
        }
        Ok(event)
    }

    /// Nobody waits for this record any more: its event is not one of this stream.
    pub fn withdraw(&self, event: &EventRef) {
        event.mark_settled();
        // The caller's reference is the last one, so nothing is freed under the lock.
        self.submission.lock().in_flight.retain(|one| one.seq != event.seq);
    }

    /// The last record that is not known to be complete.
    pub fn last(&self) -> Option<EventRef> {
        self.submission.lock().in_flight.back().cloned()
    }

    /// Asks the device what is complete, and settles that.
    pub fn collect(&self) {
        loop {
            let oldest = self.submission.lock().in_flight.front().cloned();
            match oldest {
                Some(event) if event.is_complete() && !self.device.is_lost() => {
                    self.note_complete(event.seq);
                    self.reap();
                }
                _ => return,
            }
        }
    }

    /// Settles what is known to be complete, in order.
    pub fn reap(&self) {
        while let Some(event) = self.first_complete() {
            // It stays in the list until then: the thread that finds nothing here may rely on the
            // outcomes.
            settle(&event);
            let mut submission = self.submission.lock();
            let gone = match submission.in_flight.front() {
                Some(front) if front.seq == event.seq => submission.in_flight.pop_front(),
                _ => None,
            };
            drop(submission);
            drop(gone);
        }
    }

    fn first_complete(&self) -> Option<EventRef> {
        let completed = self.completed();
        self.submission.lock().in_flight.front().filter(|event| event.seq <= completed).cloned()
    }

    /// The device is lost: nothing will be complete any more.
    pub fn abandon(&self) {
        let all = std::mem::take(&mut self.submission.lock().in_flight);
        all.iter().for_each(settle);
    }
}
