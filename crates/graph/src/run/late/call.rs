//! Calls of graphs in stages.

use super::cut::ValueSource;
use super::{LateGraph, LateStage, MAX_CHECKED};
use crate::compile::interrupt::Interrupter;
use crate::ir::{PartialType, describe, infer_inputs};
use crate::memory::constants::{ValueKey, allocate};
use crate::run::cached_op::{Binding, CachedOp};
use crate::run::call_options::CallOptions;
use crate::run::execute::{NestedSite, PlanRequest};
use crate::run::inputs::{CallInputs, GraphInputs};
use crate::run::launch::{HostSite, fits};
use crate::run::program::{BatchCursor, GroupEnd, Program};
use crate::run::state_updates::push_copy;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::memory::Block;
use mxrt_engine::{Cost, Engine, Failure, FailureKind, OpError, RequestScope, Resume, WaitError};
use mxrt_ops::{EnginePar, RandomKey, run_late};
use mxrt_tensor::{
    CallLaunch, CallProgress, Context, Interest, LateArray, NDArray, TensorMut, TensorRef, TensorType, launch_call,
};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// A value that outlives its stage.
struct HeldValue {
    /// none if a late operator in front of it has failed
    tensor: Option<TensorType>,
    content: Result<Block, Failure>,
}

impl HeldValue {
    fn failed(failure: &Failure) -> HeldValue {
        HeldValue { tensor: None, content: Err(failure.clone()) }
    }
}

/// Values by number; those that are not there yet, or not any more, are none.
type HeldValues = Vec<Option<HeldValue>>;

/// A result: an array of the caller's to be.
type LateResult = Result<(TensorType, Block), Failure>;

/// How far a call has come.
#[derive(Default)]
struct LateCursor {
    stage: usize,
    held: HeldValues,
    /// what the stage has begun
    segment: Option<OpenSegment>,
}

/// A segment that waits for the program.
enum OpenSegment {
    /// which knows the types that its plan depends on
    Planned(Arc<OnceLock<Result<Arc<Program>, OpError>>>),
    /// which runs an operator
    Begun { program: Arc<Program>, blocks: Vec<Block>, cursor: BatchCursor },
}

/// How a part of a call ends.
enum LateEnd {
    /// The program is asked by this function.
    Suspended(Box<dyn FnOnce(Resume) + Send>),
    Done(Vec<LateResult>),
}

/// How a part of a stage ends.
enum StageEnd {
    /// The program is asked by this function; the segment goes on when it has answered.
    Suspended(OpenSegment, Box<dyn FnOnce(Resume) + Send>),
    Done(Vec<HeldValue>),
}

impl CachedOp {
    /// Whether the shapes of results follow from contents: whether calls return [`LateArray`]s.
    pub fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// As [`CachedOp::call_with`] for a graph that [is late](CachedOp::is_late).
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn call_late(&self, inputs: &[&NDArray], options: &CallOptions) -> Result<SmallVec<[LateArray; 2]>, OpError> {
        self.check_count(inputs.len())?;
        self.check_contexts(inputs.iter().copied().enumerate())?;
        let types = inputs.iter().map(|a| a.tensor_type()).collect();
        self.start_late(&self.unbound, inputs, types, options, &mut Interrupter::never())
    }

