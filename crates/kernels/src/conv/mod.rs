//! Convolutions on the blocked layout; `CONVOLUTION.md` of this crate explains them.
//!
//! [`ConvKernel::select`] chooses a method by tables and estimates over shape, instruction set,
//! cache and options (never by timing) and fixes how the work is cut. Weights are packed once. A
//! run reads packed weights and blocked tensors and allocates nothing. Every output is summed in
//! the same order whatever the threads do.

mod cost;
mod kernel;
mod method;
mod methods;
mod operands;
mod options;
mod params;
mod plain_tensors;
mod pooled;
#[allow(clippy::needless_range_loop)]
mod register_tiles;
pub(crate) mod select;
mod table;
mod tiling;
mod tune;

pub use kernel::ConvKernel;
pub use method::Method;
pub use operands::{ConvEpilogue, Residual};
pub use options::{ConvOptions, Precision, Winograd};
pub use params::Conv2dParams;
pub use plain_tensors::{Depth, PlainConv, PlainEpilogue};
pub use pooled::PooledKernel;
pub use table::{ConvSignature, ConvTable, Tuned};
pub use tune::{Measured, chosen, measure};

#[cfg(test)]
mod tests;
