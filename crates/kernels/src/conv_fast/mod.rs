//! Convolutions on the blocked layout.
//!
//! [`ConvKernel::select`] chooses an algorithm by tables and rules over shape, instruction set, cache and options (never by
//! timing) and fixes how the work is cut. Weights are packed once; a run reads packed weights and blocked tensors and allocates nothing. Every
//! output is summed in the same order whatever the threads do.

mod bf16;
mod blocked;
mod concat;
#[allow(clippy::needless_range_loop)]
mod convert;
mod cut;
mod depthwise;
mod direct;
mod job;
mod kernel;
mod method;
mod params;
mod places;
mod plain;
mod pointwise;
#[allow(clippy::needless_range_loop)]
mod pool;
mod pooled;
mod select;
mod table;
#[allow(clippy::needless_range_loop)]
mod tiles;
mod tune;
mod winograd;

pub use blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo};
pub use concat::{concat, concat_behind};
pub use convert::{from_blocked, to_blocked};
pub use job::{ConvEpilogue, Residual};
pub use kernel::ConvKernel;
pub use method::{ConvOptions, Method, Precision, Winograd};
pub use params::Conv2dParams;
pub use plain::{Depth, PlainConv, PlainEpilogue};
pub use pointwise::{Pointwise, pointwise};
pub use pool::{Pool2dParams, PoolKind, pool};
pub use pooled::PooledKernel;
pub use table::{ConvSignature, ConvTable, Tuned};
pub use tune::{Measured, chosen, measure};

#[cfg(test)]
mod bf16_tests;
#[cfg(test)]
mod few_channels_tests;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod packing_tests;
#[cfg(test)]
mod plain_tests;
#[cfg(test)]
mod pooled_tests;
#[cfg(test)]
mod strided_tests;
#[cfg(test)]
mod taps_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unpack_tests;
