//! Kernels of convolutions: fast and plain ones, and the steps that may be fused after them.

use super::convolution::ConvGeometry;
use crate::prelude::*;
use mxrt_kernels::Float;
use mxrt_kernels::activation::Activation;
use mxrt_kernels::conv::{Conv2dParams, ConvKernel, ConvOptions, Depth, PlainConv, PlainEpilogue};
use mxrt_kernels::conv_plain::{ConvParams, convolution};
use mxrt_kernels::elementwise::{Binary, Unary, binary_inplace, unary_inplace};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::Par;
use mxrt_kernels::window::three;
use mxrt_tensor::TensorRef;
use std::ops::Range;

/// The steps after the sums: bias, a residual, an activation, in this order. The operands are
/// inputs in this order, too.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Epilogue {
    pub bias: bool,
    pub residual: bool,
    pub activation: FusedActivation,
}

/// An activation computed together with a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum FusedActivation {
    #[default]
    None,
    Relu,
    Clip {
        low: f64,
        high: f64,
    },
    Leaky {
        slope: f64,
    },
}

impl Epilogue {
    /// A bias alone, unless the attributes say that there is none.
    pub fn of_layer(attrs: &Attrs) -> Epilogue {
        Epilogue { bias: !attrs.bool("no_bias"), ..Epilogue::default() }
    }

    /// The form of these steps for a device.
    pub fn form(&self) -> SumEpilogue {
        let activation = match self.activation {
            FusedActivation::None => None,
            FusedActivation::Relu => Some(Unary::Relu),
            FusedActivation::Clip { low, high } => Some(Unary::Clip { low, high }),
            FusedActivation::Leaky { slope } => Some(Unary::LeakyRelu { slope }),
        };
        SumEpilogue { bias: self.bias.then_some(2), residual: self.residual_at(), factor: None, activation }
    }

    /// Position of the residual among the inputs.
    pub fn residual_at(&self) -> Option<usize> {
        self.residual.then_some(2 + usize::from(self.bias))
    }

    /// Applies the steps after plain kernels, in place.
    pub fn apply<T: Float>(&self, par: &dyn Par, residual: Option<&[T]>, out: &mut [T]) {
        if let Some(residual) = residual {
            binary_inplace(par, Binary::Add, out, residual);
        }
        match self.activation {
            FusedActivation::None => {}
            FusedActivation::Relu => unary_inplace(par, Unary::Relu, out),
            FusedActivation::Clip { low, high } => unary_inplace(par, Unary::Clip { low, high }, out),
            FusedActivation::Leaky { slope } => unary_inplace(par, Unary::LeakyRelu { slope }, out),
        }
    }
}

impl FusedActivation {
    /// The activation in the form of the fast kernels.
    pub fn fast(self) -> Activation {
        match self {
            FusedActivation::None => Activation::None,
            FusedActivation::Relu => Activation::Relu,
            FusedActivation::Clip { low, high } => Activation::Clip { lo: low as f32, hi: high as f32 },
            FusedActivation::Leaky { slope } => Activation::Leaky { slope: slope as f32 },
        }
    }
}

/// The input at a position, if there should be one.
pub(crate) fn operand<'a, T: Float>(inputs: &[TensorRef<'a>], at: Option<usize>) -> Result<Option<&'a [T]>, OpError> {
    at.map(|i| elements(inputs.get(i).ok_or_else(wrong_arity)?)).transpose()
}

/// A convolution of two or three inputs, and of a residual, for the types of the signature.
pub(crate) fn bind_convolution(attrs: &Attrs, signature: &Signature<'_>, epilogue: Epilogue) -> BoundKernel {
    let geometry = ConvGeometry::new(attrs)?;
    in_single(signature, |signature| bind_sums(geometry, signature, epilogue))
}

/// The form of a convolution.
pub(crate) fn convolution_form(attrs: &Attrs, epilogue: Epilogue) -> MaybeForm {
    let geometry = ConvGeometry::new(attrs)?;
    let form = KernelForm::Convolution {
        channels_last: false,
        filters_first: false,
        kernel: three(&geometry.kernel, 1),
        stride: three(&geometry.stride, 1),
        pad: three(&geometry.pad, 0),
        dilate: three(&geometry.dilate, 1),
        groups: geometry.groups,
        epilogue: epilogue.form(),
    };
    Ok(Some(form))
}

