//! Convolutions of planes by cuDNN, where the settings name it.
//!
//! It reads weights of images with channels last as `[filter, kernel, channel]`, while kernels of mxrt
//! read `[kernel, channel, filter]`: plans bring them into the order that is wanted.

use crate::launch::{Bound, cuda, device};
use crate::providers::LibraryStep;
use mxrt_cuda::{ConvolutionOperands, CudaDevice, PlaneConvolution, Provider, provider_settings};
use mxrt_engine::device::DeviceError;
use mxrt_engine::{DeviceCtx, DeviceId, DevicePtr, OpError};
use mxrt_kernels::elementwise::Unary;
use mxrt_ops::{DeviceOperands, KernelForm, Move, Precision, Signature, SumEpilogue};
use mxrt_tensor::{DType, TensorType};

struct ConvolutionStep {
    /// none where the library cannot express it
    convolution: Option<PlaneConvolution>,
    epilogue: SumEpilogue,
}

pub(crate) fn offer(form: &KernelForm, signature: &Signature<'_>) -> Option<Box<dyn LibraryStep>> {
    let KernelForm::Convolution { epilogue, .. } = form else { return None };
    Some(Box::new(ConvolutionStep { convolution: convolution(form, signature), epilogue: epilogue.clone() }))
}

/// Whether the library computes a convolution of images with channels last on a device. Its errors are
/// those of the call.
pub(crate) fn wants_filters_first(device: DeviceId, form: &KernelForm, signature: &Signature<'_>) -> bool {
    if !Provider::Cudnn.is_chosen() || !matches!(form, KernelForm::Convolution { channels_last: true, .. }) {
        return false;
    }
    let Some(of) = convolution(form, signature) else { return false };
    let opened = CudaDevice::opened(device.index());
    opened.is_some_and(|device| matches!(device.convolution_plan(&of), Ok(Some(_))))
}

impl LibraryStep for ConvolutionStep {
    fn provider(&self) -> Provider {
        Provider::Cudnn
    }

    fn serves(&self, device: &CudaDevice) -> Result<bool, DeviceError> {
        self.convolution.as_ref().map_or(Ok(false), |of| Ok(device.convolution_plan(of)?.is_some()))
    }

    fn enqueue(&self, ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<bool, OpError> {
        let Some(of) = &self.convolution else { return Ok(false) };
        let open = ctx.engine().device(ctx.device())?;
        let plan = device(ctx)?.convolution_plan(of);
        let plan = plan.map_err(|error| open.op_error(&error, "choosing an algorithm of cuDNN"))?;
        let Some(plan) = plan else { return Ok(false) };
        let workspace = if plan.workspace() > 0 { ctx.scratch(plan.workspace())? } else { DevicePtr(0) };
        let input = |number: Option<usize>| number.map_or(0, |number| at.inputs[number].0);
        let operands = ConvolutionOperands {
            input: at.inputs[0].0,
            weight: at.inputs[1].0,
            bias: input(self.epilogue.bias),
            residual: input(self.epilogue.residual),
            factor: self.epilogue.factor.unwrap_or(1.0) as f32,
            output: at.outputs[0].0,
            workspace: workspace.0,
        };
        // SAFETY: addresses of arrays of the running op, which hold what the form says.
        ctx.submit(|backend, stream| unsafe { cuda(backend)?.convolve(stream, &plan, &operands) })?;
        Ok(true)
    }
}

/// The convolution in the library's terms; none if it has no words for it. The order of weights is
/// not looked at.
fn convolution(form: &KernelForm, signature: &Signature<'_>) -> Option<PlaneConvolution> {
    let KernelForm::Convolution { channels_last, kernel, stride, pad, dilate, groups, epilogue, .. } = form else {
        return None;
    };
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let alike = signature.inputs.iter().chain(signature.outputs).all(|t| t.dtype == input.dtype);
    let half = match input.dtype {
        DType::F16 => true,
        DType::F32 if signature.options.precision != Precision::Bf16 => false,
        _ => return None,
    };
    let relu = match epilogue.activation {
        None => false,
        Some(Unary::Relu) => true,
        Some(_) => return None,
    };
    let (bias, residual) = (epilogue.bias.is_some(), epilogue.residual.is_some());
    let is_plane = |three: &[usize; 3], one: usize| three[0] == one;
    let planes = is_plane(kernel, 1) && is_plane(stride, 1) && is_plane(pad, 0) && is_plane(dilate, 1);
    if !alike || !planes || ((residual || relu) && !bias) || output.shape.contains(&0) || input.shape.contains(&0) {
        return None;
    }
    Some(PlaneConvolution {
        half,
        tf32: provider_settings().tf32 && !half,
        channels_last: *channels_last,
        input: extents(input, *channels_last)?,
        output: extents(output, *channels_last)?,
        kernel: two(kernel)?,
        stride: two(stride)?,
        pad: two(pad)?,
        dilate: two(dilate)?,
        groups: i32::try_from(*groups).ok()?,
        bias,
        residual,
        relu,
    })
}

/// Images, channels, rows, columns.
fn extents(tensor: &TensorType, channels_last: bool) -> Option<[i32; 4]> {
    let shape = match (&*tensor.shape, channels_last) {
        ([n, h, w, c], true) | ([n, c, h, w], false) => [*n, *c, *h, *w],
        ([n, c, w], false) => [*n, *c, 1, *w],
        _ => return None,
    };
    i32::try_from(tensor.shape.size()).ok()?;
    crate::launch::small(shape)
}

fn two(three: &[usize; 3]) -> Option<[i32; 2]> {
    crate::launch::small([three[1], three[2]])
}

/// A kernel of mxrt for weights in the order of the library, which it turns in each call: for another
/// kind of GPU, on which the library has no algorithm.
pub(crate) fn bind_filters_first(
    form: &KernelForm,
    signature: &Signature<'_>,
    bind: impl Fn(&KernelForm, &Signature<'_>) -> Option<Bound>,
) -> Option<Bound> {
    let mut own = form.clone();
    let KernelForm::Convolution { filters_first: first @ true, .. } = &mut own else { return None };
    *first = false;
    let weights = signature.inputs.get(1)?;
    let [filters, rows, columns, channels] = *weights.shape else { return None };
    let turned = TensorType::new(weights.dtype, &[rows, columns, channels, filters][..]);
    let row = rows * columns * channels;
    let turn = KernelForm::Move {
        fill: None,
        moves: vec![Move {
            input: 0,
            output: 0,
            shape: vec![row, filters],
            from: (0, vec![1, row as isize]),
            into: (0, vec![filters as isize, 1]),
        }],
    };
    let (from, into) = (std::slice::from_ref(weights), std::slice::from_ref(&turned));
    let turn = bind(&turn, &Signature { inputs: from, outputs: into, options: signature.options })?;
    let mut inputs = signature.inputs.to_vec();
    inputs[1] = turned;
    let own = bind(&own, &Signature { inputs: &inputs, ..*signature })?;
    let bytes = inputs[1].bytes();
    Some(Bound::new(move |ctx, at| {
        let scratch = ctx.scratch(bytes)?;
        turn.run(ctx, &DeviceOperands { inputs: &at.inputs[1..2], outputs: &[scratch], random: None })?;
        let mut inputs = at.inputs.to_vec();
        inputs[1] = scratch;
        own.run(ctx, &DeviceOperands { inputs: &inputs, ..*at })
    }))
}
