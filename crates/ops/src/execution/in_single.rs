//! Kernels of half precision that compute in single precision: their operands are converted.

use super::{BoundKernel, Kernel, KernelCall, Signature, elements, elements_mut, scratch};
use mxrt_engine::OpError;
use mxrt_kernels::cast::cast;
use mxrt_tensor::{DType, Shape, TensorMut, TensorRef, TensorType};

/// Pieces of the workspace begin where any kernel may read and write.
const ALIGN: usize = 64;

/// The kernel that `bind` chooses; where operands are of float16, that for float32 between
/// conversions. A sum so is rounded to half precision once.
pub(crate) fn in_single(signature: &Signature<'_>, bind: impl FnOnce(&Signature<'_>) -> BoundKernel) -> BoundKernel {
    let half = |t: &TensorType| t.dtype == DType::F16;
    if !signature.inputs.iter().chain(signature.outputs).all(half) {
        return bind(signature);
    }
    let single = |types: &[TensorType]| -> Vec<TensorType> {
        types.iter().map(|t| TensorType::new(DType::F32, t.shape.clone())).collect()
    };
    let (inputs, outputs) = (single(signature.inputs), single(signature.outputs));
    let kernel = bind(&Signature { inputs: &inputs, outputs: &outputs, options: signature.options })?;
    let shapes = |types: Vec<TensorType>| types.into_iter().map(|t| t.shape).collect();
    Ok(Box::new(InSingle { kernel, inputs: shapes(inputs), outputs: shapes(outputs) }))
}

struct InSingle {
    /// reads and writes float32
    kernel: Box<dyn Kernel>,
    inputs: Vec<Shape>,
    outputs: Vec<Shape>,
}

fn bytes(shape: &Shape) -> usize {
    shape.size() * size_of::<f32>()
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

impl InSingle {
    fn packed_bytes(&self) -> usize {
        self.kernel.packing().map_or(0, |packing| packing.bytes())
    }
}

impl Kernel for InSingle {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let mut rest = &mut *call.workspace;
        let mut read = Vec::with_capacity(self.inputs.len());
        for (array, shape) in call.inputs.iter().zip(&self.inputs) {
            let memory = piece(&mut rest, bytes(shape))?;
            cast(call.par, elements::<half::f16>(array)?, scratch::<f32>(memory, shape.size())?);
            read.push(TensorRef::new(DType::F32, shape, memory));
        }
        let mut written = Vec::with_capacity(self.outputs.len());
        for shape in &self.outputs {
            written.push(TensorMut::new(DType::F32, shape, piece(&mut rest, bytes(shape))?));
        }
        let packed = piece(&mut rest, self.packed_bytes())?;
        if let Some(packing) = self.kernel.packing() {
            let inputs: Vec<TensorRef<'_>> = packing.inputs().iter().map(|i| read[*i]).collect();
            packing.pack(call.par, &inputs, packed)?;
        }
        self.kernel.run(&mut KernelCall {
            par: call.par,
            inputs: &read,
            outputs: &mut written,
            workspace: piece(&mut rest, self.kernel.workspace())?,
            packed: self.kernel.packing().is_some().then_some(&*packed),
            random: call.random,
            shared: None,
        })?;
        for (from, to) in written.iter().zip(&mut *call.outputs) {
            cast(call.par, from.as_ref().as_slice::<f32>()?, elements_mut::<half::f16>(to)?);
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        let arrays = self.inputs.iter().chain(&self.outputs).map(bytes);
        let pieces = arrays.chain([self.packed_bytes(), self.kernel.workspace()]);
        pieces.map(|bytes| bytes.next_multiple_of(ALIGN)).sum()
    }

    fn describe(&self) -> String {
        format!("{} (in single precision)", self.kernel.describe())
    }

    fn cost_ns(&self) -> u64 {
        self.kernel.cost_ns().saturating_mul(2)
    }

    fn multiply_adds(&self) -> Option<u64> {
        self.kernel.multiply_adds()
    }
}
