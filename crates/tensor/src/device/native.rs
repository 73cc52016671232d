//! Ops of devices that have kernels of their own, whose memory the host cannot address.

use super::{
    DeviceLaunch, DeviceOperand, Operands, check_places, cost, fill_blank, no_device_kernel, overwrite, overwritten,
};
use crate::NDArray;
use crate::index::Region;
use mxrt_engine::device::OpenDevice;
use mxrt_engine::{Access, DeviceCtx, DeviceId, DeviceKind, DevicePtr, Engine, ForkSafeOnce, OpError, OpSpec};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Alignment of every argument of a kernel, in bytes. Kernels read pieces of this size, and a kernel
/// that is chosen by the address of its data would give other bits for a view.
const ALIGNED: u64 = 16;

/// The addresses of a device op's arrays: whole, dense, and aligned.
#[derive(Clone, Debug)]
pub struct DeviceArguments {
    /// addresses of the inputs
    pub inputs: SmallVec<[DevicePtr; 4]>,
    /// addresses of the outputs
    pub outputs: SmallVec<[DevicePtr; 4]>,
    /// bytes of each input
    pub input_bytes: SmallVec<[usize; 4]>,
    /// bytes of each output
    pub output_bytes: SmallVec<[usize; 4]>,
    /// whether each input is a copy, or zeros, in memory of the op alone
    pub aside: SmallVec<[bool; 4]>,
    /// memory of the op alone
    pub scratch: DevicePtr,
}

