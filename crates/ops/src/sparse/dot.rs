//! Products: `dot` and dense layers of a csr matrix.

use super::call::{SparseCall, dense_out, matrix_shape};
use super::{Choice, Query, SparseFamily};
use crate::definition::wrong_arity;
use crate::execution::{elements, elements_mut, floats, store_floats};
use mxrt_engine::OpError;
use mxrt_kernels::sparse::{Csr as Matrix, Number, csr_times_rows, rows_times_csr, transposed_csr_times_rows};
use mxrt_kernels::{Par, Scratch, ScratchList};
use mxrt_tensor::StorageType::{Csr, Default as Dense, RowSparse};
use mxrt_tensor::{CsrRef, DType, StorageType, StoredInput, StoredOutput, TensorMut, TensorRef, TensorType};

pub(super) static DOT: SparseFamily = SparseFamily { names: &["dot"], choose, run };

/// The storage of a product. A result that is asked for in another one is converted.
fn choose(query: &Query<'_>) -> Choice {
    let (transpose_a, transpose_b) = (query.attrs.bool("transpose_a"), query.attrs.bool("transpose_b"));
    let asked = query.attrs.opt_str("forward_stype").and_then(StorageType::from_name);
    let matrices = query.types.iter().all(|t| t.shape.len() == 2);
    let vector = query.types.get(1).is_some_and(|t| t.shape.len() == 1) && query.stored == [Csr, Dense];
    if transpose_b || !(matrices || vector) {
        return Choice::Warned;
    }
    match (query.stored, transpose_a) {
        ([Csr, Dense | RowSparse], false) => Choice::Kernel(Dense),
        ([Csr, Dense], true) if asked == Some(Dense) => Choice::Kernel(Dense),
        ([Csr, Dense | RowSparse], true) => Choice::Kernel(RowSparse),
        ([Dense, Csr], false) if asked == Some(Dense) => Choice::Kernel(Dense),
        ([Dense, Csr], false) => Choice::Kernel(Csr),
        _ => Choice::Warned,
    }
}

fn run(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    match call.first()?.values().dtype {
        DType::F32 => product::<f32>(call, output),
        DType::F64 => product::<f64>(call, output),
        _ => in_double(call, output),
    }
}

/// Values of the operands, and a place for those of the result.
struct Operands<'a, T> {
    a: &'a [T],
    b: &'a [T],
}

fn product<T: Number>(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let [a, b] = call.inputs else { return Err(wrong_arity()) };
    let operands = Operands { a: elements::<T>(&a.values())?, b: elements::<T>(&b.values())? };
    multiply(call, output, &operands, |_, values, run| {
        run(elements_mut::<T>(values)?);
        Ok(())
    })
}

/// Products of other numbers, in double precision.
fn in_double(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let [a, b] = call.inputs else { return Err(wrong_arity()) };
    let (a, b) = (floats(call.par, &a.values())?, floats(call.par, &b.values())?);
    multiply(call, output, &Operands { a: &a, b: &b }, |par, values, run| {
        let mut numbers = Scratch::filled(par, values.len(), 0.0);
        run(&mut numbers);
        store_floats(&numbers, values)
    })
}

type Store<T> = fn(&dyn Par, &mut TensorMut<'_>, &dyn Fn(&mut [T])) -> Result<(), OpError>;

fn multiply<T: Number>(
    call: &SparseCall<'_>,
    output: &mut StoredOutput<'_>,
    values: &Operands<'_, T>,
    store: Store<T>,
) -> Result<(), OpError> {
    match (call.inputs, call.attrs.bool("transpose_a")) {
        ([StoredInput::Csr(a), b], false) => {
            let (a, width) = (with_values(*a, values.a), columns_of(b));
            let stored = stored_rows(b);
            store(call.par, dense_out(output)?, &|out| csr_times_rows(call.par, a, values.b, width, &stored, out))
        }
        ([StoredInput::Csr(a), b], true) => transposed(call, output, (*a, b), values, store),
        ([StoredInput::Dense(a), StoredInput::Csr(b)], false) => dense_times_csr(call, output, (a, *b), values, store),
        _ => Err(wrong_arity()),
    }
}

fn with_values<'a, T>(matrix: CsrRef<'a>, values: &'a [T]) -> Matrix<'a, T> {
    Matrix { values, columns: matrix.columns, pointers: matrix.pointers }
}

/// Elements of a row of the right operand.
fn columns_of(b: &StoredInput<'_>) -> usize {
    b.shape().iter().skip(1).product()
}

/// Finds where a row of the right operand is stored.
fn stored_rows<'a>(b: &StoredInput<'a>) -> impl Fn(i64) -> Option<usize> + Sync + use<'a> {
    let rows = match b {
        // Rows that are all stored are in order.
        StoredInput::RowSparse(array) => Some(array.rows).filter(|rows| rows.len() < array.shape[0]),
        _ => None,
    };
    move |row| match rows {
        Some(rows) => rows.binary_search(&row).ok(),
        None => usize::try_from(row).ok(),
    }
}

