//! The expected costs of methods: arithmetic and bytes of a core, fitted to measured layers.

use crate::conv::params::Conv2dParams;
use crate::isa::{Isa, pairs_are_fast};

/// Multiply-adds of bf16 in the time of one of `f32`.
pub(in crate::conv) fn bf16_gain() -> f64 {
    if pairs_are_fast() { 1.85 } else { 0.5 }
}

/// The cost of transforming a channel at one point with stride 1, in multiply-adds.
pub(in crate::conv) const TRANSFORMS: f64 = 6.4;
/// Transforms pay from this many channels on both sides.
const WINOGRAD_CHANNELS: usize = 16;
/// Bytes that arrive from memory in a microsecond.
const MEMORY: f64 = 44e3;
/// Weights of more bytes than this come from memory for every image, for which cores wait together:
/// so much longer.
const CACHED_WEIGHTS: f64 = 5e6;
const SHARED: f64 = 1.5;

/// Expected microseconds: arithmetic and the reading of weights overlap in part.
pub(in crate::conv) fn estimate(isa: Isa, multiply_adds: f64, weight_bytes: f64) -> f64 {
    let shared = if weight_bytes > CACHED_WEIGHTS { SHARED } else { 1.0 };
    let (compute, memory) = (multiply_adds / multiply_adds_per_us(isa), shared * reading(weight_bytes));
    compute.max(memory) + 0.5 * compute.min(memory)
}

/// Microseconds for reading `bytes` bytes from memory.
pub(in crate::conv) fn reading(bytes: f64) -> f64 {
    bytes / MEMORY
}

/// Multiply-adds in a microsecond.
pub(in crate::conv) fn multiply_adds_per_us(isa: Isa) -> f64 {
    match isa {
        Isa::Avx512 => 135e3,
        Isa::Avx2 => 68e3,
        // Two units of 128 bits at 2.5 GHz, as server processors have at least.
        Isa::Neon => 20e3,
        Isa::Portable => 20e3,
    }
}

/// Whether there are too few channels on a side for what transforms cost.
pub(in crate::conv) fn too_few_to_transform(p: &Conv2dParams) -> bool {
    p.in_channels.min(p.out_channels) < WINOGRAD_CHANNELS
}

/// Channels that are transformed.
pub(in crate::conv) fn transformed_channels(p: &Conv2dParams) -> f64 {
    (p.in_channels + p.out_channels) as f64
}
