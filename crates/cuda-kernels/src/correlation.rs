//! Correlation of patches: `correlation.h`.

use crate::arguments::CorrelationArgument;
use crate::launch::{Bound, code, each, of_floats, small};
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Correlation(correlation) = form else { return None };
    let output = signature.outputs.first()?;
    let name = of_floats(output.dtype, [c"correlate_f32", c"correlate_f64"])?;
    let n = output.shape.size();
    let [channels, height, width] = small(correlation.image)?;
    // The kernel numbers the taps of a patch in 32 bits.
    small([correlation.kernel.checked_mul(correlation.kernel)?])?;
    let [kernel, pad, begin] = small([correlation.kernel, correlation.pad, correlation.first])?;
    let [step, radius, shift] = small([correlation.stride, correlation.radius, correlation.shift])?;
    let argument = CorrelationArgument {
        to: 0,
        a: 0,
        b: 0,
        n: n as i64,
        numbers: (correlation.kernel as f64).powi(2) * correlation.image[0] as f64,
        channels,
        size: [height, width],
        patches: small(correlation.patches)?,
        kernel,
        pad,
        begin,
        step,
        radius,
        shift,
        multiply: i32::from(correlation.multiply),
        dtype: code(output.dtype),
        unused: 0,
    };
    Some(Bound::kernel(name, each(n), move |at| CorrelationArgument {
        to: at.outputs[0].0,
        a: at.inputs[0].0,
        b: at.inputs[1].0,
        ..argument
    }))
}
