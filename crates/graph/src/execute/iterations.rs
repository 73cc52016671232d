//! Runs control flow: inner plans one after the other, in the scratch memory of the step.
//!
//! The rows of a stacked output are written where they belong. A state has two places, the output
//! of the step and a copy in its scratch memory: an iteration reads one and writes the other.

use super::control_flow::{ControlFlow, InnerPlan, InnerSource};
use crate::control_flow::{FlowKind, failed_in, is_true};
use crate::plan::{BodyCall, ConstSet, GraphInputs, NestedSite, Plan, PlanRequest, RunSite, Step, StepBody, ValueKey};
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_ops::RandomKey;
use mxrt_tensor::{TensorMut, TensorRef, TensorType};
use smallvec::SmallVec;
use std::sync::Arc;

type Places<'a> = SmallVec<[&'a mut [u8]; 4]>;

/// A loop while it runs.
struct RunningLoop<'a> {
    flow: &'a ControlFlow,
    request: &'a PlanRequest<'a>,
    site: NestedSite<'a>,
    inputs: &'a [TensorRef<'a>],
    /// constants by graph
    consts: SmallVec<[Arc<ConstSet>; 3]>,
    random: Option<RandomKey>,
    arena: &'a mut [u8],
    /// values that are the same in all iterations, graph after graph
    hoisted: Vec<&'a mut [u8]>,
}

fn misplaced() -> OpError {
    OpError::new(FailureKind::Operator, "the plan places the states of a loop outside of its memory")
}

impl StepBody for ControlFlow {
    fn plans(&self) -> Vec<&Plan> {
        self.plans.iter().flat_map(InnerPlan::all).flat_map(Plan::with_inner).collect()
    }

    fn inputs_read(&self) -> Vec<usize> {
        self.plans.iter().flat_map(InnerPlan::inputs_read).collect()
    }

    fn packed_bytes(&self) -> usize {
        self.plans.iter().flat_map(|inner| &inner.plan.steps).map(Step::packed_bytes).sum()
    }

    fn run(&self, call: BodyCall<'_, '_>) -> Result<(), OpError> {
        let BodyCall { request, inputs, outputs, workspace, random } = call;
        let (arena, rest) = workspace.split_at_mut_checked(self.memory.arena).ok_or_else(misplaced)?;
        let mut places = Places::new();
        let (mut rest, mut at) = (rest, self.memory.arena);
        let states = self.memory.states.iter().chain([&self.memory.condition]);
        for range in states.chain(self.memory.hoisted.iter().flatten()) {
            let (_, tail) = rest.split_at_mut_checked(range.start - at).ok_or_else(misplaced)?;
            let (place, tail) = tail.split_at_mut_checked(range.len()).ok_or_else(misplaced)?;
            places.push(place);
            (rest, at) = (tail, range.end);
        }
        let hoisted: Vec<&mut [u8]> = places.drain(self.memory.states.len() + 1..).collect();
        let condition = places.pop().ok_or_else(misplaced)?;
        let site = NestedSite { outer: request.site, released: &|_| None };
        let mut running =
            RunningLoop { flow: self, request, site, inputs, consts: SmallVec::new(), random, arena, hoisted };
        running.constants()?;
        let (stacked, states) = outputs.split_at_mut(self.stacked);
        let mut rows: SmallVec<[&mut [u8]; 4]> = stacked.iter_mut().map(TensorMut::bytes_mut).collect();
        let mut last: Places<'_> = states.iter_mut().map(TensorMut::bytes_mut).collect();
        match self.kind {
            FlowKind::Foreach => running.foreach(&mut rows, &mut last, &mut places),
            FlowKind::WhileLoop { max_iterations } => {
                running.while_loop(max_iterations, condition, &mut rows, &mut last, &mut places)
            }
            FlowKind::Cond => running.branch(condition, &mut last),
        }
    }
}

impl<'a> RunningLoop<'a> {
    /// Looks up the constants of the graphs; the first request computes them.
    fn constants(&mut self) -> Result<(), OpError> {
        for inner in &self.flow.plans {
            self.consts.push(self.constants_of(inner));
        }
        Ok(())
    }

