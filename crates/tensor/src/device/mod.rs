//! Arrays on devices: kernels over their memory, and copies between memories.
//!
//! The memory of such an array belongs to its variable. Ops on it are enqueued here; the device
//! runs them later, in the order that the variables demand. An array that no thread has written yet
//! has no memory and reads as zeros.

mod host;
mod native;
mod recorded;
mod sparse;

pub use native::{DeviceArguments, RegionKernelTable, RegionKernels, launch_native, set_region_kernels};
pub(crate) use native::{copy_places_on, copy_region_on};
pub use recorded::{InputUse, RecordedCall};

use crate::{Context, DType, NDArray, Shape, TensorMut, TensorRef};
use mxrt_engine::{
    Access, Cost, DeviceCtx, DeviceId, DevicePtr, Engine, FailureKind, KernelCtx, Lane, MemoryPlace, OpError, OpKind,
    OpName, OpSpec, Var,
};
use smallvec::SmallVec;
use std::time::Instant;

/// Work for a device: a kernel of the host's kind, for a device whose memory the host can address.
pub struct DeviceLaunch<'a> {
    /// the device
    pub device: DeviceId,
    /// operator (or block) name
    pub name: OpName,
    /// arrays that are read
    pub inputs: &'a [&'a NDArray],
    /// arrays that are overwritten, each completely
    pub outputs: &'a [&'a NDArray],
    /// bytes of memory that the kernel works on
    pub scratch: usize,
    /// the behaviour when an input has failed; a selective kernel asks its context, and is called
    /// in any case
    pub kind: OpKind,
    /// ops with a higher number are enqueued first
    pub priority: i32,
    /// fails with kind `Deadline` instead of being enqueued later than this
    pub deadline: Option<Instant>,
}

impl<'a> DeviceLaunch<'a> {
    /// A strict kernel without scratch memory.
    pub fn new(
        device: DeviceId,
        name: impl Into<OpName>,
        inputs: &'a [&'a NDArray],
        outputs: &'a [&'a NDArray],
    ) -> DeviceLaunch<'a> {
        let (scratch, kind, priority, deadline) = (0, OpKind::Strict, 0, None);
        DeviceLaunch { device, name: name.into(), inputs, outputs, scratch, kind, priority, deadline }
    }
}

/// Enqueues `body`, which will see the contents of the inputs and fill the outputs; `prepare` runs
/// when it is enqueued, after everything it depends on, and hands it what is known then. As
/// [`crate::launch`] in everything else. An error: nothing was pushed.
pub fn launch_on<P, F>(
    engine: &'static Engine,
    launch: DeviceLaunch<'_>,
    prepare: impl FnOnce(&DeviceCtx<'_>) -> P + Send + 'static,
    body: F,
) -> Result<(), OpError>
where
    P: Send + 'static,
    F: FnOnce(P, &KernelCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>], &mut [u8]) -> Result<(), OpError>
        + Send
        + 'static,
{
    push_kernel(engine, &launch, &overwritten(launch.outputs), prepare, body)
}

