//! The state of the driver: its devices, events, page-locked memory, and the device that each
//! thread uses.

use crate::{CALLS, kernels};
use mxrt_engine::device::{CopyJob, Device, Driver, MemoryPlace, StreamHandle, StreamKind, Tag};
use mxrt_engine::{DeviceId, DeviceKind};
use mxrt_sim::{Call, Fault, Mode, SimConfig, SimDevice, SimDriver, World};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A result of the driver.
pub(crate) type Code = i32;

pub(crate) const INVALID_VALUE: Code = 1;
const NOT_INITIALIZED: Code = 3;
const DEINITIALIZED: Code = 4;
const NO_DEVICE: Code = 100;
const INVALID_DEVICE: Code = 101;
pub(crate) const INVALID_CONTEXT: Code = 201;
pub(crate) const INVALID_HANDLE: Code = 400;
pub(crate) const NOT_READY: Code = 600;
const PEER_ALREADY: Code = 704;
const NOT_PERMITTED: Code = 800;
pub(crate) const NOT_SUPPORTED: Code = 801;

pub(crate) struct CudaState {
    pub world: World,
    pub devices: Vec<Arc<dyn Device>>,
    /// The stream that the numbers 0 to 2 mean, for each device.
    defaults: Vec<StreamHandle>,
    events: Mutex<HashMap<u64, Event>>,
    /// Pairs of devices of which the first may access the memory of the second.
    peers: Mutex<HashSet<(usize, usize)>>,
    /// Page-locked memory, and the device that it was asked of.
    pinned: Mutex<HashMap<usize, usize>>,
    ops: AtomicU64,
    host_memory: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub device: usize,
    pub timing: bool,
    pub recorded: bool,
}

static DRIVER: OnceLock<CudaState> = OnceLock::new();
static ENDED: AtomicBool = AtomicBool::new(false);
/// Whether this process is a child of the one that started the driver, and has none of its threads.
static FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The current context: the number of the device, plus one.
    pub(crate) static CURRENT: Cell<usize> = const { Cell::new(0) };
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Writes a result where the caller asked for it.
pub(crate) fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's variable, by the contract of every function of the driver.
    unsafe { to.write(value) };
    Ok(())
}

pub(crate) fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(usual)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees to it that the streams stop when the process begins to end: before it takes down what was
/// loaded before this call.
pub(crate) fn stop_at_exit() {
    // SAFETY: the function may be called while the process ends.
    unsafe { libc::atexit(stop) };
}

/// No call is made any more, streams take no more work, and no kernel runs. Functions of the host
/// are not waited for, as they may wait for the thread that ends the process.
extern "C" fn stop() {
    ENDED.store(true, Ordering::SeqCst);
    // A forked child has none of the threads that may hold locks.
    if let Some(driver) = DRIVER.get().filter(|_| !FORKED.load(Ordering::SeqCst)) {
        driver.world.end();
        kernels::stop();
    }
}

extern "C" fn forked() {
    FORKED.store(true, Ordering::SeqCst);
}

/// `cuInit`.
pub(crate) fn start() -> Result<(), Code> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES");
    if visible.is_ok_and(|list| list.trim().is_empty() || list.starts_with('-')) {
        return Err(NO_DEVICE);
    }
    match number("STANDIN_INIT", 0) {
        0 => {}
        code => return Err(code as Code),
    }
    DRIVER.get_or_init(|| {
        stop_at_exit();
        // SAFETY: the function stores a flag.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        CudaState::new()
    });
    Ok(())
}

/// The driver for a call that may be made.
pub(crate) fn driver() -> Result<&'static CudaState, Code> {
    let driver = DRIVER.get().ok_or(NOT_INITIALIZED)?;
    if ENDED.load(Ordering::SeqCst) {
        return Err(DEINITIALIZED);
    }
    if FORKED.load(Ordering::SeqCst) {
        return Err(NOT_INITIALIZED);
    }
    if IN_HOST_FUNCTION.get() && !driver.host_memory {
        return Err(NOT_PERMITTED);
    }
    Ok(driver)
}

/// The calling thread's device.
pub(crate) struct Here {
    pub driver: &'static CudaState,
    pub index: usize,
    pub device: &'static Arc<dyn Device>,
}

/// The device of a call that needs a context.
pub(crate) fn here() -> Result<Here, Code> {
    let driver = driver()?;
    let index = CURRENT.get().checked_sub(1).ok_or(INVALID_CONTEXT)?;
    Ok(Here { driver, index, device: driver.devices.get(index).ok_or(INVALID_CONTEXT)? })
}

/// Runs a function of the host in a stream's turn.
pub(crate) fn in_host_function(function: impl FnOnce()) {
    // The thread has no context there.
    CURRENT.set(0);
    IN_HOST_FUNCTION.set(true);
    function();
    IN_HOST_FUNCTION.set(false);
}

