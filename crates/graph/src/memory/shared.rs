//! Folded and packed weights of the whole process, by content.
//!
//! Plans of all ops, executors, modules and blocks find the same block for the same parameters. The
//! cache keeps no block alive: plans do, and arrays whose raw weights were released.

use crate::plan::{ConstBlock, Fingerprint, RememberedSets, ValueKey};
use mxrt_engine::{ForkSafeMutex as Mutex, ForkSafeRwLock as RwLock};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The constants of the process.
pub static SHARED: SharedConsts = SharedConsts::new();

/// Entries that are kept before those whose block is gone are looked for.
const FEW: usize = 256;

/// Blocks by what they hold, and the plans that remember some.
pub struct SharedConsts {
    entries: Mutex<Entries>,
    plans: Mutex<Vec<Weak<RwLock<RememberedSets>>>>,
}

struct Entries {
    by_content: BTreeMap<Fingerprint, Arc<SharedEntry>>,
    /// entries at which the next sweep is due
    sweep_at: usize,
}

/// One content. The thread that computes it holds the lock, and others that want it wait.
#[derive(Default)]
struct SharedEntry(Mutex<Weak<ConstBlock>>);

impl SharedConsts {
    const fn new() -> SharedConsts {
        let entries = Entries { by_content: BTreeMap::new(), sweep_at: FEW };
        SharedConsts { entries: Mutex::new(entries), plans: Mutex::new(Vec::new()) }
    }

    /// The block with this content. Threads that want one that is not there compute it one after
    /// the other until it is; so each gets an error of its own.
    pub fn get_or_compute<E>(
        &self,
        content: Fingerprint,
        compute: impl FnOnce() -> Result<Arc<ConstBlock>, E>,
    ) -> Result<Arc<ConstBlock>, E> {
        let entry = self.entries.lock().entry(content);
        let mut block = entry.0.lock();
        if let Some(block) = block.upgrade() {
            return Ok(block);
        }
        let made = compute()?;
        *block = Arc::downgrade(&made);
        Ok(made)
    }

    /// Notes a plan that is told which contents have been replaced.
    pub fn register(&self, plan: &Arc<RwLock<RememberedSets>>) {
        let mut plans = self.plans.lock();
        if plans.len() == plans.capacity() {
            plans.retain(|plan| plan.strong_count() > 0);
        }
        plans.push(Arc::downgrade(plan));
    }

    /// Drops what any plan remembers of older versions of these contents. No request will ask for
    /// them: versions only grow.
    pub fn forget_older(&self, written: &[ValueKey]) {
        let plans: Vec<_> = self.plans.lock().iter().filter_map(Weak::upgrade).collect();
        for plan in plans {
            let gone = plan.write().take_older(written);
            // Memory goes back to the pool when no lock is held.
            drop(gone);
        }
    }
}

impl Entries {
    fn entry(&mut self, content: Fingerprint) -> Arc<SharedEntry> {
        if self.by_content.len() >= self.sweep_at {
            // An entry that is held elsewhere is about to get a block.
            self.by_content.retain(|_, entry| match Arc::get_mut(entry) {
                Some(entry) => entry.0.lock().strong_count() > 0,
                None => true,
            });
            self.sweep_at = FEW.max(2 * self.by_content.len());
        }
        self.by_content.entry(content).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::constants::allocate;
    use mxrt_engine::{Config, Engine};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn block(bytes: usize) -> Arc<ConstBlock> {
        static ENGINE: std::sync::OnceLock<&'static Engine> = std::sync::OnceLock::new();
        let engine = ENGINE.get_or_init(|| Engine::start(Config::default()).expect("the engine starts"));
        Arc::new(ConstBlock::new(allocate(engine.memory(), bytes).expect("there is memory"), bytes))
    }

    #[test]
    fn threads_that_want_the_same_content_at_once_compute_it_once() {
        let (shared, computed, start) = (SharedConsts::new(), AtomicUsize::new(0), Barrier::new(8));
        let compute = || {
            computed.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
            Ok::<_, ()>(block(64))
        };
        let blocks: Vec<Arc<ConstBlock>> = std::thread::scope(|scope| {
            let call = || {
                start.wait();
                shared.get_or_compute(Fingerprint::of(1), compute).expect("it is computed")
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(blocks.iter().all(|b| Arc::ptr_eq(b, &blocks[0])));
        assert_eq!(computed.load(Ordering::Relaxed), 1);
        let other = shared.get_or_compute(Fingerprint::of(2), compute).expect("it is computed");
        assert!(!Arc::ptr_eq(&other, &blocks[0]), "another content");
        drop(blocks);
        shared.get_or_compute(Fingerprint::of(1), compute).expect("it is computed");
        assert_eq!(computed.load(Ordering::Relaxed), 3, "what no plan holds is gone");
    }

    #[test]
    fn an_error_reaches_each_that_wanted_the_content_and_the_next_one_may_succeed() {
        let shared = SharedConsts::new();
        for i in 0..3 {
            assert_eq!(shared.get_or_compute(Fingerprint::of(1), || Err(i)).err(), Some(i));
        }
        assert!(shared.get_or_compute(Fingerprint::of(1), || Ok::<_, ()>(block(64))).is_ok());
    }

    #[test]
    fn entries_without_a_block_do_not_pile_up_and_others_stay() {
        let shared = SharedConsts::new();
        let kept = shared.get_or_compute(Fingerprint::of("kept"), || Ok::<_, ()>(block(64))).expect("it is computed");
        for i in 0..10 * FEW {
            shared.get_or_compute(Fingerprint::of(i), || Ok::<_, ()>(block(64))).expect("it is computed");
        }
        assert!(shared.entries.lock().by_content.len() <= FEW);
        let again = shared.get_or_compute(Fingerprint::of("kept"), || Err(())).expect("it is still there");
        assert!(Arc::ptr_eq(&kept, &again));
    }
}
