//! Pushing work that reads and writes arrays.

use crate::array::allocate;
use crate::params::push_writing;
use crate::{NDArray, TensorMut, TensorRef};
use mxrt_engine::memory::Block;
use mxrt_engine::{Access, Cost, Engine, OpError, OpName, OpSpec, RunCtx};
use smallvec::SmallVec;

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

pub(crate) type Arrays = SmallVec<[NDArray; 4]>;

/// Pushes `body`, which will see the contents of the inputs and fill the outputs.
///
/// An output may share storage with an input or with another output: it is then computed aside and copied over.
/// If an input holds a failure the body does not run and the outputs take the failure over.
pub fn launch<F>(engine: &'static Engine, launch: Launch<'_>, body: F)
where
    F: FnOnce(&RunCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), OpError> + Send + 'static,
{
    let mut vars: SmallVec<[_; 8]> = launch.inputs.iter().map(|a| (a.var(), Access::Read)).collect();
    vars.extend(launch.outputs.iter().map(|a| (a.var(), write_access(a))));
    let spec = OpSpec::new(launch.name, &vars).cost(launch.cost);
    let inputs: Arrays = launch.inputs.iter().map(|a| (*a).clone()).collect();
    let outputs = Outputs::new(launch.outputs);
    push_writing(engine, launch.outputs, spec, move |ctx| run(ctx, &inputs, outputs, body));
}

pub(crate) fn write_access(array: &NDArray) -> Access {
    if array.covers_storage() { Access::Write } else { Access::Update }
}

fn run<F>(ctx: &RunCtx<'_>, inputs: &Arrays, mut outputs: Outputs, body: F) -> Result<(), OpError>
where
    F: FnOnce(&RunCtx<'_>, &[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), OpError>,
{
    outputs.separate(ctx.engine(), &mut inputs.iter())?;
    {
        let ins = inputs.iter().map(readable).collect::<Result<SmallVec<[TensorRef<'_>; 4]>, OpError>>()?;
        body(ctx, &ins, &mut outputs.writable()?)?;
    }
    outputs.finish()
}

/// The arrays that an operation writes.
pub(crate) struct Outputs {
    arrays: Arrays,
    /// Memory in the place of an output that shares its own with something else.
    aside: SmallVec<[Option<Block>; 2]>,
}

impl Outputs {
    /// The handles that the operation keeps do not count as somebody who waits for the result.
    pub fn new(arrays: &[&NDArray]) -> Outputs {
        Outputs { arrays: arrays.iter().map(|a| a.to_write()).collect(), aside: SmallVec::new() }
    }

    /// Whether writing one of the arrays passes the gate of a set of parameters.
    pub fn any_gate(&self) -> bool {
        self.arrays.iter().any(|a| a.chunk.gates.any())
    }

    /// Makes memory for outputs that overlap what is read, or each other. Called once, before anything else.
    pub fn separate(
        &mut self,
        engine: &'static Engine,
        read: &mut dyn Iterator<Item = &NDArray>,
    ) -> Result<(), OpError> {
        let arrays = &self.arrays;
        let mut shared: SmallVec<[bool; 4]> = smallvec::smallvec![false; arrays.len()];
        for other in read {
            for (shared, output) in shared.iter_mut().zip(arrays) {
                *shared |= output.overlaps(other);
            }
        }
        for (i, output) in arrays.iter().enumerate() {
            let shared = shared[i] || arrays[..i].iter().any(|other| output.overlaps(other));
            self.aside.push(if shared { Some(allocate(engine, output.nbytes())?) } else { None });
        }
        Ok(())
    }

    /// Only called while the running operation holds the grants of the arrays.
    pub fn writable(&mut self) -> Result<SmallVec<[TensorMut<'_>; 4]>, OpError> {
        self.arrays
            .iter()
            .zip(&mut self.aside)
            .map(|(array, aside)| match aside {
                Some(block) => {
                    let bytes = &mut block.as_mut_slice()[..array.nbytes()];
                    Ok(TensorMut::new(array.dtype(), array.shape(), bytes))
                }
                None => writable(array),
            })
            .collect()
    }

    /// Copies what was computed aside.
    pub fn finish(self) -> Result<(), OpError> {
        for (array, aside) in self.arrays.iter().zip(&self.aside) {
            if let Some(block) = aside {
                writable(array)?.bytes_mut().copy_from_slice(&block.as_slice()[..array.nbytes()]);
            }
        }
        Ok(())
    }
}

/// Only called while the running operation holds a grant of the array's variable.
pub(crate) fn readable(array: &NDArray) -> Result<TensorRef<'_>, OpError> {
    let block = array.chunk.block()?;
    // SAFETY: the running operation named this array's variable, or the gate in front of it, so nobody else writes it; what
    // the operation itself writes does not overlap (see `Outputs::separate`); the view lies inside the block by
    // construction of `NDArray`.
    let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr().add(array.offset), array.nbytes()) };
    Ok(TensorRef::new(array.dtype(), array.shape(), bytes))
}

/// Only called while the running operation holds the write grant of the array's variable.
fn writable(array: &NDArray) -> Result<TensorMut<'_>, OpError> {
    let block = if array.covers_storage() { array.chunk.block_to_overwrite()? } else { array.chunk.block()? };
    // SAFETY: the running operation holds the write grant of this array's variable, so nobody else reads or writes
    // it, and `Outputs` hands out each byte at most once; the view lies inside the block by construction of `NDArray`.
    let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr().add(array.offset), array.nbytes()) };
    Ok(TensorMut::new(array.dtype(), array.shape(), bytes))
}
