//! Linear algebra on the matrices in the last two axes, in float32 and float64.

pub mod det;
mod diagonal;
pub mod extractdiag;
pub mod fft;
pub mod gelqf;
pub mod gemm;
pub mod ifft;
pub mod inverse;
pub mod khatri_rao;
pub mod makediag;
pub mod potrf;
pub mod potri;
pub mod slogdet;
pub mod sumlogdiag;
pub mod syevd;
pub mod syrk;
pub mod triangle;
pub mod triangular;

use crate::prelude::*;
use crate::shape::PartialDims;
use mxrt_engine::FailureKind;
use mxrt_kernels::KernelError;

/// The axes before the matrices, and what is known of rows and columns.
type Matrices = (PartialDims, Option<usize>, Option<usize>);

/// The known extents of an input that must hold matrices; `None` if none is known.
fn matrices(shapes: &Shapes<'_>, index: usize, name: &str) -> Result<Option<Matrices>, OpError> {
    let Some(dims) = shapes.dims(index) else { return Ok(None) };
    match dims[..] {
        [ref batch @ .., rows, columns] => Ok(Some((batch.iter().copied().collect(), rows, columns))),
        _ => Err(shape_error(format!("{name} has shape {}; expected matrices: 2 axes at least", shapes.inputs[index]))),
    }
}

/// The known extents of square matrices: the axes before them and their order.
fn square_matrices(
    shapes: &Shapes<'_>,
    index: usize,
    name: &str,
) -> Result<Option<(PartialDims, Option<usize>)>, OpError> {
    match matrices(shapes, index, name)? {
        Some((_, Some(rows), Some(columns))) if rows != columns => Err(shape_error(format!(
            "{name} has shape {}; expected square matrices in the last two axes",
            shapes.inputs[index]
        ))),
        Some((batch, rows, columns)) => Ok(Some((batch, rows.or(columns)))),
        None => Ok(None),
    }
}

/// Input and output are square matrices of the same shape.
fn square_like_input(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.all_same()?;
    if let Some((mut dims, order)) = square_matrices(shapes, 0, "A")? {
        dims.extend([order, order]);
        shapes.set_input(0, "A", mxrt_tensor::PartialShape::from_dims(dims.iter().copied()))?;
        shapes.set_output(0, mxrt_tensor::PartialShape::from_dims(dims))?;
    }
    Ok(())
}

/// The form of a computation with matrices of float32 or float64.
fn form(form: MatrixForm, signature: &Signature<'_>) -> MaybeForm {
    for_wide(signature.inputs[0].dtype, KernelForm::Matrices(form))
}

/// A matrix that cannot be factorised, with the kind of a failed kernel as in MXNet.
fn matrix_error(error: KernelError) -> OpError {
    OpError::new(FailureKind::Operator, error.to_string())
}

/// Estimated nanoseconds of the multiply-adds.
fn cost_ns(multiply_adds: usize) -> u64 {
    1_000 + multiply_adds as u64 / 4
}

/// The order of the matrices.
fn order(signature: &Signature<'_>) -> usize {
    signature.inputs[0].shape.last().copied().unwrap_or(0)
}

/// Time of an operator that takes a multiply-add for each element and row.
fn cubic(signature: &Signature<'_>) -> u64 {
    cost_ns(signature.inputs[0].shape.size().saturating_mul(order(signature)))
}
