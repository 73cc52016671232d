//! Pushing work that reads and writes arrays.

use crate::array::{Chunk, allocate};
use crate::{NDArray, TensorMut, TensorRef, TensorType};
use mxrt_engine::memory::Block;
use mxrt_engine::{Access, Cost, DeviceId, Engine, FailureKind, OpError, OpName, OpSpec, RunCtx};
use smallvec::SmallVec;
use std::sync::Arc;

/// What to push: a name for messages and the profiler, the arrays read and written, and the expected cost.
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
    /// of the arrays that are read
    fn inputs(&self) -> &[TensorType];
    /// of the arrays that are written
    fn outputs(&self) -> &[TensorType];
}

/// Where the bytes of an array are. With its type, kept elsewhere, this is the array.
struct Place {
    chunk: Arc<Chunk>,
    offset: usize,
}

/// So many that a closure with them fits into an op of the engine.
type Places = SmallVec<[Place; 3]>;

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
/// An output may share storage with an input or with another output: it is then computed aside and copied over.
/// If an input holds a failure the body does not run and the outputs take the failure over.
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
    let places: Places = arrays.map(|a| Place { chunk: a.chunk.clone(), offset: a.offset }).collect();
    engine.push(spec, move |ctx| run(ctx, &*types, &places, body));
}

/// The queue that work on an array waits in.
pub(crate) fn device_of(array: &NDArray) -> DeviceId {
    DeviceId::cpu(u16::try_from(array.context().device_id).unwrap_or(0))
}

fn write_access(array: &NDArray) -> Access {
    if array.covers_storage() { Access::Write } else { Access::Update }
}

fn run<T, F>(ctx: &RunCtx<'_>, types: &T, places: &[Place], body: F) -> Result<(), OpError>
where
    T: ArrayTypes,
    F: FnOnce(&T, &RunCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), OpError>,
{
    let (read, written) = (types.inputs(), types.outputs());
    let all: SmallVec<[(&Place, &TensorType); 4]> = places.iter().zip(read.iter().chain(written)).collect();
    let (inputs, outputs) = all.split_at(read.len().min(all.len()));
    let mut aside: SmallVec<[Option<Block>; 2]> = SmallVec::new();
    for (i, output) in outputs.iter().enumerate() {
        let shared = all[..inputs.len() + i].iter().any(|other| overlap(*output, *other));
        aside.push(if shared { Some(allocate(ctx.engine(), output.1.bytes())?) } else { None });
    }
    {
        let ins = inputs.iter().map(|(place, tensor)| place.readable(tensor));
        let ins = ins.collect::<Result<SmallVec<[TensorRef<'_>; 4]>, OpError>>()?;
        let mut outs: SmallVec<[TensorMut<'_>; 2]> = SmallVec::new();
        for ((place, tensor), aside) in outputs.iter().zip(&mut aside) {
            outs.push(match aside {
                Some(block) => TensorMut::new(tensor.dtype, &tensor.shape, &mut block.as_mut_slice()[..tensor.bytes()]),
                None => place.writable(tensor)?,
            });
        }
        body(types, ctx, &ins, &mut outs)?;
    }
    for ((place, tensor), aside) in outputs.iter().zip(&aside) {
        if let Some(block) = aside {
            place.writable(tensor)?.bytes_mut().copy_from_slice(&block.as_slice()[..tensor.bytes()]);
        }
    }
    Ok(())
}

fn overlap(a: (&Place, &TensorType), b: (&Place, &TensorType)) -> bool {
    Arc::ptr_eq(&a.0.chunk, &b.0.chunk)
        && a.0.offset < b.0.offset + b.1.bytes()
        && b.0.offset < a.0.offset + a.1.bytes()
}

impl Place {
    /// Address of the first byte; an error if an array of this type would not lie inside the block.
    fn address(&self, block: &Block, tensor: &TensorType) -> Result<*mut u8, OpError> {
        match self.offset.checked_add(tensor.bytes()) {
            // SAFETY: the offset is inside the block.
            Some(end) if end <= block.len() => Ok(unsafe { block.as_ptr().add(self.offset) }),
            _ => Err(OpError::new(FailureKind::Operator, format!("an array of {tensor} was pushed as another type"))),
        }
    }

    /// Only called while the running operation holds a grant of the chunk's variable.
    fn readable<'a>(&'a self, tensor: &'a TensorType) -> Result<TensorRef<'a>, OpError> {
        let first = self.address(self.chunk.block()?, tensor)?;
        // SAFETY: the running operation named this chunk's variable, so nobody else writes it; what the operation itself
        // writes does not overlap (see `run`); the bytes lie inside the block (see `address`).
        let bytes = unsafe { std::slice::from_raw_parts(first, tensor.bytes()) };
        Ok(TensorRef::new(tensor.dtype, &tensor.shape, bytes))
    }

    /// Only called while the running operation holds the write grant of the chunk's variable.
    fn writable<'a>(&'a self, tensor: &'a TensorType) -> Result<TensorMut<'a>, OpError> {
        let whole = self.offset == 0 && tensor.bytes() == self.chunk.bytes;
        let block = if whole { self.chunk.block_to_overwrite()? } else { self.chunk.block()? };
        let first = self.address(block, tensor)?;
        // SAFETY: the running operation holds the write grant of this chunk's variable, so nobody else reads or writes
        // it, and `run` hands out each byte at most once; the bytes lie inside the block (see `address`).
        let bytes = unsafe { std::slice::from_raw_parts_mut(first, tensor.bytes()) };
        Ok(TensorMut::new(tensor.dtype, &tensor.shape, bytes))
    }
}
