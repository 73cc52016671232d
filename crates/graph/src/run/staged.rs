//! Calls of graphs in several stages: one op of the engine that runs them all.

use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::executable::cursor::Cursor;
use super::executable::inputs::{HeldValue, RequestInputs};
use super::executable::stage_call::{ExecutableRequest, TurnEnd};
use super::host_site::HostSite;
use super::inputs::CallInputs;
use super::plan_cache::CallSignature;
use super::prepared::{Binding, PreparedCall, fits};
use super::staged_graph::{CheckedCall, Staged};
use super::started::Started;
use crate::compile::interrupt::Interrupter;
use mxrt_engine::{Cost, Engine, Failure, FailureKind, OpError, RequestScope};
use mxrt_ops::EnginePar;
use mxrt_tensor::{
    CallLaunch, CallProgress, Context, DeferredResult, Interest, NDArray, ResultPlace, TensorMut, TensorType,
    launch_call,
};
use smallvec::SmallVec;

impl CachedOp {
    /// Pushes a call.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn start_staged(
        &self,
        staged: &Staged,
        call: &PreparedCall<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Started, OpError> {
        if interrupter.is_quick() && self.engine().is_naive() {
            return Err(interrupter.give_up());
        }
        let types = (call.types)();
        let checked = staged.check(&types, interrupter)?;
        if let (Some(given), Some(types)) = (call.outputs, &checked.outputs) {
            fits(given, types)?;
        }
        let context = call.binding.context(call.data);
        if context.device().is_none() {
            let push = || self.push_staged(staged, call, types, &checked, context);
            return self.states.in_order(|| {
                let (started, states) = push()?;
                self.states.push(&states, |input| call.binding.array(input, call.data))?;
                Ok(started)
            });
        }
        // The host computes these graphs wherever their inputs are.
        let here = self.copies_here(call)?;
        let refs: Vec<&NDArray> = here.iter().collect();
        let binding = Binding::unbound(self.unbound.sources.clone());
        let copied = PreparedCall { binding: &binding, data: &refs, known: None, ..*call };
        self.states.in_order(|| {
            let (started, states) = self.push_staged(staged, &copied, types, &checked, context)?;
            self.states.push(&states, |input| here.get(input))?;
            self.states.copy_back(&refs, |input| call.binding.array(input, call.data))?;
            Ok(started)
        })
    }

    /// Copies of all inputs on the host.
    fn copies_here(&self, call: &PreparedCall<'_>) -> Result<Vec<NDArray>, OpError> {
        let missing = || OpError::new(FailureKind::Operator, "an input of the graph has no array").op("CachedOp");
        let copy = |i| call.binding.array(i, call.data).ok_or_else(missing)?.copy_to_context(Context::default());
        (0..self.num_inputs()).map(copy).collect()
    }

    /// Pushes the op that runs the stages on arrays of the host. Returns the results, which will be
    /// on `context`, and arrays of the new states.
    #[cfg_attr(debug_assertions, track_caller)]
    fn push_staged(
        &self,
        staged: &Staged,
        call: &PreparedCall<'_>,
        types: CallSignature,
        checked: &CheckedCall,
        context: Context,
    ) -> Result<(Started, Vec<NDArray>), OpError> {
        // What fails in here names the request.
        let _request = RequestScope::begin();
        let (engine, executable) = (self.engine(), staged.executable.clone());
        let Results { started, written, places } = self.staged_results(checked, context, call.options)?;
        let states = self.new_states(&types)?;
        let outs: SmallVec<[&NDArray; 2]> = written.iter().chain(&states).collect();
        let wanted: SmallVec<[Interest; 2]> = written.iter().filter_map(|a| a.interest()).collect();
        let launch = CallLaunch {
            params: call.binding.params.as_ref(),
            priority: call.options.priority,
            deadline: call.options.deadline,
            in_parts: true,
            ..CallLaunch::new(self.name().clone(), call.data, &outs, Cost::of(checked.cost_ns.max(Cost::SMALL_NS)))
        };
        let (random, limit) = (executable.is_random().then(|| self.draw()), self.options.cores);
        let (sources, all_bound) = (call.binding.sources.clone(), call.binding.all_bound);
        let (sinks, mut cursor) = (Sinks { engine, context, places, states: self.states.held() }, Cursor::default());
        launch_call(engine, launch, move |part| {
            let _limited = limit.map(|limit| part.ctx.limit_cores(limit));
            let arrays = CallInputs { sources: &sources, all_bound, arrays: part.inputs };
            let inputs = RequestInputs { arrays, types: &types };
            let site = HostSite::new(EnginePar(part.ctx), &inputs.arrays, &wanted);
            let request = ExecutableRequest { engine, site: &site, inputs: &inputs, random };
            Ok(match executable.run(&request, &mut cursor)? {
                TurnEnd::Again => CallProgress::Again,
                TurnEnd::Suspended(begin) => CallProgress::Suspended(begin),
                TurnEnd::Done(made) => CallProgress::Done(sinks.take(made, part.outputs)?),
            })
        });
        drop(outs);
        Ok((started.on(context)?, states))
    }

