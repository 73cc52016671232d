//! Kernels that compute in other element types than those of their arrays, which are converted.

use super::{BoundKernel, Kernel, KernelCall, Signature, check_known, dispatch, elements, elements_mut, scratch};
use mxrt_engine::OpError;
use mxrt_kernels::Par;
use mxrt_kernels::cast::cast;
use mxrt_tensor::{DType, TensorMut, TensorRef, TensorType};

/// Pieces of the workspace begin where any kernel may read and write.
const ALIGN: usize = 64;

/// The kernel that `bind` chooses; where operands are of float16, that for float32 between
/// conversions. A sum so is rounded to half precision once.
pub(crate) fn in_single(signature: &Signature<'_>, bind: impl FnOnce(&Signature<'_>) -> BoundKernel) -> BoundKernel {
    let half = |t: &TensorType| t.dtype == DType::F16;
    if !signature.inputs.iter().chain(signature.outputs).all(half) {
        return bind(signature);
    }
    in_dtypes(signature, |_| DType::F32, |_| DType::F32, bind)
}

/// The kernel that `bind` chooses for arrays of these element types, by their position. Arrays of
/// other types are converted, before and after it runs.
pub(crate) fn in_dtypes(
    signature: &Signature<'_>,
    of_input: impl Fn(usize) -> DType,
    of_output: impl Fn(usize) -> DType,
    bind: impl FnOnce(&Signature<'_>) -> BoundKernel,
) -> BoundKernel {
    between_conversions(signature, &of_input, &of_output, Box::new(bind))
}

type Bind<'a> = Box<dyn FnOnce(&Signature<'_>) -> BoundKernel + 'a>;

/// [`in_dtypes`], compiled once for all kernels.
fn between_conversions(
    signature: &Signature<'_>,
    of_input: &dyn Fn(usize) -> DType,
    of_output: &dyn Fn(usize) -> DType,
    bind: Bind<'_>,
) -> BoundKernel {
    let with = |types: &[TensorType], dtype: &dyn Fn(usize) -> DType| -> Vec<TensorType> {
        types.iter().enumerate().map(|(i, t)| TensorType::new(dtype(i), t.shape.clone())).collect()
    };
    let (inputs, outputs) = (with(signature.inputs, of_input), with(signature.outputs, of_output));
    if inputs == signature.inputs && outputs == signature.outputs {
        return bind(signature);
    }
    for (inner, outer) in inputs.iter().zip(signature.inputs).chain(outputs.iter().zip(signature.outputs)) {
        check_known(inner.dtype)?;
        check_known(outer.dtype)?;
    }
    let kernel = bind(&Signature { inputs: &inputs, outputs: &outputs, options: signature.options })?;
    let converts = |inner: &[TensorType], outer: &[TensorType]| -> Vec<InnerOperand> {
        let pairs = inner.iter().zip(outer);
        pairs.map(|(inner, outer)| InnerOperand { tensor: inner.clone(), converted: inner != outer }).collect()
    };
    Ok(Box::new(InDtypes {
        kernel,
        inputs: converts(&inputs, signature.inputs),
        outputs: converts(&outputs, signature.outputs),
    }))
}

/// Converts elements to the dtype of the output.
pub(crate) fn convert(par: &dyn Par, x: &TensorRef<'_>, out: &mut TensorMut<'_>) -> Result<(), OpError> {
    dispatch!(x.dtype, all, S => dispatch!(out.dtype, all, D => {
        cast(par, elements::<S>(x)?, elements_mut::<D>(out)?);
        Ok(())
    }))
}

/// An array of the kernel inside.
struct InnerOperand {
    tensor: TensorType,
    /// whether the array outside has another element type
    converted: bool,
}

impl InnerOperand {
    /// Bytes of the workspace that it takes.
    fn whole_bytes(&self) -> usize {
        if self.converted { self.tensor.bytes().next_multiple_of(ALIGN) } else { 0 }
    }
}

struct InDtypes {
    kernel: Box<dyn Kernel>,
    inputs: Vec<InnerOperand>,
    outputs: Vec<InnerOperand>,
}

