//! Registration and release: the two places where variables change hands. No engine in here, so
//! that models can run it.
//!
//! Lock order: fork gate, then locks of variables in address order, then nothing. Push is the only
//! place that holds two.

use crate::device::Garbage;
use crate::failure::Failure;
use crate::op::block::{Chain, INLINE_VARS, Mode, ON_DEVICE, OpBlock};
use crate::sync::atomic::Ordering;
use crate::sync::perturb;
use crate::var::{VarInner, free_var};

/// Place of a variable in the order in which locks are taken: its address. In models its number,
/// which is the same in every execution of the model.
#[cfg(not(loom))]
unsafe fn rank(var: *const VarInner) -> usize {
    var.addr()
}
#[cfg(loom)]
unsafe fn rank(var: *const VarInner) -> u64 {
    // SAFETY: the caller's handles keep the variable alive; its number never changes.
    unsafe { (*var).id }
}

/// Puts the op into the queues of all its variables at once; true: everything was granted, and the
/// op still belongs to the caller. False: it belongs to the thread that grants the last access.
/// `before_release` runs in that case before any other thread can see the op: it must only store
/// and count.
///
/// # Safety
/// `op` is filled and belongs to the caller; handles keep its variables alive during the call.
#[inline]
pub(crate) unsafe fn register(op: *mut OpBlock, before_release: impl FnOnce()) -> bool {
    // SAFETY: contract.
    let n = unsafe { OpBlock::len(op) };
    if n > INLINE_VARS {
        let mut order: Vec<u32> = (0..n as u32).collect();
        // SAFETY: contract; all indices are below `len`.
        unsafe {
            order.sort_unstable_by_key(|&i| (rank((*OpBlock::entry(op, i as usize)).var), i));
            return register_in_order(op, &mut order, before_release);
        }
    }
    let mut order = [0u32; INLINE_VARS];
    // SAFETY: contract; all indices are below `len`.
    unsafe {
        for i in 1..n {
            let own = rank((*OpBlock::entry(op, i)).var);
            let mut j = i;
            while j > 0 && rank((*OpBlock::entry(op, order[j - 1] as usize)).var) > own {
                order[j] = order[j - 1];
                j -= 1;
            }
            order[j] = i as u32;
        }
        register_in_order(op, &mut order[..n], before_release)
    }
}

/// # Safety
/// As for `register`; `order` lists the accesses by address of their variable, equal ones by
/// number.
#[inline]
unsafe fn register_in_order(op: *mut OpBlock, order: &mut [u32], before_release: impl FnOnce()) -> bool {
    // SAFETY: contract; the entries are ours until the first unlock, their variables are alive
    // until the last.
    unsafe {
        let n = merge_duplicates(op, order);
        let entry = |i: u32| OpBlock::entry(op, i as usize);
        for &i in &order[..n] {
            (*(*entry(i)).var).lock.lock();
        }
        let mut granted = 0;
        for &i in &order[..n] {
            let e = entry(i);
            granted += (*(*(*e).var).state.get()).register(e, (*e).mode()) as usize;
        }
        let all = granted == n;
        if !all {
            // Stored before the first unlock: the next completion may need the counter.
            (*op).wait.store((n - granted) as u32, Ordering::Relaxed);
            before_release();
        }
        for &i in &order[..n] {
            // Once its last missing access is granted the op may run elsewhere, but its completion
            // has to lock every one of its variables: it cannot be gone before the last unlock.
            let var: *const VarInner = (*entry(i)).var;
            perturb();
            (*var).lock.unlock();
        }
        all
    }
}

/// Accesses of one variable become one, under the first number: equal ones stay what they are,
/// mixtures become updates.
///
/// # Safety
/// As for `register_in_order`.
#[inline]
unsafe fn merge_duplicates(op: *mut OpBlock, order: &mut [u32]) -> usize {
    let Some(&first) = order.first() else { return 0 };
    // SAFETY: contract.
    unsafe {
        let mut kept = 1;
        let mut primary = OpBlock::entry(op, first as usize);
        for k in 1..order.len() {
            let e = OpBlock::entry(op, order[k] as usize);
            if (*e).var == (*primary).var {
                let merged = if (*e).mode() == (*primary).mode() { (*e).mode() } else { Mode::Update };
                (*primary).set_mode(merged);
                (*e).set_mode(Mode::Alias);
            } else {
                order[kept] = order[k];
                kept += 1;
                primary = e;
            }
        }
        kept
    }
}

