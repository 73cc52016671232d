//! The engine's view of a simulated device.

use crate::faults::{Call, classify};
use crate::log::Knows;
use crate::work::StreamJob;
use crate::world::{World, WorldState};
use crate::{Mode, SimConfig};
use mxrt_engine::DeviceKind;
use mxrt_engine::device::{
    Callback, ClearJob, CopyJob, Device, DeviceError, DevicePtr, Driver, ErrorClass, EventHandle, Kernel, StreamHandle,
    StreamKind, Tag,
};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The devices of one world, for [`Config::drivers`](mxrt_engine::Config).
pub struct SimDriver {
    world: World,
}

impl SimDriver {
    /// A new world.
    pub fn new(config: SimConfig) -> Arc<SimDriver> {
        Arc::new(SimDriver { world: World::new(config) })
    }

    /// The world of the driver, for tests.
    pub fn world(&self) -> World {
        self.world.clone()
    }
}

impl fmt::Debug for SimDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimDriver({:?})", self.world.0.config)
    }
}

impl Driver for SimDriver {
    fn kind(&self) -> DeviceKind {
        self.world.0.config.kind
    }

    fn count(&self) -> usize {
        self.world.0.config.devices
    }

    fn open(&self, index: u16) -> Result<Arc<dyn Device>, DeviceError> {
        if usize::from(index) >= self.count() {
            return Err(DeviceError::new(ErrorClass::Recoverable, 101, "invalid device"));
        }
        Ok(Arc::new(SimDevice { world: self.world.clone(), index: index.into() }))
    }
}

/// One simulated device.
pub struct SimDevice {
    world: World,
    index: usize,
}

/// "Invalid handle", in CUDA's numbers.
const INVALID_HANDLE: i32 = 400;

impl SimDevice {
    /// The world of the device, for tests.
    pub fn world(&self) -> World {
        self.world.clone()
    }

    /// The device's number in the world.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether it is lost, and why.
    pub fn usable(&self) -> Result<(), DeviceError> {
        self.world.lock().usable(self.index)
    }

    /// A stream as another library would make it; its number can be given to `export_to`.
    pub fn new_foreign_stream(&self) -> u64 {
        self.world.lock().new_stream(self.index)
    }

    /// Submits a kernel of the device's own: one that has neither context nor result, as those of
    /// real devices. Addresses of device memory are the host's.
    pub fn launch_own(
        &self,
        stream: StreamHandle,
        tag: Arc<Tag>,
        kernel: impl FnOnce() + Send + 'static,
    ) -> Result<(), DeviceError> {
        self.submit(Call::Launch, stream, StreamJob::Own(tag, Box::new(kernel)))
    }

    fn logs(&self) -> bool {
        self.world.0.config.record
    }

    fn place(&self, state: &WorldState, stream: StreamHandle) -> Result<usize, DeviceError> {
        state.stream(self.index, stream.0).ok_or_else(|| classify(INVALID_HANDLE))
    }

    fn submit(&self, call: Call, stream: StreamHandle, job: StreamJob) -> Result<(), DeviceError> {
        let mut state = self.world.call(self.index, call)?;
        let place = self.place(&state, stream)?;
        state.submit(place, job, self.logs());
        self.world.submitted(state, place);
        Ok(())
    }
}

impl Device for SimDevice {
    fn total_memory(&self) -> usize {
        self.world.0.config.memory
    }

    fn new_stream(&self, _kind: StreamKind) -> Result<StreamHandle, DeviceError> {
        let mut state = self.world.call(self.index, Call::Stream)?;
        Ok(StreamHandle(state.new_stream(self.index)))
    }

    fn new_event(&self, _timing: bool) -> Result<EventHandle, DeviceError> {
        Ok(EventHandle(self.world.lock().new_event()))
    }

    fn free_event(&self, event: EventHandle) {
        self.world.lock().free_event(event.0);
    }

    fn record(&self, stream: StreamHandle, event: EventHandle, op: u64) -> Result<(), DeviceError> {
        let mut state = self.world.call(self.index, Call::Record)?;
        let place = self.place(&state, stream)?;
        if !state.record(place, event.0, op, self.logs()) {
            return Err(classify(INVALID_HANDLE));
        }
        self.world.submitted(state, place);
        Ok(())
    }

