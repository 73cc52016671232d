//! New numpy arrays, which own their memory: programs may resize them.

use crate::errors;
use half::f16;
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{DType, TensorRef, TensorType};
use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NpyTypes, get_type_object, npy_intp};
use numpy::{PY_ARRAY_API, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::ffi::c_int;
use std::ptr::null_mut;

/// The memory for the elements of a new numpy array.
pub(crate) struct Place {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: an address; `fill` has the conditions under which it is used.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// Copies the elements of a tensor there.
    ///
    /// # Safety
    /// The array of this place is alive, and nobody else uses its elements.
    pub(crate) unsafe fn fill(&self, tensor: &TensorRef<'_>) {
        let from = tensor.bytes();
        assert_eq!(from.len(), self.bytes, "a numpy array was made for other elements");
        // SAFETY: `array` gave memory of as many bytes, which is new, so that nothing overlaps.
        unsafe { from.as_ptr().copy_to_nonoverlapping(self.first, self.bytes) };
        if tensor.dtype == DType::Bool {
            // SAFETY: as above, and all bytes were written.
            let bytes = unsafe { std::slice::from_raw_parts_mut(self.first, self.bytes) };
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }
}

/// The type of numpy for elements. `bfloat16`, which numpy lacks, travels as its bits.
fn described(py: Python<'_>, of: DType) -> Bound<'_, PyArrayDescr> {
    match of {
        DType::F32 => dtype::<f32>(py),
        DType::F64 => dtype::<f64>(py),
        DType::F16 => dtype::<f16>(py),
        DType::U8 => dtype::<u8>(py),
        DType::I32 => dtype::<i32>(py),
        DType::I8 => dtype::<i8>(py),
        DType::I64 => dtype::<i64>(py),
        DType::I16 => dtype::<i16>(py),
        DType::U16 | DType::BF16 => dtype::<u16>(py),
        DType::U32 => dtype::<u32>(py),
        DType::U64 => dtype::<u64>(py),
        DType::Bool => dtype::<bool>(py),
    }
}

/// A numpy array whose elements are to be written, and the place for them.
pub(crate) fn array<'py>(py: Python<'py>, tensor: &TensorType) -> PyResult<(Bound<'py, PyAny>, Place)> {
    let mut extents: SmallVec<[npy_intp; 8]> = tensor.shape.iter().map(|extent| *extent as npy_intp).collect();
    let (rank, extents) = (extents.len() as c_int, extents.as_mut_ptr());
    let of = described(py, tensor.dtype).into_dtype_ptr();
    // SAFETY: the function takes the reference to the type, reads `rank` extents, and returns a new
    // reference or null with an exception.
    let made = unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let made =
            PY_ARRAY_API.PyArray_NewFromDescr(py, class, of, rank, extents, null_mut(), null_mut(), 0, null_mut());
        Bound::from_owned_ptr_or_err(py, made)
    };
    let bytes = tensor.shape.size() * tensor.dtype.size();
    let made = made.map_err(|error| match error.is_instance_of::<PyMemoryError>(py) {
        true => {
            let message = format!("copying {bytes} bytes: the system has no more memory; free some");
            errors::from_op(py, &OpError::new(FailureKind::Memory, message))
        }
        false => error,
    })?;
    // SAFETY: the pointer is that of a living array.
    let first = unsafe { (*_PyArray_GET_ITEM_DATA(made.cast::<PyUntypedArray>()?.as_array_ptr())).data.cast() };
    Ok((made, Place { first, bytes }))
}
