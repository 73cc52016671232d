//! Kernels of dense layers, and what may be fused behind them.

use super::convolution_kernel::Epilogue;
use crate::core::*;
use mxrt_engine::OpError;
use mxrt_kernels::dense::fully_connected;
use mxrt_kernels::Float;
use mxrt_tensor::DType;

/// A dense layer of two or three inputs, and of a residual, for the types of the signature.
pub(crate) fn bind_dense(
    _: &Attrs,
    signature: &Signature<'_>,
    epilogue: Epilogue,
) -> Result<Box<dyn Kernel>, OpError> {
    let [outputs, inputs] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let rows = signature.outputs[0].shape.size() / outputs.max(1);
    let size = [rows, inputs, outputs];
    match signature.inputs[0].dtype {
        DType::F32 => Ok(Box::new(Plain::<f32>::new(size, epilogue))),
        DType::F64 => Ok(Box::new(Plain::<f64>::new(size, epilogue))),
        other => Err(type_error(format!(
            "dtype {other} is not supported by dense layers on the CPU, only float32 and float64; convert with astype"
        ))),
    }
}

/// Any dense layer in plain code.
struct Plain<T> {
    /// rows, inputs, outputs
    size: [usize; 3],
    epilogue: Epilogue,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T> Plain<T> {
    fn new(size: [usize; 3], epilogue: Epilogue) -> Plain<T> {
        Plain { size, epilogue, element: std::marker::PhantomData }
    }
}

impl<T: Float> Kernel for Plain<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, weight, ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let operand =
            |at: Option<usize>| at.map(|i| elements::<T>(call.inputs.get(i).ok_or_else(wrong_arity)?)).transpose();
        let bias = operand(self.epilogue.bias.then_some(2))?;
        let residual = operand(self.epilogue.residual_at())?;
        let out = elements_mut::<T>(out)?;
        fully_connected(call.par, elements::<T>(data)?, elements::<T>(weight)?, bias, self.size, out);
        self.epilogue.apply(call.par, residual, out);
        Ok(())
    }

    fn describe(&self) -> String {
        "dense plain".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        500 + self.size.iter().fold(1usize, |n, s| n.saturating_mul(*s)) as u64 / 2
    }
}