/// Outputs, and how each is written.
fn overwritten<'a>(outputs: &[&'a NDArray]) -> SmallVec<[(&'a NDArray, Access); 4]> {
    outputs.iter().map(|array| (*array, overwrite(array))).collect()
}

/// How an array is written whose elements are all overwritten.
fn overwrite(array: &NDArray) -> Access {
    if array.covers_storage() { Access::Write } else { Access::Update }
}

/// Enqueues work that changes a part of `target` and keeps the rest, and the failure it may hold.
pub(crate) fn update_on(
    device: DeviceId,
    target: &NDArray,
    source: &NDArray,
    change: impl FnOnce(&mut [u8], &[u8]) + Send + 'static,
) -> Result<(), OpError> {
    let inputs = [source];
    let launch = DeviceLaunch::new(device, "assign", &inputs, &[]);
    push_kernel(
        target.engine(),
        &launch,
        &[(target, Access::Update)],
        |_| (),
        |(), _, ins, outs, _| {
            change(outs[0].bytes_mut(), ins[0].bytes());
            Ok(())
        },
    )
}

/// An array as an op on a device needs it: everything but its handle, which would keep memory from
/// being used again.
struct DeviceOperand {
    dtype: DType,
    shape: Shape,
    offset: usize,
    nbytes: usize,
    /// bytes of the whole storage
    storage: usize,
    /// shares memory with another operand that is written
    shared: bool,
    /// all of the storage is overwritten
    whole: bool,
}

impl DeviceOperand {
    fn new(array: &NDArray, shared: bool, whole: bool) -> DeviceOperand {
        DeviceOperand {
            dtype: array.dtype(),
            shape: array.shape().clone(),
            offset: array.offset,
            nbytes: array.nbytes(),
            storage: array.storage_bytes(),
            shared,
            whole,
        }
    }
}

/// Host addresses of device memory, on their way to the kernel that may use them.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: an address; `Arguments::run` says which threads may use it.
unsafe impl Send for Address {}

/// The argument with which a kernel is called.
struct KernelArgument {
    operand: DeviceOperand,
    at: Address,
    /// separate memory for an input that shares memory with an output, and for an output that
    /// shares memory with another
    aside: Option<Address>,
    /// has no content yet: reads as zeros
    blank: bool,
}

struct Arguments {
    inputs: SmallVec<[KernelArgument; 4]>,
    outputs: SmallVec<[KernelArgument; 4]>,
    scratch: Address,
    scratch_bytes: usize,
}

fn push_kernel<P, F>(
    engine: &'static Engine,
    launch: &DeviceLaunch<'_>,
    outputs: &[(&NDArray, Access)],
    prepare: impl FnOnce(&DeviceCtx<'_>) -> P + Send + 'static,
    body: F,
) -> Result<(), OpError>
where
    P: Send + 'static,
    F: FnOnce(P, &KernelCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>], &mut [u8]) -> Result<(), OpError>
        + Send
        + 'static,
{
    check_places(launch, outputs)?;
    if !engine.device(launch.device)?.backend().host_addressable() {
        return Err(no_device_kernel(launch.name.as_str(), launch.device));
    }
    let Operands { vars, reads, writes } = Operands::of(launch, outputs);
    let inputs = launch.inputs;
    let (scratch, strict) = (launch.scratch, launch.kind == OpKind::Strict);
    let cancel_guards: SmallVec<[_; 2]> = inputs.iter().filter_map(|a| a.cancel_guard()).collect();
    let spec = OpSpec::new(launch.name.clone(), &vars).device(launch.device).cost(cost(engine));
    let spec = OpSpec { kind: launch.kind, priority: launch.priority, deadline: launch.deadline, ..spec };
    engine.push_device(spec, move |ctx| {
        // Until now a thread wanted these values: this operation.
        let _cancel_guards = cancel_guards;
        let arguments = Arguments::gather(ctx, reads, writes, scratch)?;
        let prepared = prepare(ctx);
        ctx.launch(move |kernel| {
            // What comes before it is complete: nothing can be made of a failed value.
            if strict && kernel.failed_reads().next().is_some() {
                return Ok(());
            }
            arguments.run(|ins, outs, scratch| body(prepared, kernel, ins, outs, scratch))
        })
    })
}

fn check_places(launch: &DeviceLaunch<'_>, outputs: &[(&NDArray, Access)]) -> Result<(), OpError> {
    let mut arrays = launch.inputs.iter().copied().chain(outputs.iter().map(|(array, _)| *array));
    if let Some(array) = arrays.clone().find(|array| array.is_sparse()) {
        let (name, device, storage) = (&launch.name, launch.device, array.storage_type());
        let message = format!(
            "{name} on {device} works on dense arrays, and one is stored as {storage}: pass tostype('default')"
        );
        return Err(OpError::new(FailureKind::NotImplemented, message));
    }
    match arrays.find(|array| array.context().device() != Some(launch.device)) {
        None => Ok(()),
        Some(array) => {
            let (device, place) = (launch.device, array.context());
            let message = format!("{} on {device} was given an array on {place}; use as_in_context", launch.name);
            Err(OpError::new(FailureKind::Device, message))
        }
    }
}

/// The arrays of an op on a device.
struct Operands<'a> {
    vars: SmallVec<[(&'a Var, Access); 8]>,
    reads: SmallVec<[DeviceOperand; 4]>,
    writes: SmallVec<[DeviceOperand; 4]>,
}

impl<'a> Operands<'a> {
    fn of(launch: &DeviceLaunch<'a>, outputs: &[(&'a NDArray, Access)]) -> Operands<'a> {
        let inputs = launch.inputs;
        let mut vars: SmallVec<[(&Var, Access); 8]> = inputs.iter().map(|a| (a.var(), Access::Read)).collect();
        vars.extend(outputs.iter().map(|(array, access)| (array.var(), *access)));
        let overlaps = |a: &NDArray, others: &[(&NDArray, Access)]| others.iter().any(|(o, _)| a.overlaps(o));
        let reads = inputs.iter().map(|a| DeviceOperand::new(a, overlaps(a, outputs), false)).collect();
        let write = |(i, (a, access)): (usize, &(&NDArray, Access))| {
            DeviceOperand::new(a, overlaps(a, &outputs[..i]), *access == Access::Write)
        };
        let writes = outputs.iter().enumerate().map(write).collect();
        Operands { vars, reads, writes }
    }
}

