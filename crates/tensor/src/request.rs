//! Pushing requests: calls of whole models. In addition to the features of an operator they read
//! parameters through a gate, have a priority and a deadline, run in parts, and fail output by
//! output.

use crate::launch::write_access;
use crate::params::{push_through, with_gates};
use crate::place::{Aside, Place, Span, Typed, readable};
use crate::{Context, NDArray, ParameterSet, TensorMut, TensorRef, TensorType};
use mxrt_engine::{
    Access, Cost, Engine, Failure, FailureKind, OpError, OpKind, OpName, OpSpec, PartStatus, Resume, RunCtx,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;

/// A call to push.
pub struct CallLaunch<'a> {
    /// name of the model
    pub name: OpName,
    /// arrays that are read
    pub inputs: &'a [&'a NDArray],
    /// parameters that are read
    pub params: Option<&'a Arc<ParameterSet>>,
    /// arrays that are overwritten, each completely
    pub outputs: &'a [&'a NDArray],
    /// whether the call may run in the pushing thread
    pub cost: Cost,
    /// requests with a higher number are served first
    pub priority: i32,
    /// fails with kind `Deadline` if it has not started by then
    pub deadline: Option<Instant>,
    /// goes back to the queue between its parts while others wait
    pub in_parts: bool,
}

impl<'a> CallLaunch<'a> {
    /// A call of some cost without parameters, as one part, with the usual place in the queue.
    pub fn new(name: OpName, inputs: &'a [&'a NDArray], outputs: &'a [&'a NDArray], cost: Cost) -> CallLaunch<'a> {
        CallLaunch { name, inputs, params: None, outputs, cost, priority: 0, deadline: None, in_parts: false }
    }

    /// The context of the call: that of its arrays.
    pub fn context(&self) -> Context {
        let params = self.params.and_then(|set| set.arrays().first());
        let array = self.inputs.first().copied().or(params).or(self.outputs.first().copied());
        array.map_or_else(Context::default, NDArray::context)
    }
}

/// The arrays that a running request reads.
pub struct CallArrays<'a> {
    arrays: &'a [NDArray],
    params: Option<&'a ParameterSet>,
    /// number of the writes of the gate, and the failures of what is read
    state: &'a CallState,
}

/// State that is known once all accesses are granted, and constant until the request is complete.
#[derive(Default)]
struct CallState {
    params_version: u64,
    /// failures of inputs, then of parameters; empty when nothing has failed
    failures: Vec<Option<Failure>>,
}

impl<'a> CallArrays<'a> {
    /// Whether any input or parameter holds a failure.
    pub fn any_failed(&self) -> bool {
        !self.state.failures.is_empty()
    }

    /// The failure of an input.
    pub fn failure(&self, input: usize) -> Option<&'a Failure> {
        self.state.failures.get(input)?.as_ref()
    }

    /// The failure of a parameter.
    pub fn param_failure(&self, param: usize) -> Option<&'a Failure> {
        self.state.failures.get(self.arrays.len() + param)?.as_ref()
    }

    /// The content of an input; of one that has failed it means nothing.
    pub fn input(&self, input: usize) -> Result<TensorRef<'a>, OpError> {
        readable(&self.arrays[input])
    }

    /// The content of a parameter; of one that has failed it means nothing.
    pub fn param(&self, param: usize) -> Result<TensorRef<'a>, OpError> {
        readable(&self.params()[param])
    }

    /// Key of the value of an input: equal keys, equal content.
    pub fn input_key(&self, input: usize) -> (u64, u64, usize) {
        self.arrays[input].value_key()
    }

    /// Key of the value of a parameter.
    pub fn param_key(&self, param: usize) -> (u64, u64, usize) {
        self.params()[param].value_key()
    }

    /// Key of the values of all parameters together; None without a set of them.
    pub fn params_key(&self) -> Option<(u64, u64)> {
        self.params.map(|set| (set.var().id(), self.state.params_version))
    }

    /// The parameters.
    pub fn params(&self) -> &'a [NDArray] {
        self.params.map_or(&[], ParameterSet::arrays)
    }
}

/// One part of a running request.
pub struct CallPart<'a, 'o> {
    /// splits loops
    pub ctx: &'a RunCtx<'o>,
    /// arrays to read
    pub inputs: CallArrays<'a>,
    /// arrays to write
    pub outputs: &'a mut [TensorMut<'o>],
}

/// The status that a part of a request returns when it ends.
pub enum CallProgress {
    /// There is more to do.
    Again,
    /// The next part waits for something outside of the engine, which this function begins
    /// ([`PartStatus::Suspended`]). Only for calls with [`CallLaunch::in_parts`] whose outputs no
    /// gate stands in front of.
    Suspended(Box<dyn FnOnce(Resume) + Send>),
    /// Everything is computed except these outputs.
    Done(Vec<(usize, Failure)>),
}