    /// Pushes a call with these types of all inputs.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(in crate::run) fn start_late(
        &self,
        binding: &Binding,
        data: &[&NDArray],
        types: Vec<TensorType>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<SmallVec<[LateArray; 2]>, OpError> {
        let Some(late) = self.late.clone() else {
            return Err(OpError::new(FailureKind::Operator, "the shapes of this graph are known before it runs"));
        };
        self.check_late(&late, &types, interrupter)?;
        let context = binding.context(data);
        let (here, bound);
        let refs: Vec<&NDArray>;
        let (binding, data) = match context.device() {
            None => (binding, data),
            Some(_) => {
                here = self.copies_here(binding, data)?;
                refs = here.iter().collect();
                bound = Binding { sources: self.unbound.sources.clone(), params: None, random: binding.random };
                (&bound, refs.as_slice())
            }
        };
        let home = if context.device().is_some() { Context::default() } else { context };
        // What fails in here names the request.
        let _request = RequestScope::begin();
        let engine = self.engine();
        let result = |_| {
            let array = LateArray::new(engine, context)?;
            Ok(if options.cancel_on_drop { array.cancel_on_drop() } else { array })
        };
        let results = (0..self.num_outputs()).map(result).collect::<Result<SmallVec<[LateArray; 2]>, OpError>>()?;
        let done: SmallVec<[&NDArray; 2]> = results.iter().map(LateArray::done).collect();
        let places: SmallVec<[_; 2]> = results.iter().map(LateArray::place).collect();
        let wanted: SmallVec<[Interest; 2]> = done.iter().filter_map(|a| a.interest()).collect();
        let call = CallLaunch {
            params: binding.params.as_ref(),
            priority: options.priority,
            deadline: options.deadline,
            in_parts: late.asks_program,
            ..CallLaunch::new(self.name().clone(), data, &done, Cost::Large)
        };
        let drawn = || binding.random.unwrap_or_else(|| self.draw());
        let random: SmallVec<[RandomKey; 1]> = late.random.then(drawn).into_iter().collect();
        let sources = binding.sources.clone();
        let mut cursor = LateCursor::default();
        launch_call(engine, call, move |part| {
            let inputs = CallInputs { sources: &sources, arrays: part.inputs };
            let site = HostSite::new(EnginePar(part.ctx), &inputs, &wanted);
            let request = PlanRequest { site: &site, inputs: &inputs, random: &random };
            let results = match late.run(engine, &request, &types, &mut cursor)? {
                LateEnd::Suspended(begin) => return Ok(CallProgress::Suspended(begin)),
                LateEnd::Done(results) => results,
            };
            let mut missing = Vec::new();
            for (i, (made, place)) in results.into_iter().zip(&places).enumerate() {
                match made {
                    Ok((tensor, block)) => {
                        let array = NDArray::from_block(engine, home, tensor, block)?;
                        place.put(if home == context { array } else { array.copy_to_context(context)? });
                    }
                    Err(failure) => missing.push((i, failure)),
                }
            }
            Ok(CallProgress::Done(missing))
        });
        drop(done);
        Ok(results)
    }

    /// Copies of all inputs on the host, which computes these graphs wherever their inputs are.
    fn copies_here(&self, binding: &Binding, data: &[&NDArray]) -> Result<Vec<NDArray>, OpError> {
        let missing = || OpError::new(FailureKind::Operator, "an input of the graph has no array").op("CachedOp");
        let copy = |i| binding.array(i, data).ok_or_else(missing)?.copy_to_context(Context::default());
        (0..self.num_inputs()).map(copy).collect()
    }

