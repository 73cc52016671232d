//! Functions of single elements: on the stored values, where what is not stored stays 0.

use super::call::{SparseCall, copy_values, matrix_shape, positions, value_bytes};
use super::cast::is_zero;
use super::{Choice, SparseFamily};
use crate::definition::wrong_arity;
use mxrt_engine::OpError;
use mxrt_kernels::{Par, Scratch, ScratchList};
use mxrt_tensor::StorageType::{Csr, Default as Dense, RowSparse};
use mxrt_tensor::{Shape, StoredInput, StoredOutput, TensorRef, TensorType};
use std::cmp::Ordering;

/// Functions that are 0 at 0.
pub(super) static UNARY: SparseFamily = SparseFamily {
    names: &[
        "abs",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "cbrt",
        "ceil",
        "degrees",
        "expm1",
        "fix",
        "floor",
        "log1p",
        "negative",
        "radians",
        "relu",
        "rint",
        "round",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
        "_copy",
        "BlockGrad",
        "make_loss",
        "_copyto",
    ],
    choose: |query| Choice::Kernel(query.stored[0]),
    run: run_on_values,
};

/// Zeros: nothing is stored.
pub(super) static ZEROS: SparseFamily = SparseFamily {
    names: &["zeros_like"],
    choose: |query| Choice::Kernel(query.stored[0]),
    run: |call, output| {
        let input = call.first()?;
        let rows = if input.storage() == Csr { input.shape()[0] + 1 } else { 0 };
        let pointers = Scratch::filled(call.par, rows, 0);
        call.store(output, &[], &pointers, |_| Ok(()))
    },
};

/// Operators with a number: those whose result is 0 at 0 keep the storage.
pub(super) static WITH_NUMBER: SparseFamily = SparseFamily {
    names: &[
        "_mul_scalar",
        "_div_scalar",
        "_plus_scalar",
        "_minus_scalar",
        "_equal_scalar",
        "_not_equal_scalar",
        "_greater_scalar",
        "_greater_equal_scalar",
        "_lesser_scalar",
        "_lesser_equal_scalar",
        "_rminus_scalar",
        "_scatter_plus_scalar",
        "_scatter_minus_scalar",
        "clip",
        "_contrib_quadratic",
    ],
    choose: |query| {
        let number = || query.attrs.float("scalar");
        let (keeps, otherwise) = match query.name {
            "_mul_scalar" | "_div_scalar" | "_scatter_plus_scalar" | "_scatter_minus_scalar" => (true, Choice::Dense),
            "_plus_scalar" | "_minus_scalar" => (number() == 0.0, Choice::Dense),
            "_equal_scalar" => (number() != 0.0, Choice::Warned),
            "_not_equal_scalar" => (number() == 0.0, Choice::Warned),
            "_greater_scalar" => (number() >= 0.0, Choice::Warned),
            "_greater_equal_scalar" => (number() > 0.0, Choice::Warned),
            "_lesser_scalar" => (number() <= 0.0, Choice::Warned),
            "_lesser_equal_scalar" => (number() < 0.0, Choice::Warned),
            "clip" => (query.attrs.float("a_min") <= 0.0 && query.attrs.float("a_max") >= 0.0, Choice::Warned),
            "_contrib_quadratic" => (query.stored == [Csr] && query.attrs.float("c") == 0.0, Choice::Warned),
            _ => (false, Choice::Dense),
        };
        if keeps { Choice::Kernel(query.stored[0]) } else { otherwise }
    },
    run: run_on_values,
};

/// Runs the kernel for dense arrays on the stored values.
pub(super) fn run_on_values(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let input = call.first()?;
    call.store_like(output, input, |values| call.on_values(&[input.values()], values))
}

