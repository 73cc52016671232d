//! Typed access to the bytes of arrays, and the choice of a kernel by element type.

use super::KernelCall;
use crate::definition::{type_error, value_error};
use bytemuck::Pod;
use mxrt_engine::OpError;
use mxrt_kernels::{Element, Par, ReadElements, Scratch};
use mxrt_tensor::{DType, Shape, TensorMut, TensorRef};

/// Runs the expression with `$t` standing for an unsigned type of the same size, for kernels that
/// only move elements.
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

/// Runs the expression with `$t` standing for the Rust type of `$dtype`, from a named set of types.
macro_rules! dispatch {
    ($dtype:expr, all, $t:ident => $body:expr) => {
        $crate::prelude::dispatch!(@ $dtype, "float32, float64, float16, uint8, int8, int32, int64 and bool", $t => $body,
            F32 f32, F64 f64, F16 half::f16, U8 u8, I8 i8, I32 i32, I64 i64, Bool mxrt_kernels::Bool)
    };
    ($dtype:expr, numeric, $t:ident => $body:expr) => {
        $crate::prelude::dispatch!(@ $dtype, "float32, float64, float16, uint8, int8, int32 and int64", $t => $body,
            F32 f32, F64 f64, F16 half::f16, U8 u8, I8 i8, I32 i32, I64 i64)
    };
    ($dtype:expr, whole, $t:ident => $body:expr) => {
        $crate::prelude::dispatch!(@ $dtype, "uint8, int8, int32, int64 and bool", $t => $body,
            U8 u8, I8 i8, I32 i32, I64 i64, Bool mxrt_kernels::Bool)
    };
    ($dtype:expr, float, $t:ident => $body:expr) => {
        $crate::prelude::dispatch!(@ $dtype, "float32, float64 and float16", $t => $body,
            F32 f32, F64 f64, F16 half::f16)
    };
    ($dtype:expr, wide, $t:ident => $body:expr) => {
        $crate::prelude::dispatch!(@ $dtype, "float32 and float64", $t => $body, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $known:expr, $t:ident => $body:expr, $($variant:ident $type:ty),*) => {
        match $dtype {
            $(mxrt_tensor::DType::$variant => { type $t = $type; $body })*
            other => Err($crate::prelude::unsupported_dtype(other, $known)),
        }
    };
}
pub(crate) use dispatch;

/// The elements of an array for whose dtype `bind` has chosen `T`.
pub(crate) fn elements<'a, T: Pod>(array: &TensorRef<'a>) -> Result<&'a [T], OpError> {
    // Memory without elements need not be aligned.
    if array.bytes().is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(array.bytes()).map_err(|_| misread(array.dtype, array.shape))
}

/// The elements of an output for whose dtype `bind` has chosen `T`.
pub(crate) fn elements_mut<'a, T: Pod>(array: &'a mut TensorMut<'_>) -> Result<&'a mut [T], OpError> {
    let (dtype, shape) = (array.dtype, array.shape);
    if array.bytes_mut().is_empty() {
        return Ok(&mut []);
    }
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

/// Reads whole numbers from an array of any numeric dtype; fractions are cut off. Kernels that take
/// indices are compiled for these alone.
pub(crate) fn integers<'a>(par: &dyn Par, array: &TensorRef<'a>) -> Result<ReadElements<'a, i64>, OpError> {
    if array.dtype == DType::I64 {
        return elements(array).map(ReadElements::Borrowed);
    }
    dispatch!(array.dtype, numeric, T => {
        Ok(ReadElements::Made(Scratch::map(par, elements::<T>(array)?, T::to_i64)))
    })
}

/// Reads the elements of an array of any numeric dtype in double precision, for kernels that are
/// compiled for these alone.
pub(crate) fn floats(par: &dyn Par, array: &TensorRef<'_>) -> Result<Scratch<f64>, OpError> {
    dispatch!(array.dtype, numeric, T => {
        Ok(Scratch::map(par, elements::<T>(array)?, T::to_f64))
    })
}

/// Writes numbers in the dtype of the output.
pub(crate) fn store_floats(numbers: &[f64], out: &mut TensorMut<'_>) -> Result<(), OpError> {
    dispatch!(out.dtype, numeric, T => {
        elements_mut::<T>(out)?.iter_mut().zip(numbers).for_each(|(out, v)| *out = T::from_f64(*v));
        Ok(())
    })
}

/// Writes whole numbers in the dtype of the output.
pub(crate) fn store_integers(numbers: &[i64], out: &mut TensorMut<'_>) -> Result<(), OpError> {
    dispatch!(out.dtype, numeric, T => {
        elements_mut::<T>(out)?.iter_mut().zip(numbers).for_each(|(out, v)| *out = T::from_i64(*v));
        Ok(())
    })
}

/// Fails for dtypes whose elements no kernel computes with.
pub(crate) fn check_known(dtype: DType) -> Result<(), OpError> {
    dispatch!(dtype, all, T => {
        let _ = T::ZERO;
        Ok(())
    })
}

/// Fails for dtypes that [`floats`], [`store_floats`] and [`store_integers`] do not accept.
pub(crate) fn check_numeric(dtype: DType) -> Result<(), OpError> {
    dispatch!(dtype, numeric, T => {
        let _ = T::ZERO;
        Ok(())
    })
}

/// Fails for dtypes that are not of floating point.
pub(crate) fn check_float(dtype: DType) -> Result<(), OpError> {
    dispatch!(dtype, float, T => {
        let _ = T::ZERO;
        Ok(())
    })
}

/// Fails for dtypes that [`integers`] does not accept.
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

/// Copies input 0 to output 0, for operators that only change the shape.
pub(crate) fn copy_first(call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
    mxrt_kernels::shape::copy(call.par, call.inputs[0].bytes(), call.outputs[0].bytes_mut());
    Ok(())
}