/// Enqueues work of a device that has kernels of its own: `submit` submits it to the op's stream.
/// Arrays without content read as zeros; outputs that share memory with other operands are computed
/// aside, and so are views that are not aligned. So every argument is memory of its own. An error:
/// nothing was pushed.
pub fn launch_native<F>(engine: &'static Engine, launch: &DeviceLaunch<'_>, submit: F) -> Result<(), OpError>
where
    F: FnOnce(&DeviceCtx<'_>, &DeviceArguments) -> Result<(), OpError> + Send + 'static,
{
    push_native(engine, launch, &overwritten(launch.outputs), ALIGNED, submit)
}

fn push_native<F>(
    engine: &'static Engine,
    launch: &DeviceLaunch<'_>,
    outputs: &[(&NDArray, Access)],
    aligned: u64,
    submit: F,
) -> Result<(), OpError>
where
    F: FnOnce(&DeviceCtx<'_>, &DeviceArguments) -> Result<(), OpError> + Send + 'static,
{
    check_places(launch, outputs)?;
    let Operands { vars, reads, writes } = Operands::of(launch, outputs);
    let scratch = launch.scratch;
    let cancel_guards: SmallVec<[_; 2]> = launch.inputs.iter().filter_map(|a| a.cancel_guard()).collect();
    let spec = OpSpec::new(launch.name.clone(), &vars).device(launch.device).cost(cost(engine));
    let spec = OpSpec { kind: launch.kind, priority: launch.priority, deadline: launch.deadline, ..spec };
    engine.push_device(spec, move |ctx| {
        let _cancel_guards = cancel_guards;
        let native = NativeArguments::gather(ctx, (&reads, &writes), aligned, scratch)?;
        submit(ctx, &native.arguments)?;
        native.finish(ctx, &writes)
    })
}

/// Memory of the op alone, for an operand.
fn aside(ctx: &DeviceCtx<'_>, operand: &DeviceOperand) -> Result<DevicePtr, OpError> {
    ctx.scratch(operand.nbytes.max(1))
}

/// Address at which a kernel reads its input with this number, and whether that is not the array's:
/// a copy if an output overlaps the array or if it is not aligned, zeros if it has no value yet.
fn input(ctx: &DeviceCtx<'_>, i: usize, operand: &DeviceOperand, aligned: u64) -> Result<(DevicePtr, bool), OpError> {
    match ctx.memory(i).map(|ptr| ptr.offset(operand.offset)) {
        Some(at) if operand.nbytes == 0 || !(operand.shared || at.0 % aligned != 0) => Ok((at, false)),
        Some(at) => {
            let copy = aside(ctx, operand)?;
            // SAFETY: memory of a variable of this op, and of the op alone, of that size.
            unsafe { ctx.copy(copy, at, operand.nbytes)? };
            Ok((copy, true))
        }
        None => {
            let zeros = aside(ctx, operand)?;
            if operand.nbytes > 0 {
                // SAFETY: memory of the op alone, of that size.
                unsafe { ctx.clear(zeros, operand.nbytes)? };
            }
            Ok((zeros, true))
        }
    }
}

/// Arguments, and where outputs that were computed aside belong.
struct NativeArguments {
    arguments: DeviceArguments,
    /// addresses of outputs
    places: SmallVec<[DevicePtr; 4]>,
}

impl NativeArguments {
    fn gather(
        ctx: &DeviceCtx<'_>,
        (reads, writes): (&[DeviceOperand], &[DeviceOperand]),
        aligned: u64,
        scratch_bytes: usize,
    ) -> Result<NativeArguments, OpError> {
        let read = |(i, operand)| input(ctx, i, operand, aligned);
        let read: SmallVec<[(DevicePtr, bool); 4]> = reads.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let (inputs, aside_inputs) = read.into_iter().unzip();
        let (mut outputs, mut places) = (SmallVec::new(), SmallVec::new());
        for (i, operand) in writes.iter().enumerate() {
            let access = reads.len() + i;
            let at = match operand.whole {
                true => ctx.alloc(access, operand.storage.max(1))?,
                false => fill_blank(ctx, access, operand.storage)?,
            };
            let place = at.offset(operand.offset);
            let apart = operand.shared || place.0 % aligned != 0;
            outputs.push(if apart { aside(ctx, operand)? } else { place });
            places.push(place);
        }
        let scratch = if scratch_bytes == 0 { DevicePtr(0) } else { ctx.scratch(scratch_bytes)? };
        let bytes = |operands: &[DeviceOperand]| operands.iter().map(|operand| operand.nbytes).collect();
        let (input_bytes, output_bytes) = (bytes(reads), bytes(writes));
        Ok(NativeArguments {
            arguments: DeviceArguments { inputs, outputs, input_bytes, output_bytes, aside: aside_inputs, scratch },
            places,
        })
    }

    /// Copies what was computed aside.
    fn finish(&self, ctx: &DeviceCtx<'_>, writes: &[DeviceOperand]) -> Result<(), OpError> {
        for ((operand, at), place) in writes.iter().zip(&self.arguments.outputs).zip(&self.places) {
            if at != place && operand.nbytes > 0 {
                // SAFETY: memory of the op alone, and of a variable of this op, of that size.
                unsafe { ctx.copy(*place, *at, operand.nbytes)? };
            }
        }
        Ok(())
    }
}

/// Copies of regions by kernels of a device's own.
pub trait RegionKernels: Send + Sync {
    /// Whether they run on this device at all; the error says why not.
    fn check(&self, device: &OpenDevice) -> Result<(), OpError>;

    /// Submits copying the elements of one region, of `size` bytes each, to another of the same
    /// extents.
    fn copy(
        &self,
        ctx: &DeviceCtx<'_>,
        to: (DevicePtr, &Region),
        from: (DevicePtr, &Region),
        size: usize,
    ) -> Result<(), OpError>;

    /// Submits copying `count` elements of `size` bytes each. `places` holds the numbers of those
    /// that are written, then of those that are read, as int64; none is written twice.
    fn copy_places(
        &self,
        ctx: &DeviceCtx<'_>,
        to: DevicePtr,
        from: DevicePtr,
        places: DevicePtr,
        count: usize,
        size: usize,
    ) -> Result<(), OpError>;
}

/// Kernels for regions by kind of device.
pub type RegionKernelTable = Vec<(DeviceKind, &'static dyn RegionKernels)>;

static REGION_KERNELS: ForkSafeOnce<RegionKernelTable> = ForkSafeOnce::new();

/// Says which kinds of devices copy regions by kernels of their own. The first call counts.
pub fn set_region_kernels(table: RegionKernelTable) {
    REGION_KERNELS.get_or_init(|| table);
}

/// The kernels of a device whose memory the host cannot address; `None` for other devices.
fn region_kernels(engine: &'static Engine, device: DeviceId) -> Result<Option<&'static dyn RegionKernels>, OpError> {
    let open = engine.device(device)?;
    if open.backend().host_addressable() {
        return Ok(None);
    }
    let table = REGION_KERNELS.get().and_then(|table| table.iter().find(|(kind, _)| *kind == device.kind()));
    let (_, kernels) = table.copied().ok_or_else(|| no_device_kernel("copy", device))?;
    kernels.check(open)?;
    Ok(Some(kernels))
}

/// Enqueues a copy between regions on a device whose memory the host cannot address; `false` for
/// other devices.
pub(crate) fn copy_region_on(
    device: DeviceId,
    (target, into): (&NDArray, &Region),
    (source, from): (&NDArray, &Region),
    whole: bool,
) -> Result<bool, OpError> {
    let engine = target.engine();
    let Some(kernels) = region_kernels(engine, device)? else { return Ok(false) };
    let access = if whole { overwrite(target) } else { Access::Update };
    let (size, inputs) = (target.dtype().size(), [source]);
    let launch = DeviceLaunch::new(device, if whole { "copy" } else { "assign" }, &inputs, &[]);
    let (into, from) = (into.clone(), from.clone());
    push_native(engine, &launch, &[(target, access)], 1, move |ctx, at| {
        kernels.copy(ctx, (at.outputs[0], &into), (at.inputs[0], &from), size)
    })?;
    Ok(true)
}

/// Enqueues a copy of single elements, as [`copy_region_on`]: to and from these numbers. Of several
/// that are written to one place the last stays.
pub(crate) fn copy_places_on(
    device: DeviceId,
    (target, into): (&NDArray, impl Iterator<Item = usize>),
    (source, from): (&NDArray, impl Iterator<Item = usize>),
    whole: bool,
) -> Result<bool, OpError> {
    let engine = target.engine();
    let Some(kernels) = region_kernels(engine, device)? else { return Ok(false) };
    let last: BTreeMap<usize, usize> = into.zip(from).collect();
    let count = last.len();
    let places: Vec<i64> = last.keys().chain(last.values()).map(|place| *place as i64).collect();
    let places = NDArray::from_slice(engine, target.context(), [places.len()], &places)?;
    let access = if whole { overwrite(target) } else { Access::Update };
    let (size, inputs) = (target.dtype().size(), [source, &places]);
    let launch = DeviceLaunch::new(device, if whole { "gather" } else { "assign" }, &inputs, &[]);
    push_native(engine, &launch, &[(target, access)], 1, move |ctx, at| {
        kernels.copy_places(ctx, at.outputs[0], at.inputs[0], at.inputs[1], count, size)
    })?;
    Ok(true)
}
