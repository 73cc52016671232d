//! Which algorithm computes a convolution: rules over shape, instruction set and options, never a measurement, so that the same
//! shape gives the same bits on every run.

use super::depthwise::Depthwise;
use super::direct::Direct;
use super::kernel::{Algorithm, ConvOptions, Winograd};
use super::params::Conv2dParams;
use super::winograd::{self, AtLoad, InRegisters, Phases, Scheme};
use crate::isa::Isa;

/// Inputs with fewer channels than this are read as planes: blocks of 16 would be mostly empty.
const PLANAR_CHANNELS: usize = 8;
/// Transforms pay from this many channels on both sides.
const WINOGRAD_CHANNELS: usize = 32;
/// How much faster a transform must be expected to be to replace direct convolution.
const MARGIN: f64 = 1.15;

/// What the estimates assume of a core: multiply-adds and bytes from memory per microsecond.
fn peaks(isa: Isa) -> (f64, f64) {
    let bytes = 44e3;
    match isa {
        Isa::Avx512 => (135e3, bytes),
        Isa::Avx2 => (68e3, bytes),
        Isa::Portable => (20e3, bytes),
    }
}

/// Expected microseconds: arithmetic and the reading of weights overlap in part.
fn estimate(isa: Isa, multiply_adds: f64, weight_bytes: f64) -> f64 {
    let (compute, memory) = peaks(isa);
    let (compute, memory) = (multiply_adds / compute, weight_bytes / memory);
    compute.max(memory) + 0.5 * compute.min(memory)
}

/// The algorithm for an image that gives outputs of size `out`.
pub(super) fn select(p: Conv2dParams, images: usize, out: [usize; 2], isa: Isa, options: ConvOptions) -> Algorithm {
    if Depthwise::fits(&p) {
        return Algorithm::Depthwise(Depthwise::new(p, out, isa));
    }
    if options.winograd == Winograd::F4 && Phases::pays(&p, isa) {
        return Algorithm::Phases(Phases::new(p, images, out, isa));
    }
    let few_channels = p.in_channels.min(p.out_channels) < WINOGRAD_CHANNELS;
    let direct = || Algorithm::Direct(Direct::new(p, out, p.in_channels < PLANAR_CHANNELS, isa));
    if options.winograd == Winograd::Off || few_channels || !winograd::fits(&p) {
        return direct();
    }

    let channels = (p.in_channels * p.out_channels) as f64;
    let bytes_per_weight = size_of::<f32>() as f64 * channels;
    // Transforms cost in proportion to the channels of one side, products to those of both.
    let transforms = 1.1 + 6.4 * (p.in_channels + p.out_channels) as f64 / channels;
    let at_load = |scheme: Scheme| {
        let tiles = images * out[0].div_ceil(scheme.outs()) * out[1].div_ceil(scheme.outs());
        let points = (scheme.points() * scheme.points()) as f64;
        estimate(isa, tiles as f64 * points * channels * transforms, points * bytes_per_weight)
    };
    let least = estimate(isa, (images * out[0] * out[1] * 9) as f64 * channels, 9.0 * bytes_per_weight) / MARGIN;

    let scheme = if options.winograd == Winograd::F4 && at_load(Scheme::F4) < at_load(Scheme::F2) {
        Scheme::F4
    } else {
        Scheme::F2
    };
    let mut best = (least, None);
    if at_load(scheme) < best.0 {
        best = (at_load(scheme), Some(Algorithm::AtLoad(AtLoad::new(p, images, out, scheme, isa))));
    }
    if options.winograd == Winograd::F4 && InRegisters::fits(&p, isa) {
        let kernel = InRegisters::new(p, images, out);
        // Forming the filters takes about as long as half of the multiply-adds they are used in.
        let cost = estimate(isa, kernel.products() as f64 * channels * 1.6, 9.0 * bytes_per_weight);
        if cost < best.0 {
            best = (cost, Some(Algorithm::InRegisters(kernel)));
        }
    }
    best.1.unwrap_or_else(direct)
}