/// A waiter for writing makes no version, but `cancel` has counted it if it came later.
///
/// # Safety
/// The variable's lock is held.
#[inline(always)]
unsafe fn forget_uncounted_write(var: *const VarInner) {
    // SAFETY: contract.
    unsafe {
        let cancelled = (*var).cancelled();
        if cancelled > *(*var).version.get() {
            (*var).extra_or_new().cancelled.store(cancelled - 1, Ordering::Relaxed);
        }
    }
}

/// The outcome that a completed op stores in its written variables.
pub(crate) struct Verdict<'a> {
    /// Fails every write.
    pub all: Option<Failure>,
    /// Fails single accesses, by declared number.
    pub single: &'a [(usize, Failure)],
}

impl Verdict<'_> {
    /// # Safety
    /// `op` is a complete op of the caller and has an access `i`.
    #[inline(always)]
    unsafe fn of(&self, op: *mut OpBlock, i: usize) -> Option<Failure> {
        if self.all.is_some() {
            return self.all.clone();
        }
        if self.single.is_empty() {
            return None;
        }
        // A duplicate's number means the same variable. SAFETY: `fail_write` checks the numbers;
        // contract.
        let same = |j: usize| unsafe { (*OpBlock::entry(op, j)).var == (*OpBlock::entry(op, i)).var };
        self.single.iter().find(|(j, _)| same(*j)).map(|(_, f)| f.clone())
    }
}

/// Stores the outcome of a write in its variable. Returns what is dropped after the variable's lock
/// is released: the failure before, and what a device knew of the value.
///
/// # Safety
/// The caller holds the lock of the variable, and the grant of the write.
#[inline(always)]
unsafe fn set_result(
    var: *const VarInner,
    mode: Mode,
    new: Option<Failure>,
    counts_as_write: bool,
    on_device: bool,
) -> (Option<Failure>, Option<Garbage>) {
    let (mut old, mut garbage) = (None, None);
    // SAFETY: contract.
    unsafe {
        if counts_as_write {
            *(*var).version.get() += 1;
        } else {
            forget_uncounted_write(var);
        }
        let kept = &mut *(*var).failure.get();
        // A partial write that does not fail itself keeps what was there; a whole one heals.
        if new.is_some() || (kept.is_some() && mode == Mode::Write) {
            old = std::mem::replace(kept, new);
        }
        if let Some(extra) = (*var).extra() {
            // The host has written the value; what a device wrote was noted before.
            let healed = counts_as_write && mode == Mode::Write && !on_device && kept.is_none();
            if healed {
                (*extra.sync.get()).healed(garbage.get_or_insert_with(Garbage::default));
            }
        }
    }
    (old, garbage)
}

/// Gives all accesses of a complete op back, one lock at a time; ops that become ready are appended
/// to `ready`. The accesses of the op may not be looked at afterwards, the op block itself still
/// belongs to the caller.
///
/// # Safety
/// All accesses of `op` are granted, its closure is gone and the caller owns it.
#[inline]
pub(crate) unsafe fn release(op: *mut OpBlock, verdict: &Verdict<'_>, counts_as_write: bool, ready: &mut Chain) {
    // SAFETY: contract: a granted access keeps its variable alive until it is given back here;
    // state, version and failure change under the variable's lock, by the holder of the write
    // grant.
    unsafe {
        for i in 0..OpBlock::len(op) {
            let e = OpBlock::entry(op, i);
            let (var, mode) = ((*e).var, (*e).mode());
            if mode == Mode::Alias {
                continue;
            }
            let new = if mode == Mode::Read { None } else { verdict.of(op, i) };
            let mut replaced = (None, None);
            perturb();
            (*var).lock.lock();
            let state = &mut *(*var).state.get();
            #[cfg(debug_assertions)]
            if counts_as_write {
                crate::testing::trace((*op).name.as_str(), i, *(*var).version.get() + (mode != Mode::Read) as u64);
            }
            if mode == Mode::Read {
                state.reads -= 1;
                if state.reads == 0 {
                    state.grant_next(ready);
                }
            } else {
                debug_assert!(state.writing && state.reads == 0);
                replaced = set_result(var, mode, new, counts_as_write, OpBlock::has(op, ON_DEVICE));
                state.writing = false;
                state.grant_next(ready);
            }
            let dead = state.orphan && state.idle();
            (*var).lock.unlock();
            drop(replaced);
            if dead {
                free_var(var);
            }
        }
    }
}
