//! One GPU. Numbers in the calls are those of the driver's headers.

use crate::api::Api;
use crate::completion::{Asked, Completion, Garbage};
use crate::context::{Context, Current};
use crate::driver::{attribute, capability, memory, ordinal};
use crate::errors::{CAPTURE_IMPLICIT, NOT_INITIALIZED, NOT_PERMITTED, NOT_READY, check};
use crate::fork;
use crate::graph::Builder;
use crate::module::{Function, Grid, Image, Modules, load_function};
use crate::nvrtc::{self, KernelSource};
use crate::peers;
use crate::provider::{self, Providers};
use crate::thread::{Alone, Thread, raw_event, raw_graph};
use cudarc::driver::sys::CUstream;
use mxrt_engine::device::{
    Callback, ClearJob, CopyJob, Device, DeviceError, DevicePtr, ErrorClass, EventHandle, Kernel, MemoryPlace,
    RecordingHandle, StreamHandle, StreamKind,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A stream that does not wait for the default one.
const NON_BLOCKING: c_uint = 1;
/// An event without a time.
const DISABLE_TIMING: c_uint = 2;
/// Page-locked for every context, and not write-combined: the host reads it.
const PORTABLE: c_uint = 1;
/// The attribute that says whether the host and all GPUs share one space of addresses.
const UNIFIED_ADDRESSING: c_int = 41;
/// Number of multiprocessors, among a device's attributes.
const MULTIPROCESSORS: c_int = 16;
/// No stream has this number.
const NO_STREAM: u64 = u64::MAX;
/// How long a thread that waits asks the driver itself, before the completion thread does; and how long
/// one of them at a time may, which saves a lonely caller the way through two threads.
const SPIN: Duration = Duration::from_micros(50);
const LONG_SPIN: Duration = Duration::from_millis(2);
/// Times are floats of milliseconds since a base, so far from it they are coarse.
const BASE_AGE: Duration = Duration::from_secs(10);
/// How long a new base is waited for; the old one serves until there is one.
const BASE_PATIENCE: Duration = Duration::from_millis(5);

thread_local!(static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) });

/// A GPU that is in use. Its context is the primary one, which other libraries share.
pub struct CudaDevice {
    api: &'static Api,
    context: Context,
    total: usize,
    /// Greatest priority of a stream.
    greatest: c_int,
    completion: Arc<Completion>,
    /// Whether a thread asks longer than others.
    asking: AtomicBool,
    /// The graph that is being recorded, and the stream that the work for it is submitted to.
    pub(crate) recording: Mutex<Option<Builder>>,
    pub(crate) recorded_stream: AtomicU64,
    /// The last record of each event: its stream, and its number there.
    records: Mutex<HashMap<EventHandle, (StreamHandle, u64)>>,
    next_record: AtomicU64,
    /// Streams of this device, for as long as it lives.
    streams: Mutex<Vec<StreamHandle>>,
    began: Instant,
    base_stream: StreamHandle,
    base: Mutex<Base>,
    capability: (i32, i32),
    multiprocessors: u32,
    modules: Modules,
    pub(crate) providers: Providers,
}

