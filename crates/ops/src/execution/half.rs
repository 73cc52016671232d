//! float16 where a kernel computes in wider types: arrays are widened, and results rounded once.

use super::kernel::{Kernel, KernelCall, Signature};
use super::{elements, elements_mut};
use crate::definition::{Attrs, Bind};
use ::half::f16;
use mxrt_engine::OpError;
use mxrt_tensor::{DType, TensorMut, TensorRef, TensorType};

/// Pieces of the workspace begin at multiples of this.
const ALIGN: usize = 64;

/// The kernel that `bind` makes for float32, for a signature with float16 in its place.
pub(crate) fn bind_through_single(
    attrs: &Attrs,
    signature: &Signature<'_>,
    bind: Bind,
) -> Result<Box<dyn Kernel>, OpError> {
    let wide = |types: &[TensorType]| -> Vec<TensorType> {
        let dtype = |d| if d == DType::F16 { DType::F32 } else { d };
        types.iter().map(|t| TensorType::new(dtype(t.dtype), t.shape.clone())).collect()
    };
    let (inputs, outputs) = (wide(signature.inputs), wide(signature.outputs));
    let inner = bind(attrs, &Signature { inputs: &inputs, outputs: &outputs, options: signature.options })?;
    Ok(Box::new(ThroughSingle { inner, inputs, outputs }))
}

struct ThroughSingle {
    inner: Box<dyn Kernel>,
    /// types that the inner kernel is bound to
    inputs: Vec<TensorType>,
    outputs: Vec<TensorType>,
}

/// Cuts a piece off the front of the workspace.
fn piece<'a>(rest: &mut &'a mut [u8], bytes: usize) -> Result<&'a mut [u8], OpError> {
    let whole = std::mem::take(rest);
    let short = || OpError::new(mxrt_engine::FailureKind::Operator, "the workspace is too short");
    let (front, tail) = whole.split_at_mut_checked(bytes.next_multiple_of(ALIGN)).ok_or_else(short)?;
    *rest = tail;
    Ok(&mut front[..bytes])
}

/// Inputs of the types that the inner kernel is bound to. What is widened is stored in `memory`.
fn widened<'a>(
    arrays: &[TensorRef<'a>],
    types: &'a [TensorType],
    memory: &mut &'a mut [u8],
) -> Result<Vec<TensorRef<'a>>, OpError> {
    let mut inputs = Vec::with_capacity(types.len());
    for (given, wide) in arrays.iter().zip(types) {
        if given.dtype == wide.dtype {
            inputs.push(*given);
            continue;
        }
        let bytes = piece(memory, wide.bytes())?;
        let values: &mut [f32] = bytemuck::cast_slice_mut(bytes);
        values.iter_mut().zip(elements::<f16>(given)?).for_each(|(to, from)| *to = from.to_f32());
        inputs.push(TensorRef::new(wide.dtype, &wide.shape, bytes));
    }
    Ok(inputs)
}

/// Stores a result of the inner kernel, rounded if it is wider than the output.
fn round(result: &mut TensorMut<'_>, out: &mut TensorMut<'_>) -> Result<(), OpError> {
    if out.dtype == result.dtype {
        out.bytes_mut().copy_from_slice(result.bytes_mut());
        return Ok(());
    }
    let values: &[f32] = bytemuck::cast_slice(result.bytes_mut());
    elements_mut::<f16>(out)?.iter_mut().zip(values).for_each(|(to, from)| *to = f16::from_f32(*from));
    Ok(())
}

impl Kernel for ThroughSingle {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let mut rest = &mut *call.workspace;
        let inputs = widened(call.inputs, &self.inputs, &mut rest)?;
        let mut results = Vec::with_capacity(self.outputs.len());
        for wide in &self.outputs {
            results.push(TensorMut::new(wide.dtype, &wide.shape, piece(&mut rest, wide.bytes())?));
        }
        let packed = match self.inner.packing() {
            None => None,
            Some(packing) => {
                let chosen: Vec<TensorRef<'_>> =
                    packing.inputs().iter().filter_map(|i| inputs.get(*i).copied()).collect();
                let bytes = piece(&mut rest, packing.bytes())?;
                packing.pack(call.par, &chosen, bytes)?;
                Some(&*bytes)
            }
        };
        let workspace = piece(&mut rest, self.inner.workspace())?;
        self.inner.run(&mut KernelCall {
            par: call.par,
            inputs: &inputs,
            outputs: &mut results,
            workspace,
            packed,
            random: call.random,
            shared: None,
        })?;
        results.iter_mut().zip(call.outputs.iter_mut()).try_for_each(|(result, out)| round(result, out))
    }

    fn workspace(&self) -> usize {
        let arrays = self.inputs.iter().chain(&self.outputs).map(TensorType::bytes);
        let own = [self.inner.workspace(), self.inner.packing().map_or(0, |packing| packing.bytes())];
        arrays.chain(own).map(|bytes| bytes.next_multiple_of(ALIGN)).sum()
    }

    fn describe(&self) -> String {
        format!("{} in float32", self.inner.describe())
    }

    fn cost_ns(&self) -> u64 {
        self.inner.cost_ns()
    }

    fn multiply_adds(&self) -> Option<u64> {
        self.inner.multiply_adds()
    }
}