/// Pushes a call. `body` runs whatever has failed among its inputs, until it is done; an error
/// fails all outputs.
#[cfg_attr(debug_assertions, track_caller)]
pub fn launch_call<F>(engine: &'static Engine, call: CallLaunch<'_>, body: F)
where
    F: FnMut(CallPart<'_, '_>) -> Result<CallProgress, OpError> + Send + 'static,
{
    let mut vars: SmallVec<[_; 8]> = call.inputs.iter().map(|a| (a.var(), Access::Read)).collect();
    vars.extend(call.params.map(|set| (set.var(), Access::Read)));
    let first_output = vars.len();
    vars.extend(call.outputs.iter().map(|a| (a.var(), write_access(a))));
    let mut spec = OpSpec::new(call.name, &vars).kind(OpKind::Selective).cost(call.cost).priority(call.priority);
    spec.deadline = call.deadline;
    let mut work = CallWork {
        inputs: call.inputs.iter().map(|a| (*a).clone()).collect(),
        params: call.params.cloned(),
        outputs: call.outputs.iter().map(|a| (Place::of(a), a.tensor_type())).collect(),
        first_output,
        started: None,
        body,
    };
    with_gates(engine, call.outputs, |gates| {
        // Writing a parameter goes through gates, which ops in parts do not.
        if call.in_parts && gates.is_empty() {
            return engine.push_in_parts(spec, move |ctx| work.part(ctx));
        }
        let whole = move |ctx: &RunCtx<'_>| {
            loop {
                match work.part(ctx)? {
                    PartStatus::Again => {}
                    PartStatus::Suspended(_) => return Err(not_in_parts()),
                    PartStatus::Done(fails) => {
                        fails.into_iter().for_each(|(i, failure)| ctx.fail_write(i, failure));
                        return Ok(());
                    }
                }
            }
        };
        push_through(gates, engine, spec, whole);
    });
}

fn not_in_parts() -> OpError {
    OpError::new(FailureKind::Operator, "a call that was not pushed in parts cannot be suspended")
}

struct CallWork<F> {
    inputs: SmallVec<[NDArray; 4]>,
    params: Option<Arc<ParameterSet>>,
    outputs: SmallVec<[(Place, TensorType); 2]>,
    /// number of the first write
    first_output: usize,
    /// once the request has begun, until it is done
    started: Option<(CallState, Aside)>,
    body: F,
}

impl<F> CallWork<F>
where
    F: FnMut(CallPart<'_, '_>) -> Result<CallProgress, OpError>,
{
    fn part(&mut self, ctx: &RunCtx<'_>) -> Result<PartStatus, OpError> {
        let (params, first) = (self.params.as_deref(), self.first_output);
        let outputs: SmallVec<[Typed<'_>; 2]> = self.outputs.iter().map(|(place, tensor)| (place, tensor)).collect();
        let (state, mut aside) = match self.started.take() {
            Some(started) => started,
            None => {
                // Parameters can only be in the way of an output with a gate in front of it.
                let any_gate = outputs.iter().any(|(place, _)| place.chunk.gates.any());
                let parameters = params.filter(|_| any_gate).map_or(&[][..], ParameterSet::arrays);
                let read = self.inputs.iter().chain(parameters).map(Span::of);
                let aside = Aside::separate(ctx.engine(), read, &outputs)?;
                (CallState::of(ctx, self.inputs.len(), params, first), aside)
            }
        };
        let inputs = CallArrays { arrays: &self.inputs, params, state: &state };
        let mut writable = aside.writable(&outputs)?;
        let progress = (self.body)(CallPart { ctx, inputs, outputs: &mut writable })?;
        drop(writable);
        match progress {
            CallProgress::Again => {
                self.started = Some((state, aside));
                Ok(PartStatus::Again)
            }
            CallProgress::Suspended(begin) => {
                self.started = Some((state, aside));
                Ok(PartStatus::Suspended(begin))
            }
            CallProgress::Done(fails) => {
                aside.finish(&outputs)?;
                Ok(PartStatus::Done(fails.into_iter().map(|(output, failure)| (first + output, failure)).collect()))
            }
        }
    }
}

impl CallState {
    /// Called in the context that knows the accesses of the op.
    fn of(ctx: &RunCtx<'_>, inputs: usize, params: Option<&ParameterSet>, first_output: usize) -> CallState {
        let mut state = CallState::default();
        if params.is_some() {
            state.params_version = ctx.version_of(inputs);
        }
        if ctx.failed_reads().any(|i| i < first_output) {
            let of_params = (0..params.map_or(0, |set| set.arrays().len())).map(|i| params.and_then(|s| s.failure(i)));
            state.failures = (0..inputs).map(|i| ctx.failure_of(i)).chain(of_params).collect();
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use mxrt_engine::{Config, EngineKind};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A gate that was added between the look for gates and the push would open before the call
    /// has written the parameter. A naive engine runs the call within its push.
    #[test]
    fn no_gate_is_added_while_a_call_in_parts_is_pushed() {
        let config = Config { kind: EngineKind::Naive, ..Config::default() };
        let engine = Engine::start(config).expect("the engine starts");
        let tensor = || TensorType::new(DType::F32, &[1][..]);
        let output = NDArray::new(engine, Context::cpu(0), tensor()).expect("the array is made");
        let (array, held) = (output.clone(), Arc::new(AtomicBool::new(false)));
        let seen = held.clone();
        let outputs = [&output];
        let call = CallLaunch { in_parts: true, ..CallLaunch::new("call".into(), &[], &outputs, Cost::Large) };
        launch_call(engine, call, move |_| {
            seen.store(!array.chunk.gates.may_be_added(), Ordering::Relaxed);
            Ok(CallProgress::Done(Vec::new()))
        });
        assert!(held.load(Ordering::Relaxed), "the list of gates was open");
        let (array, seen) = (output.clone(), held.clone());
        held.store(false, Ordering::Relaxed);
        let function = crate::External { name: "function".into(), reads: &[], writes: &outputs, priority: 0 };
        let pushed = function.push_async(engine, move |_, token| {
            seen.store(!array.chunk.gates.may_be_added(), Ordering::Relaxed);
            token.complete(Ok(()));
        });
        assert!(pushed.is_ok() && held.load(Ordering::Relaxed), "the list of gates was open");
        assert!(output.chunk.gates.may_be_added());
    }
}
