//! Kernels of dense layers: fast and plain ones, and the steps that may be fused after them.

use super::convolution_kernel::{Epilogue, operand};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Float;
use mxrt_kernels::activation::Activation;
use mxrt_kernels::dense::fully_connected;
use mxrt_kernels::gemm::{self, Bf16Gemm, Matrix, Sgemm};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::par::Par;
use mxrt_tensor::{DType, TensorRef};
use std::ops::Range;

/// A dense layer of two or three inputs, and of a residual, for the types of the signature.
pub(crate) fn bind_dense(signature: &Signature<'_>, epilogue: Epilogue) -> Result<Box<dyn Kernel>, OpError> {
    in_single(signature, |signature| bind_sums(signature, epilogue))
}

/// The form of a dense layer.
pub(crate) fn dense_form(signature: &Signature<'_>, epilogue: Epilogue) -> MaybeForm {
    let [outputs, inputs] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let rows = signature.outputs[0].shape.size() / outputs.max(1);
    let matrix =
        |array, steps: [usize; 2]| MatrixSteps { array, first: 0, steps: [0, 0, steps[0] as isize, steps[1] as isize] };
    let form = KernelForm::Product {
        batch: [1, 1],
        size: [rows, outputs, inputs],
        operands: [matrix(0, [inputs, 1]), matrix(1, [1, inputs]), matrix(0, [outputs, 1])],
        alpha: 1.0,
        epilogue: epilogue.form(),
    };
    Ok(Some(form))
}

/// Chooses the kernel of the host.
fn bind_sums(signature: &Signature<'_>, epilogue: Epilogue) -> Result<Box<dyn Kernel>, OpError> {
    let [outputs, inputs] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let rows = signature.outputs[0].shape.size() / outputs.max(1);
    let size = [rows, inputs, outputs];
    match signature.inputs[0].dtype {
        DType::F32
            if signature.options.precision == Precision::Bf16
                && let Some(gemm) = Bf16Gemm::new(rows, outputs, inputs, signature.options.isa) =>
        {
            Ok(Box::new(Bf16Dense { gemm, size, epilogue }))
        }
        DType::F32 => Ok(Box::new(PackedDense {
            gemm: Sgemm::with_weights(rows, outputs, inputs, signature.options.isa),
            size,
            epilogue,
        })),
        DType::F64 => Ok(Box::new(PlainDense::<f64>::new(size, epilogue))),
        other => Err(type_error(format!(
            "dtype {other} is not supported by dense layers on the CPU, only float32, float64 and float16; \
             convert with astype"
        ))),
    }
}

/// A dense layer in single precision, on packed weights.
struct PackedDense {
    gemm: Sgemm,
    /// rows, inputs, outputs
    size: [usize; 3],
    epilogue: Epilogue,
}

impl Kernel for PackedDense {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let [_, inputs, outputs] = self.size;
        let residual = operand::<f32>(call.inputs, self.epilogue.residual_at())?;
        let epilogue = self.epilogue.of_product(call.inputs, residual.is_some())?;
        let packed = packed_elements(packed, self.gemm.packed_len())?;
        let workspace = scratch(call.workspace, self.gemm.workspace_len())?;
        let (x, out) = (elements(data)?, elements_mut::<f32>(out)?);
        self.gemm.run(Matrix::rows(x, inputs), packed, epilogue, out, outputs, workspace, call.par);
        if residual.is_some() {
            self.epilogue.apply(call.par, residual, out);
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.gemm.workspace_len() * size_of::<f32>()
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        format!("dense {}{}", self.gemm.isa(), self.bits())
    }

    /// Few rows take as long as the weights take to arrive, at 42 bytes per nanosecond.
    fn cost_ns(&self) -> u64 {
        let rate = match self.gemm.isa() {
            Isa::Avx512 => 115,
            Isa::Avx2 => 60,
            Isa::Portable => 15,
        };
        1_000 + (multiply_adds(self.size) / rate).max(self.bytes() as u64 / 42)
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(multiply_adds(self.size))
    }
}