/// An event that was complete at a known time.
#[derive(Clone, Copy)]
struct Base {
    event: EventHandle,
    at: Duration,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn raw_stream(stream: StreamHandle) -> CUstream {
    std::ptr::with_exposed_provenance_mut(stream.0 as usize)
}

fn address(place: MemoryPlace) -> u64 {
    match place {
        MemoryPlace::Host(ptr) => ptr.expose_provenance() as u64,
        MemoryPlace::Device(ptr) => ptr.0,
    }
}

fn in_child() -> DeviceError {
    DeviceError::new(ErrorClass::Lost, NOT_INITIALIZED, fork::CHILD)
}

/// Checks that host and GPU have a common space of addresses.
fn check_addresses(api: &Api, ordinal: c_int) -> Result<(), DeviceError> {
    if attribute(api, UNIFIED_ADDRESSING, ordinal)? == 1 {
        return Ok(());
    }
    let message = "host and GPU have no common space of addresses here, which mxrt needs";
    Err(DeviceError::new(ErrorClass::Recoverable, NOT_PERMITTED, message))
}

impl CudaDevice {
    /// Opens a GPU: retains its primary context for the rest of the process.
    pub(crate) fn open(api: &'static Api, index: u16) -> Result<Arc<CudaDevice>, DeviceError> {
        let ordinal = ordinal(api, index.into())?;
        check_addresses(api, ordinal)?;
        let total = memory(api, ordinal)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        check(unsafe { (api.cuDevicePrimaryCtxRetain)(&mut context, ordinal) })?;
        let context = Context(context);
        let capability = capability(api, ordinal)?;
        let multiprocessors = u32::try_from(attribute(api, MULTIPROCESSORS, ordinal)?).unwrap_or(1).max(1);
        // From here on the device gives back what it has if something fails.
        let completion = Completion::start(Thread { api, context })
            .map_err(|e| DeviceError::new(ErrorClass::Recoverable, 304, format!("no thread for the GPU: {e}")))?;
        let (event, stream) = (EventHandle(0), StreamHandle(0));
        let mut device = CudaDevice {
            api,
            context,
            total,
            greatest: 0,
            completion,
            asking: AtomicBool::new(false),
            recording: Mutex::default(),
            recorded_stream: AtomicU64::new(NO_STREAM),
            records: Mutex::default(),
            next_record: AtomicU64::new(1),
            streams: Mutex::default(),
            began: Instant::now(),
            base_stream: stream,
            base: Mutex::new(Base { event, at: Duration::ZERO }),
            capability,
            multiprocessors,
            modules: Modules::default(),
            providers: Providers::default(),
        };
        device.greatest = device.greatest_priority()?;
        device.base_stream = device.new_stream(StreamKind::Compute)?;
        let base = device.new_base(Duration::from_secs(30))?;
        *lock(&device.base) = base;
        peers::introduce(api, ordinal, context);
        let device = Arc::new(device);
        provider::note_open(index, &device);
        Ok(device)
    }

    /// The greatest priority that a stream can have.
    fn greatest_priority(&self) -> Result<c_int, DeviceError> {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: two numbers are written.
        self.call(|api| unsafe { (api.cuCtxGetStreamPriorityRange)(&mut least, &mut greatest) })?;
        Ok(greatest)
    }

    /// The compute capability: (9, 0).
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Multiprocessors, each of which runs a few blocks concurrently.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Loads the module that `image` gives the code of, unless it is loaded.
    pub fn load(&self, image: Image) -> Result<(), DeviceError> {
        self.with(|api| self.modules.load(api, self.capability, image))?
    }

