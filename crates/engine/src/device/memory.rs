//! Memory of a device. Freed memory keeps the events of its last users and is reused immediately:
//! the device orders the next owner after them, and the host waits for nothing.

use super::api::{DeviceError, DevicePtr, ErrorClass};
use super::event::EventRef;
use super::open::OpenDevice;
use super::park::when_all_complete;
use super::stream::WaitSet;
use crate::failure::{FailureKind, OpError};
use crate::memory::{bytes_of, class_of};
use crate::sync::Mutex;
use std::collections::BTreeMap;

/// Largest request.
const MAX_BYTES: usize = 1 << 47;

/// Counters of a device's memory, in bytes unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Memory of the device.
    pub total: usize,
    /// Memory that arrays can still have: neither other processes nor the limit keep it from them.
    pub free: usize,
    /// Owned by variables.
    pub in_use: usize,
    /// Highest `in_use` so far.
    pub peak: usize,
    /// Freed and kept for the next owner.
    pub cached: usize,
    /// The limit, if one was set.
    pub limit: Option<usize>,
    /// Number of blocks taken from the device so far.
    pub fresh_blocks: usize,
    /// Number of blocks that were used again so far.
    pub recycled_blocks: usize,
    /// Events with references.
    pub live_events: usize,
    /// Events without references.
    pub free_events: usize,
}

/// The origin of memory: the device, or page-locked memory of the host that belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryOrigin {
    Device,
    Pinned,
}

/// The memory of a device, or its page-locked memory.
pub(crate) struct DevicePool {
    origin: MemoryOrigin,
    state: Mutex<DevicePoolState>,
}

#[derive(Default)]
struct DevicePoolState {
    /// Free blocks by size class, oldest first.
    free: BTreeMap<usize, Vec<Free>>,
    stats: DeviceStats,
}

struct Free {
    ptr: DevicePtr,
    /// Events after which the next owner must be ordered.
    events: Vec<EventRef>,
    /// Whether the next owner must come after everything that was submitted, because readers have
    /// left no event.
    behind_all: bool,
}

impl Free {
    /// Known without asking the device.
    fn is_unused(&self) -> bool {
        self.events.iter().all(|e| e.is_settled() || e.seq <= e.stream.completed())
    }
}

/// Memory of one owner. Dropping it gives it back, with the events noted by `use_until`.
pub(crate) struct DeviceBlock {
    pub device: &'static OpenDevice,
    pub ptr: DevicePtr,
    pub bytes: usize,
    origin: MemoryOrigin,
    class: usize,
    events: Vec<EventRef>,
    /// Whether the owner had to wait for every stream.
    pub behind_all: bool,
    /// Whether the next owner has to wait for every stream.
    leaves_all: bool,
    /// Memory of another library: what tells it that it is not used any more.
    foreign: Option<Box<dyn FnOnce() + Send>>,
}

// SAFETY: shared references only read the address, the size and a flag.
unsafe impl Sync for DeviceBlock {}

impl DeviceBlock {
    /// Memory of another library, which is notified when it is not used any more.
    pub fn foreign(device: &'static OpenDevice, ptr: DevicePtr, bytes: usize, done: Box<dyn FnOnce() + Send>) -> Self {
        let mut block = DeviceBlock::new(device, ptr, bytes, MemoryOrigin::Device, 0);
        block.foreign = Some(done);
        block
    }

    fn new(device: &'static OpenDevice, ptr: DevicePtr, bytes: usize, origin: MemoryOrigin, class: usize) -> Self {
        let (events, behind_all, leaves_all, foreign) = (Vec::new(), false, false, None);
        DeviceBlock { device, ptr, bytes, origin, class, events, behind_all, leaves_all, foreign }
    }

    /// Orders the next owner of the memory after these events.
    pub fn use_until(&mut self, events: Vec<EventRef>) {
        self.events.extend(events);
    }