/// Operators of two arrays of one storage type; positions of either count.
pub(super) static BINARY: SparseFamily = SparseFamily {
    names: &["elemwise_add", "elemwise_sub", "_maximum", "_minimum", "_hypot"],
    choose: |query| match query.stored {
        [Csr, Csr] => Choice::Kernel(Csr),
        [RowSparse, RowSparse] => Choice::Kernel(RowSparse),
        [Dense, _] | [_, Dense] if query.name.starts_with("elemwise") => Choice::Dense,
        _ => Choice::Warned,
    },
    run: run_merged,
};

/// The product, which is 0 where either is.
pub(super) static PRODUCT: SparseFamily = SparseFamily {
    names: &["elemwise_mul"],
    choose: |query| match query.stored {
        [Csr, Csr] => Choice::Kernel(Csr),
        [RowSparse, RowSparse] => Choice::Kernel(RowSparse),
        [Dense, sparse] | [sparse, Dense] => Choice::Kernel(*sparse),
        _ => Choice::Warned,
    },
    run: |call, output| match call.inputs {
        [StoredInput::Dense(_), _] | [_, StoredInput::Dense(_)] => run_picked(call, output),
        _ => run_merged(call, output),
    },
};

/// A csr matrix, and a dense array that is broadcast to it.
pub(super) static BROADCAST: SparseFamily = SparseFamily {
    names: &["broadcast_mul", "broadcast_div"],
    choose: |query| match (query.stored, query.types) {
        ([Csr, Dense], [matrix, other]) if stretches(&matrix.shape, &other.shape) => Choice::Kernel(Csr),
        _ => Choice::Warned,
    },
    run: run_picked,
};

/// Whether an array is broadcast to the shape of a matrix, which keeps its own.
fn stretches(matrix: &Shape, other: &Shape) -> bool {
    other.len() <= matrix.len() && matrix.iter().rev().zip(other.iter().rev()).all(|(m, n)| *n == *m || *n == 1)
}

/// The values of a dense array at the positions of a sparse one, and the operator on both.
fn run_picked(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let ([first, second], dense_first) = match call.inputs {
        [StoredInput::Dense(_), _] => ([call.inputs[1], call.inputs[0]], true),
        [_, _] => ([call.inputs[0], call.inputs[1]], false),
        _ => return Err(wrong_arity()),
    };
    let (stored, dense) = (first.values(), second.values());
    let mut picked = call.memory(&TensorType::new(dense.dtype, stored.shape.clone()))?;
    let width = value_bytes(&stored);
    let (from, mut view) = (dense.bytes(), picked.view_mut());
    let to = view.bytes_mut();
    match first {
        StoredInput::RowSparse(array) => copy_values(from, to, width, array.rows.iter().map(|row| *row as usize)),
        _ => {
            let places = places(call.par, first, dense.shape)?;
            copy_values(from, to, width, places.iter().copied());
        }
    }
    let picked = picked.view();
    let operands = if dense_first { [picked, stored] } else { [stored, picked] };
    call.store_like(output, first, |values| call.on_values(&operands, values))
}

/// Finds the element of an array that is broadcast to a csr matrix, for each value of the matrix.
fn places(par: &dyn Par, matrix: StoredInput<'_>, other: &Shape) -> Result<Scratch<usize>, OpError> {
    let ([_, columns], (indices, pointers)) = (matrix_shape(matrix.shape())?, positions(&matrix)?);
    let extent = |from_end: usize| other.len().checked_sub(from_end).map_or(1, |axis| other[axis]);
    let (down, across) = (extent(2), extent(1));
    let step = if across == columns && columns != 1 { 1 } else { 0 };
    let row_step = if down > 1 { across } else { 0 };
    let places = pointers.windows(2).enumerate().flat_map(|(row, ends)| {
        let stored = &indices[ends[0] as usize..ends[1] as usize];
        stored.iter().map(move |column| row * row_step + *column as usize * step)
    });
    Ok(Scratch::collect(par, indices.len(), places))
}

/// A position of the merged arrays, and where each of the two has its value.
type Merged = (i64, [Option<usize>; 2]);

