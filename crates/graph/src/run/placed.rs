//! Graphs over several devices: a part for each, with copies between them.
//!
//! A part has the nodes of one context that come after equally many changes of the context. It is
//! compiled as a graph of its own. A call pushes the parts in order, so that each reads what the
//! caller's arrays held when the call began, and returns at once.
//!
//! Nodes have contexts of their own where the caller says so (`group2ctx`). Elsewhere all are on the
//! device of the call's arrays, except those that it cannot run: operators of the program; on devices
//! with kernels of their own also loops and branches, and with [`BuildOptions::fallback`] operators
//! without a kernel for the types of the call.
//!
//! [`BuildOptions::fallback`]: crate::BuildOptions::fallback

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::executable::cut::{Cut, CutStage, StagePart, ValueSource, cut_by_place};
use super::lacking::without_kernel;
use super::plan_cache::CallSignature;
use super::prepared::PreparedCall;
use super::started::{Started, call_error};
use super::state_updates::push_copy;
use crate::compile::interrupt::Interrupter;
use crate::compile::report::PlanReport;
use crate::ir::{GraphNode, infer};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{DeviceId, FailureKind, OpError};
use mxrt_tensor::{Context, NDArray, TensorType};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Divisions of a graph that are remembered.
const MAX_PLACEMENTS: usize = 8;

/// Signatures for which the nodes without a kernel are remembered.
const MAX_SIGNATURES: usize = 64;

/// Nodes for which a device has no kernel, by number.
type Lacking = Arc<[usize]>;

/// Context of a call's arrays, and what has no kernel there.
type Division = (Context, Lacking);

/// Graphs in parts.
#[derive(Default)]
pub(super) struct Placements {
    /// none for graphs that need no division
    placed: Mutex<Vec<(Division, Option<Arc<Placed>>)>>,
    lacking: Mutex<HashMap<(Context, CallSignature), Lacking>>,
    /// notice of what runs on the host, from the first call with a node without a kernel
    notice: OnceLock<String>,
    noticed: AtomicBool,
}

/// A graph in parts.
pub(super) struct Placed {
    parts: Vec<PlacedPart>,
    values: usize,
    outputs: Vec<ValueSource>,
    /// context of the results; none: they stay where they are computed
    results: Option<Context>,
}

struct PlacedPart {
    context: Context,
    op: CachedOp,
    sources: Vec<ValueSource>,
    makes: Vec<usize>,
    /// whether other parts read what it makes
    is_read: bool,
}

