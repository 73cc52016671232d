//! Windows: `pooling.h`.

use crate::arguments::PoolingArgument;
use crate::launch::{Bound, code, each, of_floats, small};
use mxrt_kernels::pool::PoolKind;
use mxrt_kernels::window::three;
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Pooling { kind, kernel, stride, pad, channels_last } = *form else { return None };
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let name = of_floats(input.dtype, [c"pooling_f32", c"pooling_f64"])?;
    let rank = input.shape.len().checked_sub(2).filter(|rank| (1..=3).contains(rank))?;
    let spatial = if channels_last { 1..rank + 1 } else { 2..rank + 2 };
    let (fold, p) = match kind {
        PoolKind::Max => (0, 0),
        PoolKind::Sum => (1, 0),
        PoolKind::Avg { count_include_pad: true } => (2, 0),
        PoolKind::Avg { count_include_pad: false } => (3, 0),
        PoolKind::Lp { p } => (4, p as i32),
    };
    let out = three(&output.shape[spatial.clone()], 1);
    // The kernel numbers the pixels of a plane in 32 bits.
    i32::try_from(out.iter().product::<usize>()).ok()?;
    let n = output.shape.size();
    let channels = if channels_last { input.shape[rank + 1] } else { input.shape[1] };
    let inner = if channels_last { channels } else { 1 };
    let argument = PoolingArgument {
        to: 0,
        from: 0,
        n: n as i64,
        planes: (input.shape[0] * channels / inner.max(1)) as i64,
        inner: inner as i64,
        size: small(three(&input.shape[spatial.clone()], 1))?,
        out: small(out)?,
        kernel: small(kernel)?,
        step: small(stride)?,
        pad: small(pad)?,
        fold,
        p,
        dtype: code(input.dtype),
    };
    Some(Bound::kernel(name, each(n), move |at| PoolingArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}
