//! The call of a kernel for sparse arrays: its inputs, and the place for its result.

use crate::definition::{Attrs, OpDef, value_error, wrong_arity};
use crate::execution::{KernelCall, KernelOptions, Signature, bind_kernel};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_kernels::Par;
use mxrt_tensor::{
    CsrRef, RowSparseRef, Shape, SparseContent, StoredInput, StoredOutput, TensorMut, TensorRef, TensorType,
};

/// A call of an operator on arrays as they are stored.
pub(super) struct SparseCall<'a> {
    pub def: &'static OpDef,
    pub attrs: &'a Attrs,
    pub options: KernelOptions,
    pub par: &'a dyn Par,
    pub engine: &'static Engine,
    pub inputs: &'a [StoredInput<'a>],
}

impl<'a> SparseCall<'a> {
    pub fn csr(&self, input: usize) -> Result<CsrRef<'a>, OpError> {
        match self.inputs.get(input) {
            Some(StoredInput::Csr(matrix)) => Ok(*matrix),
            _ => Err(wrong_arity()),
        }
    }

    pub fn rows(&self, input: usize) -> Result<RowSparseRef<'a>, OpError> {
        match self.inputs.get(input) {
            Some(StoredInput::RowSparse(array)) => Ok(*array),
            _ => Err(wrong_arity()),
        }
    }

    pub fn dense(&self, input: usize) -> Result<TensorRef<'a>, OpError> {
        match self.inputs.get(input) {
            Some(StoredInput::Dense(tensor)) => Ok(*tensor),
            _ => Err(wrong_arity()),
        }
    }

    pub fn first(&self) -> Result<StoredInput<'a>, OpError> {
        self.inputs.first().copied().ok_or_else(wrong_arity)
    }

    /// Stores a sparse result with these positions, whose values `fill` writes.
    pub fn store(
        &self,
        output: &mut StoredOutput<'_>,
        indices: &[i64],
        pointers: &[i64],
        fill: impl FnOnce(&mut TensorMut<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let StoredOutput::Sparse { storage, tensor, made } = output else { return Err(wrong_arity()) };
        *made = Some(SparseContent::with_values(self.engine, *storage, tensor, indices, pointers, fill)?);
        Ok(())
    }

    /// Stores a sparse result with the positions of an input.
    pub fn store_like(
        &self,
        output: &mut StoredOutput<'_>,
        input: StoredInput<'_>,
        fill: impl FnOnce(&mut TensorMut<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let (indices, pointers) = positions(&input)?;
        self.store(output, indices, pointers, fill)
    }

    /// Runs the operator's kernel for dense arrays on values.
    pub fn on_values(&self, inputs: &[TensorRef<'_>], out: &mut TensorMut<'_>) -> Result<(), OpError> {
        if out.is_empty() && inputs.iter().all(TensorRef::is_empty) {
            return Ok(());
        }
        let types: Vec<TensorType> = inputs.iter().map(|t| TensorType::new(t.dtype, t.shape.clone())).collect();
        let outputs = [TensorType::new(out.dtype, out.shape.clone())];
        let signature = Signature { inputs: &types, outputs: &outputs, options: self.options };
        let kernel = bind_kernel(self.def, self.attrs, &signature)?;
        let mut workspace = self.engine.memory().alloc(kernel.workspace())?;
        let workspace = &mut workspace.as_mut_slice()[..kernel.workspace()];
        let out = TensorMut::new(out.dtype, out.shape, out.bytes_mut());
        let outputs = &mut [out];
        kernel.run(&mut KernelCall {
            par: self.par,
            inputs,
            outputs,
            workspace,
            packed: None,
            random: None,
            shared: None,
        })
    }

    /// New memory for values.
    pub fn memory(&self, tensor: &TensorType) -> Result<Values, OpError> {
        let too_large = || OpError::new(FailureKind::Memory, format!("{tensor} is larger than the address space"));
        let bytes = tensor.checked_bytes().ok_or_else(too_large)?;
        let mut block = self.engine.memory().alloc(bytes)?;
        block.as_mut_slice()[..bytes].fill(0);
        Ok(Values { tensor: tensor.clone(), bytes, block })
    }
}

/// Values in memory of their own.
pub(super) struct Values {
    tensor: TensorType,
    bytes: usize,
    block: mxrt_engine::memory::Block,
}

impl Values {
    pub fn view(&self) -> TensorRef<'_> {
        TensorRef::new(self.tensor.dtype, &self.tensor.shape, &self.block.as_slice()[..self.bytes])
    }

    pub fn view_mut(&mut self) -> TensorMut<'_> {
        TensorMut::new(self.tensor.dtype, &self.tensor.shape, &mut self.block.as_mut_slice()[..self.bytes])
    }
}

/// Positions of a sparse array: columns and row pointers, or row numbers.
pub(super) fn positions<'a>(input: &StoredInput<'a>) -> Result<(&'a [i64], &'a [i64]), OpError> {
    match input {
        StoredInput::Csr(matrix) => Ok((matrix.columns, matrix.pointers)),
        StoredInput::RowSparse(array) => Ok((array.rows, &[])),
        StoredInput::Dense(_) => Err(wrong_arity()),
    }
}

/// The dense memory of an output.
pub(super) fn dense_out<'a, 'b>(output: &'a mut StoredOutput<'b>) -> Result<&'a mut TensorMut<'b>, OpError> {
    match output {
        StoredOutput::Dense(tensor) => Ok(tensor),
        StoredOutput::Sparse { .. } => Err(wrong_arity()),
    }
}

/// Rows and columns of a matrix.
pub(super) fn matrix_shape(shape: &Shape) -> Result<[usize; 2], OpError> {
    match shape[..] {
        [rows, columns] => Ok([rows, columns]),
        _ => Err(value_error(format!("a matrix is needed, not an array of shape {shape}"))),
    }
}

/// Bytes of one value: of an element, or of a row.
pub(super) fn value_bytes(values: &TensorRef<'_>) -> usize {
    values.shape.iter().skip(1).product::<usize>() * values.dtype.size()
}

/// Copies values, `width` bytes each, from these positions.
pub(super) fn copy_values(from: &[u8], to: &mut [u8], width: usize, positions: impl Iterator<Item = usize>) {
    if width > 0 {
        let to = to.chunks_exact_mut(width);
        to.zip(positions).for_each(|(to, i)| to.copy_from_slice(&from[i * width..(i + 1) * width]));
    }
}
