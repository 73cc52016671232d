//! The op that a thread runs, for observers in other threads.
//!
//! The runner notes its op before the closure and takes it back after. A looker marks the note
//! first; a runner that finds the mark when it takes its note back waits until the looker is done,
//! so the op exists while a thread looks at it.

use crate::op::block::{COUNTED, EPOCH, Mode, OpBlock, SMALL};
use crate::process::slot::{GlobalMutex, Slot};
use crate::sync::clock;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Held by the thread that looks, for as long as any note is marked.
static LOOKING: GlobalMutex<()> = GlobalMutex::new(());

/// The note of one thread.
pub(crate) struct ThreadNote {
    op: AtomicPtr<OpBlock>,
    /// Ticks; 0: not known. Only large ops are timed.
    since: AtomicU64,
}

/// The information that an observer gets about a running op.
pub(crate) struct Seen {
    pub name: String,
    pub device: String,
    /// Ticks; 0: not known.
    pub since: u64,
    /// Numbers of variables, and whether they are written.
    pub vars: Vec<(u64, bool)>,
}

fn marked(op: *mut OpBlock) -> *mut OpBlock {
    op.map_addr(|a| a | 1)
}

impl ThreadNote {
    pub fn new() -> Self {
        ThreadNote { op: AtomicPtr::new(null_mut()), since: AtomicU64::new(0) }
    }

    /// The thread starts to run an op; returns what it was running before, for `end`.
    ///
    /// # Safety
    /// `op` stays what it is until `end`.
    #[inline(always)]
    pub unsafe fn begin(&self, op: *mut OpBlock) -> (*mut OpBlock, u64) {
        let outer = (self.op.load(Ordering::Relaxed), self.since.load(Ordering::Relaxed));
        // SAFETY: contract.
        let since = if unsafe { OpBlock::has(op, SMALL) } { 0 } else { clock::now() };
        self.since.store(since, Ordering::Relaxed);
        if outer.0.is_null() {
            self.op.store(op, Ordering::Release);
        } else {
            // The outer op may be marked: its looker must find out that it is not the present one
            // any more.
            self.replace(op);
        }
        (outer.0.map_addr(|a| a & !1), outer.1)
    }

    /// The epoch in which the op that this thread runs is counted, if it is. For that thread alone.
    #[cold]
    pub fn epoch(&self) -> Option<usize> {
        let op = self.op.load(Ordering::Relaxed).map_addr(|a| a & !1);
        // SAFETY: the op runs in this thread, so that it exists; nobody else changes its flags.
        let flags = if op.is_null() { 0 } else { unsafe { (*op).flags } };
        (flags & COUNTED != 0).then_some(usize::from(flags & EPOCH != 0))
    }

    /// The op has run.
    #[inline(always)]
    pub fn end(&self, outer: (*mut OpBlock, u64)) {
        self.since.store(outer.1, Ordering::Relaxed);
        self.replace(outer.0);
    }

    #[inline(always)]
    fn replace(&self, op: *mut OpBlock) {
        if self.op.swap(op, Ordering::AcqRel).addr() & 1 != 0 {
            wait_for_looker();
        }
    }

    /// The op that runs in this thread now.
    pub fn look(&self) -> Option<Seen> {
        let looking = LOOKING.lock();
        let op = self.op.load(Ordering::Acquire);
        if op.is_null() || self.op.compare_exchange(op, marked(op), Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return None;
        }
        // SAFETY: the op is marked, so its runner waits before it completes it; what is read here
        // does not change while an op runs.
        let seen = unsafe { see(op, self.since.load(Ordering::Relaxed)) };
        let _ = self.op.compare_exchange(marked(op), op, Ordering::AcqRel, Ordering::Relaxed);
        drop(looking);
        Some(seen)
    }

    /// Forgets the op, in a forked child, for threads that do not exist there.
    pub fn forget(&self) {
        self.op.store(null_mut(), Ordering::Relaxed);
    }
}

#[cold]
fn wait_for_looker() {
    drop(LOOKING.lock());
}

/// # Safety
/// The op is marked and runs.
unsafe fn see(op: *mut OpBlock, since: u64) -> Seen {
    // SAFETY: contract; the grants of a running op keep its variables alive.
    unsafe {
        let vars = (0..OpBlock::len(op)).map(|i| {
            let e = OpBlock::entry(op, i);
            ((*(*e).var).id, (*e).mode() != Mode::Read)
        });
        Seen {
            name: (*op).name.as_str().to_owned(),
            device: OpBlock::place(op).to_string(),
            since,
            vars: vars.collect(),
        }
    }
}

impl Slot {
    /// Name of the thread that uses the slot, as far as it is known.
    pub fn thread_name(&self) -> String {
        match &*self.name.lock() {
            name if name.is_empty() => format!("thread {}", self.number),
            name => name.clone(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    /// `look` reads the op between its mark and the end of its lock.
    #[test]
    fn a_runner_whose_note_is_marked_goes_on_when_the_looker_is_done() {
        let (running, ended) = (Arc::new(ThreadNote::new()), Arc::new(AtomicBool::new(false)));
        let looking = LOOKING.lock();
        // Only compared, never read.
        running.op.store(marked(std::ptr::without_provenance_mut(64)), Ordering::SeqCst);
        let (note, done) = (running.clone(), ended.clone());
        let runner = std::thread::spawn(move || {
            note.end((null_mut(), 0));
            done.store(true, Ordering::SeqCst);
        });
        while !running.op.load(Ordering::SeqCst).is_null() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(!ended.load(Ordering::SeqCst), "the op would be completed while it is read");
        drop(looking);
        runner.join().unwrap();
        assert!(ended.load(Ordering::SeqCst));
    }
}
