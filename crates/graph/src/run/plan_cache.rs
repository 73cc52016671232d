//! A bounded cache of the plans of a [`crate::CachedOp`], by signature. The least recently used
//! plan is dropped first.

use super::call_plan::CallPlan;
use crate::compile::options::CacheLimit;
use crate::plan::Plan;
use mxrt_engine::ForkSafeRwLock as RwLock;
use mxrt_tensor::TensorType;
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
    /// plans dropped so far
    pub evicted: u64,
    /// approximate bytes of the plans themselves
    pub plan_bytes: usize,
    /// bytes of folded and packed weights that the plans keep; shared weights count once
    pub constant_bytes: usize,
    /// limit of the number of plans
    pub max_plans: usize,
    /// limit of the bytes
    pub max_bytes: usize,
}

impl CacheStats {
    /// Statistics of an empty cache with this limit.
    pub(super) fn of_limit(limit: CacheLimit) -> CacheStats {
        CacheStats { max_plans: limit.plans, max_bytes: limit.bytes, ..CacheStats::default() }
    }

    /// Adds the statistics of another cache. Each of the two may keep as much as the limit.
    pub(super) fn with(self, other: CacheStats) -> CacheStats {
        CacheStats {
            plans: self.plans + other.plans,
            built: self.built + other.built,
            evicted: self.evicted + other.evicted,
            plan_bytes: self.plan_bytes + other.plan_bytes,
            constant_bytes: self.constant_bytes + other.constant_bytes,
            ..self
        }
    }
}

/// A cache of plans by signature: by the types of the parameters, then by those of the data. A
/// [`super::BoundOp`] holds the types of its parameters as a pointer from this cache, so a look-up
/// costs the same for any number of parameters.
pub struct PlanCache {
    groups: RwLock<Vec<PlanGroup>>,
    limit: CacheLimit,
    clock: AtomicU64,
    built: AtomicU64,
    evicted: AtomicU64,
}

/// The plans for parameters of the same types.
struct PlanGroup {
    params: Arc<[TensorType]>,
    plans: HashMap<CallSignature, Arc<CallPlan>>,
}

impl PlanGroup {
    fn is_for(&self, params: &[TensorType]) -> bool {
        std::ptr::eq(&*self.params, params) || *self.params == *params
    }
}

fn call_plans(groups: &[PlanGroup]) -> impl Iterator<Item = &Arc<CallPlan>> {
    groups.iter().flat_map(|group| group.plans.values())
}

impl PlanCache {
    pub fn new(limit: CacheLimit) -> PlanCache {
        let zero = || AtomicU64::new(0);
        PlanCache { groups: RwLock::default(), limit, clock: zero(), built: zero(), evicted: zero() }
    }

    /// Returns the pointer by which the cache knows these types of parameters.
    pub fn known_types(&self, params: &[TensorType]) -> Arc<[TensorType]> {
        let mut groups = self.groups.write();
        groups.retain(|group| !group.plans.is_empty() || Arc::strong_count(&group.params) > 1);
        if let Some(group) = groups.iter().find(|group| group.is_for(params)) {
            return group.params.clone();
        }
        let params: Arc<[TensorType]> = params.into();
        groups.push(PlanGroup { params: params.clone(), plans: HashMap::new() });
        params
    }

    pub fn get(&self, params: &[TensorType], data: &[TensorType]) -> Option<Arc<CallPlan>> {
        let groups = self.groups.read();
        let found = groups.iter().find(|group| group.is_for(params))?.plans.get(data)?;
        // Exact order does not matter, so the clock only moves when a plan is built.
        let now = self.clock.load(Ordering::Relaxed);
        if found.last_used() != now {
            found.use_at(now);
        }
        Some(found.clone())
    }

    /// Keeps a plan that was just built, and drops others to make room. `raw` is the size of the
    /// parameters that it reads. In addition to the packed weights of the largest plan, those of
    /// others may take 1.5 times this size. Returns whether a plan was dropped.
    pub fn insert(&self, params: &[TensorType], data: CallSignature, plan: &Arc<CallPlan>, raw: usize) -> bool {
        plan.use_at(self.clock.fetch_add(1, Ordering::Relaxed) + 1);
        self.built.fetch_add(1, Ordering::Relaxed);
        let mut groups = self.groups.write();
        let mut dropped = Vec::new();
        while call_plans(&groups).next().is_some() && !self.fits(&groups, plan, raw) {
            let oldest = call_plans(&groups).min_by_key(|p| p.last_used()).cloned();
            groups.iter_mut().for_each(|group| {
                let gone = group.plans.extract_if(|_, p| oldest.as_ref().is_some_and(|oldest| Arc::ptr_eq(p, oldest)));
                dropped.extend(gone.map(|(_, p)| p));
            });
        }
        groups.retain(|group| !group.plans.is_empty() || Arc::strong_count(&group.params) > 1);
        let at = groups.iter().position(|group| group.is_for(params)).unwrap_or(groups.len());
        if at == groups.len() {
            groups.push(PlanGroup { params: params.into(), plans: HashMap::new() });
        }
        groups[at].plans.insert(data, plan.clone());
        // Giving memory back takes a while; callers need not wait for it.
        drop(groups);
        self.evicted.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        !dropped.is_empty()
    }

    fn fits(&self, groups: &[PlanGroup], new: &Arc<CallPlan>, raw: usize) -> bool {
        let all: Vec<&CallPlan> = call_plans(groups).chain([new]).map(|p| &**p).collect();
        let held = HeldBytes::by(all.iter().copied());
        // The plan with most counts as the first packing, so that it does not matter in which
        // order they came.
        let most = all.iter().map(|plan| HeldBytes::by([*plan]).packed).max().unwrap_or(0);
        let packings_fit = held.packed - most <= (raw + raw / 2).max(self.limit.packed);
        all.len() <= self.limit.plans.max(1) && held.plans + held.computed <= self.limit.bytes && packings_fit
    }

    pub fn stats(&self) -> CacheStats {
        let groups = self.groups.read();
        let held = HeldBytes::by(call_plans(&groups).map(|p| &**p));
        CacheStats {
            plans: call_plans(&groups).count(),
            built: self.built.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            plan_bytes: held.plans,
            constant_bytes: held.computed,
            max_plans: self.limit.plans,
            max_bytes: self.limit.bytes,
        }
    }
}

/// Bytes that plans hold. Shared bytes count once.
#[derive(Default)]
struct HeldBytes {
    /// bytes of plans
    plans: usize,
    /// bytes of constants that are computed
    computed: usize,
    /// bytes of constants for one state of the parameters, computed or not
    packed: usize,
}

impl HeldBytes {
    fn by<'a>(call_plans: impl IntoIterator<Item = &'a CallPlan>) -> HeldBytes {
        let mut held = HeldBytes::default();
        let (mut plans, mut blocks, mut slots) = (HashSet::new(), HashMap::new(), HashMap::new());
        for plan in call_plans.into_iter().flat_map(|plan| plan.plans()).flat_map(Plan::with_inner) {
            if !plans.insert(std::ptr::from_ref::<Plan>(plan)) {
                continue;
            }
            held.plans += plan.own_bytes();
            plan.consts.held(&mut blocks);
            slots.extend(plan.consts.slots.iter().map(|slot| (slot.expression, slot.bytes)));
        }
        held.computed = blocks.values().sum();
        held.packed = slots.values().sum();
        held
    }
}
