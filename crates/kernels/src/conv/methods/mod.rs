//! The methods of convolution: a file each, or one for each family, and a row of [`METHODS`].

pub(in crate::conv) mod depthwise;
#[allow(clippy::needless_range_loop)]
mod depthwise_lines;
pub(in crate::conv) mod direct;
pub(in crate::conv) mod direct_bf16;
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "elsewhere only the tests' model runs the kernels for tiles")
)]
pub(in crate::conv) mod tiles;
pub(in crate::conv) mod winograd;

use crate::conv::method::ConvMethod;
use winograd::{fused, polyphase, pretransformed_methods as pretransformed};

/// All methods, the one to be preferred first. Where estimates are equal the earlier one is chosen.
/// Every convolution fits `depthwise` or `direct`.
pub(in crate::conv) static METHODS: &[&dyn ConvMethod] = &[
    &depthwise::METHOD,
    &polyphase::METHOD,
    &tiles::BF16,
    &tiles::SINGLE,
    &pretransformed::STRIDED_BF16,
    &pretransformed::F2_BF16,
    &direct_bf16::METHOD,
    &fused::METHOD,
    &pretransformed::F4,
    &pretransformed::TAPS,
    &pretransformed::STRIDED,
    &pretransformed::F2,
    &direct::METHOD,
];
