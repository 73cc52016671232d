//! Control flow as a step of a plan: the plans of its graphs, and its memory.

use crate::control_flow::FlowKind;
use crate::memory::offsets::aligned;
use crate::plan::Plan;
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{Kernel, KernelCall};
use mxrt_tensor::TensorType;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Source of an input of an inner graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InnerSource {
    /// a row of this operand of the step, another one in each iteration
    Row(usize),
    /// a state, by number
    State(usize),
    /// this operand of the step
    Whole(usize),
    /// this input of the outer graph, a parameter
    Constant(usize),
    /// nothing reads the input: the graph contains its expression
    Expression,
    /// a result of the plan that runs before the first iteration, by number
    Hoisted(usize),
}

/// A graph of the node, ready to run.
pub(crate) struct InnerPlan {
    pub plan: Arc<Plan>,
    /// source of each input of the plan
    pub sources: Vec<InnerSource>,
    /// inputs of the outer graph that no other node reads: their raw weights may be released when
    /// this plan has packed them
    pub own_params: HashSet<usize>,
    /// the plan that computes, before the first iteration, the values that are the same in all of
    /// them
    pub before: Option<Box<InnerPlan>>,
}

/// Plans and memory of a control-flow step.
pub(crate) struct ControlFlow {
    pub kind: FlowKind,
    /// operator and node, for messages
    pub op: &'static str,
    pub node: Arc<str>,
    pub plans: Vec<InnerPlan>,
    /// iterations of a `foreach`
    pub rows: usize,
    /// operands with the first values of the states
    pub states: Vec<usize>,
    pub state_types: Vec<TensorType>,
    /// the outputs before this one have a row for each iteration
    pub stacked: usize,
    pub stacked_rows: Vec<TensorType>,
    pub memory: FlowMemory,
}

/// Scratch memory of a step. Its size does not depend on the number of iterations.
pub(crate) struct FlowMemory {
    /// bytes of the arena of the inner plan that runs
    pub arena: usize,
    /// a second copy of each state: one is read while the other is written
    pub states: Vec<Range<usize>>,
    /// place of the result of the condition
    pub condition: Range<usize>,
    /// places by graph: values that are the same in all iterations, then packed values
    pub hoisted: Vec<Vec<Range<usize>>>,
    pub bytes: usize,
}

impl FlowMemory {
    pub fn new(arena: usize, states: &[TensorType], condition: usize, hoisted: &[Vec<usize>]) -> FlowMemory {
        let mut bytes = aligned(arena);
        let mut next = |size: usize| {
            let range = bytes..bytes.saturating_add(size);
            bytes = aligned(range.end);
            range
        };
        let states = states.iter().map(|t| next(t.bytes())).collect();
        let condition = next(condition);
        let hoisted = hoisted.iter().map(|sizes| sizes.iter().map(|size| next(*size)).collect()).collect();
        FlowMemory { arena, states, condition, hoisted, bytes }
    }
}

impl InnerPlan {
    /// The plan that runs before the first iteration, then the plan.
    pub fn all(&self) -> impl Iterator<Item = &Plan> {
        self.before.iter().map(|before| &*before.plan).chain([&*self.plan])
    }

    /// Types of the values that are computed before the first iteration.
    pub fn hoisted(&self) -> &[TensorType] {
        self.before.as_ref().map_or(&[], |before| before.plan.outputs())
    }

    /// Bytes of each hoisted value, then of each value that is packed before the first iteration.
    pub fn bytes_before(&self) -> Vec<usize> {
        self.hoisted().iter().map(TensorType::bytes).chain(self.plan.packed_once_bytes()).collect()
    }

    /// The inputs of the outer graph among its inputs.
    pub fn constants(&self) -> impl Iterator<Item = usize> {
        self.sources.iter().filter_map(|source| match source {
            InnerSource::Constant(input) => Some(*input),
            _ => None,
        })
    }

    /// The inputs of the outer graph that the steps read unpacked.
    pub fn inputs_read(&self) -> impl Iterator<Item = usize> {
        let read = self.all().flat_map(Plan::inputs_read);
        read.filter_map(|j| match self.sources.get(j) {
            Some(InnerSource::Constant(input)) => Some(*input),
            _ => None,
        })
    }
}

/// The kernel of a control-flow step, for questions of plans and reports. The step itself runs
/// [`ControlFlow`], since kernels see neither parameters nor the site of the run.
pub(crate) struct FlowKernel(pub Arc<ControlFlow>);

impl Kernel for FlowKernel {
    fn run(&self, _: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        Err(OpError::new(FailureKind::Operator, "control flow runs as a step of a plan only"))
    }

    fn workspace(&self) -> usize {
        self.0.memory.bytes
    }

    fn describe(&self) -> String {
        let steps = |g: usize| {
            let plan = &self.0.plans[g].plan;
            let once =
                plan.packed_once.len() + self.0.plans[g].before.as_ref().map_or(0, |before| before.plan.steps.len());
            let once = if once > 0 { format!(", {once} before them") } else { String::new() };
            format!("{} steps, {} constants{once}", plan.steps.len(), plan.consts.slots.len())
        };
        match self.0.kind {
            FlowKind::Foreach => format!("{} rows of {}", self.0.rows, steps(0)),
            FlowKind::WhileLoop { max_iterations } => format!("at most {max_iterations} times {}", steps(1)),
            FlowKind::Cond => format!("{} or {}", steps(1), steps(2)),
        }
    }

    fn cost_ns(&self) -> u64 {
        let cost = |g: usize| self.0.plans[g].plan.cost_ns();
        let all = match self.0.kind {
            FlowKind::Foreach => cost(0).saturating_mul(self.0.rows as u64),
            FlowKind::WhileLoop { max_iterations } => {
                (cost(0).saturating_add(cost(1))).saturating_mul(max_iterations as u64)
            }
            FlowKind::Cond => cost(0).saturating_add(cost(1).max(cost(2))),
        };
        let before = self.0.plans.iter().filter_map(|inner| inner.before.as_ref());
        before.map(|before| before.plan.cost_ns()).fold(all, u64::saturating_add).max(1)
    }
}
