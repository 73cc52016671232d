//! Kernels: pure compute on slices.
//!
//! Nothing here knows an engine or an operator, starts a thread, reads the environment or allocates
//! an output. Loops are split through [`par::Par`] into chunks that follow from shapes alone, so a
//! result has the same bits however many threads compute it. Memory whose size follows from arrays or
//! attributes is a [`Scratch`]: it counts as in use, and the call fails where there is none.
//!
//! Arrays are row-major slices, and their shape is passed separately. A slice whose length
//! contradicts its shape is a caller's mistake and panics with both; values that may be bad give a
//! [`KernelError`].

#![allow(clippy::too_many_arguments, reason = "slices and their shapes are separate arguments")]
#![allow(clippy::needless_range_loop, reason = "loops over lanes index several arrays, and vectorise in that form")]

pub mod activation;
pub mod aligned;
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "elsewhere only the tests' model runs the kernels for tiles")
)]
pub mod amx;
pub mod attention;
pub mod blocked;
pub mod cache_class;
pub mod cast;
pub mod conv;
pub mod conv_plain;
pub mod ctc;
pub mod deconv;
pub mod dense;
pub mod density;
mod element;
pub mod elementwise;
mod erf;
mod error;
mod exponentials;
pub mod fft;
pub mod gemm;
mod gemm_deep;
mod gemm_double;
pub mod gemm_plain;
mod halves;
pub mod histogram;
pub mod image;
pub mod index;
pub mod int8;
pub mod isa;
pub mod linalg;
pub mod math;
mod matrix_vector;
pub mod norm;
pub mod par;
pub mod places;
pub mod pool;
pub mod positions;
mod processor_time;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod scratch;
pub mod shape;
mod short_rows;
mod simd;
pub mod softmax;
pub mod sort;
pub mod sparse;
mod squares;
pub mod strides;
pub mod vector_units;
mod vectorize;
pub mod vision;
pub mod window;

#[cfg(test)]
mod testing;

pub use element::{Bool, Element, Float};
pub use error::KernelError;
pub use par::{Par, Serial};
pub use scratch::{ReadElements, Scratch, ScratchList};

/// Asks the processor what it has, and reads tables. The first use of each does it otherwise; a
/// process that forks meanwhile would have a child that waits for it without end.
pub fn prepare() {
    cache_class::CacheClass::detect();
    isa::has_vbmi();
    isa::pairs_are_fast();
    vector_units::VectorUnits::detect(isa::Isa::Avx512);
    amx::is_available();
    conv::select::prepare();
}