/// Chooses the kernel of the host.
fn bind_sums(geometry: ConvGeometry, signature: &Signature<'_>, epilogue: Epilogue) -> BoundKernel {
    let work = multiply_adds(&geometry, &signature.inputs[0].shape, signature.outputs[0].shape.size());
    match signature.inputs[0].dtype {
        DType::F32 => match PackedConvolution::new(&geometry, epilogue, work, signature) {
            Some(fast) => Ok(Box::new(fast)),
            None => Ok(Box::new(PlainConvolution::<f32>::new(geometry, epilogue, work))),
        },
        DType::F64 => Ok(Box::new(PlainConvolution::<f64>::new(geometry, epilogue, work))),
        other => Err(type_error(format!(
            "dtype {other} is not supported by convolutions on the CPU, only float32, float64 and float16; \
             convert with astype"
        ))),
    }
}

/// A fast kernel for the plan's text.
pub(crate) fn describe(kernel: &ConvKernel) -> String {
    kernel.name() + tuned(kernel)
}

fn tuned(kernel: &ConvKernel) -> &'static str {
    if kernel.is_tuned() { " (tuned)" } else { "" }
}

/// Estimated time of a fast convolution on one core, from rates that stand for each instruction
/// set.
pub(crate) fn cost_ns(kernel: &ConvKernel, work: u64) -> u64 {
    let per_ns = match kernel.isa() {
        Isa::Portable => 8,
        Isa::Neon => 20,
        Isa::Avx2 => 50,
        Isa::Avx512 if kernel.method().tiles() => 800,
        Isa::Avx512 if kernel.method().rounds() => 200,
        Isa::Avx512 => 100,
    };
    let saved = if kernel.method().transforms() { 5 } else { 2 };
    2_000 + work * 2 / (per_ns * saved)
}

/// Multiplications that the convolution takes.
pub(crate) fn multiply_adds(geometry: &ConvGeometry, data: &[usize], outputs: usize) -> u64 {
    let channels = data.get(1).map_or(0, |c| c / geometry.groups);
    let each: usize = geometry.kernel.iter().product::<usize>().saturating_mul(channels);
    outputs.saturating_mul(each) as u64
}

/// A convolution in single precision, on packed weights.
struct PackedConvolution {
    conv: PlainConv,
    epilogue: Epilogue,
    work: u64,
}

impl PackedConvolution {
    /// `None` where the plain kernel has to do it.
    fn new(
        geometry: &ConvGeometry,
        epilogue: Epilogue,
        work: u64,
        signature: &Signature<'_>,
    ) -> Option<PackedConvolution> {
        let (&[n, c], spatial) = signature.inputs[0].shape.split_first_chunk()?;
        // Fewer axes are the last of three.
        let [d, h, w] = three(spatial, 1);
        let depth = Depth {
            kernel: three(&geometry.kernel, 1)[0],
            stride: three(&geometry.stride, 1)[0],
            dilate: three(&geometry.dilate, 1)[0],
            pad: three(&geometry.pad, 0)[0],
        };
        let (isa, options) = conv_options(signature.options);
        let conv = PlainConv::select(conv_params(geometry, c), depth, [n, c, d, h, w], isa, options)?;
        Some(PackedConvolution { conv, epilogue, work })
    }
}

/// The parameters along the last two of its axes, over `in_channels` channels.
fn conv_params(geometry: &ConvGeometry, in_channels: usize) -> Conv2dParams {
    let two = |list: &[usize], missing: usize| {
        let [_, height, width] = three(list, missing);
        [height, width]
    };
    Conv2dParams {
        in_channels,
        out_channels: geometry.filters,
        kernel: two(&geometry.kernel, 1),
        stride: two(&geometry.stride, 1),
        dilate: two(&geometry.dilate, 1),
        pad: two(&geometry.pad, 0),
        groups: geometry.groups,
    }
}

fn conv_options(options: KernelOptions) -> (Isa, ConvOptions) {
    let winograd = options.transforms();
    let KernelOptions { precision, tuned, isa, tiles, .. } = options;
    (isa, ConvOptions { winograd, precision: precision.of_products(), tuned, tiles, in_blocks: false })
}