fn transposed<T: Number>(
    call: &SparseCall<'_>,
    output: &mut StoredOutput<'_>,
    (a, b): (CsrRef<'_>, &StoredInput<'_>),
    values: &Operands<'_, T>,
    store: Store<T>,
) -> Result<(), OpError> {
    let (matrix, width, stored) = (with_values(a, values.a), columns_of(b), stored_rows(b));
    let stored = |row: usize| stored(row as i64);
    if let StoredOutput::Dense(out) = output {
        let place = |column: i64| usize::try_from(column).ok();
        return store(call.par, out, &|out| transposed_csr_times_rows(matrix, values.b, width, stored, place, out));
    }
    // The rows of the result are the columns that some row of both operands has.
    let used = (0..matrix.rows()).filter(|row| stored(*row).is_some());
    let mut rows = ScratchList::new(call.par);
    used.for_each(|row| rows.extend_from_slice(&a.columns[matrix.row(row)]));
    rows.sort_distinct();
    let place = |column: i64| rows.binary_search(&column).ok();
    call.store(output, &rows, &[], |to| {
        store(call.par, to, &|out| transposed_csr_times_rows(matrix, values.b, width, stored, place, out))
    })
}

/// Multiplies. As in MXNet, each row of a csr result has all columns of which the right operand has
/// a value.
fn dense_times_csr<T: Number>(
    call: &SparseCall<'_>,
    output: &mut StoredOutput<'_>,
    (a, b): (&TensorRef<'_>, CsrRef<'_>),
    values: &Operands<'_, T>,
    store: Store<T>,
) -> Result<(), OpError> {
    let ([rows, depth], [_, width]) = (matrix_shape(a.shape)?, matrix_shape(b.shape)?);
    let matrix = with_values(b, values.b);
    if let StoredOutput::Dense(out) = output {
        let places = Scratch::collect(call.par, b.columns.len(), b.columns.iter().map(|column| *column as usize));
        return store(call.par, out, &|out| rows_times_csr(call.par, values.a, depth, matrix, &places, width, out));
    }
    let mut used = ScratchList::new(call.par);
    used.extend_from_slice(b.columns);
    used.sort_distinct();
    let place = |column: &i64| used.binary_search(column).unwrap_or(0);
    let places = Scratch::collect(call.par, b.columns.len(), b.columns.iter().map(place));
    let columns = (0..rows).flat_map(|_| used.iter().copied());
    let columns = Scratch::collect(call.par, rows.saturating_mul(used.len()), columns);
    let pointers = Scratch::collect(call.par, rows + 1, (0..=rows).map(|row| (row * used.len()) as i64));
    call.store(output, &columns, &pointers, |to| {
        store(call.par, to, &|out| rows_times_csr(call.par, values.a, depth, matrix, &places, used.len(), out))
    })
}

/// A dense layer of a csr matrix: `data · weightᵀ + bias`.
pub(super) static DENSE_LAYER: SparseFamily = SparseFamily {
    names: &["FullyConnected"],
    choose: |query| match query.stored.split_first() {
        Some((Csr, rest)) if rest.iter().all(|s| *s == Dense) && is_float(query.types) => Choice::Kernel(Dense),
        _ => Choice::Warned,
    },
    run: |call, output| {
        let out = dense_out(output)?;
        match out.dtype {
            DType::F32 => layer::<f32>(call, out),
            DType::F64 => layer::<f64>(call, out),
            _ => Err(wrong_arity()),
        }
    },
};

fn is_float(types: &[TensorType]) -> bool {
    types.iter().all(|t| matches!(t.dtype, DType::F32 | DType::F64))
}

fn layer<T: Number>(call: &SparseCall<'_>, out: &mut TensorMut<'_>) -> Result<(), OpError> {
    let (data, weight) = (call.csr(0)?, call.dense(1)?);
    let [units, depth] = matrix_shape(weight.shape)?;
    let (values, weight) = (elements::<T>(&data.values)?, elements::<T>(&weight)?);
    let bias = call.inputs.get(2).map(|_| call.dense(2)).transpose()?;
    let bias = bias.as_ref().map(elements::<T>).transpose()?;
    for (row, out) in elements_mut::<T>(out)?.chunks_exact_mut(units.max(1)).enumerate() {
        let stored = data.row(row);
        for (unit, out) in out.iter_mut().enumerate() {
            let weight = &weight[unit * depth..(unit + 1) * depth];
            let mut sum = T::ZERO;
            for (value, column) in values[stored.clone()].iter().zip(&data.columns[stored.clone()]) {
                sum += *value * weight[*column as usize];
            }
            if let Some(bias) = bias {
                sum += bias[unit];
            }
            *out = sum;
        }
    }
    Ok(())
}
