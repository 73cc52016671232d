//! The adapters from the engine's loop splitters to the kernels' `Par`.

use mxrt_engine::memory::{Block, MemoryPool};
use mxrt_engine::{FailureKind, KernelCtx, OpError, RunCtx};
use mxrt_kernels::par::Par;
use mxrt_kernels::scratch::Memory;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A block of the engine that a kernel has borrowed.
struct Lent(Block);

impl Memory for Lent {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }
}

/// Takes memory for a kernel. A refusal ends the kernel; see [`catch_refusal`].
fn lend(pool: &'static MemoryPool, bytes: usize) -> Box<dyn Memory> {
    match pool.alloc(bytes) {
        Ok(block) => Box::new(Lent(block)),
        Err(refused) => {
            let message = refused.to_string().replacen(" bytes:", " bytes of scratch memory:", 1);
            resume_unwind(Box::new(OpError::new(FailureKind::Memory, message)))
        }
    }
}

/// Runs a kernel. Where it is refused memory that it asks of [`Par`], the result is that error.
#[inline]
pub fn catch_refusal<R>(kernel: impl FnOnce() -> Result<R, OpError>) -> Result<R, OpError> {
    catch_unwind(AssertUnwindSafe(kernel)).unwrap_or_else(|payload| match payload.downcast::<OpError>() {
        Ok(error) => Err(*error),
        Err(payload) => resume_unwind(payload),
    })
}

/// Splits kernel loops over the cores that the engine has to spare.
pub struct EnginePar<'a, 'b>(pub &'a RunCtx<'b>);

impl Par for EnginePar<'_, '_> {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        self.0.split(chunks, scratch_bytes, body);
    }

    fn run_static(&self, units: usize, scratch_bytes: usize, body: &(dyn Fn(Range<usize>, &mut [u8]) + Sync)) {
        self.0.split_static(units, scratch_bytes, body);
    }

    fn parallelism(&self) -> usize {
        self.0.parallelism()
    }

    fn memory(&self, bytes: usize) -> Box<dyn Memory> {
        lend(self.0.engine().memory(), bytes)
    }
}

/// Runs the chunks of kernel loops one after the other, in the thread of a device.
pub struct DevicePar<'a, 'b>(pub &'a KernelCtx<'b>);

impl Par for DevicePar<'_, '_> {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        self.0.split(chunks, scratch_bytes, body);
    }

    fn memory(&self, bytes: usize) -> Box<dyn Memory> {
        lend(self.0.engine().memory(), bytes)
    }
}
