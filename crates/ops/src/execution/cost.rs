//! Estimates of the time of kernels on one core, in nanoseconds.
//!
//! The rates were measured (`net.plan(x)` shows both), within a factor of two or three: they decide
//! what runs in the calling thread and how batches are divided, no more. Where the speed of a
//! kernel is not known, [`unknown_ns`] errs on the long side.

use super::Signature;
use crate::rewrite::{Elementwise, ElementwiseProgram};
use mxrt_kernels::elementwise::{Binary, FunctionCost, Unary};
use mxrt_kernels::isa::Isa;
use mxrt_tensor::DType;

/// Bytes that come from a core's cache; what is beyond comes at the rate of the memory.
const IN_CACHE: u64 = 1 << 20;
/// Bytes per nanosecond from memory, for one core.
const FROM_MEMORY: u64 = 20;

/// Picoseconds of functions that the library of the system computes number by number, except for
/// slow ones.
const ONE_BY_ONE: u64 = 3_000;

fn bytes_touched(signature: &Signature<'_>) -> u64 {
    // What no memory holds is refused later.
    signature.inputs.iter().chain(signature.outputs).fold(0, |sum, t| sum.saturating_add(t.bytes() as u64))
}

/// Time of a kernel of which nothing else is known.
pub(super) fn unknown_ns(signature: &Signature<'_>) -> u64 {
    200 + bytes_touched(signature) / 4
}

fn bytes_per_ns(isa: Isa) -> u64 {
    match isa {
        Isa::Portable => 15,
        Isa::Neon => 25,
        Isa::Avx2 => 40,
        Isa::Avx512 => 50,
    }
}

/// Time of a kernel that reads its inputs and writes its outputs as fast as vectors and caches
/// allow.
pub fn streaming_ns(signature: &Signature<'_>) -> u64 {
    500 + bytes_touched(signature) / bytes_per_ns(signature.options.isa)
}

/// Time of a kernel that spends `picoseconds` on each element of its output, besides reading and
/// writing.
pub fn elementwise_ns(signature: &Signature<'_>, picoseconds: u64) -> u64 {
    let bytes = bytes_touched(signature);
    let near = bytes.min(IN_CACHE);
    let elements = signature.outputs.first().map_or(0, |t| t.shape.size() as u64);
    200 + near / bytes_per_ns(signature.options.isa)
        + (bytes - near) / FROM_MEMORY
        + elements.saturating_mul(picoseconds) / 1_000
}

/// Picoseconds that a function of one number takes for each element.
pub fn unary_picoseconds(function: Unary, signature: &Signature<'_>) -> u64 {
    picoseconds(function.cost(), signature)
}

/// Picoseconds that a function of two numbers takes for each element.
pub fn binary_picoseconds(function: Binary, signature: &Signature<'_>) -> u64 {
    picoseconds(function.cost(), signature)
}

fn picoseconds(cost: FunctionCost, signature: &Signature<'_>) -> u64 {
    match cost {
        FunctionCost::Streaming => widening(signature),
        FunctionCost::Vectors(cost) => in_type(in_vectors(cost, signature), signature),
        FunctionCost::Calls(cost) => in_type(cost, signature),
        FunctionCost::EveryType(cost) => cost,
        FunctionCost::Integers(cost) if !is_float(signature) => cost,
        FunctionCost::Integers(_) => widening(signature),
    }
}

/// Picoseconds that all functions of a chain take.
pub fn program_picoseconds(program: &ElementwiseProgram, signature: &Signature<'_>) -> u64 {
    let one = |(function, _): &(Elementwise, _)| match function {
        Elementwise::Unary(function) => unary_picoseconds(*function, signature),
        Elementwise::Binary(function) | Elementwise::WithScalar(function, _) | Elementwise::OfScalar(function, _) => {
            binary_picoseconds(*function, signature)
        }
    };
    program.steps.iter().map(one).sum()
}

/// Polynomials take longer in shorter vectors.
fn in_vectors(picoseconds: u64, signature: &Signature<'_>) -> u64 {
    match signature.options.isa {
        Isa::Portable => picoseconds * 5,
        Isa::Neon => picoseconds * 3,
        Isa::Avx2 => picoseconds * 2,
        Isa::Avx512 => picoseconds,
    }
}

/// Converts a time in single precision to the type of the first input.
fn in_type(picoseconds: u64, signature: &Signature<'_>) -> u64 {
    match signature.inputs.first().map(|t| t.dtype) {
        None | Some(DType::F32) => picoseconds,
        Some(DType::F16) => picoseconds + widening(signature),
        // Only single precision has vectors for these.
        Some(_) if picoseconds == 0 => 1_000,
        Some(_) => picoseconds.max(ONE_BY_ONE),
    }
}

/// Half precision is computed in single precision.
fn widening(signature: &Signature<'_>) -> u64 {
    let half = signature.inputs.first().is_some_and(|t| t.dtype == DType::F16);
    if half { 300 } else { 0 }
}

fn is_float(signature: &Signature<'_>) -> bool {
    signature.inputs.first().is_some_and(|t| t.dtype.is_float())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelOptions;
    use mxrt_tensor::TensorType;

    fn ns(dtype: DType, n: usize, picoseconds: impl Fn(&Signature<'_>) -> u64) -> u64 {
        let types = [TensorType::new(dtype, [n])];
        let options = KernelOptions { isa: Isa::Avx512, ..KernelOptions::default() };
        let signature = Signature { inputs: &types, outputs: &types, options };
        elementwise_ns(&signature, picoseconds(&signature))
    }

    /// Microseconds that were measured on one core of an EPYC with AVX-512; `Sin` of a Xeon (model
    /// 207).
    #[test]
    fn estimates_of_functions_are_near_what_was_measured() {
        let half_a_million = 1 << 19;
        let unary = |f: Unary| ns(DType::F32, half_a_million, |s| unary_picoseconds(f, s)) as f64 / 1e3;
        let cases = [
            (Unary::Relu, 37.5),
            (Unary::Exp, 125.1),
            (Unary::Ln, 174.9),
            (Unary::Tanh, 205.3),
            (Unary::Erf, 354.9),
            (Unary::Sin, 350.0),
            (Unary::Cbrt, 5669.5),
        ];
        for (function, measured) in cases {
            let ratio = unary(function) / measured;
            assert!((0.3..6.0).contains(&ratio), "{function:?}: {} us, measured {measured}", unary(function));
        }
        let relu = ns(DType::F32, 1 << 16, |s| unary_picoseconds(Unary::Relu, s));
        assert!((5_000..20_000).contains(&relu), "512 KB from the cache: {relu} ns");
    }

    #[test]
    fn what_has_no_vectors_costs_more() {
        let exp = |dtype| ns(dtype, 1 << 16, |s| unary_picoseconds(Unary::Exp, s));
        assert!(exp(DType::F64) > 4 * exp(DType::F32));
        assert!(exp(DType::I32) > 4 * exp(DType::F32));
        assert!(exp(DType::F16) > exp(DType::F32) && exp(DType::F16) < 3 * exp(DType::F32));
        let divide = |dtype| ns(dtype, 1 << 16, |s| binary_picoseconds(Binary::Div, s));
        assert!(divide(DType::I32) > divide(DType::F32));
    }
}