    /// Orders the next owner of the memory after everything that was submitted until now.
    pub fn use_until_all(&mut self) {
        self.events.extend(self.device.engine.devices.last_events());
        self.leaves_all = true;
    }

    fn give_back(device: &'static OpenDevice, origin: MemoryOrigin, class: usize, free: Free) {
        // No thread gets it any more, and in a forked child no thread may touch the pool.
        if !device.is_lost() {
            device.pool(origin).give(class, free);
        }
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        let mut last = WaitSet::default();
        self.events.iter().filter(|e| !e.is_settled()).for_each(|e| last.add(e));
        if let Some(done) = self.foreign.take() {
            return when_all_complete(last.into_events(), done);
        }
        let (device, origin, class) = (self.device, self.origin, self.class);
        let is_stranger = |e: &EventRef| e.stream.device.id.kind() != device.id.kind();
        let (strangers, events): (Vec<_>, Vec<_>) = last.into_events().into_iter().partition(is_stranger);
        let free = Free { ptr: self.ptr, events, behind_all: self.leaves_all };
        if strangers.is_empty() {
            DeviceBlock::give_back(device, origin, class, free);
        } else {
            // The next owner's stream could not wait for devices of other drivers.
            when_all_complete(strangers, move || DeviceBlock::give_back(device, origin, class, free));
        }
    }
}

impl DevicePool {
    pub fn new(origin: MemoryOrigin, total: usize) -> Self {
        let stats = DeviceStats { total, ..DeviceStats::default() };
        DevicePool { origin, state: Mutex::new(DevicePoolState { free: BTreeMap::new(), stats }) }
    }

    /// Allocates memory, and returns the events after which its first use, on `stream`, must be
    /// ordered. The order of preference is: memory that no thread uses any more, memory that only
    /// this stream uses, new memory, memory still in use. When the device has no more, recomputable
    /// memory is released, outstanding uses are waited for, and everything cached is released
    /// before the last try.
    pub fn alloc(
        &self,
        device: &'static OpenDevice,
        bytes: usize,
        stream: Option<u32>,
    ) -> Result<(DeviceBlock, Vec<EventRef>), OpError> {
        if bytes > MAX_BYTES {
            return Err(self.refused(device, bytes, false));
        }
        let class = class_of(bytes.max(1));
        let block = |ptr| DeviceBlock::new(device, ptr, bytes, self.origin, class);
        let again = |free: Free| {
            let mut block = block(free.ptr);
            block.behind_all = free.behind_all;
            (block, free.events)
        };
        if let Some(free) = self.take(class, stream, false) {
            return Ok(again(free));
        }
        if self.reserve(class)
            && let Some(ptr) = self.fresh(device, class)?
        {
            return Ok((block(ptr), Vec::new()));
        }
        if let Some(free) = self.take(class, stream, true) {
            return Ok(again(free));
        }
        if matches!(self.origin, MemoryOrigin::Device) {
            device.give_up_spares();
        }
        self.wait_for_users(device);
        self.trim(device);
        if self.reserve(class)
            && let Some(ptr) = self.fresh(device, class)?
        {
            return Ok((block(ptr), Vec::new()));
        }
        Err(self.refused(device, bytes, true))
    }

    /// Cached memory, counted; `in_use`: also what another stream still uses.
    fn take(&self, class: usize, stream: Option<u32>, in_use: bool) -> Option<Free> {
        let mut state = self.state.lock();
        let size = bytes_of(class);
        if state.stats.in_use + size > state.stats.limit.unwrap_or(usize::MAX) {
            return None;
        }
        let list = state.free.get_mut(&class)?;
        let ordered = |f: &Free| stream.is_some_and(|s| f.events.iter().all(|e| e.stream.number == s));
        let place = list.iter().position(Free::is_unused).or_else(|| list.iter().position(ordered));
        let free = list.remove(place.or_else(|| (in_use && !list.is_empty()).then_some(0))?);
        state.stats.cached -= size;
        state.stats.recycled_blocks += 1;
        state.count(size);
        Some(free)
    }

