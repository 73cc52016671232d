//! The devices of an engine: opened at first use, with their streams, events and memory.

use super::api::{Device, DeviceError, Driver, ErrorClass, StreamHandle, StreamKind};
use super::captured::CapturedUses;
use super::event::{EventPool, EventRef};
use super::memory::{DevicePool, DeviceStats, MemoryOrigin};
use super::park::AfterDevices;
use super::recording::RecorderStream;
use super::spare::Spares;
use super::staging::{Direction, PinnedRing};
use super::status::StatusPool;
use super::stream::{LEGACY_STREAM, Stream};
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, OpError};
use crate::op::spec::{DeviceId, DeviceKind, Lane};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Compute streams of a device, unless the configuration says otherwise.
pub(crate) const COMPUTE_STREAMS: usize = 4;

/// A device that is in use.
pub struct OpenDevice {
    pub(crate) id: DeviceId,
    pub(crate) engine: &'static Engine,
    pub(crate) backend: Arc<dyn Device>,
    pub(crate) events: EventPool,
    pub(crate) timing_events: EventPool,
    streams: OnceLock<Vec<&'static Stream>>,
    /// Streams of other libraries, made when they are first named.
    foreign: Mutex<Vec<(u64, &'static Stream)>>,
    /// Streams that other libraries make their arrays ready on.
    imports: Mutex<Vec<&'static Stream>>,
    pub(super) captured: CapturedUses,
    turn: AtomicUsize,
    lost: OnceLock<Failure>,
    pool: DevicePool,
    pinned: DevicePool,
    staging: [PinnedRing; 2],
    pub(super) status: StatusPool,
    pub(super) spares: Spares,
    pub(super) recorder: RecorderStream,
}

/// The devices of an engine.
pub(crate) struct Devices {
    drivers: Vec<Arc<dyn Driver>>,
    compute_streams: usize,
    reserve: DeviceReserve,
    /// Held while one is opened.
    opening: Mutex<()>,
    /// The open ones: a list that is never freed, replaced when one is added. Looked at without a
    /// lock, so that a forked child can.
    open: AtomicPtr<Vec<&'static OpenDevice>>,
    /// A device is open: only then variables are looked at for its work.
    in_use: AtomicBool,
    /// One of them does its work in waiting threads only.
    stepped: AtomicBool,
    /// Whether the devices are of several drivers, which know nothing of each other.
    mixed: AtomicBool,
    next_stream: AtomicU32,
    /// Ops of the host that wait for a device.
    pub(super) parked: Mutex<Vec<Weak<dyn AfterDevices>>>,
}

/// The number of the default stream of the calling thread.
const THREAD_STREAM: u64 = 2;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events, and page-locked memory for copies, that each device keeps for later ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceReserve {
    /// Free events; what is given back beyond that is destroyed.
    pub events: usize,
    /// Pieces of page-locked memory for each direction of copies, at least one.
    pub staging_chunks: usize,
    /// Bytes of a piece; longer copies are cut.
    pub staging_bytes: usize,
}

impl Default for DeviceReserve {
    fn default() -> Self {
        DeviceReserve { events: 1024, staging_chunks: 4, staging_bytes: 8 << 20 }
    }
}

impl Devices {
    pub fn new(drivers: Vec<Arc<dyn Driver>>, compute_streams: usize, reserve: DeviceReserve) -> Self {
        Devices {
            drivers,
            compute_streams: compute_streams.max(1),
            reserve,
            opening: Mutex::default(),
            open: AtomicPtr::new(Box::leak(Box::default())),
            in_use: AtomicBool::new(false),
            stepped: AtomicBool::new(false),
            mixed: AtomicBool::new(false),
            next_stream: AtomicU32::new(0),
            parked: Mutex::default(),
        }
    }

    #[inline(always)]
    pub fn in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    pub fn all(&self) -> &'static [&'static OpenDevice] {
        // SAFETY: lists are never freed.
        unsafe { &*self.open.load(Ordering::Acquire) }
    }

    fn add(&self, device: &'static OpenDevice) {
        let longer: Vec<_> = self.all().iter().copied().chain([device]).collect();
        if longer.iter().any(|other| other.id.kind() != device.id.kind()) {
            self.mixed.store(true, Ordering::SeqCst);
        }
        self.open.store(Box::leak(Box::new(longer)), Ordering::Release);
        if device.backend.is_stepped() {
            self.stepped.store(true, Ordering::SeqCst);
        }
        self.in_use.store(true, Ordering::SeqCst);
    }

