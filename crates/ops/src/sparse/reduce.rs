//! Sums of sparse arrays, and counts of what is stored.

use super::call::{SparseCall, dense_out, matrix_shape};
use super::{Choice, SparseFamily};
use crate::math::reduce::{left_shape, reduced_axes};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Par;
use mxrt_tensor::StorageType::{Csr, Default as Dense, RowSparse};
use mxrt_tensor::{DType, PartialShape, Shape, StoredOutput, TensorMut, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_square_sum",
        doc: "The sum of squares over the axis 0 or 1 of a row_sparse matrix.",
        attrs: &[
            AttrDef::new("axis", AttrKind::OptShape, "None", "The axis to reduce: 0 or 1."),
            AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep reduced axes with size 1."),
            AttrDef::new("exclude", AttrKind::Bool, "False", "Reduce the axes that are not given."),
        ],
        infer_shape: |shapes| {
            let Some(dims) = shapes.dims(0) else { return Ok(()) };
            let reduced = reduced_axes(shapes.attrs, dims.len())?;
            shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
        },
        bind: |attrs, signature| {
            let shape = signature.inputs[0].shape.clone();
            let reduced: Vec<bool> = reduced_axes(attrs, shape.len())?.to_vec();
            check_float(signature.inputs[0].dtype)?;
            Ok(kernel_fn(signature, move |call| {
                let ([data], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
                let mut squares = floats(call.par, data)?;
                squares.iter_mut().for_each(|v| *v *= *v);
                store_floats(&dense_sums(call.par, &squares, &shape, &reduced), out)
            }))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_getnnz",
        doc: "The number of stored values of a csr matrix: of each row with axis=1, of each column with axis=0, of \
            all without.",
        attrs: &[AttrDef::new("axis", AttrKind::OptInt, "None", "0, 1 or None.")],
        infer_shape: |shapes| {
            let Some(dims) = shapes.dims(0) else { return Ok(()) };
            let [rows, columns] = dims[..] else { return Err(shape_error("data must be a csr matrix")) };
            let extent = match shapes.attrs.opt_int("axis") {
                None => Some(1),
                Some(0) => columns,
                Some(1) => rows,
                Some(axis) => return Err(value_error(format!("axis={axis} is not supported, only 0, 1 and None"))),
            };
            shapes.set_output(0, PartialShape::from_dims([extent]))
        },
        infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
        bind: |_, _| Err(not_implemented("data is dense, and getnnz counts the stored values of a csr matrix")),
        ..OpDef::BASE
    },
];

fn dense_sums(par: &dyn Par, values: &[f64], shape: &Shape, reduced: &[bool]) -> Scratch<f64> {
    let kept: Vec<usize> = shape.iter().zip(reduced).map(|(n, r)| if *r { 1 } else { *n }).collect();
    let mut sums = Scratch::filled(par, kept.iter().product(), 0.0);
    let strides = Shape::from(kept.clone()).strides();
    for (i, value) in values.iter().enumerate() {
        let (mut rest, mut at) = (i, 0);
        for axis in (0..shape.len()).rev() {
            at += if reduced[axis] { 0 } else { rest % shape[axis] * strides[axis] };
            rest /= shape[axis];
        }
        sums[at] += value;
    }
    sums
}

/// `sum` and `mean` over one axis of a csr matrix.
pub(super) static SUMS: SparseFamily = SparseFamily {
    names: &["sum", "mean"],
    choose: |query| {
        let one_axis = matches!(query.attrs.opt_ints("axis"), Some([-2..=1]));
        let plain = !query.attrs.bool("keepdims") && !query.attrs.bool("exclude");
        if query.stored == [Csr] && one_axis && plain { Choice::Kernel(Dense) } else { Choice::Warned }
    },
    run: |call, output| {
        let matrix = call.csr(0)?;
        let ([rows, columns], over_rows) = (matrix_shape(matrix.shape)?, reduces_rows(call.attrs));
        let out = dense_out(output)?;
        let place = |row: usize, i: usize| if over_rows { matrix.columns[i] as usize } else { row };
        let count = if over_rows { rows } else { columns };
        let mean = call.def.name == "mean";
        if out.dtype.is_float() {
            let mut sums = Scratch::filled(call.par, out.len(), 0.0);
            add_up(&floats(call.par, &matrix.values)?, matrix.pointers, place, &mut sums);
            if mean {
                sums.iter_mut().for_each(|sum| *sum /= count as f64);
            }
            return store_floats(&sums, out);
        }
        let mut sums = Scratch::filled(call.par, out.len(), Whole(0));
        let values = integers(call.par, &matrix.values)?;
        let values = Scratch::collect(call.par, values.len(), values.iter().map(|v| Whole(*v)));
        add_up(&values, matrix.pointers, place, &mut sums);
        let divisor = if mean { count.max(1) as i64 } else { 1 };
        let results = sums.iter().map(|sum| sum.0 / divisor);
        store_integers(&Scratch::collect(call.par, sums.len(), results), out)
    },
};

/// A whole number whose sums wrap around.
#[derive(Clone, Copy)]
struct Whole(i64);

impl std::ops::AddAssign for Whole {
    fn add_assign(&mut self, other: Whole) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

fn add_up<T: Copy + std::ops::AddAssign>(
    values: &[T],
    pointers: &[i64],
    place: impl Fn(usize, usize) -> usize,
    sums: &mut [T],
) {
    for (row, ends) in pointers.windows(2).enumerate() {
        (ends[0] as usize..ends[1] as usize).for_each(|i| sums[place(row, i)] += values[i]);
    }
}

fn reduces_rows(attrs: &Attrs) -> bool {
    matches!(attrs.opt_ints("axis"), Some([0 | -2]))
}

/// The norm of all elements.
pub(super) static NORM: SparseFamily = SparseFamily {
    names: &["norm"],
    choose: |query| {
        let all = query.attrs.opt_ints("axis").is_none_or(<[i64]>::is_empty);
        let float = query.types.iter().all(|t| t.dtype.is_float());
        let plain = query.attrs.opt_str("out_dtype").is_none_or(|dtype| dtype == "None");
        if all && float && plain && query.attrs.int("ord") == 2 { Choice::Kernel(Dense) } else { Choice::Warned }
    },
    run: |call, output| {
        let values = floats(call.par, &call.first()?.values())?;
        let squares: f64 = values.iter().fold(0.0, |sum, v| sum + v * v);
        store_floats(&[squares.sqrt()], dense_out(output)?)
    },
};

pub(super) static SQUARES: SparseFamily = SparseFamily {
    names: &["_square_sum"],
    choose: |query| match (query.stored, query.attrs.opt_ints("axis"), query.types) {
        ([RowSparse], Some([1]), [data]) if data.shape.len() == 2 && query.attrs.bool("keepdims") => {
            Choice::Kernel(RowSparse)
        }
        ([RowSparse], Some([0 | 1]), [data]) if data.shape.len() == 2 => Choice::Kernel(Dense),
        _ => Choice::Warned,
    },
    run: squares,
};

fn squares(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let data = call.rows(0)?;
    let [rows, width] = matrix_shape(data.shape)?;
    if call.attrs.opt_ints("axis") == Some(&[0]) {
        let mut sums = Scratch::filled(call.par, width, 0.0);
        for (i, value) in floats(call.par, &data.values)?.iter().enumerate() {
            sums[i % width.max(1)] += value * value;
        }
        return store_floats(&sums, dense_out(output)?);
    }
    let sums = row_squares(call.par, &data.values, width)?;
    match output {
        StoredOutput::Dense(out) => {
            let mut all = Scratch::filled(call.par, rows, 0.0);
            data.rows.iter().zip(sums.iter()).for_each(|(row, sum)| all[*row as usize] = *sum);
            store_floats(&all, out)
        }
        StoredOutput::Sparse { .. } => {
            call.store(output, data.rows, &[], |out: &mut TensorMut<'_>| store_floats(&sums, out))
        }
    }
}

fn row_squares(par: &dyn Par, values: &TensorRef<'_>, width: usize) -> Result<Scratch<f64>, OpError> {
    let values = floats(par, values)?;
    let sums = values.chunks_exact(width.max(1)).map(|row| row.iter().fold(0.0, |sum, v| sum + v * v));
    Ok(Scratch::collect(par, values.len() / width.max(1), sums))
}

pub(super) static COUNT: SparseFamily = SparseFamily {
    names: &["_contrib_getnnz"],
    choose: |query| match query.stored {
        [Csr] => Choice::Kernel(Dense),
        _ => Choice::Refused("getnnz counts the stored values of a csr matrix"),
    },
    run: |call, output| {
        let (matrix, out) = (call.csr(0)?, dense_out(output)?);
        let mut counts = Scratch::filled(call.par, out.len(), 0);
        match call.attrs.opt_int("axis") {
            None => counts[0] = matrix.columns.len() as i64,
            Some(0) => matrix.columns.iter().for_each(|column| counts[*column as usize] += 1),
            Some(_) => {
                matrix.pointers.windows(2).zip(counts.iter_mut()).for_each(|(ends, count)| *count = ends[1] - ends[0])
            }
        }
        store_integers(&counts, out)
    },
};
