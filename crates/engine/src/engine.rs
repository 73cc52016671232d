//! The engine: one object that ties the parts together. Started once, never dropped.

use crate::config::{Config, EngineError, EngineKind};
use crate::device::Devices;
use crate::failure::unobserved::Unobserved;
use crate::failure::{Failure, FailureKind};
use crate::memory::MemoryPool;
use crate::op::block::{Chain, OpBlock};
use crate::process::slot::{Counts, Slot};
use crate::push::bulk::Bulks;
use crate::sched::Sched;
use crate::sync::{Mutex, MutexGuard};
use crate::var::Var;
use crate::wait::Waiters;
use crate::wait::all::Epochs;
use std::sync::atomic::{AtomicBool, Ordering};

/// Orders ops by the variables they read and write, and runs them. Always used by reference: an
/// engine lives as long as the process, because leaving a process never runs destructors of a
/// running pool.
pub struct Engine {
    kind: EngineKind,
    bulk_size: usize,
    pub(crate) closed: AtomicBool,
    /// A thread has cancelled a variable: from then on ops look at what they write before they
    /// start.
    pub(crate) cancelling: AtomicBool,
    pub(crate) sched: Sched,
    pub(crate) all_counts: Mutex<Vec<&'static Counts>>,
    pub(crate) epochs: Epochs,
    pub(crate) bulks: Bulks,
    pub(crate) waiters: Waiters,
    unobserved: Mutex<Unobserved>,
    has_failures: AtomicBool,
    memory: MemoryPool,
    pub(crate) devices: Devices,
}