    /// Every stream of every device that is not lost.
    pub fn streams(&self) -> Vec<&'static Stream> {
        self.all().iter().filter(|d| !d.is_lost()).flat_map(|d| d.every_stream()).collect()
    }

    /// The last record of every stream, if it is not known to be complete.
    pub fn last_events(&self) -> Vec<EventRef> {
        self.streams().into_iter().filter_map(Stream::last).collect()
    }

    /// Does a step of the devices that need it; false: there is nothing to do.
    pub fn step(&self) -> bool {
        self.stepped.load(Ordering::Relaxed) && self.all().iter().any(|d| d.backend.step())
    }

    /// Whether waiting threads have to call [`step`](Self::step).
    pub fn need_steps(&self) -> bool {
        self.stepped.load(Ordering::Relaxed)
    }

    /// Whether devices of several drivers are open.
    pub fn are_mixed(&self) -> bool {
        self.mixed.load(Ordering::Relaxed)
    }

    fn driver(&self, kind: DeviceKind) -> Option<&Arc<dyn Driver>> {
        self.drivers.iter().find(|d| d.kind() == kind)
    }

    /// Forgets the devices in a forked child, where none works: streams and memory belong to the
    /// parent.
    pub fn forget(&self) {
        self.stepped.store(false, Ordering::SeqCst);
        for device in self.all() {
            let message = format!(
                "{} cannot be used in a forked process; use the CPU there, or start the process by \
                 spawning",
                device.id
            );
            let _ = device.lost.set(device.failure(FailureKind::Device, message));
        }
    }
}

impl Engine {
    /// How many devices of a kind there are; 0 for kinds that no driver provides.
    pub fn device_count(&self, kind: DeviceKind) -> usize {
        self.devices.driver(kind).map_or(0, |d| d.count())
    }

