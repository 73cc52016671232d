//! Kernels of convolutions: plain ones, and what may be fused behind them.

use super::convolution::Geometry;
use crate::core::*;
use mxrt_engine::OpError;
use mxrt_kernels::conv_plain::{ConvParams, convolution};
use mxrt_kernels::elementwise::{Binary, Unary, binary_inplace, unary_inplace};
use mxrt_kernels::Float;
use mxrt_kernels::par::Par;
use mxrt_tensor::{DType, Shape};

/// What follows the sums: bias, a residual, an activation, in this order. The operands are inputs in this order, too.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Epilogue {
    pub bias: bool,
    pub residual: bool,
    pub activation: Fused,
}

/// An activation computed together with a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Fused {
    #[default]
    None,
    Relu,
    Clip {
        low: f64,
        high: f64,
    },
}

impl Epilogue {
    /// Position of the residual among the inputs.
    pub fn residual_at(&self) -> Option<usize> {
        self.residual.then_some(2 + usize::from(self.bias))
    }

    /// What the plain kernels do afterwards, in place.
    pub fn apply<T: Float>(&self, par: &dyn Par, residual: Option<&[T]>, out: &mut [T]) {
        if let Some(residual) = residual {
            binary_inplace(par, Binary::Add, out, residual);
        }
        match self.activation {
            Fused::None => {}
            Fused::Relu => unary_inplace(par, Unary::Relu, out),
            Fused::Clip { low, high } => unary_inplace(par, Unary::Clip { low, high }, out),
        }
    }
}

/// A convolution of two or three inputs, and of a residual, for the types of the signature.
pub(crate) fn bind_convolution(
    attrs: &Attrs,
    signature: &Signature<'_>,
    epilogue: Epilogue,
) -> Result<Box<dyn Kernel>, OpError> {
    let geometry = Geometry::new(attrs)?;
    let work = multiply_adds(&geometry, signature);
    match signature.inputs[0].dtype {
        DType::F32 => Ok(Box::new(Plain::<f32>::new(geometry, epilogue, work))),
        DType::F64 => Ok(Box::new(Plain::<f64>::new(geometry, epilogue, work))),
        other => Err(type_error(format!(
            "dtype {other} is not supported by convolutions on the CPU, only float32 and float64; convert with astype"
        ))),
    }
}

/// Multiplications that the convolution takes.
fn multiply_adds(geometry: &Geometry, signature: &Signature<'_>) -> u64 {
    let channels = signature.inputs[0].shape[1] / geometry.groups;
    let each: usize = geometry.kernel.iter().product::<usize>().saturating_mul(channels);
    signature.outputs[0].shape.size().saturating_mul(each) as u64
}

/// Any convolution in plain code.
struct Plain<T> {
    geometry: Geometry,
    epilogue: Epilogue,
    work: u64,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T> Plain<T> {
    fn new(geometry: Geometry, epilogue: Epilogue, work: u64) -> Plain<T> {
        Plain { geometry, epilogue, work, element: std::marker::PhantomData }
    }
}

impl<T: Float> Kernel for Plain<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, weight, ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let operand = |at: Option<usize>| {
            at.map(|i| elements::<T>(call.inputs.get(i).ok_or_else(wrong_arity)?)).transpose()
        };
        let bias = operand(self.epilogue.bias.then_some(2))?;
        let residual = operand(self.epilogue.residual_at())?;
        let out_shape: &Shape = out.shape;
        let out = elements_mut::<T>(out)?;
        let Geometry { kernel, stride, pad, dilate, groups, .. } = &self.geometry;
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
}
