//! The adapters from the engine's loop splitters to the kernels' `Par`.

use mxrt_engine::{KernelCtx, RunCtx};
use mxrt_kernels::par::Par;
use std::ops::Range;

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
}

/// Runs the chunks of kernel loops one after the other, in the thread of a device.
pub struct DevicePar<'a, 'b>(pub &'a KernelCtx<'b>);

impl Par for DevicePar<'_, '_> {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        self.0.split(chunks, scratch_bytes, body);
    }
}
