//! The adapter from the engine's loop splitter to the kernels' `Par`.

use mxrt_engine::RunCtx;
use mxrt_kernels::par::Par;

/// Splits kernel loops over the cores that the engine has to spare.
pub struct EnginePar<'a, 'b>(pub &'a RunCtx<'b>);

impl Par for EnginePar<'_, '_> {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        self.0.split(chunks, scratch_bytes, body);
    }
}