    /// Fails where these inputs do not fit the graph, whatever they hold. Builds the plan of the
    /// first segment.
    fn check_late(
        &self,
        late: &LateGraph,
        types: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<(), OpError> {
        let signature: super::super::plan_cache::CallSignature = types.iter().cloned().collect();
        if late.checked.lock().contains(&signature) {
            return Ok(());
        }
        let known: Vec<PartialType> = types.iter().map(PartialType::from).collect();
        infer_inputs(self.graph(), &known)?;
        if let Some((first, inputs)) = late.first() {
            let types: Vec<TensorType> = inputs.iter().map(|i| types[*i].clone()).collect();
            first.program(&types, &(0..types.len()).collect::<Vec<_>>(), interrupter)?;
        }
        let mut checked = late.checked.lock();
        if checked.len() >= MAX_CHECKED {
            checked.clear();
        }
        checked.insert(signature);
        Ok(())
    }
}

/// Waits for the results of a call, and stores them in the arrays of the caller if there are any.
pub fn settle(
    engine: &'static Engine,
    late: &[LateArray],
    outputs: Option<&[&NDArray]>,
) -> Result<SmallVec<[NDArray; 2]>, OpError> {
    let made = late.iter().map(|array| array.wait().cloned());
    let made: SmallVec<[NDArray; 2]> = made.collect::<Result<_, WaitError>>().map_err(|error| match error {
        WaitError::Failed(failure) => OpError::from(failure),
        other => OpError::new(FailureKind::Operator, other.to_string()).op("CachedOp"),
    })?;
    let Some(outputs) = outputs else { return Ok(made) };
    fits(outputs, &made.iter().map(NDArray::tensor_type).collect::<Vec<_>>())?;
    made.iter().zip(outputs).for_each(|(from, to)| push_copy(engine, from, to));
    Ok(outputs.iter().map(|a| (*a).clone()).collect())
}

impl LateGraph {
    /// Runs all stages, up to an operator of the program; `types` are those of the inputs of the
    /// graph.
    fn run(
        &self,
        engine: &'static Engine,
        request: &PlanRequest<'_>,
        types: &[TensorType],
        at: &mut LateCursor,
    ) -> Result<LateEnd, OpError> {
        at.held.resize_with(self.last_use.len(), || None);
        while let Some(stage) = self.stages.get(at.stage) {
            if request.site.is_cancelled() {
                let message = "the results were dropped while the graph was running";
                return Err(OpError::new(FailureKind::Cancelled, message).op("CachedOp"));
            }
            let failed = |failure: &Failure| stage.makes().iter().map(|_| HeldValue::failed(failure)).collect();
            let inputs = StageInputs { sources: stage.sources(), outer: request.inputs, types, held: &at.held };
            let made = match inputs.without_type() {
                Some(failure) => failed(&failure),
                None => match self.run_stage(engine, at.stage, request, &inputs, at.segment.take()) {
                    Ok(StageEnd::Done(made)) => made,
                    Ok(StageEnd::Suspended(segment, begin)) => {
                        at.segment = Some(segment);
                        return Ok(LateEnd::Suspended(begin));
                    }
                    Err(error) => failed(&request.site.failure(error)),
                },
            };
            for (value, made) in stage.makes().iter().zip(made) {
                at.held[*value] = Some(made);
            }
            for (value, last) in at.held.iter_mut().zip(&self.last_use) {
                if *last <= at.stage && value.is_some() {
                    *value = None;
                }
            }
            at.stage += 1;
        }
        self.results(request, types, std::mem::take(&mut at.held)).map(LateEnd::Done)
    }

    fn run_stage(
        &self,
        engine: &'static Engine,
        s: usize,
        request: &PlanRequest<'_>,
        inputs: &StageInputs<'_>,
        begun: Option<OpenSegment>,
    ) -> Result<StageEnd, OpError> {
        match &self.stages[s] {
            LateStage::Segment { op, .. } => self.run_segment(engine, s, op, request, inputs, begun),
            LateStage::Operator { node, sources, .. } => {
                let all: Vec<usize> = (0..sources.len()).collect();
                if let Some(failure) = all.iter().find_map(|i| inputs.failure(*i)) {
                    return Err(failure.clone().into());
                }
                let tensors = all.iter().map(|i| inputs.tensor(*i)).collect::<Result<SmallVec<[_; 4]>, _>>()?;
                let (par, memory) = (request.site.par(), request.site.memory());
                let made = run_late((node.op, &node.attrs), self.options, par, memory, &tensors).map_err(|error| {
                    let types = inputs.all_types();
                    describe(error, (node.stands_for, &node.name, &node.attr_text), types.iter())
                })?;
                let value = |(tensor, block)| HeldValue { tensor: Some(tensor), content: Ok(block) };
                Ok(StageEnd::Done(made.into_iter().map(value).collect()))
            }
        }
    }