    fn stream_wait(&self, stream: StreamHandle, event: EventHandle, op: u64) -> Result<(), DeviceError> {
        let mut state = self.world.call(self.index, Call::Wait)?;
        let place = self.place(&state, stream)?;
        // A device would return at once; the thread that asks for this has lost an event.
        let record = state.last_record(event.0).ok_or_else(|| classify(INVALID_HANDLE))?;
        if !self.world.0.config.ignore_waits {
            state.wait(place, record, op, self.logs());
        }
        self.world.submitted(state, place);
        Ok(())
    }

    fn query(&self, event: EventHandle) -> Result<bool, DeviceError> {
        let mut state = self.world.call(self.index, Call::Query)?;
        let record = state.last_record(event.0).ok_or_else(|| classify(INVALID_HANDLE))?;
        let done = record.time().is_some();
        if done {
            state.know(&record, Knows::Asked, self.logs());
        }
        Ok(done)
    }

    fn host_wait(&self, event: EventHandle, patience: Duration) -> Result<bool, DeviceError> {
        let state = self.world.call(self.index, Call::HostWait)?;
        let record = state.last_record(event.0).ok_or_else(|| classify(INVALID_HANDLE))?;
        drop(state);
        self.world.wait_for(self.index, &record, patience)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.world.drain(self.index)
    }

    fn when_complete(&self, event: EventHandle, callback: Callback) {
        let mut state = self.world.lock();
        let Some(record) = state.last_record(event.0) else {
            drop(state);
            return callback(Err(classify(INVALID_HANDLE)));
        };
        let (world, logs, known) = (self.world.clone(), self.logs(), record.clone());
        let callback = Box::new(move |result: Result<(), DeviceError>| {
            if result.is_ok() {
                world.lock().know(&known, Knows::Called, logs);
            }
            callback(result);
        });
        let now = state.when_done(&record, callback);
        // What was complete before the device was lost stays so.
        let result = if record.time().is_some() { Ok(()) } else { state.usable(record.device) };
        drop(state);
        if let Some(callback) = now {
            callback(result);
        }
    }

    fn alloc(&self, bytes: usize) -> Result<DevicePtr, DeviceError> {
        self.world.call(self.index, Call::Alloc)?.alloc(self.index, bytes, false).ok_or_else(|| classify(2))
    }

    fn free(&self, ptr: DevicePtr) {
        self.world.lock().free(self.index, ptr, false, self.logs());
    }

    fn alloc_pinned(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        let ptr = self.world.lock().alloc(self.index, bytes, true).ok_or_else(|| classify(2))?;
        Ok(std::ptr::with_exposed_provenance_mut(ptr.0 as usize))
    }

    fn free_pinned(&self, ptr: *mut u8) {
        self.world.lock().free(self.index, DevicePtr(ptr.expose_provenance() as u64), true, self.logs());
    }

    unsafe fn copy(&self, stream: StreamHandle, job: CopyJob) -> Result<(), DeviceError> {
        self.submit(Call::Copy, stream, StreamJob::Copy(job))
    }

    unsafe fn clear(&self, stream: StreamHandle, job: ClearJob) -> Result<(), DeviceError> {
        self.submit(Call::Copy, stream, StreamJob::Clear(job))
    }

    fn launch(&self, stream: StreamHandle, kernel: Kernel) -> Result<(), DeviceError> {
        self.submit(Call::Launch, stream, StreamJob::Kernel(kernel))
    }

    fn host_pointer(&self, ptr: DevicePtr) -> Option<*mut u8> {
        Some(std::ptr::with_exposed_provenance_mut(ptr.0 as usize))
    }

    fn host_addressable(&self) -> bool {
        true
    }

    fn foreign_stream(&self, number: u64) -> Result<StreamHandle, DeviceError> {
        let mut state = self.world.lock();
        match number {
            1 | 2 => Ok(StreamHandle(state.reserved_stream(self.index, number))),
            _ => self.place(&state, StreamHandle(number)).map(|_| StreamHandle(number)),
        }
    }

    fn stream_number(&self, stream: StreamHandle) -> u64 {
        stream.0
    }

    fn time_of(&self, event: EventHandle) -> Option<u64> {
        self.world.lock().last_record(event.0)?.time()
    }

    fn now(&self) -> u64 {
        self.world.0.now(&self.world.0.config).unwrap_or_else(|| self.world.lock().host_clock())
    }

    fn step(&self) -> bool {
        self.is_stepped() && self.world.step()
    }

    fn is_stepped(&self) -> bool {
        matches!(self.world.0.config.mode, Mode::Scheduled { .. })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
