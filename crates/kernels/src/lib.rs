//! Kernels: pure compute on slices.
//!
//! Nothing here knows an engine or an operator, starts a thread, reads the environment or allocates
//! an output. Loops are split through [`par::Par`] into chunks that follow from shapes alone, so a
//! result has the same bits however many threads compute it.

pub mod activation;
pub mod aligned;
pub mod conv_fast;
pub mod gemm;
pub mod isa;
pub mod par;
mod simd;

#[cfg(test)]
mod testing;
