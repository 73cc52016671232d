//! Products of 8-bit integers with 32-bit sums: dense layers and convolutions.
//!
//! Sums are exact modulo 2^32 on every level, so all levels give the same integers. No level adds
//! pairs in 16 bits, where they would saturate.

mod conv;
mod gemm;
mod level;
mod round;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use conv::Int8Conv;
pub use gemm::{Int8Gemm, Rows};
pub use level::Level;
pub use round::{RoundTo, round_even};
