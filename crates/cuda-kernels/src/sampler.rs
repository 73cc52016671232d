//! Planes at real positions: `sampler.h`.

use crate::arguments::{GridArgument, SamplerArgument};
use crate::launch::{Bound, code, each, of_floats, small};
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let plane = |shape: &[usize]| small([*shape.get(2)?, *shape.get(3)?]);
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    match *form {
        KernelForm::Sample { affine } => {
            let (size, out) = (plane(&input.shape)?, plane(&output.shape)?);
            let (channels, affine) = (output.shape[1] as i64, i32::from(affine));
            let name = of_floats(output.dtype, [c"sample_planes_f32", c"sample_planes_f64"])?;
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
            let (out, flow) = (plane(&output.shape)?, i32::from(flow));
            let name = of_floats(output.dtype, [c"grid_positions_f32", c"grid_positions_f64"])?;
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
