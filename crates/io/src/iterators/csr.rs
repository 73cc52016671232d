//! Batches that are csr matrices.

use mxrt_engine::{Cost, FailureKind, OpError};
use mxrt_tensor::{Launch, NDArray, SparseContent, StorageType, StoredInput, StoredOutput, launch_stored};

/// A csr matrix of the elements of a dense float32 matrix that are not 0.
#[cfg_attr(debug_assertions, track_caller)]
pub(super) fn csr(dense: &NDArray) -> Result<NDArray, OpError> {
    let engine = dense.engine();
    let matrix = NDArray::new_stored(engine, dense.context(), dense.tensor_type(), StorageType::Csr)?;
    let launch = Launch { name: "csr batch".into(), inputs: &[dense], outputs: &[&matrix], cost: Cost::Large };
    launch_stored(engine, launch, |ctx, inputs, outputs| {
        let ([StoredInput::Dense(dense)], [StoredOutput::Sparse { storage, tensor, made }]) = (inputs, outputs) else {
            return Err(OpError::new(FailureKind::Operator, "a csr batch is made of a dense one"));
        };
        let width = tensor.shape.get(1).copied().unwrap_or(0).max(1);
        let (numbers, _) = dense.bytes().as_chunks::<4>();
        let (mut values, mut columns, mut pointers) = (Vec::new(), Vec::new(), vec![0]);
        for row in numbers.chunks_exact(width) {
            let stored = (0i64..).zip(row).filter(|(_, number)| f32::from_ne_bytes(**number) != 0.0);
            for (column, number) in stored {
                columns.push(column);
                values.extend_from_slice(number);
            }
            pointers.push(columns.len() as i64);
        }
        *made = Some(SparseContent::new(ctx.engine(), *storage, tensor, &values, &columns, &pointers)?);
        Ok(())
    });
    Ok(matrix)
}