    fn constants_of(&self, inner: &InnerPlan) -> Arc<ConstSet> {
        let inputs = self.inner_inputs(inner, 0, &[], &[]);
        let released = |input: usize| match inner.sources.get(input)? {
            InnerSource::Constant(i) => inner.own_params.contains(i).then_some(*i),
            _ => None,
        };
        let site = NestedSite { outer: self.request.site, released: &released };
        inner.plan.constants(&PlanRequest { site: &site, inputs: &inputs, random: &[] })
    }

    fn inner_inputs<'s>(
        &'s self,
        inner: &'s InnerPlan,
        row: usize,
        states: &'s [TensorRef<'s>],
        hoisted: &'s [&'s mut [u8]],
    ) -> InnerInputs<'s> {
        InnerInputs { inner, operands: self.inputs, states, row, hoisted, outer: self.request.inputs }
    }

    /// The places of the hoisted values of a graph.
    fn hoisted_range(&self, graph: usize) -> std::ops::Range<usize> {
        let counts = &self.flow.memory.hoisted;
        let first = counts[..graph].iter().map(Vec::len).sum();
        first..first + counts[graph].len()
    }

    /// Computes the values that are the same in all iterations of a graph, when the first iteration
    /// begins. A loop without iterations computes nothing.
    fn before_first(&mut self, graph: usize) -> Result<(), OpError> {
        self.compute_before(graph)?;
        let flow = self.flow;
        let inner = &flow.plans[graph];
        let range = self.hoisted_range(graph);
        let mut places = std::mem::take(&mut self.hoisted);
        let (values, packed) = places[range].split_at_mut(inner.hoisted().len());
        let inputs = self.inner_inputs(inner, 0, &[], values);
        let done = inner.plan.pack_once(&PlanRequest { site: &self.site, inputs: &inputs, random: &[] }, packed);
        self.hoisted = places;
        done.map_err(|error| self.place(error, 0))
    }

    fn compute_before(&mut self, graph: usize) -> Result<(), OpError> {
        let Some(before) = &self.flow.plans[graph].before else { return Ok(()) };
        let consts = self.constants_of(before);
        let range = self.hoisted_range(graph);
        let (arena, mut places) = (std::mem::take(&mut self.arena), std::mem::take(&mut self.hoisted));
        let inputs = self.inner_inputs(before, 0, &[], &[]);
        let request = PlanRequest { site: &self.site, inputs: &inputs, random: &[] };
        let types = before.plan.outputs().iter();
        let mut outputs: SmallVec<[TensorMut<'_>; 4]> =
            types.zip(&mut places[range]).map(|(t, bytes)| TensorMut::new(t.dtype, &t.shape, bytes)).collect();
        let done = before.plan.run_once(&request, &consts, arena, &mut outputs);
        drop(outputs);
        (self.arena, self.hoisted) = (arena, places);
        done.map_err(|error| self.place(error, 0))
    }

    /// The states before the first iteration.
    fn first_states(&self) -> SmallVec<[TensorRef<'a>; 4]> {
        self.flow.states.iter().map(|operand| self.inputs[*operand]).collect()
    }

    /// Runs a graph once and writes its results to `outputs`.
    fn run(
        &mut self,
        graph: usize,
        iteration: usize,
        states: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), OpError> {
        if self.site.is_cancelled() {
            let error = OpError::new(FailureKind::Cancelled, "the results were dropped while the loop was running");
            return Err(self.place(error.op(self.flow.op).node(&*self.flow.node), iteration));
        }
        if iteration == 0 {
            self.before_first(graph)?;
        }
        let inner = &self.flow.plans[graph];
        let keys = self.keys(graph, iteration);
        let arena = std::mem::take(&mut self.arena);
        let inputs = self.inner_inputs(inner, iteration, states, &self.hoisted[self.hoisted_range(graph)]);
        let request = PlanRequest { site: &self.site, inputs: &inputs, random: &keys };
        let done = inner.plan.run_once(&request, &self.consts[graph], arena, outputs);
        self.arena = arena;
        done.map_err(|error| self.place(error, iteration))
    }

    /// Pieces of the random stream for the random steps of a graph in one iteration.
    fn keys(&self, graph: usize, iteration: usize) -> SmallVec<[RandomKey; 2]> {
        let Some(key) = self.random else { return SmallVec::new() };
        let draws = |g: usize| self.flow.plans[g].plan.random_draws() as u64;
        let each: u64 = (0..self.flow.plans.len()).map(draws).sum();
        let first = iteration as u64 * each + (0..graph).map(draws).sum::<u64>();
        (first..first + draws(graph)).map(|position| key.inner(position)).collect()
    }

    fn place(&self, error: OpError, iteration: usize) -> OpError {
        failed_in(error, self.flow.kind, self.flow.op, &self.flow.node, iteration)
    }

    fn foreach<'b>(
        &mut self,
        rows: &mut [&mut [u8]],
        last: &mut [&'b mut [u8]],
        spare: &mut [&'b mut [u8]],
    ) -> Result<(), OpError> {
        let count = self.flow.rows;
        for t in 0..count {
            // The last iteration writes where the results belong.
            let ends = (count - 1 - t).is_multiple_of(2);
            let (to, from) = if ends { (&mut *last, &*spare) } else { (&mut *spare, &*last) };
            self.iteration(0, t, from, rows, to)?;
        }
        if count == 0 { self.keep_first(last) } else { Ok(()) }
    }

    fn while_loop<'b>(
        &mut self,
        max_iterations: usize,
        condition: &mut [u8],
        rows: &mut [&mut [u8]],
        last: &mut [&'b mut [u8]],
        spare: &mut [&'b mut [u8]],
    ) -> Result<(), OpError> {
        let mut taken = 0;
        while taken < max_iterations {
            let (to, from) = if taken % 2 == 0 { (&mut *last, &*spare) } else { (&mut *spare, &*last) };
            if !self.decide(taken, from, condition)? {
                break;
            }
            self.iteration(1, taken, from, rows, to)?;
            taken += 1;
        }
        for (row, tensor) in rows.iter_mut().zip(&self.flow.stacked_rows) {
            row.get_mut(taken * tensor.bytes()..).ok_or_else(misplaced)?.fill(0);
        }
        match taken {
            0 => self.keep_first(last),
            odd if odd % 2 == 1 => Ok(()),
            _ => {
                last.iter_mut().zip(&*spare).for_each(|(to, from)| to.copy_from_slice(from));
                Ok(())
            }
        }
    }

    fn branch(&mut self, condition: &mut [u8], outputs: &mut [&mut [u8]]) -> Result<(), OpError> {
        let graph = if self.decide(0, &[], condition)? { 1 } else { 2 };
        let types = self.flow.plans[graph].plan.clone();
        let mut outputs: SmallVec<[TensorMut<'_>; 4]> =
            types.outputs().iter().zip(outputs).map(|(t, bytes)| TensorMut::new(t.dtype, &t.shape, bytes)).collect();
        self.run(graph, 0, &[], &mut outputs)
    }

    /// Runs graph 0 and returns its decision.
    fn decide(&mut self, iteration: usize, from: &[&mut [u8]], condition: &mut [u8]) -> Result<bool, OpError> {
        let plan = self.flow.plans[0].plan.clone();
        let made: &TensorType = &plan.outputs()[0];
        let flow = self.flow;
        let states = if iteration == 0 { self.first_states() } else { states(flow, from) };
        let mut outputs = [TensorMut::new(made.dtype, &made.shape, condition)];
        self.run(0, iteration, &states, &mut outputs)?;
        Ok(is_true(made.dtype, condition))
    }

    /// Runs one iteration of the body. States are read from `from` (in the first iteration from the
    /// operands) and written to `to`.
    fn iteration(
        &mut self,
        graph: usize,
        t: usize,
        from: &[&mut [u8]],
        rows: &mut [&mut [u8]],
        to: &mut [&mut [u8]],
    ) -> Result<(), OpError> {
        let flow = self.flow;
        let mut outputs: SmallVec<[TensorMut<'_>; 4]> = SmallVec::new();
        for (row, tensor) in rows.iter_mut().zip(&flow.stacked_rows) {
            let bytes = tensor.bytes();
            let row = row.get_mut(t * bytes..(t + 1) * bytes).ok_or_else(misplaced)?;
            outputs.push(TensorMut::new(tensor.dtype, &tensor.shape, row));
        }
        for (place, tensor) in to.iter_mut().zip(&flow.state_types) {
            outputs.push(TensorMut::new(tensor.dtype, &tensor.shape, place));
        }
        let states = if t == 0 { self.first_states() } else { states(flow, from) };
        self.run(graph, t, &states, &mut outputs)
    }

    /// Copies the first states to the last ones, for a loop without iterations.
    fn keep_first(&self, last: &mut [&mut [u8]]) -> Result<(), OpError> {
        for (to, from) in last.iter_mut().zip(self.first_states()) {
            to.copy_from_slice(from.bytes());
        }
        Ok(())
    }
}

fn states<'a>(flow: &'a ControlFlow, places: &'a [&mut [u8]]) -> SmallVec<[TensorRef<'a>; 4]> {
    flow.state_types.iter().zip(places).map(|(t, bytes)| TensorRef::new(t.dtype, &t.shape, bytes)).collect()
}

/// The inputs of an inner plan in one iteration.
struct InnerInputs<'a> {
    inner: &'a InnerPlan,
    operands: &'a [TensorRef<'a>],
    states: &'a [TensorRef<'a>],
    row: usize,
    hoisted: &'a [&'a mut [u8]],
    outer: &'a dyn GraphInputs,
}

