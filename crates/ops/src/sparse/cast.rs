//! `cast_storage`, and copies with another element type.

use super::call::{SparseCall, copy_values, dense_out, matrix_shape, positions, value_bytes};
use super::{Choice, Query, SparseFamily};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_tensor::{DType, StorageType, StoredInput, StoredOutput, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "cast_storage",
    aliases: &["_sparse_cast_storage"],
    doc: "A copy of the array in another storage: csr stores the elements that are not 0, row_sparse the rows with \
        such an element. In a graph the result is dense.",
    attrs: &[AttrDef::required(
        "stype",
        AttrKind::Enum(&["csr", "default", "row_sparse"]),
        "Storage type of the result.",
    )],
    bind: |_, signature| Ok(kernel_fn(signature, copy_first)),
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];

pub(super) static FAMILY: SparseFamily = SparseFamily { names: &["cast_storage"], choose, run };

/// The storage that the attribute names.
fn choose(query: &Query<'_>) -> Choice {
    let (from, to) = (query.stored[0], StorageType::from_name(query.attrs.str("stype")));
    match to {
        Some(to) if from == to || !from.is_sparse() || !to.is_sparse() => Choice::Kernel(to),
        _ => Choice::Refused("an array is converted between csr and row_sparse by way of 'default'"),
    }
}

fn run(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    convert(call, call.first()?, output)
}

/// Stores an array in the storage of the output.
pub(super) fn convert(
    call: &SparseCall<'_>,
    input: StoredInput<'_>,
    output: &mut StoredOutput<'_>,
) -> Result<(), OpError> {
    let wanted = match output {
        StoredOutput::Dense(_) => StorageType::Default,
        StoredOutput::Sparse { storage, .. } => *storage,
    };
    match (input, wanted) {
        (StoredInput::Dense(dense), StorageType::Default) => {
            dense_out(output)?.bytes_mut().copy_from_slice(dense.bytes());
            Ok(())
        }
        (StoredInput::Dense(dense), StorageType::Csr) => dense_to_csr(call, dense, output),
        (StoredInput::Dense(dense), StorageType::RowSparse) => dense_to_rows(call, dense, output),
        (sparse, StorageType::Default) => to_dense(sparse, dense_out(output)?.bytes_mut()),
        (sparse, wanted) if sparse.storage() == wanted => call.store_like(output, sparse, |values| {
            values.bytes_mut().copy_from_slice(sparse.values().bytes());
            Ok(())
        }),
        (sparse, wanted) => Err(not_implemented(format!("a {} array can't be stored as {wanted}", sparse.storage()))),
    }
}

/// Writes the dense array that a sparse one stands for.
fn to_dense(sparse: StoredInput<'_>, out: &mut [u8]) -> Result<(), OpError> {
    out.fill(0);
    let (values, (indices, pointers)) = (sparse.values(), positions(&sparse)?);
    let width = value_bytes(&values);
    let mut put = |at: usize, i: usize| {
        out[at * width..(at + 1) * width].copy_from_slice(&values.bytes()[i * width..(i + 1) * width]);
    };
    if width == 0 {
        return Ok(());
    }
    if pointers.is_empty() {
        indices.iter().enumerate().for_each(|(i, row)| put(*row as usize, i));
        return Ok(());
    }
    let [_, columns] = matrix_shape(sparse.shape())?;
    for (row, ends) in pointers.windows(2).enumerate() {
        (ends[0] as usize..ends[1] as usize).for_each(|i| put(row * columns + indices[i] as usize, i));
    }
    Ok(())
}

/// Whether an element is 0, of either sign.
pub(super) fn is_zero(dtype: DType, element: &[u8]) -> bool {
    match (dtype.is_float(), element.split_last()) {
        (true, Some((last, rest))) => last & 0x7f == 0 && rest.iter().all(|byte| *byte == 0),
        _ => element.iter().all(|byte| *byte == 0),
    }
}

fn dense_to_csr(call: &SparseCall<'_>, dense: TensorRef<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let ([rows, columns], size) = (matrix_shape(dense.shape)?, dense.dtype.size());
    let [mut indices, mut pointers] = [(); 2].map(|()| ScratchList::new(call.par));
    let mut from = ScratchList::new(call.par);
    pointers.push(0);
    for row in 0..rows {
        for column in 0..columns {
            let at = row * columns + column;
            if !is_zero(dense.dtype, &dense.bytes()[at * size..(at + 1) * size]) {
                indices.push(column as i64);
                from.push(at);
            }
        }
        pointers.push(indices.len() as i64);
    }
    call.store(output, &indices, &pointers, |values| {
        copy_values(dense.bytes(), values.bytes_mut(), size, from.iter().copied());
        Ok(())
    })
}

fn dense_to_rows(call: &SparseCall<'_>, dense: TensorRef<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let (size, width) = (dense.dtype.size(), value_bytes(&dense));
    let holds = |row: &[u8]| row.chunks_exact(size).any(|element| !is_zero(dense.dtype, element));
    let mut rows = ScratchList::new(call.par);
    if width > 0 {
        rows.extend((0i64..).zip(dense.bytes().chunks_exact(width)).filter(|(_, row)| holds(row)).map(|(i, _)| i));
    }
    call.store(output, &rows, &[], |values| {
        copy_values(dense.bytes(), values.bytes_mut(), width, rows.iter().map(|row| *row as usize));
        Ok(())
    })
}

/// Another element type, where `out=` is a sparse array; else MXNet's result is dense.
pub(super) static TYPES: SparseFamily = SparseFamily {
    names: &["Cast"],
    choose: |query| match query.wanted {
        Some(wanted) if wanted == query.stored[0] => Choice::Kernel(wanted),
        _ => Choice::Warned,
    },
    run: super::elementwise::run_on_values,
};
