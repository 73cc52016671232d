//! A stage that is a loop or a branch whose graphs plans cannot hold. Each graph has an executable,
//! and these run one after the other.

use super::Executable;
use super::cursor::Cursor;
use super::flow_state::{FlowInputs, FlowState, FlowWiring};
use super::inputs::{ExecutableInputs, HeldValue, not_held};
use super::output_types::{OutputTypes, StageTypes, TypesAnswer};
use super::stage_call::{Begin, ExecutableRequest, StageCall, StageEnd, TurnEnd};
use crate::compile::options::BuildOptions;
use crate::control_flow::{FlowKind, failed_in};
use crate::ir::{Graph, GraphNode};
use crate::plan::NestedSite;
use crate::run::state_updates::StateUpdates;
use mxrt_engine::{Engine, OpError};
use std::sync::Arc;

/// A control-flow node and the executables of its graphs.
pub(super) struct FlowStage {
    flow: FlowWiring,
    types: Arc<OutputTypes>,
    bodies: Vec<LoopBody>,
}

/// The executable of one of the node's graphs.
struct LoopBody {
    executable: Executable,
    /// position in `changed` of each new state that the graph makes, if an input of the node holds
    /// it
    updates: Vec<Option<usize>>,
}

/// A loop that has begun and not ended.
pub(super) enum OpenFlow {
    /// The loop waits for types that only the program knows.
    Types(TypesAnswer),
    Running(Box<(FlowState, Cursor)>),
}

impl FlowStage {
    pub fn new(engine: &'static Engine, node: GraphNode, options: BuildOptions) -> Result<FlowStage, OpError> {
        let changed = node.changed_inputs();
        let Some(flow) = node.flow.clone() else { return Err(not_held()) };
        let body = |(graph, feeds): (&Graph, &Vec<usize>)| {
            let mut graph = graph.clone();
            let states = StateUpdates::of(&mut graph)?;
            let slot = |input: &Option<usize>| changed.iter().position(|k| Some(*k) == input.map(|j| feeds[j]));
            let updates = states.inputs().iter().map(slot).collect();
            Ok(LoopBody { executable: Executable::new(engine, graph, options)?, updates })
        };
        let bodies = flow.graphs.iter().zip(&flow.wiring.inputs).map(body).collect::<Result<_, OpError>>()?;
        let types = Arc::new(OutputTypes::new(node));
        Ok(FlowStage { flow: FlowWiring { wiring: flow.wiring.clone(), changed }, types, bodies })
    }

    /// Types of the outputs of the node.
    pub fn types(&self) -> &OutputTypes {
        &self.types
    }

    /// The executables.
    pub fn bodies(&self) -> impl Iterator<Item = &Executable> {
        self.bodies.iter().map(|body| &body.executable)
    }

    /// Name of the stage in reports.
    pub fn describe(&self) -> &'static str {
        match self.flow.wiring.kind {
            FlowKind::Foreach | FlowKind::WhileLoop { .. } => "a loop of stages",
            FlowKind::Cond => "a branch of stages",
        }
    }

    /// Runs the graphs up to the end of an iteration, or until one waits for something outside of
    /// the engine.
    pub fn run(&self, call: &StageCall<'_>, open: Option<OpenFlow>) -> Result<StageEnd<OpenFlow>, OpError> {
        let asked = match open {
            Some(OpenFlow::Running(running)) => return self.go_on(call, running),
            Some(OpenFlow::Types(answer)) => Some(answer),
            None => None,
        };
        let outputs = match self.types.of_call(call, asked.as_ref())? {
            StageTypes::Known(types) => types,
            StageTypes::Asked(answer, begin) => {
                return Ok(StageEnd::Suspended(OpenFlow::Types(answer), begin));
            }
        };
        if let Some(failure) = call.inputs.first_failure() {
            let failed = |t: &Option<_>| HeldValue::failed(t.clone(), &failure);
            let states = self.flow.changed.iter().map(|k| HeldValue::failed(call.inputs.tensor_type(*k), &failure));
            return Ok(StageEnd::Done(outputs.iter().map(failed).chain(states).collect()));
        }
        let state = FlowState::new(&self.flow, call, outputs).map_err(|error| self.types.describe(call, error))?;
        self.go_on(call, Box::new((state, Cursor::default())))
    }

    fn go_on(
        &self,
        call: &StageCall<'_>,
        mut running: Box<(FlowState, Cursor)>,
    ) -> Result<StageEnd<OpenFlow>, OpError> {
        let (state, cursor) = &mut *running;
        let iteration = state.iteration;
        match self.turn(call, state, cursor) {
            Ok(LoopTurn::Over) => {
                let made = state.finish(&self.flow, call);
                Ok(StageEnd::Done(made.unwrap_or_else(|error| self.fail(call, state, error))))
            }
            Ok(LoopTurn::Next) => Ok(StageEnd::Again(OpenFlow::Running(running))),
            Ok(LoopTurn::Suspended(begin)) => Ok(StageEnd::Suspended(OpenFlow::Running(running), begin)),
            Err(error) => {
                let node = self.types.node();
                let error = if error.node.is_some() { error } else { error.op(node.stands_for).node(&*node.name) };
                let error = failed_in(error, self.flow.wiring.kind, node.stands_for, &node.name, iteration);
                Ok(StageEnd::Done(self.fail(call, state, error)))
            }
        }
    }

    /// Runs a graph, or a part of it, up to the end of a turn.
    fn turn(&self, call: &StageCall<'_>, state: &mut FlowState, cursor: &mut Cursor) -> Result<LoopTurn, OpError> {
        if state.is_over(&self.flow) {
            return Ok(LoopTurn::Over);
        }
        let body = &self.bodies[state.graph];
        let end = {
            let inputs = FlowInputs { stage: &self.flow, state, outer: call.inputs };
            // Raw weights stay, as every iteration may read them.
            let site = NestedSite { outer: call.request.site, released: &|_| None };
            let piece = (state.iteration * self.bodies.len() + state.graph) as u64;
            let random = call.key(0).map(|key| key.inner(piece));
            let request = ExecutableRequest { engine: call.request.engine, site: &site, inputs: &inputs, random };
            body.executable.run(&request, cursor)?
        };
        match end {
            TurnEnd::Again => return Ok(LoopTurn::Next),
            TurnEnd::Suspended(begin) => return Ok(LoopTurn::Suspended(begin)),
            TurnEnd::Done(made) => {
                *cursor = Cursor::default();
                state.end_graph(&self.flow, call, made, &body.updates)?;
            }
        }
        Ok(if state.is_over(&self.flow) { LoopTurn::Over } else { LoopTurn::Next })
    }

    /// Makes the values of a failed node. They keep the types that are known.
    fn fail(&self, call: &StageCall<'_>, state: &FlowState, error: OpError) -> Vec<HeldValue> {
        let failure = call.request.site.failure(error);
        let types = state.output_types().iter().cloned();
        let states = self.flow.changed.iter().map(|k| call.inputs.tensor_type(*k));
        types.chain(states).map(|t| HeldValue::failed(t, &failure)).collect()
    }
}

/// Outcome of a turn of a loop.
enum LoopTurn {
    Over,
    /// There is more to do.
    Next,
    Suspended(Begin),
}
