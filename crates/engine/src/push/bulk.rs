//! Bulking: small ops that one thread pushes in a row go to the pool as one job.
//!
//! Each op is registered at its push as usual, so it keeps its own order, versions and failures.
//! Only the handover is delayed: ready ops collect in the pusher's slot until there are enough, or
//! until a thread waits. One worker then runs them one after the other, with those dependants that
//! were part of the bulk. This takes one queue entry and one wake for all.
//!
//! An op in a thread's collection is not running. So a thread that waits first announces it
//! (`eager`) and then hands over the ops of all collections (`open`). A thread that collects first
//! counts the collection and then checks whether a thread waits. One of the two sees the other. In
//! a forked child the waits of vanished threads stay counted: nothing is delayed there, and the
//! first wait hands over the ops that such threads had collected.

use crate::engine::Engine;
use crate::op::block::{Chain, Class, DOOMED, OpBlock, PLAIN, SMALL};
use crate::op::spec::{OpKind, OpSpec};
use crate::process::slot::{self, Slot};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, model_fence, perturb};
use crossbeam_utils::CachePadded;
use std::ptr::null;

/// A thread that has set no size of its own.
pub(crate) const BY_ENGINE: u32 = u32::MAX;

/// The state of an engine's bulks that all threads share.
pub(crate) struct Bulks {
    /// Waits under way: nothing may be put off.
    eager: CachePadded<AtomicUsize>,
    /// Threads with collected ops.
    open: CachePadded<AtomicUsize>,
}

/// Ready ops of one thread that were not handed over yet. A leaf lock: its owner, and the thread
/// that waits, take it.
pub(crate) struct Collection(Mutex<Collected>);

struct Collected {
    of: *const Engine,
    chain: Chain,
}

// SAFETY: collected ops belong to the collection, which is used under its lock.
unsafe impl Send for Collected {}

impl Bulks {
    pub fn new() -> Self {
        Bulks { eager: CachePadded::new(AtomicUsize::new(0)), open: CachePadded::new(AtomicUsize::new(0)) }
    }

    /// Announces that a thread is going to wait; true: a collection may hold ops.
    #[inline]
    pub fn begin_wait(&self) -> bool {
        self.eager.fetch_add(1, Ordering::SeqCst);
        model_fence();
        self.open.load(Ordering::SeqCst) != 0
    }

    #[inline]
    pub fn end_wait(&self) {
        self.eager.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn any_open(&self) -> bool {
        self.open.load(Ordering::SeqCst) != 0
    }
}

impl Collection {
    pub fn new() -> Self {
        Collection(Mutex::new(Collected { of: null(), chain: Chain::new() }))
    }

    /// Puts a ready op off; true: a thread waits, so it must be handed over at once.
    ///
    /// # Safety
    /// The op is ready and belongs to the caller; the collection is empty or of this engine.
    #[inline]
    pub unsafe fn add(&self, bulks: &Bulks, engine: *const Engine, op: *mut OpBlock) -> bool {
        let mut collected = self.0.lock();
        if collected.chain.len == 0 {
            collected.of = engine;
            bulks.open.fetch_add(1, Ordering::SeqCst);
        }
        debug_assert!(std::ptr::eq(collected.of, engine));
        // SAFETY: contract.
        unsafe { collected.chain.add(op) };
        drop(collected);
        perturb();
        model_fence();
        bulks.eager.load(Ordering::SeqCst) != 0
    }

    /// Takes what was collected for an engine; the ops belong to the caller then.
    #[inline]
    pub fn take(&self, bulks: &Bulks, engine: *const Engine) -> Chain {
        let mut collected = self.0.lock();
        if collected.chain.len == 0 || !std::ptr::eq(collected.of, engine) {
            return Chain::new();
        }
        bulks.open.fetch_sub(1, Ordering::SeqCst);
        std::mem::replace(&mut collected.chain, Chain::new())
    }

