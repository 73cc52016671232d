//! Variables: the queue of accesses, and what an access leaves behind.
//!
//! A variable is one cache line. Its memory lives while it has a handle, a granted access or a
//! queued one; the last handle frees it if it is idle, otherwise the completion that makes an
//! orphaned variable idle does.

pub(crate) mod brief;
pub(crate) mod parameter_gate;

use crate::device::{Extra, SyncObject};
use crate::failure::Failure;
use crate::op::block::{AccessEntry, Chain, Mode, grant};
use crate::process::slot;
use crate::sync::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::time::Instant;

/// A handle of a variable: what ops are ordered by. Clones are the same variable.
pub struct Var(NonNull<VarInner>);

// SAFETY: all state behind the pointer is atomic, guarded by the lock, or stable while a grant is
// held.
unsafe impl Send for Var {}
// SAFETY: as above.
unsafe impl Sync for Var {}

#[repr(C, align(64))]
pub(crate) struct VarInner {
    pub lock: Lock,
    handles: AtomicU32,
    /// State that is accessed only under the lock.
    pub state: UnsafeCell<VarState>,
    /// Changed under the lock by the holder of the write grant; a grant holder reads it without the
    /// lock.
    pub version: UnsafeCell<u64>,
    /// The failure; like `version`, it does not change while a grant is held.
    pub failure: UnsafeCell<Option<Failure>>,
    pub id: u64,
    /// rarely used state: null until its first use, then the same until the variable is freed.
    extra: AtomicPtr<Extra>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<VarInner>() == 64);

pub(crate) struct VarState {
    /// FIFO of accesses that are not granted yet.
    head: *mut AccessEntry,
    tail: *mut AccessEntry,
    /// Reads granted and not completed.
    pub reads: u32,
    /// A write is granted and not completed.
    pub writing: bool,
    /// The last handle is gone.
    pub orphan: bool,
}

/// Variables that exist, in all engines.
static LIVE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Number of variables whose memory is in use, in all engines of the process: for leak checks.
pub fn live_vars() -> usize {
    LIVE.load(Ordering::SeqCst)
}

impl Var {
    pub(crate) fn new() -> Var {
        LIVE.fetch_add(1, Ordering::Relaxed);
        let inner = VarInner {
            lock: Lock::new(),
            handles: AtomicU32::new(1),
            state: UnsafeCell::new(VarState {
                head: null_mut(),
                tail: null_mut(),
                reads: 0,
                writing: false,
                orphan: false,
            }),
            version: UnsafeCell::new(0),
            failure: UnsafeCell::new(None),
            id: slot::fresh_id(),
            extra: AtomicPtr::new(null_mut()),
        };
        let memory = slot::current().take_var();
        // SAFETY: memory for a variable, which is ours.
        unsafe {
            memory.write(inner);
            Var(NonNull::new_unchecked(memory))
        }
    }

    pub(crate) fn inner(&self) -> &VarInner {
        // SAFETY: a handle keeps the variable alive.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn as_ptr(&self) -> *const VarInner {
        self.0.as_ptr()
    }

    /// Runs `f` under the variable's lock, with the fork gate passed.
    pub(crate) fn locked<R>(&self, f: impl FnOnce(&mut VarState, &VarInner) -> R) -> R {
        let slot = slot::current();
        slot.enter();
        let inner = self.inner();
        inner.lock.lock();
        // SAFETY: the lock is held until after the last use of the reference.
        let result = f(unsafe { &mut *inner.state.get() }, inner);
        inner.lock.unlock();
        slot.exit();
        result
    }

    /// Unique in the process, never reused.
    pub fn id(&self) -> u64 {
        self.inner().id
    }

    /// How many writes have completed.
    pub fn version(&self) -> u64 {
        // SAFETY: under the lock, where versions change.
        self.locked(|_, inner| unsafe { *inner.version.get() })
    }

    /// The failure the variable holds now, if any. Looking does not count as observing it.
    pub fn failure(&self) -> Option<Failure> {
        // SAFETY: under the lock, where failures change.
        self.locked(|_, inner| unsafe { inner.failure_locked() })
    }

    /// Notes when the op that is pushed next is late, for the thread that waits for the value.
    #[cold]
    pub(crate) fn set_deadline(&self, deadline: Instant) {
        self.locked(|_, inner| *inner.extra_or_new().deadline.lock() = Some(deadline));
    }

    /// The deadline of the last op with a deadline that writes the variable, even if it has passed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.locked(|_, inner| inner.extra().and_then(|extra| *extra.deadline.lock()))
    }

    /// Every write that was pushed before, and is not complete, need not run. Whether one of them
    /// is granted.
    pub(crate) fn cancel_pushed_writes(&self) -> bool {
        self.locked(|state, inner| {
            // SAFETY: under the lock, where versions change.
            let next = unsafe { *inner.version.get() } + state.pending_writes();
            inner.extra_or_new().cancelled.store(next, Ordering::Relaxed);
            state.writing
        })
    }

    /// Whether both are handles of one variable.
    pub fn same(&self, other: &Var) -> bool {
        self.0 == other.0
    }
}

impl VarInner {
    /// The rarely used state, if this variable has needed it.
    #[inline(always)]
    pub fn extra(&self) -> Option<&Extra> {
        let extra = self.extra.load(Ordering::Acquire);
        // SAFETY: once made it lives as long as the variable.
        unsafe { extra.as_ref() }
    }