    /// A kernel by its name in the module that `image` gives the code of, with the bytes of shared
    /// memory of its blocks; the first call loads it.
    pub fn function(&self, image: Image, kernel: (&'static CStr, u32)) -> Result<Function, DeviceError> {
        self.with(|api| self.modules.function(api, self.capability, image, kernel))?
    }

    /// Compiles the text of one kernel for this GPU, unless that was done, and loads it. Without a
    /// compiler there is none: [`prepared`](CudaDevice::prepared) says so.
    pub fn prepare(&self, text: &KernelSource, name: &CStr) {
        if fork::in_child() {
            return;
        }
        self.modules.prepare(text, || {
            let code = nvrtc::compile(text, self.capability).ok()?;
            self.with(|api| load_function(api, &code, name)).ok()?.ok()
        });
    }

    /// The kernel of a text that was prepared, if it could be compiled.
    pub fn prepared(&self, text: &KernelSource) -> Option<Function> {
        self.modules.prepared(text)
    }

    /// Submits a kernel.
    ///
    /// # Safety
    /// The kernel takes one argument of the layout of `T`, in which all addresses belong to this
    /// device until the work on the stream is done.
    pub unsafe fn launch_kernel<T: Copy>(
        &self,
        stream: StreamHandle,
        function: Function,
        grid: Grid,
        argument: &T,
    ) -> Result<(), DeviceError> {
        let mut arguments = [std::ptr::from_ref(argument).cast_mut().cast::<c_void>()];
        // SAFETY: contract.
        let node = |graph: &mut Builder| unsafe { graph.kernel(self.api, function, grid, arguments.as_mut_ptr()) };
        if let Some(added) = self.add_node(stream, node) {
            return added;
        }
        let [x, y, z] = grid.blocks;
        // SAFETY: the driver copies the argument before it returns; contract for the rest.
        self.call(|api| unsafe {
            (api.cuLaunchKernel)(
                function.0,
                x,
                y,
                z,
                grid.threads,
                1,
                1,
                grid.shared_bytes,
                raw_stream(stream),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    /// Calls the driver with this device's context, and leaves the thread as it was.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&Api) -> T) -> Result<T, DeviceError> {
        if fork::in_child() {
            return Err(in_child());
        }
        if IN_HOST_FUNCTION.get() && !self.api.host_memory {
            let message = "a function that runs in a stream may not use the device";
            return Err(DeviceError::new(ErrorClass::Recoverable, NOT_PERMITTED, message));
        }
        let _current = Current::enter(self.api, self.context)?;
        Ok(call(self.api))
    }

    /// Makes a call whose result is a code.
    fn call(&self, call: impl FnOnce(&Api) -> i32) -> Result<(), DeviceError> {
        check(self.with(call)?)
    }

    /// Adds work to the graph that is being recorded on a stream; `None`: none is.
    fn add_node(&self, stream: StreamHandle, add: impl FnOnce(&mut Builder) -> i32) -> Option<Result<(), DeviceError>> {
        if self.recorded_stream.load(Ordering::Acquire) != stream.0 {
            return None;
        }
        lock(&self.recording).as_mut().map(|graph| self.call(|_| add(graph)))
    }

    /// Refuses an operation that cannot be part of a graph while this stream records one.
    fn not_recorded(&self, stream: StreamHandle) -> Result<(), DeviceError> {
        match self.recorded_stream.load(Ordering::Acquire) == stream.0 {
            true => Err(DeviceError::new(ErrorClass::Recoverable, NOT_PERMITTED, "this work cannot be recorded")),
            false => Ok(()),
        }
    }

    /// Gives something back: here, or in the thread where the driver may not be called.
    fn give_back(&self, garbage: Garbage) {
        if fork::in_child() {
            return;
        }
        if IN_HOST_FUNCTION.get() {
            return self.completion.discard(garbage);
        }
        let thread = Thread { api: self.api, context: self.context };
        // It fails on a lost device alone, whose memory is gone.
        let _ = self.with(|_| thread.release(garbage));
    }

    fn record_of(&self, event: EventHandle) -> Option<(StreamHandle, u64)> {
        lock(&self.records).get(&event).copied()
    }

    /// Records an event and waits for it, so that its time is known.
    fn new_base(&self, patience: Duration) -> Result<Base, DeviceError> {
        let event = self.new_event(true)?;
        self.record(self.base_stream, event, 0)?;
        if !self.host_wait(event, patience)? {
            // The record is still to come, so the event is not given back.
            return Err(DeviceError::new(ErrorClass::Recoverable, NOT_READY, "the GPU is too busy for a time"));
        }
        Ok(Base { event, at: self.began.elapsed() })
    }

    /// A base that is not too old, if one can be had. Its event is given back when a thread
    /// replaces it, so it is used under this lock.
    fn present_base(&self) -> MutexGuard<'_, Base> {
        let mut base = lock(&self.base);
        if self.began.elapsed() - base.at > BASE_AGE
            && !IN_HOST_FUNCTION.get()
            && let Ok(new) = self.new_base(BASE_PATIENCE)
        {
            self.free_event(base.event);
            *base = new;
        }
        base
    }
}

impl Drop for CudaDevice {
    /// Gives back what a device has that could not be opened to the end: one that is in use lives
    /// as long as the process.
    fn drop(&mut self) {
        if fork::in_child() {
            return;
        }
        let base = lock(&self.base).event;
        if base != EventHandle(0) {
            self.give_back(Garbage::Event(base));
        }
        for stream in std::mem::take(&mut *lock(&self.streams)) {
            // SAFETY: a stream of this device, which nothing was submitted to but the record of the
            // base.
            let _ = self.call(|api| unsafe { (api.cuStreamDestroy_v2)(raw_stream(stream)) });
        }
        self.completion.end();
    }
}

/// The function that the driver calls in a stream's turn.
unsafe extern "C" fn run_kernel(data: *mut c_void) {
    IN_HOST_FUNCTION.set(true);
    // What a user's value does when it is dropped must not unwind into the driver.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: made by `launch`, and called once.
        unsafe { Box::from_raw(data.cast::<Kernel>()) }.run();
    }));
    IN_HOST_FUNCTION.set(false);
}

impl Device for CudaDevice {
    fn total_memory(&self) -> usize {
        self.total
    }

    fn free_memory(&self) -> Option<usize> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: two numbers are written.
        self.call(|api| unsafe { (api.cuMemGetInfo_v2)(&mut free, &mut total) }).ok()?;
        Some(free)
    }

