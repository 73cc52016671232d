//! State of a loop or a branch of stages while it runs.

use super::inputs::{ExecutableInputs, HeldValue, StageInputs, not_held};
use super::output_types::NodeOutputs;
use super::stage_call::StageCall;
use crate::control_flow::{FlowKind, Wiring, is_true, row_type};
use crate::memory::constants::allocate;
use crate::plan::{GraphInputs, ValueKey};
use mxrt_engine::memory::{Block, MemoryPool};
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_tensor::{TensorRef, TensorType};

/// How values go through the graphs of a node.
pub(super) struct FlowWiring {
    pub wiring: Wiring,
    /// inputs of the node that callbacks in the graphs change
    pub changed: Vec<usize>,
}

/// The rows of an output that are there.
struct Stack {
    row: TensorType,
    whole: TensorType,
    block: Block,
}

/// How far a loop has come, and what iterations have made.
pub(super) struct FlowState {
    /// the graph that runs, in which iteration
    pub graph: usize,
    pub iteration: usize,
    over: bool,
    /// rows of a `foreach`
    count: usize,
    /// types of the rows of the inputs that have them
    rows: Vec<TensorType>,
    /// states, or outputs of a branch; none before the first iteration
    states: Vec<HeldValue>,
    /// new content of each input that changes
    changed: Vec<Option<HeldValue>>,
    /// outputs with a row for each iteration; none before the first
    stacks: Vec<Stack>,
    outputs: NodeOutputs,
}

impl FlowState {
    pub fn new(stage: &FlowWiring, call: &StageCall<'_>, outputs: NodeOutputs) -> Result<FlowState, OpError> {
        let whole = |k| call.inputs.tensor_type(k).ok_or_else(not_held);
        let data = (0..stage.wiring.rows).map(whole).collect::<Result<Vec<TensorType>, OpError>>()?;
        let count_of = |tensor: &TensorType| tensor.shape.first().copied().unwrap_or(0);
        let (rows, count) = (data.iter().map(row_type).collect(), data.first().map_or(0, count_of));
        if let Some(other) = data.iter().map(count_of).find(|other| *other != count) {
            let message = format!("all data must have as many rows: one array has {count}, another {other}");
            return Err(OpError::new(FailureKind::Shape, message));
        }
        let changed = stage.changed.iter().map(|_| None).collect();
        let (states, stacks) = (Vec::new(), Vec::new());
        Ok(FlowState { graph: 0, iteration: 0, over: false, count, rows, states, changed, stacks, outputs })
    }

    /// Types of the outputs of the node, as far as they are known.
    pub fn output_types(&self) -> &[Option<TensorType>] {
        &self.outputs
    }

    /// Whether nothing is left to run.
    pub fn is_over(&self, stage: &FlowWiring) -> bool {
        self.over || self.graph == 0 && self.iteration == self.most(stage)
    }

    /// Iterations that there are at most.
    fn most(&self, stage: &FlowWiring) -> usize {
        match stage.wiring.kind {
            FlowKind::Foreach => self.count,
            FlowKind::WhileLoop { max_iterations } => max_iterations,
            FlowKind::Cond => 1,
        }
    }

    /// Takes what a graph has made, and decides what runs next. `updates` says of each new state,
    /// which come last, what it belongs to.
    pub fn end_graph(
        &mut self,
        stage: &FlowWiring,
        call: &StageCall<'_>,
        mut made: Vec<HeldValue>,
        updates: &[Option<usize>],
    ) -> Result<(), OpError> {
        if let Some(failure) = made.iter().find_map(|value| value.content.as_ref().err()) {
            return Err(OpError::from_details(failure.details().clone()));
        }
        let changed = made.split_off(made.len().saturating_sub(updates.len()));
        for (value, slot) in changed.into_iter().zip(updates) {
            if let Some(slot) = slot {
                self.changed[*slot] = Some(value);
            }
        }
        if stage.wiring.is_condition(self.graph) {
            let condition = made.first().ok_or_else(not_held)?.view()?;
            if condition.shape.size() != 1 {
                let message = format!("the condition must be a single number, but it has shape {}", condition.shape);
                return Err(OpError::new(FailureKind::Shape, message));
            }
            match (is_true(condition.dtype, condition.bytes()), stage.wiring.kind) {
                (true, _) => self.graph = 1,
                (false, FlowKind::Cond) => self.graph = 2,
                (false, _) => self.over = true,
            }
            return Ok(());
        }
        let states = made.split_off(stage.wiring.stacked.min(made.len()));
        self.stack(stage, call.request.site.memory(), &made)?;
        self.states = states;
        self.iteration += 1;
        self.graph = 0;
        Ok(())
    }