    /// The engine whose ops are in this collection.
    fn engine(&self) -> Option<*const Engine> {
        let collected = self.0.lock();
        (collected.chain.len != 0).then_some(collected.of)
    }
}

/// A wait of this thread: while it lasts nothing is put off.
pub(crate) struct Eager(&'static Engine);

impl Drop for Eager {
    fn drop(&mut self) {
        self.0.bulks.end_wait();
    }
}

impl Engine {
    /// Sets how many small ops of this thread may go to the pool as one job; 0: none. Returns the
    /// number before. What was collected so far is handed over. The configuration gives the number
    /// for threads that have not set one.
    pub fn set_bulk_size(&'static self, size: usize) -> usize {
        self.flush_bulk();
        let slot = slot::current();
        let before = self.bulk_limit(slot);
        slot.bulk_limit.set(u32::try_from(size).unwrap_or(BY_ENGINE).min(BY_ENGINE - 1));
        before as usize
    }

    /// Hands over what this thread has collected.
    pub fn flush_bulk(&'static self) {
        self.without_fork(|| self.flush_slot(slot::current()));
    }

    #[inline(always)]
    pub(crate) fn bulk_limit(&self, slot: &Slot) -> u32 {
        match slot.bulk_limit.get() {
            BY_ENGINE => self.bulk_size() as u32,
            limit => limit,
        }
    }

    /// Says that this thread is going to wait, and hands over what any thread has collected.
    pub(crate) fn eager(&'static self) -> Eager {
        if self.bulks.begin_wait() {
            self.flush_all_bulks();
        }
        Eager(self)
    }

    #[cold]
    pub(crate) fn flush_all_bulks(&'static self) {
        self.without_fork(|| {
            let mut next = 0;
            while let Some(slot) = slot::nth(next) {
                next += 1;
                self.hand_over(slot.bulk.take(&self.bulks, self));
            }
        });
    }

    /// Hands over what a thread that ends has collected, for whichever engine.
    #[cfg(not(loom))]
    pub(crate) fn flush_any_bulk(slot: &'static Slot) {
        if let Some(engine) = slot.bulk.engine() {
            // SAFETY: engines are never freed.
            unsafe { &*engine }.flush_bulk();
        }
    }

    #[inline]
    fn flush_slot(&'static self, slot: &'static Slot) {
        slot.bulk_count.set(0);
        self.hand_over(slot.bulk.take(&self.bulks, self));
    }

    /// Puts a ready op off if this thread collects ops and this is one to collect.
    ///
    /// # Safety
    /// The op is ready, counted, and belongs to the caller; if true is returned it does not any
    /// more.
    #[inline]
    pub(crate) unsafe fn put_off(&'static self, slot: &'static Slot, op: *mut OpBlock) {
        match slot.bulk.engine() {
            Some(other) if !std::ptr::eq(other, self) => {
                // SAFETY: engines are never freed.
                let other: &'static Engine = unsafe { &*other };
                other.flush_slot(slot);
            }
            Some(_) => {}
            // A thread that waited may have taken what was counted.
            None => slot.bulk_count.set(0),
        }
        // SAFETY: contract.
        let waited_for = unsafe { slot.bulk.add(&self.bulks, self, op) };
        if waited_for {
            self.flush_slot(slot);
        }
        self.count_bulked(slot);
    }

    /// Counts a collected op, or one that waits for collected ones, and hands over when there are
    /// enough.
    #[inline]
    pub(crate) fn count_bulked(&'static self, slot: &'static Slot) {
        let count = slot.bulk_count.get() + 1;
        slot.bulk_count.set(count);
        if count >= self.bulk_limit(slot) {
            self.flush_slot(slot);
        }
    }

    /// Something else was pushed: what was pushed before goes first.
    #[inline]
    pub(crate) fn end_bulk(&'static self, slot: &'static Slot) {
        if slot.bulk_count.get() != 0 {
            self.flush_slot(slot);
        }
    }

    /// Hands collected ops to the pool, as one op that runs them.
    fn hand_over(&'static self, chain: Chain) {
        if chain.len == 0 {
            return;
        }
        let bulk = Handed(chain);
        let spec = OpSpec::new("bulk", &[]).kind(OpKind::NoSkip);
        self.push(spec, move |ctx| {
            ctx.engine().run_bulk(bulk.into_chain());
            Ok(())
        });
    }

    /// Runs the ops of a bulk, and those of its size that become ready meanwhile.
    fn run_bulk(&'static self, mut chain: Chain) {
        let slot = slot::current();
        let mut left = slot_budget(&chain);
        let mut others = Chain::new();
        while let Some(op) = chain.take() {
            let mut ready = Chain::new();
            // SAFETY: ops of the chain are ready and ours; a worker runs this, inside the fork
            // gate.
            unsafe { self.execute(slot, op, &mut ready) };
            while let Some(next) = ready.take() {
                // SAFETY: as above.
                unsafe {
                    let joins = left > 0 && (*next).flags & (SMALL | PLAIN) == SMALL | PLAIN;
                    left -= joins as usize;
                    if joins { chain.add(next) } else { others.add(next) }
                }
            }
            if others.len > 0 {
                // SAFETY: as above.
                unsafe { self.publish(slot, std::mem::replace(&mut others, Chain::new())) };
            }
        }
    }
}

/// The number of dependants that one bulk may run besides its own ops, so that it ends even if they
/// continue endlessly.
fn slot_budget(chain: &Chain) -> usize {
    chain.len.max(64)
}

/// Ops on their way to the worker.
struct Handed(Chain);

// SAFETY: the ops belong to the chain, wherever it goes.
unsafe impl Send for Handed {}

impl Handed {
    fn into_chain(self) -> Chain {
        self.0
    }
}

/// Whether an op of this class, with these flags, may be collected.
#[inline(always)]
pub(crate) fn is_bulkable(class: Class, flags: u16) -> bool {
    const ALL: u16 = SMALL | PLAIN;
    flags & (ALL | DOOMED) == ALL && matches!(class, Class::Strict | Class::Selective | Class::NoSkip)
}