    #[cold]
    pub fn extra_or_new(&self) -> &Extra {
        if let Some(extra) = self.extra() {
            return extra;
        }
        let new = Box::into_raw(Box::new(Extra::new()));
        match self.extra.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it belongs to the variable now.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: ours was not published; the other's belongs to the variable.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }

    /// Writes that make a version up to this one need not run.
    #[inline(always)]
    pub fn cancelled(&self) -> u64 {
        self.extra().map_or(0, |extra| extra.cancelled.load(Ordering::Relaxed))
    }

    /// The failure of the value.
    ///
    /// # Safety
    /// The lock is held.
    pub unsafe fn failure_locked(&self) -> Option<Failure> {
        // SAFETY: contract.
        unsafe {
            let late = || self.extra().and_then(|extra| (*extra.sync.get()).failure());
            (*self.failure.get()).clone().or_else(late)
        }
    }

    /// Looks at what devices do with the variable, if they ever did something. The gate is passed,
    /// the lock is not held.
    pub fn with_sync<R>(&self, f: impl FnOnce(&mut SyncObject) -> R) -> Option<R> {
        let extra = self.extra()?;
        Some(self.lock_sync(extra, f))
    }

    /// Runs `f` like `with_sync`, for noting the first event.
    pub fn with_new_sync<R>(&self, f: impl FnOnce(&mut SyncObject) -> R) -> R {
        // Allocated before the lock is taken.
        let extra = self.extra_or_new();
        self.lock_sync(extra, f)
    }

    fn lock_sync<R>(&self, extra: &Extra, f: impl FnOnce(&mut SyncObject) -> R) -> R {
        self.lock.lock();
        // SAFETY: the lock is held until after the last use of the reference.
        let result = f(unsafe { &mut *extra.sync.get() });
        self.lock.unlock();
        result
    }
}

impl Drop for VarInner {
    fn drop(&mut self) {
        let extra = self.extra.load(Ordering::Acquire);
        if !extra.is_null() {
            // SAFETY: made by `extra_or_new` through a box; the variable is the only one to refer
            // to it.
            drop(unsafe { Box::from_raw(extra) });
        }
    }
}

impl Clone for Var {
    fn clone(&self) -> Var {
        self.inner().handles.fetch_add(1, Ordering::Relaxed);
        Var(self.0)
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Var({})", self.id())
    }
}

impl Drop for Var {
    fn drop(&mut self) {
        if self.inner().handles.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let free = self.locked(|state, _| {
            state.orphan = true;
            state.idle()
        });
        if free {
            // SAFETY: no handle is left, and nothing was granted or queued when that was looked at
            // under the lock; without a handle nothing new can be registered.
            unsafe { free_var(self.0.as_ptr()) }
        }
    }
}

/// # Safety
/// The variable has no handle, no granted and no queued access, and no thread holds or wants its
/// lock.
pub(crate) unsafe fn free_var(var: *const VarInner) {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: made by `Var::new` in memory of a slot; no other thread refers to it (contract).
    unsafe {
        var.cast_mut().drop_in_place();
        slot::current().give_var(var.cast_mut());
    }
}

impl VarState {
    pub fn idle(&self) -> bool {
        self.reads == 0 && !self.writing && self.head.is_null()
    }

    /// The access that is granted next.
    pub fn first_queued(&self) -> *mut AccessEntry {
        self.head
    }

    /// Writes that are granted or queued.
    fn pending_writes(&self) -> u64 {
        let mut writes = self.writing as u64;
        let mut entry = self.head;
        while !entry.is_null() {
            // SAFETY: queued entries are alive while the lock is held.
            unsafe {
                writes += ((*entry).mode() != Mode::Read) as u64;
                entry = (*entry).next;
            }
        }
        writes
    }

    /// Whether an access of this kind would be granted at once.
    pub fn open_to(&self, mode: Mode) -> bool {
        self.head.is_null() && !self.writing && (mode == Mode::Read || self.reads == 0)
    }

    /// Registers one access; true: granted now. A read queues after a queued write, so no thread
    /// overtakes.
    ///
    /// # Safety
    /// The variable's lock is held; the entry belongs to this variable and stays in place until it
    /// is completed.
    #[inline(always)]
    pub unsafe fn register(&mut self, entry: *mut AccessEntry, mode: Mode) -> bool {
        if self.open_to(mode) {
            if mode == Mode::Read {
                self.reads += 1;
            } else {
                self.writing = true;
            }
            return true;
        }
        // SAFETY: the entry is ours until it is granted, the tail's is queued and so alive
        // (contract).
        unsafe {
            (*entry).next = null_mut();
            if self.head.is_null() {
                self.head = entry;
            } else {
                (*self.tail).next = entry;
            }
        }
        self.tail = entry;
        false
    }

    /// Hands the variable to the next write, or to all reads up to the next write.
    ///
    /// # Safety
    /// The variable's lock is held.
    #[inline(always)]
    pub unsafe fn grant_next(&mut self, ready: &mut Chain) {
        let mut entry = self.head;
        if entry.is_null() {
            return;
        }
        // SAFETY: queued entries are alive; an entry's link is read before its grant, because a
        // granted op may run and be recycled at once.
        unsafe {
            if (*entry).mode() != Mode::Read {
                if self.reads == 0 {
                    self.head = (*entry).next;
                    self.writing = true;
                    grant(entry, ready);
                }
                return;
            }
            while !entry.is_null() && (*entry).mode() == Mode::Read {
                let next = (*entry).next;
                self.reads += 1;
                self.head = next;
                grant(entry, ready);
                entry = next;
            }
        }
    }
}
