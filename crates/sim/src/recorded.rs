//! The record of any device's calls, for [`check`](crate::check::check): a layer between the engine
//! and a backend that writes every call down and passes it on.

use crate::log::{Knows, Log, LogEntry};
use mxrt_engine::DeviceKind;
use mxrt_engine::device::{
    Callback, ClearJob, CopyJob, Device, DeviceError, DevicePtr, Driver, EventHandle, Kernel, MemoryPlace,
    StreamHandle, StreamKind, Tag,
};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The record of the calls of one driver's devices. Clones are the same record.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<RecorderState>>);

#[derive(Default)]
struct RecorderState {
    log: Log,
    /// Numbers of streams, by device and handle.
    streams: HashMap<(u16, StreamHandle), usize>,
    /// The last record of each event.
    records: HashMap<(u16, EventHandle), u64>,
    next_record: u64,
    /// Memory of all devices, and page-locked memory: where it begins, and how much it is.
    blocks: BTreeMap<u64, usize>,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record so far.
    pub fn log(&self) -> Log {
        self.lock().log.clone()
    }

    /// Forgets what was recorded. Nothing may be under way.
    pub fn restart(&self) {
        self.lock().log.clear();
    }

    /// Notes that an op of the host uses variables: numbers, and whether they are written.
    pub fn host_uses(&self, name: &str, accesses: &[(u64, bool)]) {
        self.lock().log.push(LogEntry::Host { name: name.to_owned(), accesses: accesses.to_vec() });
    }

    /// Notes that the host may wait for devices from now on, or may not.
    pub fn may_wait(&self, may: bool) {
        self.lock().log.push(LogEntry::MayWait(may));
    }
}

impl RecorderState {
    fn stream(&mut self, device: u16, stream: StreamHandle) -> usize {
        let next = self.streams.len();
        *self.streams.entry((device, stream)).or_insert(next)
    }

    fn work(&mut self, device: u16, stream: StreamHandle, tag: &Arc<Tag>, memory: &[DevicePtr]) {
        let used = tag.accesses.iter().filter_map(|access| access.memory).chain(memory.iter().copied());
        for ptr in used {
            let block = self.blocks.range(..=ptr.0).next_back();
            if block.is_none_or(|(start, bytes)| ptr.0 >= start + (*bytes).max(1) as u64) {
                self.log.push(LogEntry::BadMemory { tag: tag.clone(), ptr });
            }
        }
        let stream = self.stream(device, stream);
        self.log.push(LogEntry::Work { stream, tag: tag.clone() });
    }

    fn know(&mut self, device: u16, event: EventHandle, how: Knows) {
        if let Some(record) = self.records.get(&(device, event)).copied() {
            self.log.push(LogEntry::Known { record, how });
        }
    }
}

/// Does a step of the devices' work; false: there is nothing to do.
pub type Step = Arc<dyn Fn() -> bool + Send + Sync>;

/// The devices of another driver, recorded.
#[derive(Clone)]
pub struct RecordedDriver {
    inner: Arc<dyn Driver>,
    recorder: Recorder,
    kind: DeviceKind,
    step: Option<Step>,
}

impl RecordedDriver {
    /// Records what is asked of the devices of `inner`.
    pub fn new(inner: Arc<dyn Driver>) -> Arc<RecordedDriver> {
        let kind = inner.kind();
        RecordedDriver::with(inner, kind, None)
    }

    /// Records the calls of a driver whose devices call themselves `kind`. With `step`, a waiting
    /// thread does their work by it, and no other thread does.
    pub fn with(inner: Arc<dyn Driver>, kind: DeviceKind, step: Option<Step>) -> Arc<RecordedDriver> {
        Arc::new(RecordedDriver { inner, recorder: Recorder::default(), kind, step })
    }