/// The next piece of a workspace.
fn piece<'a>(rest: &mut &'a mut [u8], bytes: usize) -> Result<&'a mut [u8], OpError> {
    let whole = bytes.next_multiple_of(ALIGN);
    let taken = std::mem::take(rest);
    let whole = whole.min(taken.len());
    let (piece, left) = taken.split_at_mut(whole);
    *rest = left;
    scratch::<u8>(piece, bytes)
}

impl InDtypes {
    fn packed_bytes(&self) -> usize {
        self.kernel.packing().map_or(0, |packing| packing.bytes())
    }
}

/// Inputs in the element types of the inner kernel. What is converted is stored in `memory`.
fn converted<'a>(
    par: &dyn Par,
    arrays: &[TensorRef<'a>],
    operands: &'a [InnerOperand],
    mut memory: &'a mut [u8],
) -> Result<Vec<TensorRef<'a>>, OpError> {
    let mut read = Vec::with_capacity(operands.len());
    for (array, InnerOperand { tensor, converted }) in arrays.iter().zip(operands) {
        if !converted {
            read.push(*array);
            continue;
        }
        let memory = piece(&mut memory, tensor.bytes())?;
        convert(par, array, &mut TensorMut::new(tensor.dtype, &tensor.shape, memory))?;
        read.push(TensorRef::new(tensor.dtype, &tensor.shape, memory));
    }
    Ok(read)
}

impl Kernel for InDtypes {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let size = |operands: &[InnerOperand]| operands.iter().map(InnerOperand::whole_bytes).sum::<usize>();
        let (read_bytes, made_bytes) = (size(&self.inputs), size(&self.outputs));
        if call.workspace.len() < read_bytes + made_bytes {
            return Err(crate::definition::value_error("the workspace is too small"));
        }
        let (before, after) = call.workspace.split_at_mut(read_bytes);
        let (made, mut after) = after.split_at_mut(made_bytes);
        let read = converted(call.par, call.inputs, &self.inputs, before)?;
        let packed = piece(&mut after, self.packed_bytes())?;
        if let Some(packing) = self.kernel.packing() {
            let inputs: Vec<TensorRef<'_>> = packing.inputs().iter().map(|i| read[*i]).collect();
            packing.pack(call.par, &inputs, packed)?;
        }
        let mut rest = &mut *made;
        let mut written = Vec::with_capacity(self.outputs.len());
        for (array, InnerOperand { tensor, converted }) in call.outputs.iter_mut().zip(&self.outputs) {
            let memory = if *converted { piece(&mut rest, tensor.bytes())? } else { array.bytes_mut() };
            written.push(TensorMut::new(tensor.dtype, &tensor.shape, memory));
        }
        self.kernel.run(&mut KernelCall {
            par: call.par,
            inputs: &read,
            outputs: &mut written,
            workspace: piece(&mut after, self.kernel.workspace())?,
            packed: self.kernel.packing().is_some().then_some(&*packed),
            random: call.random,
            shared: None,
        })?;
        drop(written);
        let mut rest = made;
        for (array, InnerOperand { tensor, .. }) in
            call.outputs.iter_mut().zip(&self.outputs).filter(|(_, o)| o.converted)
        {
            let memory = piece(&mut rest, tensor.bytes())?;
            convert(call.par, &TensorRef::new(tensor.dtype, &tensor.shape, memory), array)?;
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        let arrays = self.inputs.iter().chain(&self.outputs).map(InnerOperand::whole_bytes);
        arrays.chain([self.packed_bytes(), self.kernel.workspace()].map(|bytes| bytes.next_multiple_of(ALIGN))).sum()
    }

    fn describe(&self) -> String {
        let dtype = self.inputs.iter().chain(&self.outputs).next().map_or("?", |operand| operand.tensor.dtype.name());
        format!("{} (in {dtype})", self.kernel.describe())
    }

    fn cost_ns(&self) -> u64 {
        self.kernel.cost_ns().saturating_mul(2)
    }

    fn multiply_adds(&self) -> Option<u64> {
        self.kernel.multiply_adds()
    }
}
