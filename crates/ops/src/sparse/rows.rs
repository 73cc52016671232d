//! Parts of sparse arrays, and sparse arrays made of parts.

use super::call::{SparseCall, copy_values, dense_out, matrix_shape, value_bytes};
use super::{Choice, Query, SparseFamily};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_tensor::StorageType::{Csr, Default as Dense, RowSparse};
use mxrt_tensor::{Shape, StoredInput, StoredOutput, TensorType};
use std::ops::Range;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_sparse_retain",
    doc: "The rows of a row_sparse array that indices name; all others become zero.",
    inputs: Inputs::Fixed(&["data", "indices"]),
    infer_shape: |shapes| {
        let data = shapes.inputs[0].clone();
        shapes.set_output(0, data)
    },
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(0, "data", dtype)?;
        dtypes.set_output(0, dtype)
    },
    bind: |_, signature| {
        let rows = signature.inputs[0].shape.first().copied().unwrap_or(0);
        check_integers("indices", signature.inputs[1].dtype)?;
        Ok(kernel_fn(signature, move |call| {
            let ([data, indices], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            let width = value_bytes(data);
            out.bytes_mut().fill(0);
            for row in wanted_rows(call.par, &integers(call.par, indices)?, rows)?.iter().map(|row| *row as usize) {
                let bytes = row * width..(row + 1) * width;
                out.bytes_mut()[bytes.clone()].copy_from_slice(&data.bytes()[bytes]);
            }
            Ok(())
        }))
    },
    ignores_unknown_attrs: true,
    ..OpDef::BASE
}];

/// The rows that are named, rising and each once.
fn wanted_rows<'a>(par: &'a dyn Par, indices: &[i64], rows: usize) -> Result<ScratchList<'a, i64>, OpError> {
    if let Some(row) = indices.iter().find(|row| usize::try_from(**row).map_or(true, |row| row >= rows)) {
        return Err(value_error(format!("row {row} is not in the array, which has {rows} rows")));
    }
    let mut wanted = ScratchList::new(par);
    wanted.extend_from_slice(indices);
    wanted.sort_distinct();
    Ok(wanted)
}

pub(super) static RETAIN: SparseFamily = SparseFamily {
    names: &["_sparse_retain"],
    choose: |query| match query.stored {
        [RowSparse, Dense] => Choice::Kernel(RowSparse),
        _ => Choice::Refused("retain takes a row_sparse array and dense row numbers"),
    },
    run: |call, output| {
        let data = call.rows(0)?;
        let mut wanted = wanted_rows(call.par, &integers(call.par, &call.dense(1)?)?, data.shape[0])?;
        // MXNet stores a row of zeros for one that is not stored, but none of an array that has none.
        if data.rows.is_empty() {
            wanted.clear();
        }
        let width = value_bytes(&data.values);
        call.store(output, &wanted, &[], |values| {
            values.bytes_mut().fill(0);
            if width > 0 {
                for (to, row) in values.bytes_mut().chunks_exact_mut(width).zip(wanted.iter()) {
                    if let Ok(i) = data.rows.binary_search(row) {
                        to.copy_from_slice(&data.values.bytes()[i * width..(i + 1) * width]);
                    }
                }
            }
            Ok(())
        })
    },
};

/// A part of a csr matrix whose rows and columns are consecutive.
pub(super) static SLICE: SparseFamily = SparseFamily {
    names: &["slice"],
    choose: |query| match query.stored {
        [Csr] if slice_ranges(query.attrs, &query.types[0].shape).is_some() => Choice::Kernel(Csr),
        _ => Choice::Warned,
    },
    run: |call, output| {
        let matrix = call.csr(0)?;
        let [rows, columns] = slice_ranges(call.attrs, matrix.shape).ok_or_else(wrong_arity)?;
        let (mut kept, mut pointers) = (ScratchList::new(call.par), ScratchList::new(call.par));
        pointers.push(0);
        let inside = |i: &usize| columns.contains(&(matrix.columns[*i] as usize));
        for row in rows {
            kept.extend(matrix.row(row).filter(inside));
            pointers.push(kept.len() as i64);
        }
        let indices = kept.iter().map(|i| matrix.columns[*i] - columns.start as i64);
        let indices = Scratch::collect(call.par, kept.len(), indices);
        call.store(output, &indices, &pointers, |values| {
            let size = values.dtype.size();
            copy_values(matrix.values.bytes(), values.bytes_mut(), size, kept.iter().copied());
            Ok(())
        })
    },
};

