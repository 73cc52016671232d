//! Errors of operators, by kind.

use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::KernelError;
use mxrt_tensor::DType;

/// Shapes that do not fit.
pub(crate) fn shape_error(message: impl Into<String>) -> OpError {
    OpError::new(FailureKind::Shape, message)
}

/// A value that is not allowed.
pub(crate) fn value_error(message: impl Into<String>) -> OpError {
    OpError::new(FailureKind::Value, message)
}

/// An element type that is not allowed.
pub(crate) fn type_error(message: impl Into<String>) -> OpError {
    OpError::new(FailureKind::Type, message)
}

/// Something MXNet has and this build has not, or that neither has.
pub(crate) fn not_implemented(message: impl Into<String>) -> OpError {
    OpError::new(FailureKind::NotImplemented, message)
}

/// Converts a kernel's error about values to an operator's error.
pub(crate) fn kernel_error(error: KernelError) -> OpError {
    let kind = match error {
        KernelError::IndexOutOfRange { .. } => FailureKind::Index,
        _ => FailureKind::Value,
    };
    OpError::new(kind, error.to_string())
}

/// The dtype is not among those the operator computes in.
pub(crate) fn unsupported_dtype(dtype: DType, known: &str) -> OpError {
    type_error(format!("dtype {dtype} is not supported, only {known}; convert with astype"))
}

/// A call with other arrays than those given to `bind`: a defect of the caller, reported instead of
/// a panic.
pub(crate) fn wrong_arity() -> OpError {
    OpError::new(FailureKind::Operator, "the kernel was called with another number of arrays than it was bound for")
}
