//! The plans of a [`super::CachedOp`], by signature; bounded, the one unused for longest goes first.

use super::build::{CacheLimit, Plan};
use mxrt_tensor::TensorType;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Types of the inputs of a call.
pub type Signature = SmallVec<[TensorType; 4]>;

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

struct Entry {
    plan: Arc<Plan>,
    last_used: AtomicU64,
}

/// Plans by signature.
pub struct PlanCache {
    plans: RwLock<HashMap<Signature, Entry>>,
    limit: CacheLimit,
    clock: AtomicU64,
    built: AtomicU64,
    evicted: AtomicU64,
}

impl PlanCache {
    pub fn new(limit: CacheLimit) -> PlanCache {
        let zero = || AtomicU64::new(0);
        PlanCache { plans: RwLock::default(), limit, clock: zero(), built: zero(), evicted: zero() }
    }

    pub fn get(&self, types: &[TensorType]) -> Option<Arc<Plan>> {
        let plans = self.plans.read();
        let found = plans.get(types)?;
        // Exact order does not matter, so the clock only moves when a plan is built.
        found.last_used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(found.plan.clone())
    }

    /// Keeps a plan that was just built, and gives up others to make room. Returns whether any was given up.
    pub fn insert(&self, types: &[TensorType], plan: &Arc<Plan>) -> bool {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        self.built.fetch_add(1, Ordering::Relaxed);
        let mut plans = self.plans.write();
        let mut dropped = Vec::new();
        while !plans.is_empty() && (plans.len() >= self.limit.plans || self.bytes_with(&plans, plan) > self.limit.bytes)
        {
            let oldest = plans.iter().min_by_key(|(_, e)| e.last_used.load(Ordering::Relaxed)).map(|(k, _)| k.clone());
            dropped.extend(oldest.and_then(|key| plans.remove(&key)));
        }
        plans.insert(types.iter().cloned().collect(), Entry { plan: plan.clone(), last_used: AtomicU64::new(now) });
        // Giving memory back takes a while; callers need not wait for it.
        drop(plans);
        self.evicted.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        !dropped.is_empty()
    }

    fn bytes_with(&self, plans: &HashMap<Signature, Entry>, new: &Plan) -> usize {
        let (own, constants) = bytes(plans.values());
        own + constants + new.own_bytes()
    }

    pub fn stats(&self) -> CacheStats {
        let plans = self.plans.read();
        let (plan_bytes, constant_bytes) = bytes(plans.values());
        CacheStats {
            plans: plans.len(),
            built: self.built.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            plan_bytes,
            constant_bytes,
            max_plans: self.limit.plans,
            max_bytes: self.limit.bytes,
        }
    }
}

/// Bytes of plans, and of the constants they hold.
fn bytes<'a>(entries: impl Iterator<Item = &'a Entry>) -> (usize, usize) {
    let mut blocks = HashMap::new();
    let mut own = 0;
    for entry in entries {
        own += entry.plan.own_bytes();
        entry.plan.consts.held(&mut blocks);
    }
    (own, blocks.values().sum())
}