impl CachedOp {
    /// The parts for a call, if one device cannot run all of the graph.
    pub(super) fn placed(
        &self,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Arc<Placed>>, OpError> {
        if !self.may_be_placed() {
            return Ok(None);
        }
        self.placed_for(call.binding.context(call.data), call.types, interrupter)
    }

    /// Whether calls with some arrays may need a division.
    fn may_be_placed(&self) -> bool {
        self.groups.is_some() || self.hosted || self.options.fallback
    }

    /// The parts for calls with arrays of a context and these types, if one device cannot run all of
    /// the graph.
    fn placed_for(
        &self,
        context: Context,
        types: impl Fn() -> CallSignature,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Arc<Placed>>, OpError> {
        let key = match (&self.groups, context.device()) {
            (Some(_), _) => (Context::default(), Lacking::default()),
            (None, None) => return Ok(None),
            (None, Some(_)) if !self.options.fallback => (context, Lacking::default()),
            (None, Some(_)) => (context, self.lacking(context, types(), interrupter)?),
        };
        let known = self.placements.placed.lock().iter().find(|(of, _)| *of == key).map(|(_, placed)| placed.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let placed = match &self.groups {
            Some(contexts) => Some(self.place(contexts, None)?),
            None => match self.contexts_on(context, &key.1)? {
                Some(contexts) => Some(self.place(&contexts, Some(context))?),
                None => None,
            },
        };
        if !key.1.is_empty() {
            self.placements.notice.get_or_init(|| self.on_host(context, &key.1));
        }
        let placed = placed.map(Arc::new);
        let mut all = self.placements.placed.lock();
        if all.len() >= MAX_PLACEMENTS {
            all.clear();
        }
        all.push((key, placed.clone()));
        Ok(placed)
    }

    /// Says which operators run on the host because a device has no kernel for them; once, after a
    /// call with such an operator.
    pub fn take_notice(&self) -> Option<&str> {
        let notice = self.placements.notice.get()?;
        (!self.placements.noticed.swap(true, Ordering::Relaxed)).then_some(notice)
    }

    /// The plan for arrays like these: that of the host, with a note of what runs where.
    pub fn plan_for(&self, inputs: &[&NDArray]) -> Result<PlanReport, OpError> {
        let types: Vec<TensorType> = inputs.iter().map(|array| array.tensor_type()).collect();
        let mut report = self.plan(&types)?;
        let context = self.unbound.context(inputs);
        self.note_libraries_of_calls(&mut report, context, &types)?;
        let lacking = self.lacking(context, types.into(), &mut Interrupter::never())?;
        if !lacking.is_empty() {
            report.note(self.on_host(context, &lacking));
        }
        self.note_stored(&mut report, inputs)?;
        Ok(report)
    }

    /// Notes what libraries compute in calls with arrays of a context and these types: in the whole
    /// plan, or in each part's.
    pub(super) fn note_libraries_of_calls(
        &self,
        report: &mut PlanReport,
        context: Context,
        types: &[TensorType],
    ) -> Result<(), OpError> {
        let never = &mut Interrupter::never();
        let placed = match self.may_be_placed() {
            true => self.placed_for(context, || types.into(), never)?,
            false => None,
        };
        match placed {
            Some(placed) => {
                placed.each_part(types, never, |part, types| part.op.note_libraries(report, part.context, types))
            }
            None => self.note_libraries(report, context, types),
        }
    }

    /// Whether anything runs on the host in calls with these arrays, because it has no kernel.
    pub(super) fn has_lacking(&self, inputs: &[&NDArray]) -> Result<bool, OpError> {
        let types = inputs.iter().map(|array| array.tensor_type()).collect();
        Ok(!self.lacking(self.unbound.context(inputs), types, &mut Interrupter::never())?.is_empty())
    }

    /// The nodes that run on the host because a device has no kernel for them and these types of the
    /// inputs; none without [`BuildOptions::fallback`](crate::BuildOptions::fallback).
    fn lacking(
        &self,
        context: Context,
        types: CallSignature,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Lacking, OpError> {
        let Some(device) = context.device().filter(|_| self.options.fallback && self.groups.is_none()) else {
            return Ok(Lacking::default());
        };
        if self.is_data_dependent() || self.engine().device(device)?.backend().host_addressable() {
            return Ok(Lacking::default());
        }
        let key = (context, types);
        if let Some(known) = self.placements.lacking.lock().get(&key) {
            return Ok(known.clone());
        }
        if interrupter.is_quick() {
            return Err(interrupter.give_up());
        }
        let lacking: Lacking = self.find_lacking(device, &key.1)?.into();
        let mut all = self.placements.lacking.lock();
        if all.len() >= MAX_SIGNATURES {
            all.clear();
        }
        all.insert(key, lacking.clone());
        Ok(lacking)
    }

    fn find_lacking(&self, device: DeviceId, types: &[TensorType]) -> Result<Vec<usize>, OpError> {
        // What is wrong with the graph or an operator is said where it is compiled.
        let Ok(types) = infer(&self.source, types) else { return Ok(Vec::new()) };
        without_kernel(&self.source, &types, device, self.options.kernel)
    }

    fn on_host(&self, context: Context, lacking: &[usize]) -> String {
        let mut names = BTreeSet::new();
        names.extend(lacking.iter().map(|n| self.source.nodes[*n].stands_for));
        let names: Vec<&str> = names.into_iter().collect();
        format!("{context} has no kernel for {}: run on the host, with copies around (fallback)", names.join(", "))
    }

    /// Contexts of the nodes for arrays on a device that has no kernel for some; none if all run in
    /// one place.
    fn contexts_on(&self, context: Context, lacking: &[usize]) -> Result<Option<Vec<Context>>, OpError> {
        let Some(device) = context.device() else { return Ok(None) };
        // What follows from contents is computed on the host, which then runs all of the graph.
        if self.is_data_dependent() {
            return Ok(None);
        }
        let own_kernels = !self.engine().device(device)?.backend().host_addressable();
        let hosted = |(n, node): (usize, &GraphNode)| {
            node.is_stage() || (own_kernels && node.flow.is_some()) || lacking.contains(&n)
        };
        if !self.source.nodes.iter().enumerate().any(hosted) {
            return Ok(None);
        }
        let place = |node: (usize, &GraphNode)| if hosted(node) { Context::default() } else { context };
        Ok(Some(self.source.nodes.iter().enumerate().map(place).collect()))
    }

    fn place(&self, contexts: &[Context], results: Option<Context>) -> Result<Placed, OpError> {
        // All contexts of the host are one.
        let of = |context: &Context| if context.device().is_some() { *context } else { Context::default() };
        let mut places: Vec<Context> = Vec::new();
        let number = |context: &Context| match places.iter().position(|place| *place == of(context)) {
            Some(number) => number,
            None => {
                places.push(of(context));
                places.len() - 1
            }
        };
        let numbers: Vec<usize> = contexts.iter().map(number).collect();
        let Cut { stages, values, outputs } = cut_by_place(&self.source, &numbers);
        let read: HashSet<ValueSource> = stages.iter().flat_map(|stage| stage.sources.iter().copied()).collect();
        let part = |stage: CutStage| {
            let (StagePart::Segment(graph), Some(place)) = (stage.part, stage.place) else { return Err(misplaced()) };
            let op = CachedOp::of_graph(self.engine(), self.name().clone(), graph, self.options)?;
            let op = op.with_random(self.random().clone());
            let is_read = stage.makes.iter().any(|value| read.contains(&ValueSource::Held(*value)));
            let context = places.get(place).copied().ok_or_else(misplaced)?;
            Ok(PlacedPart { context, op, sources: stage.sources, makes: stage.makes, is_read })
        };
        let parts = stages.into_iter().map(part).collect::<Result<Vec<PlacedPart>, OpError>>()?;
        Ok(Placed { parts, values: values.len(), outputs, results })
    }

    /// Pushes the parts.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn start_placed(
        &self,
        placed: &Placed,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        if interrupter.is_quick() {
            return Err(interrupter.give_up());
        }
        let input = |i: usize| call.binding.array(i, call.data).ok_or_else(misplaced);
        let mut made: Vec<Option<NDArray>> = vec![None; placed.values];
        let mut push =
            |interrupter: &mut Interrupter<'_>| placed.call_parts(&input, &mut made, call.options, interrupter);
        if placed.results.is_some() && self.states.len() > 0 {
            // Copies of states go to the host and back: no other call may come between. Plans, for
            // which the program may be asked, are built before.
            placed.prepare(&(call.types)(), interrupter)?;
            self.states.in_order(|| push(&mut Interrupter::never()))?;
        } else {
            push(interrupter)?;
        }
        let result = |source: &ValueSource| {
            let array = value(source, &input, &made)?;
            match placed.results {
                Some(context) if array.context() != context => array.copy_to_context(context),
                _ => Ok(array),
            }
        };
        let results = placed.outputs.iter().map(result).collect::<Result<SmallVec<[NDArray; 2]>, OpError>>()?;
        match call.outputs {
            Some(outputs) => Started::Known(results).stored(outputs, interrupter),
            None => Ok(Started::Known(results)),
        }
    }
}

impl Placed {
    /// Pushes the parts, one after the other, and stores what they make.
    #[cfg_attr(debug_assertions, track_caller)]
    fn call_parts<'a>(
        &self,
        input: &impl Fn(usize) -> Result<&'a NDArray, OpError>,
        made: &mut [Option<NDArray>],
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<(), OpError> {
        for part in &self.parts {
            let results = part.call(input, made, options, interrupter)?;
            for (value, array) in part.makes.iter().zip(results) {
                made[*value] = Some(array);
            }
        }
        Ok(())
    }

    /// Builds the plans of all parts for these types of the inputs.
    fn prepare(&self, inputs: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<(), OpError> {
        self.each_part(inputs, interrupter, |_, _| Ok(()))
    }

    /// Builds the plans of the parts for these types of the inputs, and gives each part and the types
    /// that it reads to `f`. Ends where the types of a part's results are known only after it has run.
    fn each_part(
        &self,
        inputs: &[TensorType],
        interrupter: &mut Interrupter<'_>,
        mut f: impl FnMut(&PlacedPart, &[TensorType]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut made: Vec<Option<TensorType>> = vec![None; self.values];
        for part in &self.parts {
            let type_of = |source: &ValueSource| match *source {
                ValueSource::Input(i) => inputs.get(i).cloned(),
                ValueSource::Held(value) => made[value].clone(),
                ValueSource::Unread => None,
            };
            let types = part.sources.iter().map(type_of).collect::<Option<Vec<_>>>().ok_or_else(misplaced)?;
            let results = part.op.result_types(&types, interrupter)?;
            f(part, &types)?;
            let Some(results) = results else { return Ok(()) };
            for (value, tensor) in part.makes.iter().zip(results) {
                made[*value] = Some(tensor);
            }
        }
        Ok(())
    }
}

impl PlacedPart {
    /// Pushes the part, with copies of what other devices hold.
    #[cfg_attr(debug_assertions, track_caller)]
    fn call<'a>(
        &self,
        input: &impl Fn(usize) -> Result<&'a NDArray, OpError>,
        made: &[Option<NDArray>],
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let mut arrays = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let array = value(source, input, made)?;
            arrays.push(if array.context() == self.context { array } else { array.copy_to_context(self.context)? });
        }
        // Its results may be dropped here when others have read them.
        let cancel_on_drop = options.cancel_on_drop && !self.is_read;
        let options = CallOptions { cancel_on_drop, ..*options };
        let refs: Vec<&NDArray> = arrays.iter().collect();
        let started = self.op.call(&refs, None, &options, interrupter)?;
        for state in self.op.states.inputs().iter().flatten() {
            let (here, source) = (&arrays[*state], &self.sources[*state]);
            let held = value(source, input, made)?;
            if held.context() != here.context() {
                push_copy(here, &held)?;
            }
        }
        let made = started.arrays_unless(interrupter).map_err(call_error)?;
        // Operators that read nothing run on the host.
        let at_home = |array: NDArray| match array.context() == self.context {
            true => Ok(array),
            false => array.copy_to_context(self.context),
        };
        made.into_iter().map(at_home).collect()
    }
}

fn value<'a>(
    source: &ValueSource,
    input: &impl Fn(usize) -> Result<&'a NDArray, OpError>,
    made: &[Option<NDArray>],
) -> Result<NDArray, OpError> {
    match *source {
        ValueSource::Input(i) => input(i).cloned(),
        ValueSource::Held(value) => made.get(value).cloned().flatten().ok_or_else(misplaced),
        ValueSource::Unread => Err(misplaced()),
    }
}

fn misplaced() -> OpError {
    OpError::new(FailureKind::Operator, "a part of the graph reads a value that no part before it has made")
        .op("CachedOp")
}