    /// Runs a segment with the program for the types that its inputs have.
    fn run_segment(
        &self,
        engine: &'static Engine,
        s: usize,
        op: &Arc<CachedOp>,
        request: &PlanRequest<'_>,
        inputs: &StageInputs<'_>,
        begun: Option<OpenSegment>,
    ) -> Result<StageEnd, OpError> {
        let memory = request.site.memory();
        let (program, begun) = match begun {
            Some(OpenSegment::Begun { program, blocks, cursor }) => (program, Some((blocks, cursor))),
            Some(OpenSegment::Planned(answer)) => match answer.get() {
                Some(program) => (program.clone()?, None),
                None => return Err(OpError::new(FailureKind::NotCompleted, "the program did not say the types")),
            },
            None => {
                let types = inputs.all_types();
                match op.find(&types) {
                    Some(program) => (program, None),
                    None if op.asks_program() => return Ok(plan_by_program(op, types)),
                    None => {
                        (op.program(&types, &(0..types.len()).collect::<Vec<_>>(), &mut Interrupter::never())?, None)
                    }
                }
            }
        };
        let made = program.outputs().to_vec();
        let (mut blocks, mut cursor) = match begun {
            Some(begun) => begun,
            None => {
                let blocks =
                    made.iter().map(|t| allocate(memory, t.bytes())).collect::<Result<Vec<Block>, OpError>>()?;
                (blocks, BatchCursor::default())
            }
        };
        // Raw weights that another stage reads as well stay.
        let released = |input: usize| match *inputs.sources.get(input)? {
            ValueSource::Input(i) => self.read_once.contains(&i).then_some(i),
            ValueSource::Held(_) => None,
        };
        let site = NestedSite { outer: request.site, released: &released };
        let random: SmallVec<[RandomKey; 2]> = match request.random.first() {
            Some(key) => (0..program.random_draws() as u64).map(|draw| key.inner((s as u64) << 32 | draw)).collect(),
            None => SmallVec::new(),
        };
        let missing = {
            let mut outputs: SmallVec<[TensorMut<'_>; 2]> = made
                .iter()
                .zip(&mut blocks)
                .map(|(t, block)| TensorMut::new(t.dtype, &t.shape, &mut block.as_mut_slice()[..t.bytes()]))
                .collect();
            let request = PlanRequest { site: &site, inputs, random: &random };
            loop {
                match program.run_group(engine, &mut cursor, &request, &mut outputs)? {
                    GroupEnd::Again => {}
                    GroupEnd::Done(missing) => break missing,
                    GroupEnd::Suspended(begin) => {
                        drop(outputs);
                        return Ok(StageEnd::Suspended(OpenSegment::Begun { program, blocks, cursor }, begin));
                    }
                }
            }
        };
        let mut values: Vec<HeldValue> =
            made.into_iter().zip(blocks).map(|(t, block)| HeldValue { tensor: Some(t), content: Ok(block) }).collect();
        for (output, failure) in missing {
            values[output].content = Err(failure);
        }
        Ok(StageEnd::Done(values))
    }

    /// The results, out of the values that are left.
    fn results(
        &self,
        request: &PlanRequest<'_>,
        types: &[TensorType],
        mut held: HeldValues,
    ) -> Result<Vec<LateResult>, OpError> {
        let memory = request.site.memory();
        let copy = |tensor: TensorRef<'_>| -> Result<(TensorType, Block), OpError> {
            let made = TensorType::new(tensor.dtype, tensor.shape.clone());
            let mut block = allocate(memory, made.bytes())?;
            block.as_mut_slice()[..made.bytes()].copy_from_slice(tensor.bytes());
            Ok((made, block))
        };
        let mut results = Vec::with_capacity(self.outputs.len());
        for (i, source) in self.outputs.iter().enumerate() {
            let again = self.outputs[i + 1..].contains(source);
            let all = StageInputs { sources: std::slice::from_ref(source), outer: request.inputs, types, held: &held };
            if let Some(failure) = all.failure(0) {
                results.push(Err(failure.clone()));
                continue;
            }
            results.push(Ok(match *source {
                ValueSource::Held(value) if !again => match held[value].take() {
                    Some(HeldValue { tensor: Some(tensor), content: Ok(block) }) => (tensor, block),
                    _ => return Err(not_held()),
                },
                _ => copy(all.tensor(0)?)?,
            }));
        }
        Ok(results)
    }
}

/// Has the plan of a segment built where the program can be asked: not in a thread of the engine.
fn plan_by_program(op: &Arc<CachedOp>, types: Vec<TensorType>) -> StageEnd {
    let answer: Arc<OnceLock<_>> = Arc::default();
    let (op, told) = (op.clone(), answer.clone());
    let begin = move |resume: Resume| {
        let (asked, open) = (op.clone(), Mutex::new(Some(resume)));
        op.ask_program(Arc::new(move || {
            let all: Vec<usize> = (0..types.len()).collect();
            let program = asked.program(&types, &all, &mut Interrupter::never());
            // A child has both halves of this or none.
            asked.engine().without_fork(|| {
                if let Some(resume) = open.lock().take() {
                    let _ = told.set(program);
                    resume.resume();
                }
            });
        }));
    };
    StageEnd::Suspended(OpenSegment::Planned(answer), Box::new(begin))
}

fn not_held() -> OpError {
    OpError::new(FailureKind::Operator, "a stage reads a value that no stage before it has made")
}

/// The inputs of a stage.
struct StageInputs<'a> {
    sources: &'a [ValueSource],
    outer: &'a dyn GraphInputs,
    /// of the inputs of the whole graph
    types: &'a [TensorType],
    held: &'a [Option<HeldValue>],
}

