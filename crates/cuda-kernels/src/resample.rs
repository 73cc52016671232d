//! Planes of another size: `resample.h`.

use crate::arguments::ResampleArgument;
use crate::launch::{Bound, code, each, of_floats, small};
use crate::moving;
use mxrt_ops::{KernelForm, Resampling, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Resample(resampling) = *form else { return None };
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let name = of_floats(input.dtype, [c"resample_f32", c"resample_f64"])?;
    let (size, out) = (last_two(&input.shape)?, last_two(&output.shape)?);
    if size == out && matches!(resampling, Resampling::Bilinear { .. }) {
        // Infinity times a share of zero would be NaN.
        return moving::bind(&KernelForm::Copy, signature);
    }
    let scale = |axis: usize| match resampling {
        _ if out[axis] <= 1 => 0.0,
        Resampling::Bilinear { align_corners: true } => (size[axis] - 1) as f32 / (out[axis] - 1) as f32,
        _ => size[axis] as f32 / out[axis] as f32,
    };
    let n = output.shape.size();
    let argument = ResampleArgument {
        to: 0,
        from: 0,
        n: n as i64,
        size,
        out,
        scale: [scale(0), scale(1)],
        kind: match resampling {
            Resampling::Bilinear { align_corners: true } => 0,
            Resampling::Bilinear { align_corners: false } => 1,
            Resampling::Means => 2,
        },
        dtype: code(input.dtype),
    };
    Some(Bound::kernel(name, each(n), move |at| ResampleArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}

fn last_two(shape: &[usize]) -> Option<[i32; 2]> {
    let [.., height, width] = *shape else { return None };
    small([height, width])
}