impl PackedDense {
    /// The packing of the weights, if they are not unchanged.
    fn bits(&self) -> &'static str {
        if self.gemm.is_compact() { ", 28 bits a weight" } else { "" }
    }
}

impl Packing for PackedDense {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.gemm.packed_len() * size_of::<f32>()
    }

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        let columns = Matrix::rows(elements(weight)?, self.size[1]).transposed();
        self.gemm.pack_in_parallel(par, columns, scratch(out, self.gemm.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        let [_, inputs, outputs] = self.size;
        format!("dense {} {inputs}x{outputs}{}", self.gemm.isa(), self.bits())
    }

    fn unpacker(&self) -> Option<Box<dyn Unpack>> {
        Some(Box::new(self.gemm))
    }
}

impl Unpack for Sgemm {
    fn unpack(&self, packed: &[u8], rows: Range<usize>, weights: &mut [f32]) -> Result<(), OpError> {
        Sgemm::unpack(self, packed_elements(packed, self.packed_len())?, rows, weights);
        Ok(())
    }
}

/// A dense layer of bf16 values, on weights rounded when they are packed.
struct Bf16Dense {
    gemm: Bf16Gemm,
    /// rows, inputs, outputs
    size: [usize; 3],
    epilogue: Epilogue,
}

impl Kernel for Bf16Dense {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let residual = operand::<f32>(call.inputs, self.epilogue.residual_at())?;
        let epilogue = self.epilogue.of_product(call.inputs, residual.is_some())?;
        let packed = packed_elements(packed, self.gemm.packed_len())?;
        let scratch = scratch(call.workspace, self.gemm.scratch_len())?;
        let (x, out) = (elements(data)?, elements_mut::<f32>(out)?);
        self.gemm.run(x, packed, epilogue, out, self.size[2], scratch, call.par);
        if residual.is_some() {
            self.epilogue.apply(call.par, residual, out);
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.gemm.scratch_len() * size_of::<f32>()
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        "dense bf16 avx512".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        1_000 + (multiply_adds(self.size) / 230).max(self.bytes() as u64 / 42)
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(multiply_adds(self.size))
    }
}

impl Packing for Bf16Dense {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.gemm.packed_len() * size_of::<f32>()
    }

    fn pack(&self, _: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        self.gemm.pack(elements(weight)?, scratch(out, self.gemm.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        let [_, inputs, outputs] = self.size;
        format!("dense bf16 {inputs}x{outputs}")
    }
}

fn multiply_adds(size: [usize; 3]) -> u64 {
    size.iter().fold(1usize, |n, s| n.saturating_mul(*s)) as u64
}

impl Epilogue {
    /// The epilogue that a product applies: all steps, except for the activation after a residual,
    /// which is left to a second pass.
    fn of_product<'a>(&self, inputs: &[TensorRef<'a>], residual: bool) -> Result<gemm::Epilogue<'a>, OpError> {
        let activation = if residual { Activation::None } else { self.activation.fast() };
        Ok(gemm::Epilogue { bias: operand(inputs, self.bias.then_some(2))?, activation })
    }
}

/// Any dense layer in plain code.
struct PlainDense<T> {
    /// rows, inputs, outputs
    size: [usize; 3],
    epilogue: Epilogue,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T> PlainDense<T> {
    fn new(size: [usize; 3], epilogue: Epilogue) -> PlainDense<T> {
        PlainDense { size, epilogue, element: std::marker::PhantomData }
    }
}

impl<T: Float> Kernel for PlainDense<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, weight, ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let bias = operand(call.inputs, self.epilogue.bias.then_some(2))?;
        let residual = operand(call.inputs, self.epilogue.residual_at())?;
        let out = elements_mut::<T>(out)?;
        fully_connected(call.par, elements::<T>(data)?, elements::<T>(weight)?, bias, self.size, out);
        self.epilogue.apply(call.par, residual, out);
        Ok(())
    }

    fn describe(&self) -> String {
        "dense plain".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        500 + multiply_adds(self.size) / 2
    }
}
