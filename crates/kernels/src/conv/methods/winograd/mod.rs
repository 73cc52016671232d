//! Winograd convolution: fewer multiplications, paid for with transforms of inputs and outputs.
//!
//! Inputs of a tile are turned into values at a few points, multiplied there with the filters'
//! values (one matrix product per point) and turned back.
//!
//! * Pre-transformed (`pretransformed.rs`): filters are transformed when they are packed. Best for
//!   many tiles, whose number pays for reading two to four times the weights. Stride 2 and other
//!   filters than 3x3 have schemes of their own (`strided_transforms.rs`, `taps_transforms.rs`).
//! * Fused transform (`fused.rs`): filters stay as they are and are transformed on their way from
//!   the cache to the multiply-add units. Best for few tiles and many channels, where weights come
//!   from memory.
//! * Polyphase (`polyphase.rs`): for the 7x7 filters with stride 2 on few channels that many
//!   networks begin with.

mod entries;
mod filters;
#[allow(clippy::needless_range_loop)]
pub(in crate::conv) mod fused;
#[allow(clippy::needless_range_loop)]
mod fused_patch;
mod point_layout;
#[allow(clippy::needless_range_loop)]
pub(in crate::conv) mod polyphase;
mod pretransformed;
pub(in crate::conv) mod pretransformed_methods;
mod scheme;
mod strided_transforms;
mod taps_transforms;
#[allow(clippy::needless_range_loop)]
mod transforms;

#[cfg(test)]
pub(in crate::conv) use fused::WinogradFused;
#[cfg(test)]
pub(in crate::conv) use polyphase::WinogradPolyphase;
#[cfg(test)]
pub(in crate::conv) use pretransformed::WinogradPretransformed;
#[cfg(test)]
pub(in crate::conv) use scheme::Scheme;

use crate::blocked::Halo;
use crate::conv::params::Conv2dParams;

/// Input channels whose values at the points of a block of tiles have offsets of 32 bits, at most.
const MOST_CHANNELS: usize = 1 << 20;

/// Whether a convolution has the shape that transforms of 3x3 filters with this stride are made
/// for.
fn fits(p: &Conv2dParams, stride: usize) -> bool {
    p.in_channels <= MOST_CHANNELS
        && p.kernel == [3, 3]
        && p.stride == [stride; 2]
        && p.dilate == [1, 1]
        && p.groups == 1
}

/// The zeros read around an image when tiles cover `covered` outputs along each side.
fn halo(p: &Conv2dParams, size: [usize; 2], covered: [usize; 2]) -> Halo {
    let after = |i: usize| ((covered[i] - 1) * p.stride[i] + p.kernel[i]).saturating_sub(size[i] + p.pad[i]);
    Halo { top: p.pad[0], left: p.pad[1], bottom: after(0), right: after(1) }
}

/// A distance of an odd number of cache lines: at a power of two, the streams of all points share a
/// few sets of the first-level cache.
fn odd_lines(elements: usize) -> usize {
    let lines = elements.div_ceil(16);
    (lines | 1) * 16
}