/// The rows and columns of a slice of steps 1.
fn slice_ranges(attrs: &Attrs, shape: &Shape) -> Option<[Range<usize>; 2]> {
    let steps = attrs.sparse_ints("step").iter().all(|step| step.is_none_or(|step| step == 1));
    let (begin, end) = (attrs.sparse_ints("begin"), attrs.sparse_ints("end"));
    let range = |axis: usize| {
        let extent = *shape.get(axis)? as i64;
        let bound = |given: &[Option<i64>], otherwise: i64| match given.get(axis).copied().flatten() {
            Some(n) => (if n < 0 { n + extent } else { n }).clamp(0, extent),
            None => otherwise,
        };
        let (first, last) = (bound(begin, 0), bound(end, extent));
        Some(first as usize..last.max(first) as usize)
    };
    (steps && shape.len() == 2).then(|| Some([range(0)?, range(1)?])).flatten()
}

/// csr matrices one below the other.
pub(super) static CONCAT: SparseFamily = SparseFamily {
    names: &["Concat"],
    choose: |query| {
        let all = query.stored.iter().all(|stored| *stored == Csr);
        if all && matches!(query.attrs.int("dim"), 0 | -2) { Choice::Kernel(Csr) } else { Choice::Warned }
    },
    run: |call, output| {
        let (mut columns, mut pointers) = (ScratchList::new(call.par), ScratchList::new(call.par));
        pointers.push(0);
        for i in 0..call.inputs.len() {
            let (matrix, before) = (call.csr(i)?, columns.len() as i64);
            columns.extend_from_slice(matrix.columns);
            pointers.extend(matrix.pointers.iter().skip(1).map(|end| before + end));
        }
        call.store(output, &columns, &pointers, |values| {
            let mut at = 0;
            for input in call.inputs {
                let from = input.values();
                values.bytes_mut()[at..at + from.bytes().len()].copy_from_slice(from.bytes());
                at += from.bytes().len();
            }
            Ok(())
        })
    },
};

/// The sum of row_sparse arrays: rows that any of them stores.
pub(super) static SUM_OF_ARRAYS: SparseFamily = SparseFamily {
    names: &["add_n"],
    choose: |query: &Query<'_>| {
        let all_rows = query.stored.iter().all(|stored| *stored == RowSparse);
        let float = query.types.iter().all(|t| t.dtype.is_float());
        match query.stored {
            _ if all_rows && float => Choice::Kernel(RowSparse),
            _ if query.stored.contains(&Dense) => Choice::Dense,
            _ => Choice::Warned,
        }
    },
    run: |call, output| {
        let mut rows = ScratchList::new(call.par);
        for i in 0..call.inputs.len() {
            rows.extend_from_slice(call.rows(i)?.rows);
        }
        rows.sort_distinct();
        call.store(output, &rows, &[], |values| {
            let width = values.shape.iter().skip(1).product::<usize>();
            let mut sums = Scratch::filled(call.par, values.len(), 0.0);
            for i in 0..call.inputs.len() {
                let array = call.rows(i)?;
                let added = floats(call.par, &array.values)?;
                for (from, row) in array.rows.iter().enumerate() {
                    let to = rows.binary_search(row).unwrap_or(0) * width;
                    let added = &added[from * width..(from + 1) * width];
                    sums[to..to + width].iter_mut().zip(added).for_each(|(sum, v)| *sum += v);
                }
            }
            store_floats(&sums, values)
        })
    },
};

/// Rows of a csr matrix by number.
pub(super) fn pick_rows(call: &SparseCall<'_>, output: &mut StoredOutput<'_>, rows: &[usize]) -> Result<(), OpError> {
    let matrix = call.csr(0)?;
    let (mut kept, mut pointers) = (ScratchList::new(call.par), ScratchList::new(call.par));
    pointers.push(0);
    for row in rows {
        kept.extend(matrix.row(*row));
        pointers.push(kept.len() as i64);
    }
    let columns = Scratch::collect(call.par, kept.len(), kept.iter().map(|i| matrix.columns[*i]));
    call.store(output, &columns, &pointers, |values| {
        let size = values.dtype.size();
        copy_values(matrix.values.bytes(), values.bytes_mut(), size, kept.iter().copied());
        Ok(())
    })
}

/// A dense output that begins as another array.
pub(super) fn start_as(output: &mut StoredOutput<'_>, input: StoredInput<'_>) -> Result<(), OpError> {
    let StoredInput::Dense(tensor) = input else { return Err(wrong_arity()) };
    dense_out(output)?.bytes_mut().copy_from_slice(tensor.bytes());
    Ok(())
}

/// Rows and columns of the matrix that an operator takes first.
pub(super) fn first_matrix(types: &[TensorType]) -> Option<[usize; 2]> {
    types.first().and_then(|t| matrix_shape(&t.shape).ok())
}
