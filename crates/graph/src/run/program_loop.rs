//! Control flow whose graphs hold operators of the program.
//!
//! The steps of a plan inside a plan cannot be suspended. Such a node is therefore a call that the
//! program answers, as `Custom` is: its request is suspended, and its graphs run as requests of
//! their own, one after the other. An op behind each of them reads what it made and pushes the
//! next. No thread waits for any of them.

use super::cached_op::{Binding, CachedOp};
use super::call_options::CallOptions;
use super::program::Program;
use crate::control_flow::{FlowKind, Wiring, failed_in, is_true};
use mxrt_engine::{Cost, Engine, FailureKind, ForkSafeMutex as Mutex, OpError};
use mxrt_ops::CustomCall;
use mxrt_tensor::{CallArrays, CallLaunch, CallProgress, NDArray, TensorType, launch_call};
use smallvec::SmallVec;
use std::sync::Arc;

/// A control-flow node and the programs of its graphs.
pub(crate) struct ProgramLoop {
    pub wiring: Wiring,
    /// operator and node, for messages
    pub op: &'static str,
    pub node: Arc<str>,
    /// by graph
    pub graphs: Vec<(Arc<CachedOp>, Arc<Program>)>,
    /// iterations of a `foreach`
    pub rows: usize,
    /// types of the outputs of the node
    pub outputs: Vec<TensorType>,
}

/// What is to run next, and what it is given.
struct Turn {
    graph: usize,
    iteration: usize,
    states: Vec<NDArray>,
    /// by stacked output: the rows that are there
    rows: Vec<Vec<u8>>,
}

/// A call of the node while it runs.
struct LoopRun {
    of: Arc<ProgramLoop>,
    engine: &'static Engine,
    call: CustomCall,
    turns: Mutex<Turns>,
}

/// A turn may be over before the thread that began it comes back. That thread begins the next one,
/// so that no stack grows with the number of iterations.
#[derive(Default)]
struct Turns {
    next: Option<Turn>,
    taken_care_of: bool,
}

impl ProgramLoop {
    /// Runs the graphs for a call; returns at once.
    pub fn begin(self: &Arc<Self>, call: CustomCall) {
        let arrays = call.arrays();
        let Some(engine) = arrays.engine() else {
            return call.finish(Err(OpError::new(FailureKind::Operator, "a loop without arrays")));
        };
        let states = self.wiring.states.iter().map(|k| arrays.inputs[*k].clone()).collect();
        let turn = Turn { graph: 0, iteration: 0, states, rows: vec![Vec::new(); self.wiring.stacked] };
        let run = LoopRun { of: self.clone(), engine, call, turns: Mutex::default() };
        Arc::new(run).go_on(turn);
    }
}

impl LoopRun {
    fn go_on(self: &Arc<Self>, turn: Turn) {
        {
            let mut turns = self.turns.lock();
            turns.next = Some(turn);
            if std::mem::replace(&mut turns.taken_care_of, true) {
                return;
            }
        }
        loop {
            let turn = {
                let mut turns = self.turns.lock();
                let next = turns.next.take();
                turns.taken_care_of = next.is_some();
                next
            };
            let Some(turn) = turn else { return };
            let iteration = turn.iteration;
            if let Err(error) = self.begin_turn(turn) {
                self.fail(error, iteration);
            }
        }
    }

    /// Whether all iterations have been taken that may be.
    fn is_over(&self, turn: &Turn) -> bool {
        match self.of.wiring.kind {
            FlowKind::Foreach => turn.iteration == self.of.rows,
            FlowKind::WhileLoop { max_iterations } => turn.graph == 0 && turn.iteration == max_iterations,
            FlowKind::Cond => false,
        }
    }

    /// Pushes a graph, and the op that looks at what it makes.
    fn begin_turn(self: &Arc<Self>, turn: Turn) -> Result<(), OpError> {
        if self.is_over(&turn) {
            // Only without an iteration: otherwise the op behind the last one has seen it.
            self.behind(turn, &[], |run, turn, arrays| {
                let states = (0..turn.states.len()).map(|s| contents(arrays, s)).collect::<Result<_, _>>()?;
                run.finish(turn.rows, states);
                Ok(())
            });
            return Ok(());
        }
        let (op, program) = &self.of.graphs[turn.graph];
        let inputs = (0..self.of.wiring.inputs[turn.graph].len())
            .map(|j| self.input(program, &turn, j))
            .collect::<Result<SmallVec<[NDArray; 4]>, _>>()?;
        let refs: SmallVec<[&NDArray; 4]> = inputs.iter().collect();
        let piece = (turn.iteration * self.of.graphs.len() + turn.graph) as u64;
        let random = self.call.arrays().random.map(|key| key.inner(piece));
        let binding = Binding { sources: op.unbound.sources.clone(), params: None, random };
        let made = op.start(program.clone(), &binding, &refs, None, &CallOptions::default())?;
        let results = made.clone();
        self.behind(turn, &results, move |run, turn, arrays| run.end_turn(turn, &made, arrays));
        Ok(())
    }