    /// Adds the rows of an iteration.
    fn stack(&mut self, stage: &FlowWiring, memory: &'static MemoryPool, rows: &[HeldValue]) -> Result<(), OpError> {
        if self.stacks.is_empty() {
            let most = self.most(stage);
            self.stacks = rows.iter().map(|row| Stack::new(memory, most, row)).collect::<Result<_, _>>()?;
        }
        for (stack, row) in self.stacks.iter_mut().zip(rows) {
            stack.put(self.iteration, &row.view()?)?;
        }
        Ok(())
    }

    /// The values that the node makes: outputs, then new states.
    pub fn finish(&mut self, stage: &FlowWiring, call: &StageCall<'_>) -> Result<Vec<HeldValue>, OpError> {
        let memory = call.request.site.memory();
        let (most, stacked) = (self.most(stage), stage.wiring.stacked);
        if self.stacks.is_empty() {
            let rows = self.outputs.iter().take(stacked).map(|known| Stack::without_rows(memory, known));
            self.stacks = rows.collect::<Result<_, _>>()?;
        }
        let mut made: Vec<HeldValue> =
            std::mem::take(&mut self.stacks).into_iter().map(|stack| stack.finish(self.iteration.min(most))).collect();
        if self.iteration == 0 {
            let first = stage.wiring.states.iter().map(|k| copy(memory, call.inputs.tensor(*k)?));
            self.states = first.collect::<Result<_, OpError>>()?;
        }
        made.append(&mut self.states);
        for (k, value) in stage.changed.iter().zip(&mut self.changed) {
            made.push(match value.take() {
                Some(value) => value,
                None => copy(memory, call.inputs.tensor(*k)?)?,
            });
        }
        Ok(made)
    }
}

fn copy(memory: &'static MemoryPool, tensor: TensorRef<'_>) -> Result<HeldValue, OpError> {
    let of = TensorType::new(tensor.dtype, tensor.shape.clone());
    let mut block = allocate(memory, of.bytes())?;
    block.as_mut_slice()[..of.bytes()].copy_from_slice(tensor.bytes());
    Ok(HeldValue::new(of, block))
}

impl Stack {
    /// Allocates that many rows like this one.
    fn new(memory: &'static MemoryPool, rows: usize, row: &HeldValue) -> Result<Stack, OpError> {
        let row = row.tensor.clone().ok_or_else(not_held)?;
        let extents: Vec<usize> = [rows].into_iter().chain(row.shape.iter().copied()).collect();
        let whole = TensorType::new(row.dtype, extents);
        Stack::of(memory, row, whole)
    }

    /// The output of a loop without iterations.
    fn without_rows(memory: &'static MemoryPool, known: &Option<TensorType>) -> Result<Stack, OpError> {
        let Some(whole) = known.clone() else {
            let message = "the loop ran no iteration, so that the shape of an output, which follows from contents, \
                is not known";
            return Err(OpError::new(FailureKind::Shape, message));
        };
        let row = TensorType::new(whole.dtype, whole.shape.get(1..).unwrap_or(&[]));
        Stack::of(memory, row, whole)
    }

