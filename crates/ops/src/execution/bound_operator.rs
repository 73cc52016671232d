//! Operators bound to types: what imperative calls run.

use super::invoke::{Invocation, context_of};
use super::par::catch_refusal;
use super::{
    DeviceKernel, DeviceOperands, DevicePar, EnginePar, Kernel, KernelCall, KernelOptions, Packing, RandomKey,
    Signature, bind_device_kernel, bind_kernel, check_device_kernels, profiled_name,
};
use crate::definition::{Attrs, Inputs, OpDef, infer_with_outputs};
use mxrt_engine::device::KernelScope;
use mxrt_engine::memory::ALIGN;
use mxrt_engine::{Cost, DeviceId, DeviceKind, Engine, FailureKind, KernelCtx, OpError, RunCtx};
use mxrt_kernels::Par;
use mxrt_tensor::{
    ArrayTypes, Context, DerivedFrom, DeviceLaunch, Launch, NDArray, TensorMut, TensorRef, TensorType, describe_inputs,
    launch_native, launch_on, launch_typed,
};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// An operator with attributes, types and the kernel chosen for them.
pub(crate) struct BoundOperator {
    pub(super) def: &'static OpDef,
    attrs: Attrs,
    inputs: SmallVec<[TensorType; 2]>,
    outputs: SmallVec<[TensorType; 1]>,
    kernel: Box<dyn Kernel>,
    cost: Cost,
    packed: Option<PackedInput>,
    options: KernelOptions,
    /// the kernel of a device with kernels of its own, and its kind, from the first call there
    native: OnceLock<(DeviceKind, Arc<dyn DeviceKernel>)>,
}

/// The one input that the kernel reads in packed form.
struct PackedInput {
    input: usize,
    /// names the form and the type of the input
    form: Arc<str>,
}

impl PackedInput {
    fn of(kernel: &dyn Kernel, inputs: &[TensorType]) -> Option<PackedInput> {
        let packing = kernel.packing()?;
        let [input] = packing.inputs()[..] else { return None };
        Some(PackedInput { input, form: format!("{} of {}", packing.key(), inputs.get(input)?).into() })
    }
}

/// The scope of a call on a device: all of its outputs depend on its kernels.
impl KernelScope for BoundOperator {
    fn describe(&self, error: OpError) -> OpError {
        describe(error, self.def, &self.attrs, &self.inputs)
    }

    fn reaches(&self, _: usize) -> bool {
        true
    }
}

impl ArrayTypes for BoundOperator {
    fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }
}

/// Says of an error which operator with which attributes and inputs it is about.
fn describe(error: OpError, def: &OpDef, attrs: &Attrs, inputs: &[TensorType]) -> OpError {
    describe_inputs(error.op(def.name).attrs(attrs.pairs()), inputs.iter())
}

impl BoundOperator {
    /// Infers the types of the outputs and chooses a kernel. `given` are the arrays of `out=`, if
    /// there are any.
    pub fn new(
        def: &'static OpDef,
        attrs: Attrs,
        options: KernelOptions,
        inputs: &[&NDArray],
        given: Option<&[&NDArray]>,
    ) -> Result<BoundOperator, OpError> {
        let types: SmallVec<[TensorType; 2]> = inputs.iter().map(|a| a.tensor_type()).collect();
        let chosen = (|| {
            check_numbers(def, &attrs, inputs.len(), given)?;
            let given: SmallVec<[TensorType; 2]> = given.unwrap_or(&[]).iter().map(|a| a.tensor_type()).collect();
            let outputs = infer_with_outputs(def, &attrs, &types, &given)?;
            let kernel = bind_kernel(def, &attrs, &Signature { inputs: &types, outputs: &outputs, options })?;
            Ok((outputs, kernel))
        })();
        match chosen {
            Ok((outputs, kernel)) => {
                let cost = Cost::of(kernel.cost_ns());
                let packed = PackedInput::of(&*kernel, &types);
                let outputs = outputs.into_iter().collect();
                let native = OnceLock::new();
                Ok(BoundOperator { def, attrs, inputs: types, outputs, kernel, cost, packed, options, native })
            }
            Err(error) => Err(describe(error, def, &attrs, &types)),
        }
    }

    fn describe(&self, error: OpError) -> OpError {
        describe(error, self.def, &self.attrs, &self.inputs)
    }

    /// Whether it was bound to inputs like these.
    pub fn takes(&self, inputs: &[&NDArray]) -> bool {
        inputs.len() == self.inputs.len() && inputs.iter().zip(&self.inputs).all(|(a, t)| has_type(a, t))
    }

    /// Whether these arrays, if there are any, are what it makes.
    pub fn makes(&self, outputs: Option<&[&NDArray]>) -> bool {
        outputs.is_none_or(|out| {
            out.len() == self.outputs.len() && out.iter().zip(&self.outputs).all(|(a, t)| has_type(a, t))
        })
    }

