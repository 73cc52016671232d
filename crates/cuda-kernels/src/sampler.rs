//! Planes at real positions: `sampler.h`.

use crate::launch::{Bound, Computes, code, computes, each};
use mxrt_ops::{KernelForm, Signature};
use mxrt_tensor::DType;

/// `Sampler` of the text.
#[repr(C)]
#[derive(Clone, Copy)]
struct SamplerArgument {
    to: u64,
    from: u64,
    grid: u64,
    n: i64,
    channels: i64,
    size: [i32; 2],
    out: [i32; 2],
    affine: i32,
    dtype: i32,
}

/// `Grid` of the text.
#[repr(C)]
#[derive(Clone, Copy)]
struct GridArgument {
    to: u64,
    from: u64,
    n: i64,
    out: [i32; 2],
    flow: i32,
    dtype: i32,
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let double = match computes(output.dtype)? {
        Computes::Single => 0,
        Computes::Double => 1,
        Computes::Whole => return None,
    };
    let small = |shape: &[usize]| Some([i32::try_from(*shape.get(2)?).ok()?, i32::try_from(*shape.get(3)?).ok()?]);
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    match *form {
        // The host rounds the positions of a map to half precision, too.
        KernelForm::Sample { affine: true } if output.dtype == DType::F16 => None,
        KernelForm::Sample { affine } => {
            let (size, out) = (small(&input.shape)?, small(&output.shape)?);
            let (channels, affine) = (output.shape[1] as i64, i32::from(affine));
            let name = [c"sample_planes_f32", c"sample_planes_f64"][double];
            Some(Bound::kernel(name, each(n), move |at| SamplerArgument {
                to: at.outputs[0].0,
                from: at.inputs[0].0,
                grid: at.inputs[1].0,
                n: n as i64,
                channels,
                size,
                out,
                affine,
                dtype,
            }))
        }
        KernelForm::Grid { flow } => {
            let (out, flow) = (small(&output.shape)?, i32::from(flow));
            let name = [c"grid_positions_f32", c"grid_positions_f64"][double];
            Some(Bound::kernel(name, each(n), move |at| GridArgument {
                to: at.outputs[0].0,
                from: at.inputs[0].0,
                n: n as i64,
                out,
                flow,
                dtype,
            }))
        }
        _ => None,
    }
}