/// Merges rising positions.
fn merge(out: &mut ScratchList<'_, Merged>, a: (&[i64], usize), b: (&[i64], usize)) {
    let (mut i, mut j) = (0, 0);
    while i < a.0.len() || j < b.0.len() {
        let order = match (a.0.get(i), b.0.get(j)) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let from_a = (order != Ordering::Greater).then_some(a.1 + i);
        let from_b = (order != Ordering::Less).then_some(b.1 + j);
        let position = if order == Ordering::Greater { b.0[j] } else { a.0[i] };
        out.push((position, [from_a, from_b]));
        i += usize::from(from_a.is_some());
        j += usize::from(from_b.is_some());
    }
}

/// Aligns the values of two arrays of one storage type and runs the operator on them. As in MXNet, a
/// csr result has no value that is 0.
fn run_merged(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let [a, b] = call.inputs else { return Err(wrong_arity()) };
    let ((rows_a, ends_a), (rows_b, ends_b)) = (positions(a)?, positions(b)?);
    let (mut merged, mut pointers) = (ScratchList::<Merged>::new(call.par), ScratchList::new(call.par));
    if ends_a.is_empty() {
        merge(&mut merged, (rows_a, 0), (rows_b, 0));
    } else {
        pointers.push(0);
        for (x, y) in ends_a.windows(2).zip(ends_b.windows(2)) {
            let part = |ends: &[i64]| ends[0] as usize..ends[1] as usize;
            let (in_a, in_b) = (part(x), part(y));
            merge(&mut merged, (&rows_a[in_a.clone()], in_a.start), (&rows_b[in_b.clone()], in_b.start));
            pointers.push(merged.len() as i64);
        }
    }
    let aligned = |side: usize, values: TensorRef<'_>| {
        let shape: Shape = [merged.len()].into_iter().chain(values.shape.iter().skip(1).copied()).collect();
        let mut memory = call.memory(&TensorType::new(values.dtype, shape))?;
        let width = value_bytes(&values);
        if width > 0 {
            let mut view = memory.view_mut();
            for (to, (_, from)) in view.bytes_mut().chunks_exact_mut(width).zip(merged.iter()) {
                if let Some(i) = from[side] {
                    to.copy_from_slice(&values.bytes()[i * width..(i + 1) * width]);
                }
            }
        }
        Ok::<_, OpError>(memory)
    };
    let (left, right) = (aligned(0, a.values())?, aligned(1, b.values())?);
    let operands = [left.view(), right.view()];
    let indices = Scratch::collect(call.par, merged.len(), merged.iter().map(|(position, _)| *position));
    if pointers.is_empty() {
        return call.store(output, &indices, &[], |values| call.on_values(&operands, values));
    }
    let StoredOutput::Sparse { tensor, .. } = output else { return Err(wrong_arity()) };
    let mut all = call.memory(&TensorType::new(tensor.dtype, [indices.len()]))?;
    call.on_values(&operands, &mut all.view_mut())?;
    store_without_zeros(call, output, (&indices, &pointers), all.view())
}

/// Stores a csr result without the values that are 0.
pub(super) fn store_without_zeros(
    call: &SparseCall<'_>,
    output: &mut StoredOutput<'_>,
    (columns, pointers): (&[i64], &[i64]),
    values: TensorRef<'_>,
) -> Result<(), OpError> {
    let size = values.dtype.size();
    let holds = |i: &usize| !is_zero(values.dtype, &values.bytes()[i * size..(i + 1) * size]);
    let (mut kept, mut ends) = (ScratchList::new(call.par), ScratchList::new(call.par));
    ends.push(0);
    for range in pointers.windows(2) {
        kept.extend((range[0] as usize..range[1] as usize).filter(holds));
        ends.push(kept.len() as i64);
    }
    let indices = Scratch::collect(call.par, kept.len(), kept.iter().map(|i| columns[*i]));
    call.store(output, &indices, &ends, |out| {
        copy_values(values.bytes(), out.bytes_mut(), size, kept.iter().copied());
        Ok(())
    })
}