impl CudaState {
    fn new() -> CudaState {
        let seed = number("STANDIN_SEED", 0);
        let mode = match std::env::var("STANDIN_MODE").as_deref() {
            Ok("scheduled") => Mode::Scheduled { seed },
            Ok("threaded") | Err(_) => Mode::Threaded { seed, max_delay_us: number("STANDIN_DELAY_US", 100) },
            Ok(other) => panic!("STANDIN_MODE is {other}, not threaded or scheduled"),
        };
        let (devices, memory) =
            (number("STANDIN_DEVICES", 1) as usize, (number("STANDIN_MEMORY_MB", 4096) as usize) << 20);
        let driver = SimDriver::new(SimConfig { kind: DeviceKind::GPU, devices, mode, memory, ..SimConfig::default() });
        let made = (0..devices).map(|i| driver.open(i as u16).unwrap_or_else(|e| panic!("device {i}: {e}")));
        let devices: Vec<_> = made.collect();
        let stream =
            |d: &Arc<dyn Device>| d.new_stream(StreamKind::Compute).unwrap_or_else(|e| panic!("a stream: {e}"));
        let state = CudaState {
            world: driver.world(),
            defaults: devices.iter().map(stream).collect(),
            devices,
            events: Mutex::default(),
            peers: Mutex::default(),
            pinned: Mutex::default(),
            ops: AtomicU64::new(1),
            host_memory: number("STANDIN_HOST_MEMORY", 0) != 0,
        };
        state.plan_faults(&std::env::var("STANDIN_FAULTS").unwrap_or_default());
        state
    }

    /// # Panics
    /// If a fault is not of the form that the crate's documentation shows.
    fn plan_faults(&self, text: &str) {
        for fault in text.split(',').filter(|f| !f.is_empty()) {
            let (device, rest) = fault.split_once('/').unwrap_or(("0", fault));
            let parts: Vec<&str> = rest.split(':').collect();
            let planned = match parts[..] {
                [call, after, code] => (|| {
                    let (_, call) = CALLS.iter().find(|(name, _)| *name == call)?;
                    Some((device.parse().ok()?, *call, after.parse().ok()?, code.parse().ok()?))
                })(),
                _ => None,
            };
            let Some((device, call, after, code)) = planned else {
                panic!("STANDIN_FAULTS: {fault} is not device/call:after:code");
            };
            self.fail(device, call, after, code);
        }
    }

    pub fn fail(&self, device: usize, call: Call, after: u64, code: Code) {
        self.world.inject(Fault { device, call, after, code });
    }

    pub fn device(&self, ordinal: c_int) -> Result<&Arc<dyn Device>, Code> {
        usize::try_from(ordinal).ok().and_then(|i| self.devices.get(i)).ok_or(INVALID_DEVICE)
    }

    /// After an error that loses the context all calls return it, also about what was complete before.
    pub fn usable(&self, device: usize) -> Result<(), Code> {
        let device = self.devices.get(device).ok_or(INVALID_DEVICE)?;
        device.as_any().downcast_ref::<SimDevice>().map_or(Ok(()), |d| d.usable().map_err(|e| e.code))
    }

    pub fn event(&self, event: u64) -> Result<Event, Code> {
        lock(&self.events).get(&event).copied().ok_or(INVALID_HANDLE)
    }

    pub fn set_event(&self, event: u64, known: Event) {
        lock(&self.events).insert(event, known);
    }

    pub fn forget_event(&self, event: u64) -> Result<Event, Code> {
        let known = lock(&self.events).remove(&event).ok_or(INVALID_HANDLE)?;
        self.usable(known.device).map(|()| known)
    }

    pub fn add_peer(&self, device: usize, peer: usize) -> Result<(), Code> {
        if lock(&self.peers).insert((device, peer)) { Ok(()) } else { Err(PEER_ALREADY) }
    }

    pub fn peers(&self) -> usize {
        lock(&self.peers).len()
    }

    pub fn set_pinned(&self, at: usize, device: usize) {
        lock(&self.pinned).insert(at, device);
    }

    pub fn forget_pinned(&self, at: usize) -> Result<usize, Code> {
        let owner = lock(&self.pinned).remove(&at).ok_or(INVALID_VALUE)?;
        self.usable(owner).map(|()| owner)
    }
}

impl Here {
    /// The stream of a number, or the default one.
    pub fn stream(&self, handle: usize) -> StreamHandle {
        if handle <= 2 { self.driver.defaults[self.index] } else { StreamHandle(handle as u64) }
    }

    pub fn tag(&self, name: &'static str) -> Arc<Tag> {
        let op = self.driver.ops.fetch_add(1, Ordering::Relaxed);
        let device = DeviceId::new(DeviceKind::GPU, self.index as u16);
        Arc::new(Tag { op, name: name.into(), device, accesses: Vec::new(), behind_all: false })
    }

    /// Submits a function that runs in its turn.
    pub fn launch(&self, at: usize, name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<(), Code> {
        let device: &SimDevice = self.device.as_any().downcast_ref().ok_or(INVALID_VALUE)?;
        device.launch_own(self.stream(at), self.tag(name), work).map_err(|e| e.code)
    }

    pub fn copy(&self, at: usize, to: MemoryPlace, from: MemoryPlace, bytes: usize) -> Result<(), Code> {
        let job = CopyJob { to, from, bytes, tag: self.tag("copy") };
        // SAFETY: the caller's promise to the driver.
        unsafe { self.device.copy(self.stream(at), job) }.map_err(|e| e.code)
    }
}
