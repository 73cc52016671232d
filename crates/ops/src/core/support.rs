//! What operators share: errors, axes, typed access, choice of element type.

use super::{Attrs, KernelCall, Shapes, Signature};
use bytemuck::Pod;
use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::{Element, KernelError};
use mxrt_tensor::{DType, PartialShape, Shape, TensorMut, TensorRef};
use smallvec::SmallVec;
use std::borrow::Cow;

/// A list of axes or extents.
pub(crate) type Dims = SmallVec<[usize; 6]>;

/// Runs the expression with `$t` standing for an unsigned type of the same size: for kernels that only move elements.
macro_rules! dispatch_size {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}
pub(crate) use dispatch_size;

/// Runs the expression with `$t` standing for the Rust type of `$dtype`, out of a named set of types.
macro_rules! dispatch {
    ($dtype:expr, all, $t:ident => $body:expr) => {
        $crate::core::dispatch!(@ $dtype, "float32, float64, float16, uint8, int8, int32, int64 and bool", $t => $body,
            F32 f32, F64 f64, F16 half::f16, U8 u8, I8 i8, I32 i32, I64 i64, Bool mxrt_kernels::Bool)
    };
    ($dtype:expr, numeric, $t:ident => $body:expr) => {
        $crate::core::dispatch!(@ $dtype, "float32, float64, float16, uint8, int8, int32 and int64", $t => $body,
            F32 f32, F64 f64, F16 half::f16, U8 u8, I8 i8, I32 i32, I64 i64)
    };
    ($dtype:expr, whole, $t:ident => $body:expr) => {
        $crate::core::dispatch!(@ $dtype, "uint8, int8, int32, int64 and bool", $t => $body,
            U8 u8, I8 i8, I32 i32, I64 i64, Bool mxrt_kernels::Bool)
    };
    ($dtype:expr, float, $t:ident => $body:expr) => {
        $crate::core::dispatch!(@ $dtype, "float32, float64 and float16", $t => $body,
            F32 f32, F64 f64, F16 half::f16)
    };
    ($dtype:expr, wide, $t:ident => $body:expr) => {
        $crate::core::dispatch!(@ $dtype, "float32 and float64", $t => $body, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $known:expr, $t:ident => $body:expr, $($variant:ident $type:ty),*) => {
        match $dtype {
            $(mxrt_tensor::DType::$variant => { type $t = $type; $body })*
            other => Err($crate::core::unsupported_dtype(other, $known)),
        }
    };
}
pub(crate) use dispatch;

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

/// What a kernel found wrong with values, as an operator's error.
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

/// The axis counted from the front; negative ones count from the end.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Result<usize, OpError> {
    let from_front = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    from_front.and_then(|a| usize::try_from(a).ok()).filter(|a| *a < rank).ok_or_else(|| {
        value_error(format!(
            "axis {axis} exceeds the input dimension of {rank}: expected {} <= axis < {rank}",
            -(rank as i64)
        ))
    })
}

/// Several different axes, counted from the front, in ascending order.
pub(crate) fn resolve_axes(axes: &[i64], rank: usize) -> Result<Dims, OpError> {
    let mut resolved = axes.iter().map(|a| resolve_axis(*a, rank)).collect::<Result<Dims, OpError>>()?;
    resolved.sort_unstable();
    if resolved.windows(2).any(|pair| pair[0] == pair[1]) {
        let list: Vec<String> = axes.iter().map(i64::to_string).collect();
        return Err(value_error(format!("axes ({}) name one axis more than once", list.join(", "))));
    }
    Ok(resolved)
}

/// Extents given as an attribute, none of which may be negative.
pub(crate) fn extents(name: &str, values: &[i64]) -> Result<Dims, OpError> {
    values
        .iter()
        .map(|v| usize::try_from(*v).map_err(|_| value_error(format!("{name} has the negative extent {v}"))))
        .collect()
}

/// Number of elements, or an error when it does not fit.
pub(crate) fn checked_product(dims: &[usize]) -> Result<usize, OpError> {
    dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).ok_or_else(|| {
        let list: Vec<String> = dims.iter().map(usize::to_string).collect();
        OpError::new(
            FailureKind::Memory,
            format!("an array of shape ({}) is larger than the address space", list.join(", ")),
        )
    })
}

/// The elements of an array whose dtype `bind` has chosen `T` for.
pub(crate) fn elements<'a, T: Pod>(array: &TensorRef<'a>) -> Result<&'a [T], OpError> {
    bytemuck::try_cast_slice(array.bytes()).map_err(|_| misread(array.dtype, array.shape))
}

/// The same for an output.
pub(crate) fn elements_mut<'a, T: Pod>(array: &'a mut TensorMut<'_>) -> Result<&'a mut [T], OpError> {
    let (dtype, shape) = (array.dtype, array.shape);
    bytemuck::try_cast_slice_mut(array.bytes_mut()).map_err(|_| misread(dtype, shape))
}

