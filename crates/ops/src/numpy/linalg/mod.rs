//! Factorisations, inverses and norms of the matrices in the last two axes. All compute in double
//! precision.

pub mod cholesky;
pub mod norm;
pub mod solve;
pub mod svd;
pub mod tensorinv;
pub mod tensorsolve;

use crate::prelude::*;
use mxrt_engine::FailureKind;
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_kernels::{KernelError, Par, linalg};

pub(super) fn matrix_error(error: KernelError) -> OpError {
    OpError::new(FailureKind::Operator, error.to_string())
}

pub(super) fn no_matrices(name: &str, shape: &Shape) -> OpError {
    shape_error(format!("{name} has shape {shape}; expected matrices: 2 axes at least"))
}

/// The shape of an input that must hold square matrices.
pub(super) fn square(shapes: &Shapes<'_>, index: usize, name: &str) -> Result<Option<Shape>, OpError> {
    let Some(shape) = shapes.input(index) else { return Ok(None) };
    match shape[..] {
        [.., rows, columns] if rows == columns => Ok(Some(shape)),
        [.., _, _] => {
            Err(shape_error(format!("{name} has shape {shape}; expected square matrices in the last two axes")))
        }
        _ => Err(no_matrices(name, &shape)),
    }
}

pub(super) fn order(signature: &Signature<'_>) -> usize {
    signature.inputs[0].shape.last().copied().unwrap_or(0)
}

pub(super) fn check_wide(dtype: DType) -> Result<(), OpError> {
    match dtype {
        DType::F32 | DType::F64 => Ok(()),
        other => Err(unsupported_dtype(other, "float32 and float64")),
    }
}

/// All arrays have one of the two types.
fn wide_floats(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    dtypes.inputs[0].map_or(Ok(()), check_wide)?;
    dtypes.all_same()
}

/// float32 where all inputs are, else float64.
pub(super) fn float_result(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(known) = dtypes.inputs.iter().copied().collect::<Option<Vec<DType>>>() else { return Ok(()) };
    if known.contains(&DType::F16) {
        return Err(unsupported_dtype(DType::F16, "float32, float64 and whole numbers"));
    }
    known.iter().try_for_each(|dtype| check_numeric(*dtype))?;
    let dtype = if known.iter().all(|dtype| *dtype == DType::F32) { DType::F32 } else { DType::F64 };
    (0..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, dtype))
}

/// The solution with the axes of the first input in this order, as matrices of order `n`.
fn bind_solution(n: usize, columns: usize, axes: Vec<usize>, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    Ok(kernel_fn(signature, move |call| {
        let (given, b) = (floats(call.par, &call.inputs[0])?, floats(call.par, &call.inputs[1])?);
        let steps = contiguous(&shape);
        let mut a = Scratch::<f64>::new(call.par, given.len());
        let strides: Vec<isize> = axes.iter().map(|axis| steps[*axis]).collect();
        let extents: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
        copy_strided(call.par, &given, 0, &strides, &extents, &mut a).map_err(kernel_error)?;
        let mut out = Scratch::<f64>::new(call.par, b.len());
        linalg::solve(call.par, n, columns, &a, &b, &mut out).map_err(matrix_error)?;
        store_floats(&out, &mut call.outputs[0])
    }))
}

/// The matrices transposed.
pub(super) fn transposed(par: &dyn Par, a: &[f64], [m, n]: [usize; 2]) -> Scratch<f64> {
    let places = (0..a.len()).map(|i| (i / (m * n), i % (m * n)));
    Scratch::collect(par, a.len(), places.map(|(block, i)| a[block * m * n + i % m * n + i / m]))
}
