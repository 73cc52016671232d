//! Rows of sparse tables by number, and choices by a csr matrix.

use super::call::{dense_out, matrix_shape, value_bytes};
use super::cast::is_zero;
use super::rows::{first_matrix, pick_rows, start_as};
use super::{Choice, SparseFamily};
use crate::definition::wrong_arity;
use crate::execution::integers;
use mxrt_kernels::Scratch;
use mxrt_tensor::StorageType::{Csr, Default as Dense, RowSparse};

/// Rows of a row_sparse table. Rows that it does not store are zero.
pub(super) static EMBEDDING: SparseFamily = SparseFamily {
    names: &["Embedding", "_contrib_SparseEmbedding"],
    choose: |query| match query.stored {
        [Dense, RowSparse] => Choice::Kernel(Dense),
        _ => Choice::Warned,
    },
    run: |call, output| {
        let (numbers, table) = (call.dense(0)?, call.rows(1)?);
        let (width, last) = (value_bytes(&table.values), table.shape[0].saturating_sub(1) as i64);
        let out = dense_out(output)?.bytes_mut();
        out.fill(0);
        if width > 0 {
            for (to, number) in out.chunks_exact_mut(width).zip(integers(call.par, &numbers)?.iter()) {
                if let Ok(i) = table.rows.binary_search(&(*number).clamp(0, last)) {
                    to.copy_from_slice(&table.values.bytes()[i * width..(i + 1) * width]);
                }
            }
        }
        Ok(())
    },
};

/// Elements of one array where a csr matrix is not 0, else of another.
pub(super) static WHERE: SparseFamily = SparseFamily {
    names: &["where"],
    choose: |query| match (query.stored, query.types) {
        ([Csr, Dense, Dense], [condition, x, _]) if condition.shape == x.shape => Choice::Kernel(Dense),
        _ => Choice::Warned,
    },
    run: |call, output| {
        let [_, x, y] = call.inputs else { return Err(wrong_arity()) };
        start_as(output, *y)?;
        let (condition, x, out) = (call.csr(0)?, x.values(), dense_out(output)?);
        let ([_, columns], size) = (matrix_shape(condition.shape)?, x.dtype.size());
        let values = condition.values;
        let width = values.dtype.size();
        for (row, ends) in condition.pointers.windows(2).enumerate() {
            for i in ends[0] as usize..ends[1] as usize {
                if !is_zero(values.dtype, &values.bytes()[i * width..(i + 1) * width]) {
                    let at = (row * columns + condition.columns[i] as usize) * size;
                    out.bytes_mut()[at..at + size].copy_from_slice(&x.bytes()[at..at + size]);
                }
            }
        }
        Ok(())
    },
};

/// Rows of a csr matrix.
pub(super) static TAKE: SparseFamily = SparseFamily {
    names: &["take"],
    choose: |query| {
        let rows = first_matrix(query.types).is_some_and(|[rows, _]| rows > 0);
        let numbers = query.types.get(1).is_some_and(|t| t.shape.len() == 1);
        let plain = matches!(query.attrs.int("axis"), 0 | -2) && query.attrs.str("mode") != "raise";
        if query.stored == [Csr, Dense] && rows && numbers && plain { Choice::Kernel(Csr) } else { Choice::Warned }
    },
    run: |call, output| {
        let rows = call.csr(0)?.shape[0] as i64;
        let wraps = call.attrs.str("mode") == "wrap";
        let inside = |n: &i64| if wraps { n.rem_euclid(rows) } else { (*n).clamp(0, rows - 1) };
        let numbers = call.dense(1)?;
        let numbers = integers(call.par, &numbers)?;
        let picked = Scratch::collect(call.par, numbers.len(), numbers.iter().map(|n| inside(n) as usize));
        pick_rows(call, output, &picked)
    },
};