    /// Makes arrays of the host for the new states.
    fn new_states(&self, types: &CallSignature) -> Result<Vec<NDArray>, OpError> {
        let state = |input: &Option<usize>| {
            let tensor = types.get((*input)?)?.clone();
            Some(NDArray::new(self.engine(), Context::default(), tensor))
        };
        self.states.inputs().iter().filter_map(state).collect()
    }

    /// Arrays for the results of the user.
    fn staged_results(
        &self,
        checked: &CheckedCall,
        context: Context,
        options: &CallOptions,
    ) -> Result<Results, OpError> {
        let engine = self.engine();
        if let Some(types) = &checked.outputs {
            let make = |t: &TensorType| {
                let array = NDArray::new(engine, Context::default(), t.clone())?;
                Ok(if options.cancel_on_drop { array.cancel_on_drop() } else { array })
            };
            let written = types.iter().map(make).collect::<Result<SmallVec<[NDArray; 2]>, OpError>>()?;
            let places = written.iter().map(|_| None).collect();
            return Ok(Results { started: written.iter().cloned().collect(), written, places });
        }
        let make = |_| DeferredResult::new(engine, context, options.cancel_on_drop);
        let made = (0..self.num_outputs()).map(make).collect::<Result<SmallVec<[DeferredResult; 2]>, OpError>>()?;
        let started = made.iter().map(|result| result.array.clone()).collect();
        let (written, places) = made.into_iter().map(|result| (result.done, Some(result.place))).unzip();
        Ok(Results { started, written, places })
    }
}

/// Arrays for the results of a call.
struct Results {
    started: Started,
    /// arrays that the op writes
    written: SmallVec<[NDArray; 2]>,
    /// place of a new array for each result, if the op does not write into one that is there
    places: SmallVec<[Option<ResultPlace>; 2]>,
}

/// Destinations of the results of a call.
struct Sinks {
    engine: &'static Engine,
    context: Context,
    /// place of a new array for each result of the user, if none is there
    places: SmallVec<[Option<ResultPlace>; 2]>,
    /// flag for each new state: the op writes it
    states: Vec<bool>,
}

impl Sinks {
    /// Takes the results, then the new states. Returns the outputs of the op that are missing.
    fn take(&self, mut made: Vec<HeldValue>, outputs: &mut [TensorMut<'_>]) -> Result<Vec<(usize, Failure)>, OpError> {
        let states = made.split_off(self.places.len().min(made.len()));
        let written = states.into_iter().zip(&self.states).filter(|(_, written)| **written).map(|(state, _)| state);
        let mut missing = Vec::new();
        for (i, value) in made.into_iter().chain(written).enumerate() {
            let failure = match self.places.get(i) {
                Some(Some(place)) => leave(self.engine, value, place, self.context)?,
                _ => store(value, outputs.get_mut(i))?,
            };
            missing.extend(failure.map(|failure| (i, failure)));
        }
        Ok(missing)
    }
}

/// Leaves a result as a new array; returns its failure if it has one.
fn leave(
    engine: &'static Engine,
    value: HeldValue,
    place: &ResultPlace,
    context: Context,
) -> Result<Option<Failure>, OpError> {
    let (tensor, block) = match value {
        HeldValue { content: Err(failure), .. } => return Ok(Some(failure)),
        HeldValue { tensor: Some(tensor), content: Ok(block) } => (tensor, block),
        HeldValue { tensor: None, content: Ok(_) } => return Err(misfit()),
    };
    let home = if context.device().is_some() { Context::default() } else { context };
    let array = NDArray::from_block(engine, home, tensor, block)?;
    place.put(if home == context { array } else { array.copy_to_context(context)? });
    Ok(None)
}

/// Copies a result into an output of the op; returns its failure if it has one.
fn store(value: HeldValue, output: Option<&mut TensorMut<'_>>) -> Result<Option<Failure>, OpError> {
    if let Err(failure) = &value.content {
        return Ok(Some(failure.clone()));
    }
    let (from, to) = (value.view()?, output.ok_or_else(misfit)?.bytes_mut());
    if from.bytes().len() != to.len() {
        return Err(misfit());
    }
    to.copy_from_slice(from.bytes());
    Ok(None)
}

fn misfit() -> OpError {
    OpError::new(FailureKind::Operator, "a result has another type than was inferred").op("CachedOp")
}
