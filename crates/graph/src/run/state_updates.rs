//! Updates of auxiliary states that callback operators change. A request computes their new values
//! as additional results, and ops pushed after it write them back.

use crate::ir::{Graph, Value};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Cost, OpError};
use mxrt_tensor::index::{Region, copy_region};
use mxrt_tensor::{CallLaunch, CallProgress, NDArray, launch_call};

/// The form of the callback operator whose states are outputs.
const WITH_STATES: &str = "_custom_with_states";

/// The inputs of a graph that requests change, in the order of the additional results, which follow
/// those of the user.
#[derive(Default)]
pub struct StateUpdates {
    /// `None` for a state that no variable holds
    inputs: Vec<Option<usize>>,
    /// lock held while a request and the ops that write its states back are pushed, so that the
    /// next request reads the states of this one
    order: Mutex<()>,
}

impl StateUpdates {
    /// Adds the new states of callback operators, and of those in loops and branches, to the
    /// results of a graph.
    pub fn of(graph: &mut Graph) -> Result<StateUpdates, OpError> {
        let mut inputs = Vec::new();
        for n in 0..graph.nodes.len() {
            let node = &graph.nodes[n];
            let changed = node.changed_inputs();
            let first = node.num_outputs();
            for (k, state) in changed.iter().enumerate() {
                inputs.push(match node.inputs.get(*state) {
                    Some(Value::Input(input)) => Some(*input),
                    _ => None,
                });
                graph.outputs.push(Value::Node(n, first + k));
            }
            if !changed.is_empty() && node.flow.is_none() {
                graph.nodes[n] = graph.nodes[n].clone().as_operator(WITH_STATES)?;
            }
        }
        Ok(StateUpdates { inputs, order: Mutex::default() })
    }

    /// The input that holds each state.
    pub fn inputs(&self) -> &[Option<usize>] {
        &self.inputs
    }

    /// Whether an input holds each state.
    pub fn held(&self) -> Vec<bool> {
        self.inputs.iter().map(Option::is_some).collect()
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Pushes a request and the ops that write its states back, with no other request between them.
    pub fn in_order<R>(&self, push: impl FnOnce() -> R) -> R {
        let _guard = (!self.inputs.is_empty()).then(|| self.order.lock());
        push()
    }

    /// Pushes ops that write new values of the states that inputs hold to the arrays of these
    /// inputs.
    pub fn push<'a>(&self, values: &[NDArray], array: impl Fn(usize) -> Option<&'a NDArray>) -> Result<(), OpError> {
        for (input, value) in self.inputs.iter().flatten().zip(values) {
            if let Some(state) = array(*input) {
                push_update(value, state);
            }
        }
        Ok(())
    }

    /// Pushes copies of states to the arrays on other contexts that they were copied from.
    pub fn copy_back<'a>(
        &self,
        here: &[&NDArray],
        array: impl Fn(usize) -> Option<&'a NDArray>,
    ) -> Result<(), OpError> {
        for input in self.inputs.iter().flatten() {
            if let (Some(from), Some(to)) = (here.get(*input), array(*input))
                && from.context() != to.context()
            {
                push_copy(from, to)?;
            }
        }
        Ok(())
    }
}

/// Writes a new state. After a failed request the state is unchanged.
fn push_update(value: &NDArray, state: &NDArray) {
    let (inputs, outputs) = ([value, state], [state]);
    let call = CallLaunch::new("write_state".into(), &inputs, &outputs, Cost::Large);
    launch_call(state.engine(), call, |part| {
        if let (Some(_), Some(failure)) = (part.inputs.failure(0), part.inputs.failure(1)) {
            return Ok(CallProgress::Done(vec![(0, failure.clone())]));
        }
        let from = part.inputs.input(if part.inputs.failure(0).is_some() { 1 } else { 0 })?;
        if let Some(to) = part.outputs.first_mut() {
            to.bytes_mut().copy_from_slice(from.bytes());
        }
        Ok(CallProgress::Done(Vec::new()))
    });
}

/// Pushes a copy of an array into another one of the same type. A failure is copied, too.
pub fn push_copy(from: &NDArray, to: &NDArray) -> Result<(), OpError> {
    copy_region(to, Region::whole(to.shape()), from, Region::whole(from.shape()))
}