fn misread(dtype: DType, shape: &Shape) -> OpError {
    type_error(format!("an array of {dtype}{shape} cannot be read as elements of the kernel that was bound"))
}

/// Scratch memory of a call as elements of `T`.
pub(crate) fn scratch<T: Pod>(bytes: &mut [u8], len: usize) -> Result<&mut [T], OpError> {
    if len == 0 {
        return Ok(&mut []);
    }
    let bytes = bytes.get_mut(..len * size_of::<T>()).ok_or_else(|| value_error("the workspace is too small"))?;
    bytemuck::try_cast_slice_mut(bytes).map_err(|_| value_error("the workspace is not aligned"))
}

/// Whole numbers out of an array of any numeric dtype; fractions are cut off. Kernels that take indices are compiled for
/// these alone.
pub(crate) fn integers<'a>(array: &TensorRef<'a>) -> Result<Cow<'a, [i64]>, OpError> {
    if array.dtype == DType::I64 {
        return elements(array).map(Cow::Borrowed);
    }
    dispatch!(array.dtype, numeric, T => Ok(Cow::Owned(elements::<T>(array)?.iter().map(|v| v.to_i64()).collect())))
}

/// What [`integers`] accepts, asked before anything runs.
pub(crate) fn check_integers(name: &str, dtype: DType) -> Result<(), OpError> {
    let numeric =
        matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::U8 | DType::I8 | DType::I32 | DType::I64);
    if numeric { Ok(()) } else { Err(type_error(format!("{name} has dtype {dtype}; indices need a numeric dtype"))) }
}

/// Packed weights as elements of `T`.
pub(crate) fn packed_elements<T: Pod>(bytes: &[u8], len: usize) -> Result<&[T], OpError> {
    let bytes = bytes.get(..len * size_of::<T>()).ok_or_else(|| value_error("the packed weights are too short"))?;
    bytemuck::try_cast_slice(bytes).map_err(|_| value_error("the packed weights are not aligned"))
}

/// A call with other arrays than `bind` was told: a defect of the caller, reported instead of a panic.
pub(crate) fn wrong_arity() -> OpError {
    OpError::new(FailureKind::Operator, "the kernel was called with another number of arrays than it was bound for")
}

/// `by_rows` of operators that treat the rows of their data alone and need the other inputs as a whole.
pub(crate) fn rows_of_data(_: &Attrs, _: &Signature<'_>, divided: &[bool]) -> bool {
    divided.first() == Some(&true) && !divided.get(1..).unwrap_or(&[]).contains(&true)
}

/// Whether an axis, counted from either end of input 0, is not that of the rows.
pub(crate) fn is_within_rows(axis: i64, signature: &Signature<'_>) -> bool {
    let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
    resolve_axis(axis, rank).is_ok_and(|axis| axis > 0)
}

/// Copies input 0 to output 0: for operators that only change the shape.
pub(crate) fn copy_first(call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
    call.outputs[0].bytes_mut().copy_from_slice(call.inputs[0].bytes());
    Ok(())
}

impl Shapes<'_> {
    /// The rank of an input, if known.
    pub(crate) fn rank(&self, index: usize) -> Option<usize> {
        self.inputs.get(index).and_then(PartialShape::rank)
    }

    /// What is known of the extents of an input, as a list to be worked on.
    pub(crate) fn dims(&self, index: usize) -> Option<SmallVec<[Option<usize>; 6]>> {
        self.inputs.get(index).and_then(PartialShape::dims).map(SmallVec::from_slice)
    }

    /// Input and output `0` have one shape, whatever the other inputs have.
    pub(crate) fn same_as_first(&mut self) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (self.inputs.first_mut(), self.outputs.first_mut()) else { return Ok(()) };
        PartialShape::unify(input, output).map_err(|e| shape_error(format!("input and output differ: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_both_ends_and_no_further() {
        assert_eq!(resolve_axis(-1, 3).ok(), Some(2));
        assert_eq!(resolve_axis(2, 3).ok(), Some(2));
        for axis in [3, -4, i64::MIN, i64::MAX] {
            assert!(resolve_axis(axis, 3).is_err(), "{axis}");
        }
        assert!(resolve_axes(&[0, -3], 3).is_err_and(|e| e.message.contains("more than once")));
        assert_eq!(resolve_axes(&[2, 0], 3).ok().map(|a| a.to_vec()), Some(vec![0, 2]));
    }

    #[test]
    fn sizes_that_overflow_are_errors() {
        assert!(checked_product(&[usize::MAX, 2]).is_err());
        assert_eq!(checked_product(&[3, 4]).ok(), Some(12));
    }
}
