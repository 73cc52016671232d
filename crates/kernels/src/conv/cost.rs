//! The expected costs of methods: arithmetic and bytes of a core, fitted to measured layers.

use crate::conv::params::Conv2dParams;
use crate::conv::table::ConvSignature;
use crate::isa::{Isa, pairs_are_fast};
use crate::vector_units::VectorUnits;

/// Multiply-adds of bf16 in the time of one of `f32`.
pub(in crate::conv) fn bf16_gain() -> f64 {
    if pairs_are_fast() { 1.85 } else { 0.5 }
}

/// The cost of transforming a channel at one point with stride 1, in multiply-adds.
pub(in crate::conv) const TRANSFORMS: f64 = 6.4;
/// Transforms pay from this many channels on both sides.
const WINOGRAD_CHANNELS: usize = 16;
/// Weights of more bytes than this come from memory for every image.
const CACHED_WEIGHTS: f64 = 5e6;

/// Speeds of a core, fitted to measured layers.
struct Core {
    /// Multiply-adds in a microsecond.
    multiply_adds: f64,
    /// Bytes that arrive from memory in a microsecond.
    bytes: f64,
    /// The part of the shorter of arithmetic and reading that takes time besides the longer.
    exposed: f64,
    /// How much longer weights take that all cores wait for together.
    shared: f64,
}

impl Core {
    fn of(isa: Isa, units: VectorUnits) -> Core {
        let of = |multiply_adds| Core { multiply_adds, bytes: 44e3, exposed: 0.5, shared: 1.5 };
        match isa {
            // Arithmetic takes so long that what is requested ahead arrives meanwhile.
            Isa::Avx512 if units == VectorUnits::Halves => {
                Core { multiply_adds: 56.5e3, bytes: 21e3, exposed: 0.25, shared: 1.0 }
            }
            Isa::Avx512 => of(135e3),
            Isa::Avx2 => of(68e3),
            // Two units of 128 bits at 2.5 GHz, as server processors have at least.
            Isa::Neon => of(20e3),
            Isa::Portable => of(20e3),
        }
    }
}

/// Expected microseconds: arithmetic and the reading of weights overlap in part.
pub(in crate::conv) fn estimate(on: &ConvSignature, multiply_adds: f64, weight_bytes: f64) -> f64 {
    let core = Core::of(on.isa, on.units);
    let shared = if weight_bytes > CACHED_WEIGHTS { core.shared } else { 1.0 };
    let (compute, memory) = (multiply_adds / core.multiply_adds, shared * weight_bytes / core.bytes);
    compute.max(memory) + core.exposed * compute.min(memory)
}

/// Expected microseconds where cores wait for all of the weights before they multiply.
pub(in crate::conv) fn estimate_waiting(on: &ConvSignature, multiply_adds: f64, weight_bytes: f64) -> f64 {
    let core = Core::of(on.isa, on.units);
    multiply_adds / core.multiply_adds + weight_bytes / core.bytes
}

/// Whether there are too few channels on a side for what transforms cost.
pub(in crate::conv) fn too_few_to_transform(p: &Conv2dParams) -> bool {
    p.in_channels.min(p.out_channels) < WINOGRAD_CHANNELS
}

/// Channels that are transformed.
pub(in crate::conv) fn transformed_channels(p: &Conv2dParams) -> f64 {
    (p.in_channels + p.out_channels) as f64
}
