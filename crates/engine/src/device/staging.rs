//! Copies between the host's memory and a device's, by way of page-locked memory, which a device
//! copies without help.
//!
//! Each direction of a device has a bounded ring of chunks and two streams. On one stream the
//! host's part of the work runs, a function that fills or empties a chunk; on the other, the
//! device's part. A copy is divided into pieces of a chunk, and while one piece is transferred the
//! next is filled. All of this is submitted at once and ordered by events, each use of a chunk
//! after the previous one, so the host waits for nothing.

use super::api::{CopyJob, DeviceError, DevicePtr, MemoryPlace, StreamKind, Tag, TagAccess};
use super::event::EventRef;
use super::kernel::Kernel;
use super::memory::{DeviceBlock, MemoryOrigin};
use super::op::DeviceCtx;
use super::open::OpenDevice;
use super::stream::{Stream, WaitSet};
use crate::failure::OpError;
use crate::op::block::Mode;
use crate::process::slot;
#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

/// The direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    In,
    Out,
}

/// A piece of page-locked memory, and the end of its last use.
pub(super) struct PinnedChunk {
    block: DeviceBlock,
    pub event: Option<EventRef>,
}

/// The chunks of one direction.
pub(super) struct PinnedRing {
    chunks: Mutex<PinnedChunks>,
    /// A chunk has come back, or there is room for another.
    returned: Condvar,
}

struct PinnedChunks {
    /// Chunks with which no thread submits work at the moment; the least recently used first.
    free: VecDeque<PinnedChunk>,
    /// How many there are, with those that a thread has.
    made: usize,
    limit: usize,
    bytes: usize,
}

/// The right to submit work with a chunk. The ring gets it back in the end, with the event of that
/// work.
pub(super) struct Lease<'a> {
    ring: &'a PinnedRing,
    chunk: Option<PinnedChunk>,
}

impl PinnedChunk {
    /// Whether a thread may still use it. Asks the device.
    fn is_used(&self) -> bool {
        self.event.as_ref().is_some_and(|event| !event.is_complete())
    }
}

