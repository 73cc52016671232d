//! Products of 8-bit integers with 32-bit sums: dense layers and convolutions; and what makes bytes
//! of numbers.
//!
//! Sums are exact modulo 2^32 on every level, so all levels give the same integers. No level adds
//! pairs in 16 bits, where they would saturate.

#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "elsewhere only the tests' model runs the kernels for tiles")
)]
mod amx;
mod attention;
mod band;
mod concat;
mod conv;
mod depthwise;
mod elementwise;
mod finish;
mod function;
mod gemm;
mod level;
#[cfg(target_arch = "aarch64")]
#[allow(clippy::needless_range_loop)]
mod neon;
mod pack;
mod pixels;
mod pool;
mod results;
mod round;
mod tile;
mod turn;
mod winograd;
#[cfg(target_arch = "x86_64")]
#[allow(clippy::needless_range_loop)]
mod x86;

pub use attention::{HeadProducts, Int8Attention};
pub use concat::{JoinedPixels, join_pixels, scale_numbers};
pub use conv::{Int8Conv, Int8ConvOperands, PixelForm};
pub use elementwise::{ScaledBytes, add, dequantize, quantize, requantize};
pub use finish::{AddedBytes, EachSum, Epilogue, ScaledSums, SumsBlock, WholeSums};
pub use function::Function;
pub use gemm::{Int8Gemm, Rows};
pub use level::Level;
pub use pixels::{from_pixels, to_pixels};
pub use pool::pool_pixels;
pub use results::Int8Result;
pub use round::{RoundTo, round_even};
pub use tile::{COLUMNS, Sums};