/// The fast kernel for images of shape `(batch, channels, [height,] width)`, if there is one;
/// `in_blocks` says that they are in blocks of 16 channels already.
pub(crate) fn fast_kernel(
    geometry: &ConvGeometry,
    shape: &[usize],
    options: KernelOptions,
    in_blocks: bool,
) -> Option<ConvKernel> {
    let (&[n, c], spatial) = shape.split_first_chunk().filter(|(_, spatial)| spatial.len() <= 2)?;
    let [_, h, w] = three(spatial, 1);
    let (isa, options) = conv_options(options);
    ConvKernel::select(conv_params(geometry, c), [n, c, h, w], isa, ConvOptions { in_blocks, ..options })
}

impl Kernel for PackedConvolution {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let epilogue = PlainEpilogue {
            bias: operand(call.inputs, self.epilogue.bias.then_some(2))?,
            residual: operand(call.inputs, self.epilogue.residual_at())?,
            activation: self.epilogue.activation.fast(),
        };
        let workspace = scratch(call.workspace, self.conv.workspace_len())?;
        let packed = packed_elements(packed, self.conv.packed_len())?;
        self.conv.run(elements(data)?, packed, epilogue, elements_mut(out)?, workspace, call.par);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.conv.workspace_len() * size_of::<f32>()
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        format!("convolution {}{}", self.conv.name(), tuned(self.conv.kernel()))
    }

    fn cost_ns(&self) -> u64 {
        cost_ns(self.conv.kernel(), self.work)
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.work)
    }

    fn convolution(&self) -> Option<ConvSignature> {
        self.conv.signature()
    }
}

impl Packing for PackedConvolution {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.conv.packed_len() * size_of::<f32>()
    }

    fn pack(&self, _: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        self.conv.pack(elements(weight)?, scratch(out, self.conv.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        self.conv.packing()
    }

    fn unpacker(&self) -> Option<Box<dyn Unpack>> {
        self.conv.can_unpack().then(|| Box::new(self.conv.clone()) as Box<dyn Unpack>)
    }
}

/// The inverse of the packing of a convolution's weights.
pub(crate) fn unpacker(kernel: &ConvKernel) -> Option<Box<dyn Unpack>> {
    kernel.can_unpack().then(|| Box::new(kernel.clone()) as Box<dyn Unpack>)
}

impl Unpack for ConvKernel {
    fn unpack(&self, packed: &[u8], rows: Range<usize>, weights: &mut [f32]) -> Result<(), OpError> {
        ConvKernel::unpack(self, packed_elements(packed, self.packed_len())?, rows, weights);
        Ok(())
    }
}

impl Unpack for PlainConv {
    fn unpack(&self, packed: &[u8], rows: Range<usize>, weights: &mut [f32]) -> Result<(), OpError> {
        PlainConv::unpack(self, packed_elements(packed, self.packed_len())?, rows, weights);
        Ok(())
    }
}

/// Any convolution in plain code.
struct PlainConvolution<T> {
    geometry: ConvGeometry,
    epilogue: Epilogue,
    work: u64,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T> PlainConvolution<T> {
    fn new(geometry: ConvGeometry, epilogue: Epilogue, work: u64) -> PlainConvolution<T> {
        PlainConvolution { geometry, epilogue, work, element: std::marker::PhantomData }
    }
}

impl<T: Float> Kernel for PlainConvolution<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, weight, ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let bias = operand(call.inputs, self.epilogue.bias.then_some(2))?;
        let residual = operand(call.inputs, self.epilogue.residual_at())?;
        let out_shape: &Shape = out.shape;
        let out = elements_mut::<T>(out)?;
        let ConvGeometry { kernel, stride, pad, dilate, groups, .. } = &self.geometry;
        let params = ConvParams { kernel, stride, pad, dilate, groups: *groups };
        let (x, w) = (elements::<T>(data)?, elements::<T>(weight)?);
        convolution(call.par, params, x, data.shape, w, bias, out, out_shape);
        self.epilogue.apply(call.par, residual, out);
        Ok(())
    }

    fn describe(&self) -> String {
        "convolution plain".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        500 + self.work / 2
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.work)
    }
}