    /// The given outputs, or arrays for new ones.
    fn results(
        &self,
        engine: &'static Engine,
        context: Context,
        given: Option<&[&NDArray]>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        match given {
            Some(out) => Ok(out.iter().map(|a| (*a).clone()).collect()),
            None => {
                let made = self.outputs.iter().map(|t| NDArray::new(engine, context, t.clone()));
                made.collect::<Result<_, OpError>>().map_err(|e| self.describe(e))
            }
        }
    }

    /// Pushes it. Inputs and outputs are of the types that it was bound to.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push(
        self: &Arc<BoundOperator>,
        call: &Invocation<'_>,
        inputs: &[&NDArray],
        given: Option<&[&NDArray]>,
    ) -> Result<SmallVec<[NDArray; 2]>, OpError> {
        let context = context_of(call, inputs, given);
        check_context(inputs, given, context).map_err(|e| self.describe(e))?;
        let results = self.results(call.engine, context, given)?;
        let outputs: SmallVec<[&NDArray; 2]> = results.iter().collect();
        if let Some(device) = context.device() {
            self.push_on(device, call, inputs, &outputs).map_err(|e| self.describe(e))?;
            drop(outputs);
            return Ok(results);
        }
        let spec = Launch { name: profiled_name(self.def.name), inputs, outputs: &outputs, cost: self.cost };
        // Closures of their own, of which the last fits into an op of the engine.
        if self.def.random {
            let key = call.random.draw();
            launch_typed(call.engine, spec, self.clone(), move |bound, ctx, ins, outs| {
                bound.run(ctx, ins, outs, None, Some(key))
            });
        } else if let Some(array) = self.packed.as_ref().and_then(|packed| inputs.get(packed.input)) {
            let weights = array.derived();
            launch_typed(call.engine, spec, self.clone(), move |bound, ctx, ins, outs| {
                bound.run(ctx, ins, outs, Some(&weights), None)
            });
        } else {
            launch_typed(call.engine, spec, self.clone(), |bound, ctx, ins, outs| {
                bound.run(ctx, ins, outs, None, None)
            });
        }
        drop(outputs);
        Ok(results)
    }

    /// Enqueues the same kernel on a stream of a device, in the device's memory.
    fn push_on(
        self: &Arc<BoundOperator>,
        device: DeviceId,
        call: &Invocation<'_>,
        inputs: &[&NDArray],
        outputs: &[&NDArray],
    ) -> Result<(), OpError> {
        let open = call.engine.device(device)?;
        if !open.backend().host_addressable() {
            check_device_kernels(open)?;
            return self.push_native(device, call, inputs, outputs);
        }
        let key = self.def.random.then(|| call.random.draw());
        let workspace = self.kernel.workspace().next_multiple_of(ALIGN);
        let scratch = workspace + self.kernel.packing().map_or(0, |packing| packing.bytes());
        let work = DeviceLaunch { scratch, ..DeviceLaunch::new(device, self.def.name, inputs, outputs) };
        let bound = self.clone();
        let body =
            move |(), ctx: &KernelCtx<'_>, ins: &[TensorRef<'_>], outs: &mut [TensorMut<'_>], scratch: &mut [u8]| {
                let (workspace, packed) = scratch.split_at_mut(workspace);
                let par = DevicePar(ctx);
                let mut compute = || match bound.kernel.packing() {
                    Some(packing) => {
                        bound.pack(packing, &par, ins, packed)?;
                        bound.compute(&par, ins, outs, workspace, Some(packed), key)
                    }
                    None => bound.compute(&par, ins, outs, workspace, None, key),
                };
                compute().map_err(|e| bound.describe(e))
            };
        launch_on(call.engine, work, |_| (), body)
    }

    /// Enqueues the device's own kernel.
    fn push_native(
        self: &Arc<BoundOperator>,
        device: DeviceId,
        call: &Invocation<'_>,
        inputs: &[&NDArray],
        outputs: &[&NDArray],
    ) -> Result<(), OpError> {
        let kernel = self.native(device)?;
        let random = self.def.random.then(|| call.random.draw());
        let launch = DeviceLaunch::new(device, self.def.name, inputs, outputs);
        let (bound, writes) = (self.clone(), inputs.len()..inputs.len() + outputs.len());
        launch_native(call.engine, &launch, move |ctx, at| {
            let operands = DeviceOperands { inputs: &at.inputs, outputs: &at.outputs, random };
            ctx.within(bound, writes, || kernel.enqueue(ctx, &operands))
        })
    }

    fn native(&self, device: DeviceId) -> Result<Arc<dyn DeviceKernel>, OpError> {
        if let Some((kind, kernel)) = self.native.get()
            && *kind == device.kind()
        {
            return Ok(kernel.clone());
        }
        let kernel: Arc<dyn DeviceKernel> = bind_device_kernel(
            (device, self.def.name),
            self.def,
            &self.attrs,
            &self.inputs,
            &self.outputs,
            self.options,
        )?
        .into();
        let _ = self.native.set((device.kind(), kernel.clone()));
        Ok(kernel)
    }

    /// `weights` is the array that is packed; its packing stays with it.
    fn run(
        &self,
        ctx: &RunCtx<'_>,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
        weights: Option<&DerivedFrom>,
        random: Option<RandomKey>,
    ) -> Result<(), OpError> {
        let (memory, par) = (ctx.engine().memory(), EnginePar(ctx));
        let alloc = |bytes| memory.alloc(bytes).map_err(OpError::from);
        let mut compute = || {
            let mut workspace = alloc(self.kernel.workspace())?;
            let workspace = workspace.as_mut_slice();
            match (self.kernel.packing(), weights, &self.packed) {
                (Some(packing), Some(weights), Some(PackedInput { form, .. })) => {
                    let pack = |out: &mut [u8]| self.pack(packing, &par, inputs, out);
                    let packed = weights.get_or_compute(form, packing.bytes(), pack)?;
                    self.compute(&par, inputs, outputs, workspace, Some(packed.as_slice()), random)
                }
                (Some(packing), ..) => {
                    let mut packed = alloc(packing.bytes())?;
                    self.pack(packing, &par, inputs, packed.as_mut_slice())?;
                    self.compute(&par, inputs, outputs, workspace, Some(packed.as_slice()), random)
                }
                (None, ..) => self.compute(&par, inputs, outputs, workspace, None, random),
            }
        };
        compute().map_err(|e| self.describe(e))
    }

    /// Packs the inputs that the kernel wants packed.
    fn pack(
        &self,
        packing: &dyn Packing,
        par: &dyn Par,
        inputs: &[TensorRef<'_>],
        out: &mut [u8],
    ) -> Result<(), OpError> {
        let chosen = packing.inputs().iter().filter_map(|i| inputs.get(*i).copied());
        let chosen: SmallVec<[TensorRef<'_>; 4]> = chosen.collect();
        packing.pack(par, &chosen, &mut out[..packing.bytes()])
    }

    /// Runs the kernel in memory that was made for it.
    fn compute(
        &self,
        par: &dyn Par,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
        workspace: &mut [u8],
        packed: Option<&[u8]>,
        random: Option<RandomKey>,
    ) -> Result<(), OpError> {
        let workspace = &mut workspace[..self.kernel.workspace()];
        let mut call = KernelCall { par, inputs, outputs, workspace, packed, shared: None, random };
        catch_refusal(|| self.kernel.run(&mut call))
    }
}

fn has_type(array: &NDArray, tensor: &TensorType) -> bool {
    array.dtype() == tensor.dtype && *array.shape() == tensor.shape
}

fn check_numbers(def: &OpDef, attrs: &Attrs, inputs: usize, outputs: Option<&[&NDArray]>) -> Result<(), OpError> {
    let want = def.num_inputs(attrs);
    if inputs != want {
        let names = match def.inputs {
            Inputs::Variadic { count, .. } => format!("{count}={want}"),
            Inputs::Ranged { count, .. } => format!("three for each that {count} counts"),
            _ => def.input_names(attrs).join(", "),
        };
        let message = format!("Operator {} expects {want} inputs ({names}), but got {inputs} instead.", def.name);
        return Err(OpError::new(FailureKind::Value, message));
    }
    let made = def.num_outputs(attrs);
    match outputs {
        Some(out) if out.len() != made => {
            let message = format!("{} makes {made} outputs, but out= holds {}", def.name, out.len());
            Err(OpError::new(FailureKind::Value, message))
        }
        _ => Ok(()),
    }
}

/// Fails where a call does not have the inputs that its operator takes, or where these and the
/// arrays of `out=` are not on one device.
pub(crate) fn check_call(
    def: &OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    context: Context,
) -> Result<(), OpError> {
    check_numbers(def, attrs, inputs.len(), None)?;
    check_context(inputs, outputs, context)
}

/// Fails where inputs and arrays of `out=` are not on one device.
pub(crate) fn check_context(inputs: &[&NDArray], given: Option<&[&NDArray]>, context: Context) -> Result<(), OpError> {
    if let Some(elsewhere) = given.unwrap_or(&[]).iter().find(|a| a.context().device() != context.device()) {
        let message = format!(
            "out= is on {}, but the operator runs on {context}; give an array there, or copy the \
             result with copyto",
            elsewhere.context()
        );
        return Err(OpError::new(FailureKind::Device, message));
    }
    let Some((first, rest)) = inputs.split_first() else { return Ok(()) };
    // Contexts of the host, such as cpu(0) and cpu(1), name one memory.
    match rest.iter().find(|a| a.context().device() != first.context().device()) {
        None => Ok(()),
        Some(other) => {
            let message = format!(
                "all inputs must live on one device, but one is on {} and another on {}; use \
                 as_in_context",
                first.context(),
                other.context()
            );
            Err(OpError::new(FailureKind::Device, message))
        }
    }
}