impl StageInputs<'_> {
    fn held(&self, value: usize) -> Result<&HeldValue, OpError> {
        self.held.get(value).and_then(Option::as_ref).ok_or_else(not_held)
    }

    /// The failure of an input that has no type because of it.
    fn without_type(&self) -> Option<Failure> {
        self.sources.iter().find_map(|source| match *source {
            ValueSource::Held(value) => match self.held(value).ok()? {
                HeldValue { tensor: None, content: Err(failure) } => Some(failure.clone()),
                _ => None,
            },
            ValueSource::Input(_) => None,
        })
    }

    /// Types of all inputs. Called where all have one.
    fn all_types(&self) -> Vec<TensorType> {
        let held = |value: usize| self.held(value).ok().and_then(|held| held.tensor.clone());
        let known = self.sources.iter().filter_map(|source| match *source {
            ValueSource::Input(input) => self.types.get(input).cloned(),
            ValueSource::Held(value) => held(value),
        });
        known.collect()
    }
}

impl GraphInputs for StageInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        match *self.sources.get(input).ok_or_else(not_held)? {
            ValueSource::Input(i) => self.outer.tensor(i),
            ValueSource::Held(value) => match self.held(value)? {
                HeldValue { tensor: Some(tensor), content: Ok(block) } => {
                    Ok(TensorRef::new(tensor.dtype, &tensor.shape, &block.as_slice()[..tensor.bytes()]))
                }
                _ => Err(not_held()),
            },
        }
    }

    fn key(&self, input: usize) -> ValueKey {
        match self.sources.get(input) {
            Some(ValueSource::Input(i)) => self.outer.key(*i),
            _ => ValueKey::default(),
        }
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        match *self.sources.get(input)? {
            ValueSource::Input(i) => self.outer.failure(i),
            ValueSource::Held(value) => self.held.get(value)?.as_ref()?.content.as_ref().err(),
        }
    }

    fn any_failed(&self) -> bool {
        self.outer.any_failed() || (0..self.sources.len()).any(|i| self.failure(i).is_some())
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        self.outer.params_key()
    }
}