    /// Pushes an op that reads these arrays, and behind them the states of the turn.
    fn behind<F>(self: &Arc<Self>, turn: Turn, results: &[NDArray], then: F)
    where
        F: FnOnce(&Arc<LoopRun>, Turn, &CallArrays<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let reads: SmallVec<[NDArray; 4]> = results.iter().chain(&turn.states).cloned().collect();
        let refs: SmallVec<[&NDArray; 4]> = reads.iter().collect();
        let call = CallLaunch::new(self.of.op.into(), &refs, &[], Cost::Large);
        let (run, mut open) = (self.clone(), Some((turn, then)));
        launch_call(self.engine, call, move |part| {
            if let Some((turn, then)) = open.take() {
                let iteration = turn.iteration;
                if let Err(error) = then(&run, turn, &part.inputs) {
                    run.fail(error, iteration);
                }
            }
            Ok(CallProgress::Done(Vec::new()))
        });
    }

    /// Input `j` of a graph.
    fn input(&self, program: &Program, turn: &Turn, j: usize) -> Result<NDArray, OpError> {
        let wiring = &self.of.wiring;
        let k = wiring.inputs[turn.graph][j];
        if let Some(state) = wiring.state_of(k) {
            return Ok(turn.states[state].clone());
        }
        let whole = self.call.arrays().inputs.get(k).ok_or_else(misplaced)?;
        if k >= wiring.rows {
            return Ok(whole.clone());
        }
        let row = &program.input_types().get(j).ok_or_else(misplaced)?.shape;
        whole.view(turn.iteration * row.size(), row.clone()).ok_or_else(misplaced)
    }

    /// Reads what a graph has made and decides what runs next. `arrays` are the results, and behind
    /// them the states that the graph was given.
    fn end_turn(self: &Arc<Self>, mut turn: Turn, made: &[NDArray], arrays: &CallArrays<'_>) -> Result<(), OpError> {
        let failures: SmallVec<[_; 2]> = (0..made.len()).filter_map(|i| arrays.failure(i)).collect();
        if let Some(first) = failures.first() {
            // The failure of the node takes their place.
            for failure in &failures {
                failure.mark_observed();
            }
            return Err(OpError::from_details(first.details().clone()));
        }
        let bytes = |i: usize| contents(arrays, i);
        let (wiring, stacked) = (&self.of.wiring, self.of.wiring.stacked);
        if wiring.is_condition(turn.graph) {
            let condition = arrays.input(0)?;
            turn.graph = match (is_true(condition.dtype, condition.bytes()), wiring.kind) {
                (true, _) => 1,
                (false, FlowKind::Cond) => 2,
                (false, _) => {
                    let states = (0..turn.states.len()).map(|s| bytes(made.len() + s)).collect::<Result<_, _>>()?;
                    self.finish(turn.rows, states);
                    return Ok(());
                }
            };
            self.go_on(turn);
            return Ok(());
        }
        for (o, rows) in turn.rows.iter_mut().enumerate() {
            rows.extend_from_slice(arrays.input(o)?.bytes());
        }
        turn.states = made[stacked..].to_vec();
        turn.iteration += 1;
        turn.graph = 0;
        if wiring.kind == FlowKind::Cond || self.is_over(&turn) {
            let states = (stacked..made.len()).map(bytes).collect::<Result<_, _>>()?;
            self.finish(turn.rows, states);
        } else {
            self.go_on(turn);
        }
        Ok(())
    }

    /// Hands the results over. Rows behind the last iteration are zero.
    fn finish(&self, mut rows: Vec<Vec<u8>>, states: Vec<Vec<u8>>) {
        for (rows, whole) in rows.iter_mut().zip(&self.of.outputs) {
            rows.resize(whole.bytes(), 0);
        }
        rows.extend(states);
        self.call.finish_with(Ok(rows));
    }

    fn fail(&self, error: OpError, iteration: usize) {
        let error = match error.node {
            Some(_) => error,
            None => error.op(self.of.op).node(&*self.of.node),
        };
        self.call.finish(Err(failed_in(error, self.of.wiring.kind, self.of.op, &self.of.node, iteration)));
    }
}

fn contents(arrays: &CallArrays<'_>, i: usize) -> Result<Vec<u8>, OpError> {
    Ok(arrays.input(i)?.bytes().to_vec())
}

fn misplaced() -> OpError {
    OpError::new(FailureKind::Operator, "an array of a loop is not where its plan says")
}
