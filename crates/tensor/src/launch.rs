//! Pushing work that reads and writes arrays.

use crate::params::push_writing;
use crate::place::{Aside, Place, Span, Typed};
use crate::{NDArray, TensorMut, TensorRef, TensorType};
use mxrt_engine::{Access, Cost, DeviceId, Engine, OpError, OpName, OpSpec, RunCtx};
use smallvec::SmallVec;
use std::sync::Arc;

/// The op to be pushed: a name for messages and the profiler, the arrays read and written, and the
/// expected cost.
pub struct Launch<'a> {
    /// operator (or block) name
    pub name: OpName,
    /// arrays that are read
    pub inputs: &'a [&'a NDArray],
    /// arrays that are overwritten, each completely
    pub outputs: &'a [&'a NDArray],
    /// whether the operation may run in the pushing thread
    pub cost: Cost,
}

/// Types of the arrays of an operation: what need not be copied for every push of it.
pub trait ArrayTypes: Send + Sync + 'static {
    /// types of the arrays that are read
    fn inputs(&self) -> &[TensorType];
    /// types of the arrays that are written
    fn outputs(&self) -> &[TensorType];
}

/// Few enough places that a closure with them fits into an op of the engine.
type OperandPlaces = SmallVec<[Place; 3]>;

struct OwnTypes {
    inputs: SmallVec<[TensorType; 4]>,
    outputs: SmallVec<[TensorType; 2]>,
}

impl ArrayTypes for OwnTypes {
    fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }
}

/// Pushes `body`, which will see the contents of the inputs and fill the outputs.
///
/// An output may share storage with an input or with another output: it is then computed aside and
/// copied over. If an input holds a failure the body does not run and the outputs take the failure
/// over.
#[cfg_attr(debug_assertions, track_caller)]
pub fn launch<F>(engine: &'static Engine, launch: Launch<'_>, body: F)
where
    F: FnOnce(&RunCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), OpError> + Send + 'static,
{
    let types = Arc::new(OwnTypes {
        inputs: launch.inputs.iter().map(|a| a.tensor_type()).collect(),
        outputs: launch.outputs.iter().map(|a| a.tensor_type()).collect(),
    });
    launch_typed(engine, launch, types, |_, ctx, ins, outs| body(ctx, ins, outs));
}

/// [`launch`] for arrays that are exactly of these types, in this order.
#[cfg_attr(debug_assertions, track_caller)]
pub fn launch_typed<T, F>(engine: &'static Engine, launch: Launch<'_>, types: Arc<T>, body: F)
where
    T: ArrayTypes,
    F: FnOnce(&T, &RunCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), OpError> + Send + 'static,
{
    let arrays = launch.inputs.iter().chain(launch.outputs);
    debug_assert!(arrays.clone().map(|a| a.tensor_type()).eq(types.inputs().iter().chain(types.outputs()).cloned()));
    let mut vars: SmallVec<[_; 8]> = launch.inputs.iter().map(|a| (a.var(), Access::Read)).collect();
    vars.extend(launch.outputs.iter().map(|a| (a.var(), write_access(a))));
    let device = arrays.clone().next().map_or(DeviceId::cpu(0), |a| device_of(a));
    let spec = OpSpec::new(launch.name, &vars).cost(launch.cost).device(device);
    let places: OperandPlaces = arrays.map(|a| Place::of(a)).collect();
    let cancel_guards: SmallVec<[_; 2]> = launch.inputs.iter().filter_map(|a| a.cancel_guard()).collect();
    if cancel_guards.is_empty() {
        return push_writing(engine, launch.outputs, spec, move |ctx| run(ctx, &*types, &places, body));
    }
    push_writing(engine, launch.outputs, spec, move |ctx| {
        // Until now these values had a user: this operation.
        let _cancel_guards = cancel_guards;
        run(ctx, &*types, &places, body)
    });
}

/// The queue that work on an array waits in.
pub(crate) fn device_of(array: &NDArray) -> DeviceId {
    DeviceId::cpu(u16::try_from(array.context().device_id).unwrap_or(0))
}

pub(crate) fn write_access(array: &NDArray) -> Access {
    if array.covers_storage() { Access::Write } else { Access::Update }
}

fn run<T, F>(ctx: &RunCtx<'_>, types: &T, places: &[Place], body: F) -> Result<(), OpError>
where
    T: ArrayTypes,
    F: FnOnce(&T, &RunCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), OpError>,
{
    let (read, written) = (types.inputs(), types.outputs());
    let all: SmallVec<[Typed<'_>; 4]> = places.iter().zip(read.iter().chain(written)).collect();
    let (inputs, outputs) = all.split_at(read.len().min(all.len()));
    let mut aside = Aside::separate(ctx.engine(), inputs.iter().map(|input| Span::from(*input)), outputs)?;
    {
        let ins = inputs.iter().map(|(place, tensor)| place.readable(tensor));
        let ins = ins.collect::<Result<SmallVec<[TensorRef<'_>; 4]>, OpError>>()?;
        body(types, ctx, &ins, &mut aside.writable(outputs)?)?;
    }
    aside.finish(outputs)
}