impl PinnedRing {
    /// An empty ring of at least one chunk.
    pub fn new(limit: usize, bytes: usize) -> PinnedRing {
        let chunks = PinnedChunks { free: VecDeque::new(), made: 0, limit: limit.max(1), bytes: bytes.max(1) };
        PinnedRing { chunks: Mutex::new(chunks), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, PinnedChunks> {
        self.chunks.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Returns chunks to the pool of page-locked memory, after their events.
    pub fn trim(&self) {
        let mut chunks = self.lock();
        chunks.made -= chunks.free.len();
        let old = std::mem::take(&mut chunks.free);
        drop(chunks);
        self.returned.notify_all();
        drop(old);
    }

    /// A chunk that no other thread submits work with: one that is not used any more, a new one, or
    /// the one used longest ago. Where other threads have all of them, this waits until one has
    /// submitted its piece; never for the device.
    pub fn take(&self, device: &'static OpenDevice) -> Result<Lease<'_>, OpError> {
        loop {
            if let Some(chunk) = self.one_of_ours() {
                return Ok(Lease { ring: self, chunk: Some(chunk) });
            }
            let bytes = self.lock().bytes;
            match device.pool(MemoryOrigin::Pinned).alloc(device, bytes, None) {
                Ok((block, events)) => {
                    // Page-locked memory of this size is the rings' alone, and comes back with one
                    // event.
                    let event = events.into_iter().next();
                    return Ok(Lease { ring: self, chunk: Some(PinnedChunk { block, event }) });
                }
                Err(error) => {
                    let mut chunks = self.lock();
                    chunks.made -= 1;
                    let none = chunks.made == 0;
                    if !none {
                        // Those that are there have to do.
                        chunks.limit = chunks.made;
                    }
                    drop(chunks);
                    self.returned.notify_all();
                    if none {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// A chunk that exists; `None`: the caller is to make one, which is counted.
    fn one_of_ours(&self) -> Option<PinnedChunk> {
        let mut chunks = self.lock();
        let oldest = loop {
            if let Some(oldest) = chunks.free.pop_front() {
                break oldest;
            }
            if chunks.made < chunks.limit {
                chunks.made += 1;
                return None;
            }
            chunks = self.returned.wait(chunks).unwrap_or_else(|poison| poison.into_inner());
        };
        let full = chunks.made >= chunks.limit;
        drop(chunks);
        // Under no lock: asking a device may find out that it is lost.
        if full || !oldest.is_used() {
            return Some(oldest);
        }
        let mut chunks = self.lock();
        if chunks.made >= chunks.limit {
            return Some(oldest);
        }
        chunks.made += 1;
        chunks.free.push_front(oldest);
        drop(chunks);
        self.returned.notify_one();
        None
    }
}

impl Drop for PinnedChunk {
    fn drop(&mut self) {
        self.block.use_until(self.event.take().into_iter().collect());
    }
}

impl Lease<'_> {
    pub fn chunk(&mut self) -> &mut PinnedChunk {
        self.chunk.as_mut().unwrap_or_else(|| unreachable!("a lease has its chunk until it ends"))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(chunk) = self.chunk.take() else { return };
        let mut chunks = self.ring.lock();
        // The sizes may have been changed meanwhile.
        let gone = if chunk.block.bytes == chunks.bytes && chunks.made <= chunks.limit {
            chunks.free.push_back(chunk);
            None
        } else {
            chunks.made -= 1;
            Some(chunk)
        };
        drop(chunks);
        self.ring.returned.notify_one();
        drop(gone);
    }
}

/// One copy: its ends, and the accesses that they belong to.
struct Transfer {
    direction: Direction,
    device: DevicePtr,
    host: *mut u8,
    source: TagAccess,
    target: TagAccess,
}

/// A host address on its way to the function that may use it.
struct Address(*mut u8);

// SAFETY: an address; the thread that asks for a copy answers for what it points to.
unsafe impl Send for Address {}

/// A function of the host that copies bytes between a chunk and other memory of the host.
fn moving(to: *mut u8, from: *mut u8, bytes: usize) -> impl FnOnce() + Send {
    let (to, from) = (Address(to), Address(from));
    move || {
        let (Address(to), Address(from)) = (to, from);
        // SAFETY: contracts of `copy_in` and `copy_out` for the one side; the other is a chunk that
        // this piece has to itself between the events before and after it. They are different
        // memory.
        unsafe { to.copy_from_nonoverlapping(from, bytes) }
    }
}

impl DeviceCtx<'_> {
    /// Submits a copy from memory of the host into that of a device. `target` and `source` are the
    /// numbers of the accesses whose memory this is. The op is one of
    /// [`Lane::CopyIn`](crate::Lane::CopyIn).
    ///
    /// # Safety
    /// Both addresses have that many bytes. The device's memory belongs to the target's variable;
    /// the host's is [kept](DeviceCtx::keep) by the op, and no thread writes it that does not
    /// declare the source's variable.
    pub unsafe fn copy_in(
        &self,
        (target, to): (usize, DevicePtr),
        (source, from): (usize, *const u8),
        bytes: usize,
    ) -> Result<(), OpError> {
        let (source, target) = (self.access(source, false), self.access(target, true));
        let transfer = Transfer { direction: Direction::In, device: to, host: from.cast_mut(), source, target };
        self.transfer(&transfer, bytes)
    }

    /// Copies like [`copy_in`](DeviceCtx::copy_in), but from a device into memory of the host, for
    /// an op of [`Lane::CopyOut`](crate::Lane::CopyOut).
    ///
    /// # Safety
    /// As for `copy_in`; no thread touches the host's memory that does not declare the target's
    /// variable.
    pub unsafe fn copy_out(
        &self,
        (target, to): (usize, *mut u8),
        (source, from): (usize, DevicePtr),
        bytes: usize,
    ) -> Result<(), OpError> {
        let (source, target) = (self.access(source, false), self.access(target, true));
        let transfer = Transfer { direction: Direction::Out, device: from, host: to, source, target };
        self.transfer(&transfer, bytes)
    }

    fn access(&self, number: usize, write: bool) -> TagAccess {
        let var = self.run.var_of(number);
        TagAccess { var: var.id, memory: self.memory(number), write }
    }

    fn transfer(&self, transfer: &Transfer, bytes: usize) -> Result<(), OpError> {
        let stage = match transfer.direction {
            Direction::In => StreamKind::StageIn,
            Direction::Out => StreamKind::StageOut,
        };
        let stage = self.device.stream_of(stage, 0);
        // The op's own stream waits for everything already; the other one reads the source.
        let mut waits = WaitSet::default();
        for (access, _) in self.run.primary_accesses().filter(|(i, _)| self.run.var_of(*i).id == transfer.source.var) {
            let look = |sync: &mut super::SyncObject| sync.before_device_op(Mode::Read, stage.number, &mut waits);
            drop(self.run.var_of(access).with_sync(look));
        }
        let ordered = stage.wait_for(&waits, self.op.id);
        ordered.map_err(|e| self.device.op_error(&e, "ordering a copy"))?;
        let mut done = 0;
        while done < bytes {
            done += self.piece(transfer, stage, done, bytes - done)?;
        }
        Ok(())
    }

    /// Submits as much as a chunk takes; returns how much that is.
    fn piece(&self, transfer: &Transfer, stage: &'static Stream, at: usize, left: usize) -> Result<usize, OpError> {
        let device = self.device;
        let error = |e| device.op_error(&e, &format!("copying for {}", self.name()));
        let mut lease = device.staging(transfer.direction).take(device)?;
        let chunk = lease.chunk();
        let (bytes, ptr) = (left.min(chunk.block.bytes), chunk.block.ptr);
        let page_locked: *mut u8 = std::ptr::with_exposed_provenance_mut(ptr.0 as usize);
        let (host, on_device) = (transfer.host.wrapping_add(at), MemoryPlace::Device(transfer.device.offset(at)));
        // What travels has a number of its own.
        let travelling = slot::fresh_id();
        let through = |write| TagAccess { var: travelling, memory: Some(ptr), write };
        let (filling, emptying) =
            (self.tag_of(vec![transfer.source, through(true)]), self.tag_of(vec![transfer.target, through(false)]));
        let copy = |stream: &Stream, to, from, tag| {
            // SAFETY: contracts of `copy_in` and `copy_out`, and as in `moving`.
            unsafe { device.backend.copy(stream.handle, CopyJob { to, from, bytes, tag }) }
        };
        let mut before = WaitSet::default();
        chunk.event.iter().for_each(|event| before.add(event));
        stage.wait_for(&before, self.op.id).map_err(error)?;
        match transfer.direction {
            Direction::In => self.launch_move(stage, (page_locked, host, bytes), filling).map_err(error)?,
            Direction::Out => copy(stage, MemoryPlace::Host(page_locked), on_device, filling).map_err(error)?,
        }
        let filled = self.end_of_piece(stage)?;
        chunk.event = Some(filled.clone());
        let mut behind = WaitSet::default();
        behind.add(&filled);
        if let Err(refused) = self.stream.wait_for(&behind, self.op.id) {
            // The end of the op would not cover what was submitted, so here the host has to wait.
            self.run.engine().devices.host_wait(&filled, &mut || true)?;
            return Err(error(refused));
        }
        let submitted = match transfer.direction {
            Direction::In => copy(self.stream, on_device, MemoryPlace::Host(page_locked), emptying),
            Direction::Out => self.launch_move(self.stream, (host, page_locked, bytes), emptying),
        };
        chunk.event = Some(self.end_of_piece(self.stream)?);
        submitted.map_err(error).map(|()| bytes)
    }

    /// Submits the host's part of a piece: a move of that many bytes between a chunk and other memory
    /// of the host, as in `moving`.
    fn launch_move(
        &self,
        stream: &Stream,
        (to, from, bytes): (*mut u8, *mut u8, usize),
        tag: Arc<Tag>,
    ) -> Result<(), DeviceError> {
        let body = moving(to, from, bytes);
        let body = Box::new(|_: &super::KernelCtx<'_>| {
            body();
            Ok(())
        });
        self.device.backend.launch(stream.handle, Kernel::new(body, self.op.clone(), tag))
    }

    /// Marks the end of what a piece has submitted. As for the end of an op: if that cannot be done
    /// at all, nothing is known of the order any more.
    pub(super) fn end_of_piece(&self, stream: &'static Stream) -> Result<EventRef, OpError> {
        let doing = "recording the end of a copy";
        stream.mark(self.op.id).or_else(|first| {
            stream.mark(self.op.id).map_err(|_| {
                self.device.lose(&first, doing);
                self.device.op_error(&first, doing)
            })
        })
    }
}
