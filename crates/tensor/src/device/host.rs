//! Copies between contexts of the host, which name one memory.

use crate::index::{Region, copy_region};
use crate::sparse::{SparseContent, StoredInput, StoredOutput, launch_stored};
use crate::{Launch, NDArray};
use mxrt_engine::{Cost, FailureKind, OpError};

/// Copies between contexts of the host, such as `cpu(0)` and `cpu(1)`.
pub(super) fn copy(target: &NDArray, source: &NDArray) -> Result<(), OpError> {
    if !source.is_sparse() {
        return copy_region(target, Region::whole(target.shape()), source, Region::whole(source.shape()));
    }
    let launch = Launch { name: "copy".into(), inputs: &[source], outputs: &[target], cost: Cost::Small };
    launch_stored(source.engine(), launch, |ctx, inputs, outputs| match (inputs, outputs) {
        ([StoredInput::Csr(from)], [StoredOutput::Sparse { storage, tensor, made }]) => {
            let (values, indices, pointers) = (from.values.bytes(), from.columns, from.pointers);
            *made = Some(SparseContent::new(ctx.engine(), *storage, tensor, values, indices, pointers)?);
            Ok(())
        }
        ([StoredInput::RowSparse(from)], [StoredOutput::Sparse { storage, tensor, made }]) => {
            let values = from.values.bytes();
            *made = Some(SparseContent::new(ctx.engine(), *storage, tensor, values, from.rows, &[])?);
            Ok(())
        }
        _ => Err(OpError::new(FailureKind::Operator, "a sparse array was copied to one of another storage type")),
    });
    Ok(())
}
