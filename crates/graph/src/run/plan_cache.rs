//! The programs of a [`crate::CachedOp`], by signature; bounded, the one unused for longest goes first.

use super::program::Program;
use crate::compile::build::{CacheLimit, Plan};
use mxrt_tensor::TensorType;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Types of the inputs of a call.
pub type CallSignature = SmallVec<[TensorType; 4]>;

/// State of a plan cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// plans kept now
    pub plans: usize,
    /// plans built so far
    pub built: u64,
    /// plans given up so far
    pub evicted: u64,
    /// bytes of the plans themselves, about
    pub plan_bytes: usize,
    /// bytes of folded and packed weights that the plans keep; what several share counts once
    pub constant_bytes: usize,
    /// plans that may be kept
    pub max_plans: usize,
    /// bytes that may be kept
    pub max_bytes: usize,
}

/// Programs by signature.
pub struct PlanCache {
    programs: RwLock<HashMap<CallSignature, Arc<Program>>>,
    limit: CacheLimit,
    clock: AtomicU64,
    built: AtomicU64,
    evicted: AtomicU64,
}

impl PlanCache {
    pub fn new(limit: CacheLimit) -> PlanCache {
        let zero = || AtomicU64::new(0);
        PlanCache { programs: RwLock::default(), limit, clock: zero(), built: zero(), evicted: zero() }
    }

    pub fn get(&self, types: &[TensorType]) -> Option<Arc<Program>> {
        let programs = self.programs.read();
        let found = programs.get(types)?;
        self.used(found);
        Some(found.clone())
    }

    /// Exact order does not matter, so the clock only moves when a plan is built.
    pub fn used(&self, program: &Program) {
        let now = self.clock.load(Ordering::Relaxed);
        if program.last_used() != now {
            program.use_at(now);
        }
    }

    /// Whether a program needs packed weights that the cached programs do not have; false for the first program.
    pub fn needs_more(&self, new: &Program) -> bool {
        let programs = self.programs.read();
        let kept = || programs.values().map(|p| &**p);
        !programs.is_empty() && HeldBytes::by(kept().chain([new])).packed > HeldBytes::by(kept()).packed
    }

    /// Whether the packed weights of all these programs fit beside those that are kept. `raw` as in [`insert`](Self::insert).
    pub fn has_room(&self, new: &[&Program], raw: usize) -> bool {
        let programs = self.programs.read();
        let all: Vec<&Program> = programs.values().map(|p| &**p).chain(new.iter().copied()).collect();
        self.packings_fit(&all, raw)
    }

    /// Keeps a program that was just built, and gives up others to make room. `raw` is the size of the parameters that it
    /// reads: packed weights beside those of the program with most may take 1.5 times as much. Returns whether any was given up.
    pub fn insert(&self, types: &[TensorType], program: &Arc<Program>, raw: usize) -> bool {
        program.use_at(self.clock.fetch_add(1, Ordering::Relaxed) + 1);
        self.built.fetch_add(1, Ordering::Relaxed);
        let mut programs = self.programs.write();
        let mut dropped = Vec::new();
        while !programs.is_empty() && (programs.len() >= self.limit.plans || !self.fits(&programs, program, raw)) {
            let oldest = programs.iter().min_by_key(|(_, p)| p.last_used()).map(|(k, _)| k.clone());
            dropped.extend(oldest.and_then(|key| programs.remove(&key)));
        }
        programs.insert(types.iter().cloned().collect(), program.clone());
        // Giving memory back takes a while; callers need not wait for it.
        drop(programs);
        self.evicted.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        !dropped.is_empty()
    }

    fn fits(&self, programs: &HashMap<CallSignature, Arc<Program>>, new: &Arc<Program>, raw: usize) -> bool {
        let all: Vec<&Program> = programs.values().chain([new]).map(|p| &**p).collect();
        let held = HeldBytes::by(all.iter().copied());
        held.plans + held.computed <= self.limit.bytes && self.packings_fit(&all, raw)
    }

    /// The program with most counts as the first packing, so that it does not matter in which order they came.
    fn packings_fit(&self, all: &[&Program], raw: usize) -> bool {
        let most = all.iter().map(|program| HeldBytes::by([*program]).packed).max().unwrap_or(0);
        HeldBytes::by(all.iter().copied()).packed - most <= (raw + raw / 2).max(self.limit.packed)
    }

    pub fn stats(&self) -> CacheStats {
        let programs = self.programs.read();
        let held = HeldBytes::by(programs.values().map(|p| &**p));
        CacheStats {
            plans: programs.len(),
            built: self.built.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            plan_bytes: held.plans,
            constant_bytes: held.computed,
            max_plans: self.limit.plans,
            max_bytes: self.limit.bytes,
        }
    }
}

/// Bytes that programs hold. What several share counts once.
#[derive(Default)]
struct HeldBytes {
    /// of plans
    plans: usize,
    /// of constants that are computed
    computed: usize,
    /// of constants for one state of the parameters, computed or not
    packed: usize,
}

impl HeldBytes {
    fn by<'a>(programs: impl IntoIterator<Item = &'a Program>) -> HeldBytes {
        let mut held = HeldBytes::default();
        let (mut plans, mut blocks, mut slots) = (HashSet::new(), HashMap::new(), HashMap::new());
        for plan in programs.into_iter().flat_map(|program| program.plans()) {
            if !plans.insert(std::ptr::from_ref::<Plan>(plan)) {
                continue;
            }
            held.plans += plan.own_bytes();
            plan.consts.held(&mut blocks);
            slots.extend(plan.consts.slots.iter().map(|slot| (slot.key.as_str(), slot.bytes)));
        }
        held.computed = blocks.values().sum();
        held.packed = slots.values().sum();
        held
    }
}