    fn new_stream(&self, kind: StreamKind) -> Result<StreamHandle, DeviceError> {
        let priority = if kind == StreamKind::Priority { self.greatest } else { 0 };
        let mut stream = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        self.call(|api| unsafe { (api.cuStreamCreateWithPriority)(&mut stream, NON_BLOCKING, priority) })?;
        let stream = StreamHandle(stream.expose_provenance() as u64);
        lock(&self.streams).push(stream);
        Ok(stream)
    }

    fn new_event(&self, timing: bool) -> Result<EventHandle, DeviceError> {
        let flags = if timing { 0 } else { DISABLE_TIMING };
        let mut event = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        self.call(|api| unsafe { (api.cuEventCreate)(&mut event, flags) })?;
        Ok(EventHandle(event.expose_provenance() as u64))
    }

    fn free_event(&self, event: EventHandle) {
        lock(&self.records).remove(&event);
        self.give_back(Garbage::Event(event));
    }

    fn record(&self, stream: StreamHandle, event: EventHandle, _op: u64) -> Result<(), DeviceError> {
        self.not_recorded(stream)?;
        // SAFETY: handles of this device.
        self.call(|api| unsafe { (api.cuEventRecord)(raw_event(event), raw_stream(stream)) })?;
        // The caller holds the stream's lock, so numbers are in the order of the stream.
        let number = self.next_record.fetch_add(1, Ordering::Relaxed);
        lock(&self.records).insert(event, (stream, number));
        Ok(())
    }

    fn stream_wait(&self, stream: StreamHandle, event: EventHandle, _op: u64) -> Result<(), DeviceError> {
        self.not_recorded(stream)?;
        // SAFETY: a stream of this device, an event of one of its driver.
        self.call(|api| unsafe { (api.cuStreamWaitEvent)(raw_stream(stream), raw_event(event), 0) })
    }

    fn query(&self, event: EventHandle) -> Result<bool, DeviceError> {
        // SAFETY: an event of this device that the caller keeps.
        match self.with(|api| unsafe { (api.cuEventQuery)(raw_event(event)) })? {
            NOT_READY => Ok(false),
            code => check(code).map(|()| true),
        }
    }

    fn host_wait(&self, event: EventHandle, patience: Duration) -> Result<bool, DeviceError> {
        let begin = Instant::now();
        let mut alone = None;
        loop {
            if self.query(event)? {
                return Ok(true);
            }
            match begin.elapsed() {
                gone if gone >= patience => return Ok(false),
                gone if gone >= LONG_SPIN => break,
                gone if gone >= SPIN && alone.is_none() => match Alone::enter(&self.asking) {
                    Some(entered) => alone = Some(entered),
                    None => break,
                },
                _ => std::hint::spin_loop(),
            }
        }
        drop(alone);
        // One that was never recorded is complete, and was found to be so.
        let Some((stream, number)) = self.record_of(event) else { return self.query(event) };
        self.completion.wait(stream, number, event, patience.saturating_sub(begin.elapsed()))
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: no arguments.
        self.call(|api| unsafe { (api.cuCtxSynchronize)() })
    }

    fn when_complete(&self, event: EventHandle, callback: Callback) {
        if fork::in_child() {
            // There is no thread that could call back later.
            return callback(Err(in_child()));
        }
        let (stream, number) = self.record_of(event).unwrap_or((StreamHandle(0), 0));
        self.completion.add(stream, number, event, callback);
    }

    fn alloc(&self, bytes: usize) -> Result<DevicePtr, DeviceError> {
        let mut at = 0;
        // SAFETY: a variable for the result.
        self.call(|api| unsafe { (api.cuMemAlloc_v2)(&mut at, bytes) })?;
        Ok(DevicePtr(at))
    }

    fn free(&self, ptr: DevicePtr) {
        self.give_back(Garbage::Memory(ptr.0));
    }

    fn alloc_pinned(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        let mut at = std::ptr::null_mut();
        // SAFETY: a variable for the result.
        self.call(|api| unsafe { (api.cuMemHostAlloc)(&mut at, bytes, PORTABLE) })?;
        Ok(at.cast())
    }

    fn free_pinned(&self, ptr: *mut u8) {
        self.give_back(Garbage::Pinned(ptr.expose_provenance()));
    }