    /// The device, opened if it is not yet. An error says why it cannot be used.
    pub fn device(&'static self, id: DeviceId) -> Result<&'static OpenDevice, OpError> {
        let opened = || self.devices.all().iter().copied().find(|d| d.id == id);
        if let Some(device) = opened() {
            return Ok(device);
        }
        let error = |message: String| OpError::new(FailureKind::Device, message).device(id.to_string());
        let Some(driver) = self.devices.driver(id.kind()) else {
            let message = format!("{id}: this engine has no devices of kind {}; use cpu()", id.kind());
            return Err(error(message));
        };
        let count = driver.count();
        if usize::from(id.index()) >= count {
            let message = match count {
                0 => {
                    let why = driver.absence().map_or(String::new(), |why| format!(": {why}"));
                    format!("{id}: there is no device of kind {}{why}; use cpu()", id.kind())
                }
                1 => format!("{id}: invalid number, the only device of kind {} has number 0", id.kind()),
                n => format!("{id}: invalid number, devices of kind {} have numbers below {n}", id.kind()),
            };
            return Err(error(message));
        }
        let _opening = lock(&self.devices.opening);
        if let Some(device) = opened() {
            return Ok(device);
        }
        let backend = driver.open(id.index()).map_err(|e| error(format!("opening {id}: {e}")))?;
        let device = OpenDevice::new(self, id, backend).map_err(|e| error(format!("opening {id}: {e}")))?;
        self.devices.add(device);
        Ok(device)
    }

    /// Counters of a device's memory.
    pub fn device_stats(&'static self, id: DeviceId) -> Result<DeviceStats, OpError> {
        let device = self.device(id)?;
        device.end_captured_uses();
        let (live_events, free_events) = device.events.counts();
        let stats = device.pool.stats();
        // The driver takes for used what the pool has for the next arrays.
        let unknown = || stats.total.saturating_sub(stats.in_use + stats.cached);
        let free = device.backend.free_memory().unwrap_or_else(unknown).saturating_add(stats.cached);
        let allowed = stats.limit.unwrap_or(stats.total).min(stats.total).saturating_sub(stats.in_use);
        Ok(DeviceStats { free: free.min(allowed), live_events, free_events, ..stats })
    }

    /// Sets the upper bound of a device's memory; what is in use already stays.
    pub fn set_device_limit(&'static self, id: DeviceId, limit: Option<usize>) -> Result<(), OpError> {
        self.device(id)?.pool.set_limit(limit);
        Ok(())
    }

    /// Gives memory that no thread uses back to the device: what is cached, and what can be made
    /// again.
    pub fn trim_device(&'static self, id: DeviceId) -> Result<(), OpError> {
        let device = self.device(id)?;
        if device.is_lost() {
            return Ok(());
        }
        device.give_up_spares();
        device.pool.trim(device);
        device.staging.iter().for_each(PinnedRing::trim);
        device.pinned.trim(device);
        Ok(())
    }
}

impl OpenDevice {
    fn new(
        engine: &'static Engine,
        id: DeviceId,
        backend: Arc<dyn Device>,
    ) -> Result<&'static OpenDevice, DeviceError> {
        let total = backend.total_memory();
        let DeviceReserve { events, staging_chunks, staging_bytes } = engine.devices.reserve;
        let compute = std::iter::repeat_n(StreamKind::Compute, engine.devices.compute_streams);
        let copies = [StreamKind::CopyIn, StreamKind::StageIn, StreamKind::CopyOut, StreamKind::StageOut];
        let kinds = compute.chain([StreamKind::Priority]).chain(copies);
        // While a failure still gives the device back: the next call opens it again.
        let handles =
            kinds.map(|kind| Ok((kind, backend.new_stream(kind)?))).collect::<Result<Vec<_>, DeviceError>>()?;
        let device: &'static OpenDevice = Box::leak(Box::new(OpenDevice {
            id,
            engine,
            backend,
            events: EventPool::new(false, events),
            timing_events: EventPool::new(true, events),
            streams: OnceLock::new(),
            foreign: Mutex::default(),
            imports: Mutex::default(),
            captured: CapturedUses::default(),
            turn: AtomicUsize::new(0),
            lost: OnceLock::new(),
            pool: DevicePool::new(MemoryOrigin::Device, total),
            pinned: DevicePool::new(MemoryOrigin::Pinned, 0),
            staging: std::array::from_fn(|_| PinnedRing::new(staging_chunks, staging_bytes)),
            status: StatusPool::default(),
            spares: Spares::default(),
            recorder: RecorderStream::default(),
        }));
        let streams = handles.into_iter().map(|(kind, handle)| device.own_stream(kind, handle)).collect();
        let _ = device.streams.set(streams);
        Ok(device)
    }

    fn own_stream(&'static self, kind: StreamKind, handle: StreamHandle) -> &'static Stream {
        let number = self.engine.devices.next_stream.fetch_add(1, Ordering::Relaxed);
        Box::leak(Box::new(Stream::new(self, number, handle, kind)))
    }

    /// The name of the device.
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// The backend, for a crate that brings kernels of its own.
    pub fn backend(&self) -> &Arc<dyn Device> {
        &self.backend
    }

    pub(super) fn staging(&self, direction: Direction) -> &PinnedRing {
        &self.staging[direction as usize]
    }

    pub(crate) fn pool(&self, origin: MemoryOrigin) -> &DevicePool {
        match origin {
            MemoryOrigin::Device => &self.pool,
            MemoryOrigin::Pinned => &self.pinned,
        }
    }

    fn own_streams(&self) -> &[&'static Stream] {
        self.streams.get().map_or(&[], Vec::as_slice)
    }

    fn every_stream(&self) -> Vec<&'static Stream> {
        let foreign: Vec<&'static Stream> = lock(&self.foreign).iter().map(|(_, stream)| *stream).collect();
        let imports = lock(&self.imports).clone();
        self.own_streams().iter().copied().chain(foreign).chain(imports).collect()
    }

    /// The stream for an op: copies and urgent ones have their own, the others take turns unless
    /// one is asked for.
    pub(crate) fn stream_for(&self, lane: Lane, wanted: Option<u16>) -> &'static Stream {
        let kind = match lane {
            Lane::Normal => StreamKind::Compute,
            Lane::Priority => StreamKind::Priority,
            Lane::CopyIn => StreamKind::CopyIn,
            Lane::CopyOut => StreamKind::CopyOut,
        };
        let count = self.own_streams().iter().filter(|s| s.kind == kind).count();
        let number = match wanted {
            Some(number) => usize::from(number),
            None if count > 1 => self.turn.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        self.stream_of(kind, number % count.max(1))
    }

    /// A stream of a kind.
    pub(super) fn stream_of(&self, kind: StreamKind, number: usize) -> &'static Stream {
        let found = self.own_streams().iter().filter(|s| s.kind == kind).nth(number);
        found.copied().unwrap_or_else(|| unreachable!("a device has a stream of every kind from its making on"))
    }

    /// A stream of another library. The one of the thread has a number that means another stream in
    /// each thread; it waits for the legacy default stream, which waits for it, so that one stands
    /// for it.
    pub(crate) fn foreign_stream(&'static self, number: u64) -> Result<&'static Stream, DeviceError> {
        let number = if number == THREAD_STREAM { LEGACY_STREAM } else { number };
        let mut foreign = lock(&self.foreign);
        if let Some((_, stream)) = foreign.iter().find(|(n, _)| *n == number) {
            return Ok(stream);
        }
        let handle = self.backend.foreign_stream(number)?;
        let id = self.engine.devices.next_stream.fetch_add(1, Ordering::Relaxed);
        let mut stream = Stream::new(self, id, handle, StreamKind::Compute);
        stream.foreign = Some(number);
        let stream: &'static Stream = Box::leak(Box::new(stream));
        foreign.push((number, stream));
        Ok(stream)
    }

    /// A stream that another library can make an array ready on. It is no stream of operators: by
    /// waiting for a stream that is captured it becomes a part of the capture, until that ends.
    pub(super) fn import_stream(&'static self) -> Result<&'static Stream, DeviceError> {
        let mut imports = lock(&self.imports);
        for stream in imports.iter() {
            if !stream.is_captured()? {
                return Ok(stream);
            }
        }
        let stream = self.own_stream(StreamKind::Compute, self.backend.new_stream(StreamKind::Compute)?);
        imports.push(stream);
        Ok(stream)
    }

    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    pub(crate) fn lost(&self) -> Option<Failure> {
        self.lost.get().cloned()
    }

    /// Returns an error with the reason if the device cannot be used.
    pub(crate) fn usable(&self) -> Result<(), OpError> {
        self.lost().map_or(Ok(()), |failure| Err(OpError::from(failure)))
    }

    fn failure(&self, kind: FailureKind, message: String) -> Failure {
        let error = OpError::new(kind, message).device(self.id.to_string());
        Failure::new((*error).clone())
    }

    /// Looks whether an error means that the device is lost. True: it is lost now, by this error or
    /// an earlier one.
    pub(crate) fn note_error(&self, error: &DeviceError, doing: &str) -> bool {
        if error.class == ErrorClass::Lost {
            self.lose(error, doing);
        }
        self.is_lost()
    }

    #[cold]
    pub(super) fn lose(&self, error: &DeviceError, doing: &str) {
        let message = format!(
            "{} is lost: {error}, noticed when {doing}; what was not complete has no value, and nothing more runs there: \
             restart the process to use it again",
            self.id
        );
        let failure = self.failure(FailureKind::Device, message);
        if self.lost.set(failure.clone()).is_err() {
            return;
        }
        self.engine.without_fork(|| self.engine.record_failure(&failure));
        self.every_stream().into_iter().for_each(Stream::abandon);
    }

    /// An error of a call on a stream of another library. If the library has destroyed the stream,
    /// the driver may say that the context is gone: that counts if it says so of a stream of ours,
    /// too.
    pub(super) fn foreign_error(&self, error: DeviceError, doing: &str) -> OpError {
        if error.class != ErrorClass::Lost {
            return self.op_error(&error, doing);
        }
        match self.own_streams().first().map(|stream| self.backend.is_capturing(stream.handle)) {
            Some(Err(ours)) if ours.class == ErrorClass::Lost => self.op_error(&ours, doing),
            _ => self.op_error(&DeviceError { class: ErrorClass::Recoverable, ..error }, doing),
        }
    }

    /// An error of a call of the backend, for the op that made it.
    pub fn op_error(&self, error: &DeviceError, doing: &str) -> OpError {
        self.note_error(error, doing);
        if let Some(lost) = self.lost() {
            return OpError::from(lost);
        }
        let mut op_error = OpError::from(error.clone()).device(self.id.to_string());
        op_error.message = format!("{doing} on {}: {error}", self.id);
        op_error
    }
}

impl std::fmt::Debug for OpenDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenDevice").field("id", &self.id).field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}
