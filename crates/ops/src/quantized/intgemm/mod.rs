//! `_contrib_intgemm_*`: int8 products as Sockeye uses them.
//!
//! intgemm rearranges prepared weights for the processor. Here they stay rows of integers, and
//! plans pack them.

pub mod fully_connected;
pub mod maxabsolute;
pub mod prepare_data;
pub mod prepare_weight;
pub mod take_weight;

use crate::prelude::*;
use mxrt_kernels::int8::quantize;
use mxrt_kernels::par::Par;

fn largest(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |largest: f32, v| largest.max(v.abs()))
}

fn prepare(call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
    let maxabs = elements::<f32>(&call.inputs[1])?.first().copied().unwrap_or(f32::NAN);
    if !maxabs.is_finite() || maxabs < 0.0 {
        return Err(value_error(format!(
            "maxabs is {maxabs}; it must be the largest magnitude of the array, which _contrib_intgemm_maxabsolute finds"
        )));
    }
    quantize_symmetric(call.par, elements(&call.inputs[0])?, maxabs, elements_mut(&mut call.outputs[0])?);
    Ok(())
}

/// Quantizes to -127 ..= 127.
fn quantize_symmetric(par: &dyn Par, from: &[f32], maxabs: f32, to: &mut [i8]) {
    quantize::<i8>(par, from, if maxabs == 0.0 { 0.0 } else { 127.0 / maxabs }, to);
    to.iter_mut().for_each(|v| *v = (*v).max(-127));
}
