//! Imperative execution: one operator, pushed at once.

use super::infer::infer_with_outputs;
use super::{Attrs, DevicePar, EnginePar, Kernel, KernelCall, KernelOptions, OpDef, RandomKey, RandomState, Signature};
use mxrt_engine::{Cost, DeviceId, Engine, FailureKind, OpError};
use mxrt_kernels::par::Par;
use mxrt_tensor::{Context, DeviceLaunch, Launch, NDArray, TensorMut, TensorRef, TensorType, launch, launch_on};
use smallvec::SmallVec;

/// Plans cheaper than this run in the calling thread when a core is free (see `Cost`).
const SMALL_NS: u64 = 200_000;

/// Where and how an operator runs.
pub struct Invocation<'a> {
    /// engine that orders the work
    pub engine: &'static Engine,
    /// where outputs live when there is no input to tell
    pub context: Context,
    /// plan-wide choices
    pub options: KernelOptions,
    /// source of randomness
    pub random: &'a RandomState,
}

/// Runs one operator: infers the outputs' types, binds a kernel and pushes it. Returns before it has run.
///
/// `outputs` are arrays to be overwritten (`out=`); without them new ones are made. Shape, type and attribute errors
/// come at once; errors of values are kept in the outputs until somebody reads them.
pub fn invoke(
    inv: &Invocation<'_>,
    def: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<SmallVec<[NDArray; 2]>, OpError> {
    let in_types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
    push(inv, def, attrs, inputs, &in_types, outputs).map_err(|e| {
        e.op(def.name)
            .shapes(in_types.iter().map(|t| t.shape.to_vec()).collect())
            .dtypes(in_types.iter().map(|t| t.dtype.name()).collect())
    })
}

fn check_arguments(
    def: &OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    context: Context,
) -> Result<(), OpError> {
    let want = def.num_inputs(attrs);
    if inputs.len() != want {
        let names = def.input_names(attrs).join(", ");
        let message =
            format!("Operator {} expects {want} inputs ({names}), but got {} instead.", def.name, inputs.len());
        return Err(OpError::new(FailureKind::Value, message));
    }
    if let (Some(first), Some(other)) = (inputs.first(), inputs.iter().find(|a| a.context() != inputs[0].context())) {
        let message = format!(
            "all inputs must live on one context, but one is on {} and another on {}; use as_in_context",
            first.context(),
            other.context()
        );
        return Err(OpError::new(FailureKind::Device, message));
    }
    if let Some(elsewhere) = outputs.unwrap_or(&[]).iter().find(|a| a.context().device() != context.device()) {
        let message = format!(
            "out= is on {}, but the operator runs on {context}; give an array there, or copy the result with copyto",
            elsewhere.context()
        );
        return Err(OpError::new(FailureKind::Device, message));
    }
    let made = def.num_outputs(attrs);
    if let Some(out) = outputs
        && out.len() != made
    {
        let message = format!("{} makes {made} outputs, but out= holds {}", def.name, out.len());
        return Err(OpError::new(FailureKind::Value, message));
    }
    Ok(())
}

fn push(
    inv: &Invocation<'_>,
    def: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
    in_types: &[TensorType],
    outputs: Option<&[&NDArray]>,
) -> Result<SmallVec<[NDArray; 2]>, OpError> {
    let first = inputs.first().or_else(|| outputs?.first());
    let context = first.map_or(inv.context, |a| a.context());
    check_arguments(def, attrs, inputs, outputs, context)?;
    let given: SmallVec<[TensorType; 2]> = outputs.unwrap_or(&[]).iter().map(|a| a.tensor_type()).collect();
    let out_types = infer_with_outputs(def, attrs, in_types, &given)?;
    let signature = Signature { inputs: in_types, outputs: &out_types, options: inv.options };
    let kernel = (def.bind)(attrs, &signature)?;
    let results: SmallVec<[NDArray; 2]> = match outputs {
        Some(out) => out.iter().map(|a| (*a).clone()).collect(),
        None => out_types.into_iter().map(|t| NDArray::new(inv.engine, context, t)).collect::<Result<_, OpError>>()?,
    };
    let random = def.random.then(|| inv.random.draw());
    let written: SmallVec<[&NDArray; 2]> = results.iter().collect();
    match context.device() {
        None => on_host(inv.engine, def, kernel, random, inputs, &written),
        Some(device) => on_device(inv.engine, device, def, kernel, random, inputs, &written)?,
    }
    drop(written);
    Ok(results)
}

fn on_host(
    engine: &'static Engine,
    def: &'static OpDef,
    kernel: Box<dyn Kernel>,
    random: Option<RandomKey>,
    inputs: &[&NDArray],
    outputs: &[&NDArray],
) {
    let cost = if kernel.cost_ns() < SMALL_NS { Cost::Small } else { Cost::Large };
    launch(engine, Launch { name: def.name.into(), inputs, outputs, cost }, move |ctx, ins, outs| {
        let memory = ctx.engine().memory();
        let alloc = |bytes| memory.alloc(bytes).map_err(|e| OpError::new(FailureKind::Memory, e.to_string()));
        let mut workspace = alloc(kernel.workspace())?;
        let mut packed = kernel.packing().map(|packing| alloc(packing.bytes())).transpose()?;
        let packed = packed.as_mut().map_or(&mut [][..], |block| block.as_mut_slice());
        let workspace = &mut workspace.as_mut_slice()[..kernel.workspace()];
        run(&*kernel, &EnginePar(ctx), ins, outs, workspace, packed, random)
    });
}

/// The same kernel, in the device's turn and memory.
fn on_device(
    engine: &'static Engine,
    device: DeviceId,
    def: &'static OpDef,
    kernel: Box<dyn Kernel>,
    random: Option<RandomKey>,
    inputs: &[&NDArray],
    outputs: &[&NDArray],
) -> Result<(), OpError> {
    let workspace = kernel.workspace().next_multiple_of(mxrt_engine::memory::ALIGN);
    let scratch = workspace + kernel.packing().map_or(0, |packing| packing.bytes());
    let work = DeviceLaunch { scratch, ..DeviceLaunch::new(device, def.name, inputs, outputs) };
    launch_on(
        engine,
        work,
        |_| (),
        move |(), ctx, ins, outs, scratch| {
            let (scratch, packed) = scratch.split_at_mut(workspace);
            run(&*kernel, &DevicePar(ctx), ins, outs, &mut scratch[..kernel.workspace()], packed, random)
        },
    )
}

/// Runs a kernel in the memory given.
fn run(
    kernel: &dyn Kernel,
    par: &dyn Par,
    ins: &[TensorRef<'_>],
    outs: &mut [TensorMut<'_>],
    workspace: &mut [u8],
    packed: &mut [u8],
    random: Option<RandomKey>,
) -> Result<(), OpError> {
    let packed = match kernel.packing() {
        None => None,
        Some(packing) => {
            let chosen: SmallVec<[_; 4]> = packing.inputs().iter().filter_map(|i| ins.get(*i).copied()).collect();
            packing.pack(&chosen, &mut packed[..packing.bytes()])?;
            Some(&*packed)
        }
    };
    let mut call = KernelCall { par, inputs: ins, outputs: outs, workspace, packed, random };
    kernel.run(&mut call).map_err(|e| {
        e.shapes(ins.iter().map(|t| t.shape.to_vec()).collect()).dtypes(ins.iter().map(|t| t.dtype.name()).collect())
    })
}