    unsafe fn copy(&self, stream: StreamHandle, job: CopyJob) -> Result<(), DeviceError> {
        let (to, from) = (address(job.to), address(job.from));
        // SAFETY: contract of `Device::copy`.
        let node = |graph: &mut Builder| unsafe { graph.copy(self.api, self.context, to, from, job.bytes) };
        if let Some(added) = self.add_node(stream, node) {
            return added;
        }
        // SAFETY: contract of `Device::copy`; unified addresses say which memories these are.
        self.call(|api| unsafe { (api.cuMemcpyAsync)(to, from, job.bytes, raw_stream(stream)) })
    }

    unsafe fn clear(&self, stream: StreamHandle, job: ClearJob) -> Result<(), DeviceError> {
        // SAFETY: contract of `Device::clear`.
        let node = |graph: &mut Builder| unsafe { graph.clear(self.api, self.context, job.at.0, job.bytes) };
        if let Some(added) = self.add_node(stream, node) {
            return added;
        }
        // SAFETY: contract of `Device::clear`.
        self.call(|api| unsafe { (api.cuMemsetD8Async)(job.at.0, 0, job.bytes, raw_stream(stream)) })
    }

    fn launch(&self, stream: StreamHandle, kernel: Kernel) -> Result<(), DeviceError> {
        self.not_recorded(stream)?;
        let data = Box::into_raw(Box::new(kernel));
        // SAFETY: the function takes what `data` owns. Behind a lost device it never runs, and what
        // was in flight is leaked.
        let launched = self
            .call(|api| unsafe { (api.cuLaunchHostFunc)(raw_stream(stream), Some(run_kernel), data.cast::<c_void>()) });
        if launched.is_err() {
            // SAFETY: the driver did not take it.
            drop(unsafe { Box::from_raw(data) });
        }
        launched
    }

    fn begin_recording(&self, stream: StreamHandle) -> Result<bool, DeviceError> {
        if self.api.host_memory {
            // Operators are functions of the host there.
            return Ok(false);
        }
        *lock(&self.recording) = Some(self.with(Builder::new)??);
        self.recorded_stream.store(stream.0, Ordering::Release);
        Ok(true)
    }

    fn end_recording(&self, _stream: StreamHandle) -> Result<RecordingHandle, DeviceError> {
        self.recorded_stream.store(NO_STREAM, Ordering::Release);
        let none = || DeviceError::new(ErrorClass::Recoverable, NOT_PERMITTED, "nothing is being recorded");
        let graph = lock(&self.recording).take().ok_or_else(none)?;
        let instance = self.with(|api| graph.finish(api))??;
        Ok(RecordingHandle(instance.expose_provenance() as u64))
    }

    fn launch_recording(&self, stream: StreamHandle, recording: RecordingHandle) -> Result<(), DeviceError> {
        // SAFETY: handles of this device; the caller keeps the recording until its event.
        self.call(|api| unsafe { (api.cuGraphLaunch)(raw_graph(recording), raw_stream(stream)) })
    }

    fn free_recording(&self, recording: RecordingHandle) {
        self.give_back(Garbage::Recording(recording));
    }

    fn host_pointer(&self, ptr: DevicePtr) -> Option<*mut u8> {
        self.api.host_memory.then(|| std::ptr::with_exposed_provenance_mut(ptr.0 as usize))
    }

    fn host_addressable(&self) -> bool {
        self.api.host_memory
    }

    fn foreign_stream(&self, number: u64) -> Result<StreamHandle, DeviceError> {
        // 1 and 2 are the driver's own numbers of its default streams.
        Ok(StreamHandle(number))
    }

    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DeviceError> {
        let mut status = 0;
        // SAFETY: a stream of this context, and a variable for the result.
        match self.with(|api| unsafe { (api.cuStreamIsCapturing)(raw_stream(stream), &mut status) })? {
            // The default stream may not be used as long as a stream that it waits for is captured.
            CAPTURE_IMPLICIT => Ok(true),
            // A capture that has failed is one until its library ends it.
            code => check(code).map(|()| status != 0),
        }
    }

    fn stream_number(&self, stream: StreamHandle) -> u64 {
        stream.0
    }

    fn time_of(&self, event: EventHandle) -> Option<u64> {
        let base = self.present_base();
        let mut ms = 0.0f32;
        // SAFETY: two timing events of this device.
        self.call(|api| unsafe { (api.cuEventElapsedTime)(&mut ms, raw_event(base.event), raw_event(event)) }).ok()?;
        let nanos = base.at.as_nanos() as f64 + f64::from(ms) * 1e6;
        Some(nanos.max(0.0) as u64)
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
