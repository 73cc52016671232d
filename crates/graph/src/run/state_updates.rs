//! Auxiliary states that operators of the program change: a request computes their new values as
//! results, and ops behind it write them back.

use crate::ir::{Graph, GraphNode, Value};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Cost, Engine, FailureKind, OpError};
use mxrt_ops::Inputs;
use mxrt_tensor::{CallLaunch, CallProgress, NDArray, TensorMut, TensorRef, launch_call};

/// The operator whose states are outputs.
const WITH_STATES: &str = "_custom_with_states";

/// The inputs of a graph that requests change, in the order of the results behind those of the
/// user.
#[derive(Default)]
pub struct StateUpdates {
    /// None for a state that no variable holds
    inputs: Vec<Option<usize>>,
    /// held while a request and the ops that write its states back are pushed, so that the next
    /// request finds the states that this one leaves
    order: Mutex<()>,
}

impl StateUpdates {
    /// Adds the new states of operators of the program to the results of a graph.
    ///
    /// Fails where an operator with states is inside of control flow: what a loop captures does not
    /// change.
    pub fn of(graph: &mut Graph) -> Result<StateUpdates, OpError> {
        graph.nodes.iter().try_for_each(refuse_inside)?;
        let mut inputs = Vec::new();
        for n in 0..graph.nodes.len() {
            let node = &graph.nodes[n];
            let states = node.op.states(&node.attrs);
            if !matches!(node.op.inputs, Inputs::Computed { .. }) || states.is_empty() {
                continue;
            }
            let first = node.op.num_outputs(&node.attrs);
            for (k, state) in states.iter().enumerate() {
                inputs.push(match node.inputs.get(*state) {
                    Some(Value::Input(input)) => Some(*input),
                    _ => None,
                });
                graph.outputs.push(Value::Node(n, first + k));
            }
            graph.nodes[n] = graph.nodes[n].clone().as_operator(WITH_STATES)?;
        }
        Ok(StateUpdates { inputs, order: Mutex::default() })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Pushes a request and what writes its states back, before and behind all others.
    pub fn in_order<R>(&self, push: impl FnOnce() -> R) -> R {
        let _guard = (!self.inputs.is_empty()).then(|| self.order.lock());
        push()
    }

    /// Pushes what writes these values back, to the arrays of the inputs.
    pub fn push<'a>(&self, engine: &'static Engine, values: &[NDArray], array: impl Fn(usize) -> Option<&'a NDArray>) {
        for (input, value) in self.inputs.iter().zip(values) {
            if let Some(state) = input.and_then(&array) {
                push_update(engine, value, state);
            }
        }
    }
}

fn refuse_inside(node: &GraphNode) -> Result<(), OpError> {
    for inner in node.flow.iter().flat_map(|flow| &flow.graphs).flat_map(|graph| &graph.nodes) {
        let states = inner.op.states(&inner.attrs);
        if matches!(inner.op.inputs, Inputs::Computed { .. }) && !states.is_empty() {
            let message = format!(
                "operators of the program with auxiliary states cannot run inside of {} '{}', whose captured arrays \
                 do not change: pass what it remembers through the loop's states, or write the loop in Python",
                node.stands_for, node.name
            );
            return Err(OpError::new(FailureKind::NotImplemented, message).op(inner.stands_for).node(&*inner.name));
        }
        refuse_inside(inner)?;
    }
    Ok(())
}

/// Writes a new state. After a failed request the state stays as it is.
fn push_update(engine: &'static Engine, value: &NDArray, state: &NDArray) {
    let (inputs, outputs) = ([value, state], [state]);
    let call = CallLaunch::new("write_state".into(), &inputs, &outputs, Cost::Large);
    launch_call(engine, call, |part| {
        if let (Some(_), Some(failure)) = (part.inputs.failure(0), part.inputs.failure(1)) {
            return Ok(CallProgress::Done(vec![(0, failure.clone())]));
        }
        let from = if part.inputs.failure(0).is_some() { 1 } else { 0 };
        copy(part.inputs.input(from)?, part.outputs);
        Ok(CallProgress::Done(Vec::new()))
    });
}

/// Copies an array into another one of the same type. A failure is copied, too.
pub fn push_copy(engine: &'static Engine, from: &NDArray, to: &NDArray) {
    let (inputs, outputs) = ([from], [to]);
    let call = CallLaunch::new("_copy".into(), &inputs, &outputs, Cost::Large);
    launch_call(engine, call, |part| {
        if let Some(failure) = part.inputs.failure(0) {
            return Ok(CallProgress::Done(vec![(0, failure.clone())]));
        }
        copy(part.inputs.input(0)?, part.outputs);
        Ok(CallProgress::Done(Vec::new()))
    });
}

fn copy(from: TensorRef<'_>, outputs: &mut [TensorMut<'_>]) {
    if let Some(to) = outputs.first_mut() {
        to.bytes_mut().copy_from_slice(from.bytes());
    }
}