    /// Opening may wait for the device: another thread does its work meanwhile.
    fn open_stepped(&self, index: u16, step: &Step) -> Result<Arc<dyn Device>, DeviceError> {
        let opened = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !opened.load(Ordering::Acquire) {
                    if !step() {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
            });
            let device = self.inner.open(index);
            opened.store(true, Ordering::Release);
            device
        })
    }

    /// The record of the calls of its devices.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }
}

impl fmt::Debug for RecordedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedDriver({:?})", self.inner)
    }
}

impl Driver for RecordedDriver {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn count(&self) -> usize {
        self.inner.count()
    }

    fn absence(&self) -> Option<String> {
        self.inner.absence()
    }

    fn open(&self, index: u16) -> Result<Arc<dyn Device>, DeviceError> {
        let inner = match &self.step {
            None => self.inner.open(index)?,
            Some(step) => self.open_stepped(index, step)?,
        };
        Ok(Arc::new(Recorded { inner, index, recorder: self.recorder.clone(), step: self.step.clone() }))
    }
}

/// A device whose calls are recorded. A call that fails had no effect and is not in the record.
pub struct Recorded<D: Device + ?Sized> {
    inner: Arc<D>,
    index: u16,
    recorder: Recorder,
    step: Option<Step>,
}

impl<D: Device + ?Sized> Recorded<D> {
    /// Waits like `host_wait` of a device that has no thread: does the device's work until the
    /// event is complete, or nothing can be done now.
    fn step_until(&self, event: EventHandle, patience: Duration, step: &Step) -> Result<bool, DeviceError> {
        let begin = Instant::now();
        while !self.inner.query(event)? {
            if !step() {
                std::thread::sleep(Duration::from_micros(50));
                return self.inner.query(event);
            }
            if begin.elapsed() >= patience {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Page-locked memory and memory of devices that a place is in.
    fn memory_of(place: MemoryPlace) -> DevicePtr {
        match place {
            MemoryPlace::Device(ptr) => ptr,
            MemoryPlace::Host(ptr) => DevicePtr(ptr.expose_provenance() as u64),
        }
    }

    fn note_block(&self, at: u64, bytes: usize) {
        self.recorder.lock().blocks.insert(at, bytes);
    }
}

impl<D: Device + ?Sized + 'static> Device for Recorded<D> {
    fn total_memory(&self) -> usize {
        self.inner.total_memory()
    }

    fn free_memory(&self) -> Option<usize> {
        self.inner.free_memory()
    }

    fn new_stream(&self, kind: StreamKind) -> Result<StreamHandle, DeviceError> {
        self.inner.new_stream(kind)
    }

    fn new_event(&self, timing: bool) -> Result<EventHandle, DeviceError> {
        self.inner.new_event(timing)
    }

    fn free_event(&self, event: EventHandle) {
        // Before the backend may hand the same handle out again.
        self.recorder.lock().records.remove(&(self.index, event));
        self.inner.free_event(event);
    }

    fn record(&self, stream: StreamHandle, event: EventHandle, op: u64) -> Result<(), DeviceError> {
        self.inner.record(stream, event, op)?;
        let mut state = self.recorder.lock();
        state.next_record += 1;
        let (record, stream) = (state.next_record, state.stream(self.index, stream));
        state.records.insert((self.index, event), record);
        state.log.push(LogEntry::Record { stream, record, op });
        Ok(())
    }

    fn stream_wait(&self, stream: StreamHandle, event: EventHandle, op: u64) -> Result<(), DeviceError> {
        self.inner.stream_wait(stream, event, op)?;
        let mut state = self.recorder.lock();
        // The event may be of another device of the driver, whose handles are different ones.
        let own = state.records.get(&(self.index, event)).copied();
        let others = state.records.iter().find(|((_, handle), _)| *handle == event).map(|(_, record)| *record);
        if let Some(record) = own.or(others) {
            let stream = state.stream(self.index, stream);
            state.log.push(LogEntry::Wait { stream, record, op });
        }
        Ok(())
    }

    fn query(&self, event: EventHandle) -> Result<bool, DeviceError> {
        let complete = self.inner.query(event)?;
        if complete {
            self.recorder.lock().know(self.index, event, Knows::Asked);
        }
        Ok(complete)
    }

    fn host_wait(&self, event: EventHandle, patience: Duration) -> Result<bool, DeviceError> {
        let complete = match &self.step {
            Some(step) => self.step_until(event, patience, step)?,
            None => self.inner.host_wait(event, patience)?,
        };
        if complete {
            self.recorder.lock().know(self.index, event, Knows::Waited);
        }
        Ok(complete)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }

    fn when_complete(&self, event: EventHandle, callback: Callback) {
        let (recorder, index) = (self.recorder.clone(), self.index);
        let noted = move |result: Result<(), DeviceError>| {
            if result.is_ok() {
                recorder.lock().know(index, event, Knows::Called);
            }
            callback(result);
        };
        self.inner.when_complete(event, Box::new(noted));
    }

    fn alloc(&self, bytes: usize) -> Result<DevicePtr, DeviceError> {
        let ptr = self.inner.alloc(bytes)?;
        self.note_block(ptr.0, bytes);
        Ok(ptr)
    }

    fn free(&self, ptr: DevicePtr) {
        // Before the backend may hand the same memory out again.
        let mut state = self.recorder.lock();
        state.blocks.remove(&ptr.0);
        state.log.push(LogEntry::Free { ptr });
        drop(state);
        self.inner.free(ptr);
    }

    fn alloc_pinned(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        let ptr = self.inner.alloc_pinned(bytes)?;
        self.note_block(ptr.expose_provenance() as u64, bytes);
        Ok(ptr)
    }

    fn free_pinned(&self, ptr: *mut u8) {
        self.recorder.lock().blocks.remove(&(ptr.expose_provenance() as u64));
        self.inner.free_pinned(ptr);
    }

    unsafe fn copy(&self, stream: StreamHandle, job: CopyJob) -> Result<(), DeviceError> {
        let (tag, memory) = (job.tag.clone(), [job.to, job.from].map(Self::memory_of));
        // SAFETY: the caller's contract.
        unsafe { self.inner.copy(stream, job) }?;
        self.recorder.lock().work(self.index, stream, &tag, &memory);
        Ok(())
    }

    unsafe fn clear(&self, stream: StreamHandle, job: ClearJob) -> Result<(), DeviceError> {
        let (tag, at) = (job.tag.clone(), job.at);
        // SAFETY: the caller's contract.
        unsafe { self.inner.clear(stream, job) }?;
        self.recorder.lock().work(self.index, stream, &tag, &[at]);
        Ok(())
    }

    fn launch(&self, stream: StreamHandle, kernel: Kernel) -> Result<(), DeviceError> {
        let tag = kernel.tag().clone();
        self.inner.launch(stream, kernel)?;
        self.recorder.lock().work(self.index, stream, &tag, &[]);
        Ok(())
    }

    fn host_pointer(&self, ptr: DevicePtr) -> Option<*mut u8> {
        self.inner.host_pointer(ptr)
    }

    fn host_addressable(&self) -> bool {
        self.inner.host_addressable()
    }

    fn foreign_stream(&self, number: u64) -> Result<StreamHandle, DeviceError> {
        self.inner.foreign_stream(number)
    }

    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DeviceError> {
        self.inner.is_capturing(stream)
    }

    fn stream_number(&self, stream: StreamHandle) -> u64 {
        self.inner.stream_number(stream)
    }

    fn time_of(&self, event: EventHandle) -> Option<u64> {
        self.inner.time_of(event)
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }

    fn step(&self) -> bool {
        self.step.as_ref().map_or_else(|| self.inner.step(), |step| step())
    }

    fn is_stepped(&self) -> bool {
        self.step.is_some() || self.inner.is_stepped()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}
