//! Calls on a device: a whole plan is one kernel there, on memory of the device. The kernels are the host's, so the results
//! have the same bits.

use super::build::Plan;
use super::consts::ValueKey;
use super::run::Request;
use mxrt_engine::{DeviceId, Engine, OpError, OpName};
use mxrt_ops::{DevicePar, RandomKey};
use mxrt_tensor::{DeviceLaunch, NDArray, TensorMut, launch_on};
use smallvec::SmallVec;
use std::sync::Arc;

/// A call to enqueue.
pub(super) struct DeviceCall<'a> {
    pub device: DeviceId,
    pub name: OpName,
    pub plan: Arc<Plan>,
    pub inputs: &'a [&'a NDArray],
    pub outputs: &'a [&'a NDArray],
    /// positions of the parameters among the inputs
    pub params: &'a mut dyn Iterator<Item = usize>,
    pub random: SmallVec<[RandomKey; 2]>,
}

/// Enqueues a call. `run` runs the plan in the arena given; folded and packed parameters are computed from the device's
/// values, by the first call that needs them.
pub(super) fn push<F>(engine: &'static Engine, call: DeviceCall<'_>, run: F) -> Result<(), OpError>
where
    F: FnOnce(&Plan, &Request<'_>, &mut [u8], &mut [TensorMut<'_>]) -> Result<(), OpError> + Send + 'static,
{
    let DeviceCall { device, name, plan, inputs, outputs, params, random } = call;
    // Every call reads them and hardly anybody writes them: they need not remember who did.
    for i in params {
        engine.freeze(inputs[i].var());
    }
    let places: Vec<(u64, usize)> = inputs
        .iter()
        .map(|array| {
            let (var, _, offset) = array.value_key();
            (var, offset)
        })
        .collect();
    // What was pushed before is enqueued by then, so the versions are those that the kernel will meet.
    let keys = move |ctx: &mxrt_engine::DeviceCtx<'_>| -> Vec<ValueKey> {
        places.into_iter().enumerate().map(|(i, (var, offset))| (var, ctx.version_of(i), offset)).collect()
    };
    let work = DeviceLaunch { device, name, inputs, outputs, scratch: plan.arena_bytes() };
    launch_on(engine, work, keys, move |keys, ctx, ins, outs, arena| {
        let request =
            Request { par: &DevicePar(ctx), memory: engine.memory(), inputs: ins, keys: &keys, random: &random };
        run(&plan, &request, arena, outs)
    })
}