impl InnerInputs<'_> {
    /// The input of the outer graph that feeds an input, if that is a parameter.
    fn outer_input(&self, input: usize) -> Option<usize> {
        match self.inner.sources.get(input) {
            Some(InnerSource::Constant(i)) => Some(*i),
            _ => None,
        }
    }
}

impl GraphInputs for InnerInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        let none =
            || OpError::new(FailureKind::Operator, format!("an inner plan reads input {input}, which is not there"));
        match *self.inner.sources.get(input).ok_or_else(none)? {
            InnerSource::Row(operand) => {
                let tensor = self.inner.plan.inputs.get(input).ok_or_else(none)?;
                let bytes = tensor.bytes();
                let whole = self.operands.get(operand).ok_or_else(none)?;
                let row = whole.bytes().get(self.row * bytes..(self.row + 1) * bytes).ok_or_else(none)?;
                Ok(TensorRef::new(tensor.dtype, &tensor.shape, row))
            }
            InnerSource::State(state) => self.states.get(state).copied().ok_or_else(none),
            InnerSource::Whole(operand) => self.operands.get(operand).copied().ok_or_else(none),
            InnerSource::Constant(i) => self.outer.tensor(i),
            InnerSource::Hoisted(k) => {
                let tensor = self.inner.plan.inputs.get(input).ok_or_else(none)?;
                let bytes = self.hoisted.get(k).ok_or_else(none)?;
                Ok(TensorRef::new(tensor.dtype, &tensor.shape, bytes))
            }
            InnerSource::Expression => Err(none()),
        }
    }

    fn key(&self, input: usize) -> ValueKey {
        self.outer_input(input).map_or_else(ValueKey::default, |i| self.outer.key(i))
    }

    /// Returns failures of parameters only: a step with failed operands does not run.
    fn failure(&self, input: usize) -> Option<&Failure> {
        self.outer.failure(self.outer_input(input)?)
    }

    fn any_failed(&self) -> bool {
        self.outer.any_failed()
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        self.outer.params_key()
    }

    fn packed_once(&self, number: usize) -> Option<&[u8]> {
        self.hoisted.get(self.inner.hoisted().len() + number).map(|bytes| &**bytes)
    }
}