/// Enqueueing takes no time and may be done by the thread that pushes, unless that includes waiting
/// for the device.
fn cost(engine: &'static Engine) -> Cost {
    if engine.kind().is_async() { Cost::Small } else { Cost::Large }
}

fn host(ctx: &DeviceCtx<'_>, ptr: DevicePtr) -> Result<Address, OpError> {
    ctx.backend().host_pointer(ptr).map(Address).ok_or_else(|| no_device_kernel(ctx.name(), ctx.device()))
}

/// The error of an operator, by this name, that a device cannot run. It says what works instead.
pub fn no_device_kernel(name: &str, device: DeviceId) -> OpError {
    let message = format!(
        "{name} has no kernel for {device}; compute it on the CPU, with inputs moved there by \
         as_in_context(mx.cpu())"
    );
    OpError::new(FailureKind::NotImplemented, message).device(device.to_string())
}

fn offset(address: Address, bytes: usize) -> Address {
    Address(address.0.wrapping_add(bytes))
}

/// Memory of the op's own.
fn scratch(ctx: &DeviceCtx<'_>, bytes: usize) -> Result<Address, OpError> {
    // No memory is needed for nothing, but an address.
    host(ctx, ctx.scratch(bytes.max(1))?)
}

impl Arguments {
    fn gather(
        ctx: &DeviceCtx<'_>,
        reads: SmallVec<[DeviceOperand; 4]>,
        writes: SmallVec<[DeviceOperand; 4]>,
        scratch_bytes: usize,
    ) -> Result<Arguments, OpError> {
        let first_write = reads.len();
        let mut inputs = SmallVec::new();
        for (i, operand) in reads.into_iter().enumerate() {
            let memory = ctx.memory(i);
            let at = match memory {
                Some(ptr) => offset(host(ctx, ptr)?, operand.offset),
                None => scratch(ctx, operand.nbytes)?,
            };
            let aside = if operand.shared { Some(scratch(ctx, operand.nbytes)?) } else { None };
            inputs.push(KernelArgument { operand, at, aside, blank: memory.is_none() });
        }
        let mut outputs = SmallVec::new();
        for (i, operand) in writes.into_iter().enumerate() {
            let access = first_write + i;
            let blank = ctx.memory(access).is_none() && !operand.whole;
            let at = host(ctx, ctx.alloc(access, operand.storage.max(1))?)?;
            let aside = if operand.shared { Some(scratch(ctx, operand.nbytes)?) } else { None };
            outputs.push(KernelArgument { operand, at, aside, blank });
        }
        Ok(Arguments { inputs, outputs, scratch: scratch(ctx, scratch_bytes)?, scratch_bytes })
    }

