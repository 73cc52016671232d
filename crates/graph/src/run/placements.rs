//! Places of the nodes of a graph by the arrays of a call, and the graphs in parts that follow.

use super::cached_op::CachedOp;
use super::parts::{NodePlaces, PartedGraph};
use super::plan_cache::CallSignature;
use super::prepared::PreparedCall;
use crate::compile::interrupt::Interrupter;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::OpError;
use mxrt_tensor::{Context, NDArray, StorageType};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Calls whose placements are remembered, and as many warnings.
const MAX_KNOWN: usize = 64;

/// Bytes of the data of a call that returns within microseconds.
const SHORT: usize = 16 << 10;

/// Storage types of the inputs of a graph.
pub(super) type InputStorage = SmallVec<[StorageType; 8]>;

/// Facts about a call's arrays that decide where nodes run.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct PlacementKey {
    /// storage types of the inputs, where sparse arrays come in
    pub storage: Option<InputStorage>,
    pub types: CallSignature,
    pub context: Context,
}

/// The graph in parts; none where one op runs all of it.
type Placement = Option<Arc<PartedGraph>>;

/// The placements of a graph that are remembered.
#[derive(Default)]
pub(super) struct Placements {
    known: Mutex<HashMap<PlacementKey, Placement>>,
    /// the last one that was looked up, so that calls on the same types compute no hash; apart, as
    /// graphs are made on small stacks
    last: Mutex<Option<Box<(PlacementKey, Placement)>>>,
    /// notice of what runs on the host, from the first call with a node without a kernel
    pub notice: OnceLock<String>,
    noticed: AtomicBool,
    /// warnings of dense copies that nobody took yet
    warnings: Mutex<Vec<String>>,
}

impl Placements {
    fn get(&self, key: &PlacementKey) -> Option<Placement> {
        if let Some(last) = &*self.last.lock()
            && last.0 == *key
        {
            return Some(last.1.clone());
        }
        let found = self.known.lock().get(key).cloned()?;
        let before = self.last.lock().replace(Box::new((key.clone(), found.clone())));
        drop(before);
        Some(found)
    }

    /// The graph in parts for these places, if another placement has it.
    fn of_places(&self, places: &NodePlaces) -> Placement {
        self.known.lock().values().flatten().find(|graph| graph.places == *places).cloned()
    }

    fn insert(&self, key: PlacementKey, placement: Placement) {
        let mut known = self.known.lock();
        let before = if known.len() >= MAX_KNOWN { std::mem::take(&mut *known) } else { HashMap::new() };
        known.insert(key, placement);
        drop(known);
        drop(before);
    }

    pub fn warn(&self, texts: Vec<String>) {
        let mut warnings = self.warnings.lock();
        warnings.extend(texts);
        // A border may never take them.
        warnings.truncate(MAX_KNOWN);
    }
}

impl CachedOp {
    /// The graph in parts for a call, if no single op can run all of it.
    pub(super) fn parts(
        &self,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Placement, OpError> {
        let by_context = || self.context_key(call.binding.context(call.data), call.types);
        let Some(key) = self.storage_key(call).or_else(by_context) else { return Ok(None) };
        let known = self.placements.get(&key);
        let at_once = |known: &Placement| match (&key.storage, known) {
            (None, known) => known.is_none(),
            (Some(_), known) => is_short(call.data) && known.as_ref().is_none_or(|graph| graph.repeatable),
        };
        if interrupter.is_quick() && !known.as_ref().is_some_and(at_once) {
            return Err(interrupter.give_up());
        }
        known.map_or_else(|| self.place(key), Ok)
    }

    /// The graph in parts for what the key says.
    pub(super) fn parts_for(&self, key: PlacementKey) -> Result<Placement, OpError> {
        self.placements.get(&key).map_or_else(|| self.place(key), Ok)
    }

    fn place(&self, key: PlacementKey) -> Result<Placement, OpError> {
        let places = match (&self.groups, &key.storage) {
            (Some(nodes), _) => Some(NodePlaces::Contexts { nodes: nodes.clone(), results: None }),
            (None, Some(storage)) => self.places_by_storage(storage, &key.types, key.context)?,
            (None, None) => self.places_by_context(key.context, &key.types)?,
        };
        let of_places = |places| match self.placements.of_places(&places) {
            Some(known) => Ok(known),
            None => PartedGraph::new(self, places).map(Arc::new),
        };
        let placement = places.map(of_places).transpose()?;
        self.placements.insert(key, placement.clone());
        Ok(placement)
    }

    /// Says which operators run on the host because a device has no kernel for them; once, after a
    /// call with such an operator.
    pub fn take_notice(&self) -> Option<&str> {
        let notice = self.placements.notice.get()?;
        (!self.placements.noticed.swap(true, Ordering::Relaxed)).then_some(notice)
    }

    /// Warnings, in MXNet's words, of nodes that copy sparse arrays densely: those of calls since
    /// this was asked.
    pub fn take_storage_warnings(&self) -> Vec<String> {
        if !self.knows_storage { Vec::new() } else { std::mem::take(&mut *self.placements.warnings.lock()) }
    }
}

/// Whether a call on this data returns within microseconds, as far as is known.
fn is_short(data: &[&NDArray]) -> bool {
    let bytes = data.iter().try_fold(0_usize, |all, array| all.checked_add(array.estimated_bytes()?));
    bytes.is_some_and(|bytes| bytes <= SHORT)
}