    fn of(memory: &'static MemoryPool, row: TensorType, whole: TensorType) -> Result<Stack, OpError> {
        let bytes = whole.checked_bytes().filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(|| {
            OpError::new(FailureKind::Memory, format!("a value of {whole} is larger than the address space"))
        })?;
        Ok(Stack { row, whole, block: allocate(memory, bytes)? })
    }

    fn put(&mut self, number: usize, row: &TensorRef<'_>) -> Result<(), OpError> {
        if row.dtype != self.row.dtype || *row.shape != self.row.shape {
            let (number, got) = (number, TensorType::new(row.dtype, row.shape.clone()));
            let message = format!(
                "iteration {number} makes a row of {got}, but those before are {}: rows of one output have one shape",
                self.row
            );
            return Err(OpError::new(FailureKind::Shape, message));
        }
        let bytes = self.row.bytes();
        let place = self.block.as_mut_slice().get_mut(number * bytes..(number + 1) * bytes).ok_or_else(not_held)?;
        place.copy_from_slice(row.bytes());
        Ok(())
    }

    /// The output. Rows after the last iteration are zero.
    fn finish(mut self, rows: usize) -> HeldValue {
        let (filled, all) = (rows * self.row.bytes(), self.whole.bytes());
        self.block.as_mut_slice()[filled..all].fill(0);
        HeldValue::new(self.whole, self.block)
    }
}

/// The inputs of a graph in an iteration.
pub(super) struct FlowInputs<'a> {
    pub stage: &'a FlowWiring,
    pub state: &'a FlowState,
    pub outer: &'a StageInputs<'a>,
}

/// Source of an input of a graph in this iteration.
enum FlowSource<'a> {
    Row(usize),
    Made(&'a HeldValue),
    Outer(usize),
}

impl FlowInputs<'_> {
    fn source(&self, input: usize) -> Option<FlowSource<'_>> {
        let wiring = &self.stage.wiring;
        let k = *wiring.inputs.get(self.state.graph)?.get(input)?;
        if k < wiring.rows {
            return Some(FlowSource::Row(k));
        }
        let state = wiring.state_of(k).and_then(|state| self.state.states.get(state));
        let slot = self.stage.changed.iter().position(|changed| *changed == k);
        let changed = slot.and_then(|slot| self.state.changed[slot].as_ref());
        Some(state.or(changed).map_or(FlowSource::Outer(k), FlowSource::Made))
    }
}

impl GraphInputs for FlowInputs<'_> {
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError> {
        match self.source(input).ok_or_else(not_held)? {
            FlowSource::Made(value) => value.view(),
            FlowSource::Outer(k) => self.outer.tensor(k),
            FlowSource::Row(k) => {
                let row = self.state.rows.get(k).ok_or_else(not_held)?;
                let (bytes, first) = (row.bytes(), self.state.iteration * row.bytes());
                let whole = self.outer.tensor(k)?;
                let bytes = whole.bytes().get(first..first + bytes).ok_or_else(not_held)?;
                Ok(TensorRef::new(row.dtype, &row.shape, bytes))
            }
        }
    }

    fn key(&self, input: usize) -> ValueKey {
        match self.source(input) {
            Some(FlowSource::Outer(k)) => self.outer.key(k),
            _ => ValueKey::default(),
        }
    }

    fn failure(&self, input: usize) -> Option<&Failure> {
        match self.source(input)? {
            FlowSource::Made(value) => value.content.as_ref().err(),
            FlowSource::Outer(k) | FlowSource::Row(k) => self.outer.failure(k),
        }
    }

    fn any_failed(&self) -> bool {
        self.outer.any_failed()
    }

    fn params_key(&self) -> Option<(u64, u64)> {
        self.outer.params_key()
    }
}

impl ExecutableInputs for FlowInputs<'_> {
    fn tensor_type(&self, input: usize) -> Option<TensorType> {
        match self.source(input)? {
            FlowSource::Row(k) => self.state.rows.get(k).cloned(),
            FlowSource::Made(value) => value.tensor.clone(),
            FlowSource::Outer(k) => self.outer.tensor_type(k),
        }
    }
}