    /// Clears memory that holds no value yet, and copies inputs aside that overlap an output.
    ///
    /// # Safety
    /// This is a kernel of the op that gathered the arguments.
    unsafe fn fill(&self) {
        // SAFETY: contract; as in `run`.
        unsafe {
            for output in self.outputs.iter().filter(|o| o.blank) {
                output.at.0.write_bytes(0, output.operand.storage);
            }
            for input in &self.inputs {
                if input.blank {
                    input.at.0.write_bytes(0, input.operand.nbytes);
                }
                if let Some(aside) = input.aside {
                    aside.0.copy_from_nonoverlapping(input.at.0, input.operand.nbytes);
                }
            }
        }
    }

    /// Calls the kernel's body. Runs once, as a kernel of the op that gathered the arguments.
    fn run(
        self,
        body: impl FnOnce(&[TensorRef<'_>], &mut [TensorMut<'_>], &mut [u8]) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        // SAFETY: the memory belongs to variables of the running op, or to the op alone; the engine
        // keeps it until the op is complete, and the order of the variables keeps others from
        // writing what is read and from touching what is written. The memory of a variable is as
        // large as its storage, in which the views lie. No two of the slices made below overlap: an
        // input that does is copied aside first, an output that does is computed aside.
        unsafe {
            self.fill();
            let ins: SmallVec<[TensorRef<'_>; 4]> = self
                .inputs
                .iter()
                .map(|input| {
                    let o = &input.operand;
                    let bytes = std::slice::from_raw_parts(input.aside.unwrap_or(input.at).0, o.nbytes);
                    TensorRef::new(o.dtype, &o.shape, bytes)
                })
                .collect();
            let mut outs: SmallVec<[TensorMut<'_>; 4]> = self
                .outputs
                .iter()
                .map(|output| {
                    let o = &output.operand;
                    let at = output.aside.unwrap_or(offset(output.at, o.offset));
                    TensorMut::new(o.dtype, &o.shape, std::slice::from_raw_parts_mut(at.0, o.nbytes))
                })
                .collect();
            body(&ins, &mut outs, std::slice::from_raw_parts_mut(self.scratch.0, self.scratch_bytes))?;
            drop((ins, outs));
            for output in &self.outputs {
                if let Some(aside) = output.aside {
                    let o = &output.operand;
                    offset(output.at, o.offset).0.copy_from_nonoverlapping(aside.0, o.nbytes);
                }
            }
        }
        Ok(())
    }
}

impl NDArray {
    /// A copy on another context; the copy waits for the array, not the caller.
    pub fn copy_to_context(&self, context: Context) -> Result<NDArray, OpError> {
        let made = NDArray::new_stored(self.engine(), context, self.tensor_type(), self.storage_type())?;
        copy(&made, self)?;
        Ok(made)
    }
}

/// Copies all elements of `source` into `target`. They have the same type and are in different
/// memories, or in that of one device without overlapping; one on the host is new. Pushes the work
/// and returns.
pub(crate) fn copy(target: &NDArray, source: &NDArray) -> Result<(), OpError> {
    if source.is_sparse() && !target.is_sparse() && source.context().device().is_some() {
        // What is dense is made of it on the host.
        return copy(target, &source.copy_to_context(Context::cpu(0))?);
    }
    match (source.context().device(), target.context().device()) {
        (Some(from), Some(to)) if from.kind() != to.kind() => {
            // Their drivers know nothing of each other.
            copy(target, &source.copy_to_context(Context::cpu(0))?)
        }
        (Some(_), Some(to)) if source.context() == target.context() => push_copy(to, Lane::Normal, target, source),
        (_, Some(to)) => push_copy(to, Lane::CopyIn, target, source),
        (Some(from), None) => push_copy(from, Lane::CopyOut, target, source),
        (None, None) => host::copy(target, source),
    }
}

fn both_on_the_host() -> OpError {
    OpError::new(FailureKind::Device, "a copy between two arrays on the host was sent to a device")
}

/// Numbers of the accesses of a copy.
const SOURCE: usize = 0;
const TARGET: usize = 1;

fn push_copy(device: DeviceId, lane: Lane, target: &NDArray, source: &NDArray) -> Result<(), OpError> {
    if target.is_sparse() {
        return sparse::push_copy(device, lane, target, source);
    }
    let access = overwrite(target);
    // In the order of `SOURCE` and `TARGET`.
    let vars = [(source.var(), Access::Read), (target.var(), access)];
    let spec = OpSpec::new("copy", &vars).device(device).lane(lane).cost(cost(source.engine()));
    let cancel_guards = source.cancel_guard();
    let from = Side::of(source);
    let to = Side::of(target);
    source.engine().push_device(spec, move |ctx| {
        let _cancel_guards = cancel_guards;
        let bytes = from.operand.nbytes;
        if bytes == 0 {
            return Ok(());
        }
        let from = from.readable(ctx)?;
        let to = to.writable(ctx)?;
        // SAFETY: both places have that many bytes: device memory of this op's variables, or host
        // memory that `keep` holds.
        unsafe {
            match (to, from) {
                (MemoryPlace::Device(to), Some(MemoryPlace::Device(from))) => ctx.copy(to, from, bytes),
                (MemoryPlace::Device(to), Some(MemoryPlace::Host(from))) => {
                    ctx.copy_in((TARGET, to), (SOURCE, from), bytes)
                }
                (MemoryPlace::Host(to), Some(MemoryPlace::Device(from))) => {
                    ctx.copy_out((TARGET, to), (SOURCE, from), bytes)
                }
                (MemoryPlace::Device(to), None) => ctx.clear(to, bytes),
                (MemoryPlace::Host(to), None) => zero_host(ctx, Address(to), bytes),
                (MemoryPlace::Host(_), Some(MemoryPlace::Host(_))) => Err(both_on_the_host()),
            }
        }
    })
}

/// Sets memory of the host to zero in the op's turn on its stream.
fn zero_host(ctx: &DeviceCtx<'_>, to: Address, bytes: usize) -> Result<(), OpError> {
    ctx.launch(move |_| {
        let whole = to;
        // SAFETY: memory of the array that this op writes and keeps, with that many bytes.
        unsafe { whole.0.write_bytes(0, bytes) };
        Ok(())
    })
}

/// One end of a copy. Memory of the host is held by its array; that of a device by the engine.
struct Side {
    operand: DeviceOperand,
    host: Option<NDArray>,
}

impl Side {
    fn of(array: &NDArray) -> Side {
        let host = array.context().device().is_none().then(|| array.clone());
        Side { operand: DeviceOperand::new(array, false, array.covers_storage()), host }
    }

    /// The memory of the source; none if no thread has written it yet.
    fn readable(self, ctx: &DeviceCtx<'_>) -> Result<Option<MemoryPlace>, OpError> {
        if let Some(array) = self.host {
            let place = MemoryPlace::Host(array.chunk.block()?.as_ptr().wrapping_add(array.offset));
            ctx.keep(array);
            return Ok(Some(place));
        }
        Ok(ctx.memory(SOURCE).map(|ptr| MemoryPlace::Device(ptr.offset(self.operand.offset))))
    }

    /// The memory of the target.
    fn writable(self, ctx: &DeviceCtx<'_>) -> Result<MemoryPlace, OpError> {
        if let Some(array) = self.host {
            let memory =
                if self.operand.whole { array.chunk.block_to_overwrite()? } else { array.chunk.block_to_change()? };
            let place = MemoryPlace::Host(memory.as_ptr().wrapping_add(array.offset));
            ctx.keep(array);
            return Ok(place);
        }
        let ptr = match self.operand.whole {
            true => ctx.alloc(TARGET, self.operand.storage)?,
            false => fill_blank(ctx, TARGET, self.operand.storage)?,
        };
        Ok(MemoryPlace::Device(ptr.offset(self.operand.offset)))
    }
}

/// The memory of an access that keeps the old value; zeros if no thread has written it yet.
pub(crate) fn fill_blank(ctx: &DeviceCtx<'_>, access: usize, bytes: usize) -> Result<DevicePtr, OpError> {
    let blank = ctx.memory(access).is_none();
    let ptr = ctx.alloc(access, bytes.max(1))?;
    if blank && bytes > 0 {
        // SAFETY: the memory belongs to a variable of this op.
        unsafe { ctx.clear(ptr, bytes)? };
    }
    Ok(ptr)
}