impl Engine {
    /// Starts an engine. Threads are started when they are first needed.
    pub fn start(config: Config) -> Result<&'static Engine, EngineError> {
        let cores = config.resolve_cores()?;
        let engine: &'static Engine = Box::leak(Box::new(Engine {
            kind: config.kind,
            bulk_size: config.bulk_size,
            closed: AtomicBool::new(false),
            cancelling: AtomicBool::new(false),
            sched: Sched::new(cores, config.kind.is_per_device()),
            all_counts: Mutex::new(Vec::new()),
            epochs: Epochs::new(),
            bulks: Bulks::new(),
            waiters: Waiters::new(),
            unobserved: Mutex::new(Unobserved::new()),
            has_failures: AtomicBool::new(false),
            memory: MemoryPool::new(config.memory_limit),
            devices: Devices::new(config.drivers, config.compute_streams, config.device_reserve),
        }));
        crate::process::fork::register(engine)?;
        Ok(engine)
    }

    /// The kind of this engine.
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Number of threads that may compute concurrently.
    pub fn cores(&self) -> usize {
        self.sched.tokens.len()
    }

    /// How many small ops of one thread may go to the pool as one job, from the configuration; see
    /// [`set_bulk_size`](Engine::set_bulk_size).
    pub fn bulk_size(&self) -> usize {
        self.bulk_size
    }

    /// A new variable: clean, version 0.
    pub fn new_var(&'static self) -> Var {
        Var::new()
    }

    /// The engine's memory.
    pub fn memory(&'static self) -> &'static MemoryPool {
        &self.memory
    }

    /// Whether ops wait for a core, as far as can be seen without a lock. A long op may look
    /// between its parts.
    pub fn has_queued(&self) -> bool {
        !self.sched.queue_is_empty()
    }

    /// Runs `f` while the process cannot fork, so that no lock that `f` takes is held in a child
    /// for ever. `f` must not wait for other threads, except for such locks.
    pub fn without_fork<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Inside(&'static Slot);
        impl Drop for Inside {
            fn drop(&mut self) {
                self.0.exit();
            }
        }
        let slot = crate::process::slot::current();
        slot.enter();
        let _inside = Inside(slot);
        f()
    }

    /// Closes the intake: ops pushed from now on fail with kind `Shutdown` instead of running
    /// (`NoSkip` ones run), waits for results that are not there return
    /// [`WaitError::Closed`](crate::WaitError::Closed). What was pushed before may still run. Never
    /// blocks.
    pub fn close(&'static self) {
        self.closed.store(true, Ordering::SeqCst);
        self.flush_all_bulks();
        self.waiters.wake_all();
        self.epochs.notify();
    }

    /// Remembers a new origin for `wait_all`.
    #[cold]
    pub(crate) fn record_failure(&self, failure: &Failure) {
        // A cancellation that a caller asked for is no news.
        if failure.kind() == FailureKind::Cancelled {
            failure.mark_observed();
            return;
        }
        if failure.mark_recorded() {
            return;
        }
        let mut list = self.lock_unobserved();
        let gone = list.add(failure);
        self.has_failures.store(true, Ordering::Release);
        drop(list);
        drop(gone);
    }

    /// Takes the failures that no wait has returned, and marks them as observed.
    pub(crate) fn take_unobserved(&self) -> (Vec<Failure>, u64) {
        if !self.has_failures.load(Ordering::Acquire) {
            return (Vec::new(), 0);
        }
        let mut list = self.lock_unobserved();
        let taken = list.take();
        self.has_failures.store(false, Ordering::Relaxed);
        drop(list);
        (taken.0.into_iter().filter(|f| !f.mark_observed()).collect(), taken.1)
    }

    fn lock_unobserved(&self) -> MutexGuard<'_, Unobserved> {
        debug_assert!(crate::process::slot::current().is_inside(), "a fork must not find the lock held");
        self.unobserved.lock()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether the engine runs everything in the pushing thread.
    pub fn is_naive(&self) -> bool {
        self.kind == EngineKind::Naive
    }

    /// Hands newly ready ops to the thread that runs them.
    ///
    /// # Safety
    /// The ops of the chain are ready and belong to the caller, which is inside the fork gate.
    #[inline]
    pub(crate) unsafe fn publish(&'static self, slot: &'static Slot, ready: Chain) {
        if ready.len == 0 {
            return;
        }
        if self.is_naive() {
            // SAFETY: contract.
            unsafe { self.drain_here(slot, ready) };
        } else if ready.special || self.cancelling.load(Ordering::Relaxed) {
            // SAFETY: contract.
            unsafe { self.publish_wanted(slot, ready) };
        } else {
            // SAFETY: contract.
            unsafe { self.sched.enqueue(self, ready) };
        }
    }

    /// Queues newly ready ops, or runs them here in a naive engine, without a look at deadlines and
    /// at what is cancelled.
    ///
    /// # Safety
    /// As for `publish`.
    pub(crate) unsafe fn publish_all(&'static self, slot: &'static Slot, ready: Chain) {
        if ready.len == 0 {
            return;
        }
        // SAFETY: contract.
        unsafe { if self.is_naive() { self.drain_here(slot, ready) } else { self.sched.enqueue(self, ready) } };
    }

    /// Runs ready ops in this thread, one after the other; those of a nested call are left to the
    /// outermost.
    ///
    /// # Safety
    /// As for `publish`.
    pub(crate) unsafe fn drain_here(&'static self, slot: &'static Slot, mut ready: Chain) {
        let (engine, outer) = slot.drain.get();
        if std::ptr::eq(engine, self) {
            // SAFETY: the outermost call's chain lives while it is noted in the slot, and only this
            // thread uses it; no reference to it is kept while an op runs. The ops are ready and
            // ours (contract).
            unsafe { (*outer).append(&mut ready) };
            return;
        }
        let mut queue = Chain::new();
        queue.append(&mut ready);
        let queue = &raw mut queue;
        let before = slot.drain.replace((self, queue));
        // SAFETY: as above: the chain is on this frame and touched by this thread only, through the
        // pointer.
        while let Some(op) = unsafe { (*queue).take() } {
            let mut more = Chain::new();
            // SAFETY: ops of the chain are ready and belong to this thread.
            unsafe {
                self.execute(slot, op, &mut more);
                (*queue).append(&mut more);
            }
        }
        slot.drain.set(before);
    }

    /// Queues an op after the others that are ready. It is new, or a turn of one that runs.
    ///
    /// # Safety
    /// The op is ready, belongs to the caller and is counted unless it is a waiter.
    pub(crate) unsafe fn enqueue_one(&'static self, slot: &'static Slot, op: *mut OpBlock) {
        let mut chain = Chain::new();
        // SAFETY: contract.
        unsafe {
            debug_assert!((*op).class.runs_at_once() || OpBlock::has(op, crate::op::block::COUNTED));
            chain.add(op);
            self.publish_all(slot, chain);
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("kind", &self.kind).field("cores", &self.cores()).finish_non_exhaustive()
    }
}