    /// Counts new memory if there is room for it.
    fn reserve(&self, class: usize) -> bool {
        let mut state = self.state.lock();
        let size = bytes_of(class);
        let fits = state.stats.in_use + state.stats.cached + size <= state.stats.limit.unwrap_or(usize::MAX);
        if fits {
            state.count(size);
        }
        fits
    }

    /// New memory for a request that was counted; `None`: the device has no more.
    fn fresh(&self, device: &'static OpenDevice, class: usize) -> Result<Option<DevicePtr>, OpError> {
        let size = bytes_of(class);
        let result = match self.origin {
            MemoryOrigin::Device => device.backend.alloc(size),
            MemoryOrigin::Pinned => device.backend.alloc_pinned(size).map(|p| DevicePtr(p.expose_provenance() as u64)),
        };
        let mut state = self.state.lock();
        match result {
            Ok(ptr) => {
                state.stats.fresh_blocks += 1;
                Ok(Some(ptr))
            }
            Err(error) => {
                state.stats.in_use -= size;
                drop(state);
                if error.class == ErrorClass::OutOfMemory {
                    return Ok(None);
                }
                Err(device.op_error(&error, "allocating memory"))
            }
        }
    }

    fn give(&self, class: usize, free: Free) {
        let mut state = self.state.lock();
        state.stats.in_use -= bytes_of(class);
        state.stats.cached += bytes_of(class);
        state.free.entry(class).or_default().push(free);
    }

    /// Waits until freed memory is not used any more. Under no lock.
    fn wait_for_users(&self, device: &'static OpenDevice) {
        let events: Vec<EventRef> =
            self.state.lock().free.values().flatten().flat_map(|f| f.events.iter().cloned()).collect();
        for event in events {
            // A lost device says so at the next call.
            let _ = device.engine.devices.host_wait(&event, &mut || true);
        }
    }

    /// Gives back what no thread uses any more.
    pub fn trim(&self, device: &'static OpenDevice) {
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        let DevicePoolState { free, stats } = &mut *state;
        for (class, list) in free.iter_mut() {
            let (unused, used) = std::mem::take(list).into_iter().partition(Free::is_unused);
            *list = used;
            let unused: Vec<Free> = unused;
            stats.cached -= unused.len() * bytes_of(*class);
            gone.extend(unused);
        }
        drop(state);
        for free in &gone {
            match self.origin {
                MemoryOrigin::Device => device.backend.free(free.ptr),
                MemoryOrigin::Pinned => {
                    device.backend.free_pinned(std::ptr::with_exposed_provenance_mut(free.ptr.0 as usize))
                }
            }
        }
    }

    pub fn set_limit(&self, limit: Option<usize>) {
        self.state.lock().stats.limit = limit;
    }

    pub fn stats(&self) -> DeviceStats {
        self.state.lock().stats
    }

    fn refused(&self, device: &'static OpenDevice, bytes: usize, full: bool) -> OpError {
        let stats = self.stats();
        let why = match (full, stats.limit) {
            (false, _) => "no device has that many".to_owned(),
            (true, Some(limit)) => format!("the limit is {limit} bytes and {} bytes are in use", stats.in_use),
            (true, None) => format!("the device has no more and {} bytes are in use", stats.in_use),
        };
        let message = format!(
            "allocating {bytes} bytes on {}: {why}; free arrays there, use smaller ones, or raise \
             the limit",
            device.id
        );
        OpError::new(FailureKind::Memory, message).device(device.id.to_string())
    }
}

impl DevicePoolState {
    fn count(&mut self, size: usize) {
        self.stats.in_use += size;
        self.stats.peak = self.stats.peak.max(self.stats.in_use);
    }
}

impl From<DeviceError> for OpError {
    fn from(error: DeviceError) -> Self {
        let kind = match error.class {
            ErrorClass::OutOfMemory => FailureKind::Memory,
            _ => FailureKind::Device,
        };
        OpError::new(kind, error.to_string())
    }
}
