//! Taking arrays of other libraries.

use super::abi::{self, Managed, ManagedVersioned, Tensor};
use crate::ndarray::wrap;
use crate::{convert, errors, runtime};
use mxrt_tensor::{Context, NDArray, Shape, TensorType};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use smallvec::SmallVec;
use std::ffi::CStr;
use std::ptr::NonNull;

/// What was taken. A Python object, so that the producer's deleter runs attached to the interpreter, whichever thread
/// drops the last array.
#[pyclass(frozen, module = "mxrt._mxrt")]
struct Taken {
    source: Source,
}

#[derive(Clone, Copy)]
enum Source {
    Plain(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: the producer promises that its tensor may be used and deleted in any thread.
unsafe impl Send for Taken {}
// SAFETY: it is only looked at until it is deleted.
unsafe impl Sync for Taken {}

impl Source {
    fn tensor(&self) -> &Tensor {
        // SAFETY: taken, and not deleted before the `Taken` around it is dropped.
        unsafe {
            match self {
                Source::Plain(managed) => &managed.as_ref().tensor,
                Source::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    fn is_read_only(&self) -> bool {
        match self {
            Source::Plain(_) => false,
            // SAFETY: as in `tensor`.
            Source::Versioned(managed) => unsafe { managed.as_ref() }.flags & abi::READ_ONLY != 0,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: whoever takes a capsule calls the deleter, once.
        unsafe {
            match self.source {
                Source::Plain(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
                Source::Versioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Takes the tensor out of a capsule: from now on the deleter is ours to call.
fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Taken> {
    let raw = capsule.as_ptr();
    let pointer = |name: &CStr| -> Option<NonNull<std::ffi::c_void>> {
        // SAFETY: a capsule; its name is compared before the pointer is asked for.
        unsafe {
            (ffi::PyCapsule_IsValid(raw, name.as_ptr()) == 1).then(|| ffi::PyCapsule_GetPointer(raw, name.as_ptr()))
        }
        .and_then(NonNull::new)
    };
    let rename = |name: &'static CStr| {
        // SAFETY: a capsule; the name is static.
        match unsafe { ffi::PyCapsule_SetName(raw, name.as_ptr()) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(capsule.py())),
        }
    };
    if let Some(found) = pointer(abi::PLAIN) {
        rename(abi::PLAIN_USED)?;
        return Ok(Taken { source: Source::Plain(found.cast()) });
    }
    if let Some(found) = pointer(abi::VERSIONED) {
        let managed: NonNull<ManagedVersioned> = found.cast();
        // SAFETY: the version comes first in every version.
        let major = unsafe { managed.as_ref() }.major;
        if major != abi::VERSION.0 {
            let text =
                format!("from_dlpack: the producer speaks DLPack {major}, this build of mxrt {}", abi::VERSION.0);
            return Err(PyBufferError::new_err(text));
        }
        rename(abi::VERSIONED_USED)?;
        return Ok(Taken { source: Source::Versioned(managed) });
    }
    Err(PyValueError::new_err(
        "from_dlpack: the capsule holds no DLPack tensor, or was taken already; a capsule can be taken once",
    ))
}

/// What the tensor says of itself, checked.
struct Found {
    tensor: TensorType,
    start: *mut u8,
    strides: Option<SmallVec<[isize; 6]>>,
}

fn look(tensor: &Tensor) -> PyResult<Found> {
    let device = tensor.device;
    if device.kind != abi::CPU && device.kind != abi::CUDA_HOST {
        let text = format!(
            "from_dlpack: the array lives on a device of DLPack's kind {} (number {}), from which this build of mxrt takes none; \
             move it to the host first",
            device.kind, device.number
        );
        return Err(errors::plain("device", &text));
    }
    let Some(dtype) = tensor.dtype.dtype() else {
        let t = tensor.dtype;
        let text = format!(
            "from_dlpack: there are no arrays of elements of kind {}, {} bits, {} lanes",
            t.code, t.bits, t.lanes
        );
        return Err(PyTypeError::new_err(text));
    };
    let ndim =
        usize::try_from(tensor.ndim).map_err(|_| PyBufferError::new_err("from_dlpack: a negative number of axes"))?;
    let list = |from: *mut i64| -> &[i64] {
        // SAFETY: the producer gives one number for each axis.
        if ndim == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from, ndim) } }
    };
    if ndim > 0 && tensor.shape.is_null() {
        return Err(PyBufferError::new_err("from_dlpack: the tensor has no shape"));
    }
    let extents: Result<Vec<usize>, _> = list(tensor.shape).iter().map(|n| usize::try_from(*n)).collect();
    let extents = extents.map_err(|_| PyBufferError::new_err("from_dlpack: an axis has a negative extent"))?;
    let tensor_type = TensorType::new(dtype, Shape::from(extents));
    let strides = (!tensor.strides.is_null()).then(|| list(tensor.strides).iter().map(|n| *n as isize).collect());
    let start = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    Ok(Found { tensor: tensor_type, start, strides })
}

impl Found {
    /// Whether the elements lie row-major without gaps, aligned.
    fn is_plain(&self) -> bool {
        let dense = |strides: &SmallVec<[isize; 6]>| {
            let own = self.tensor.shape.strides();
            let axes = self.tensor.shape.iter().zip(strides).zip(own.iter());
            axes.into_iter().all(|((n, stride), own)| *n <= 1 || *stride == *own as isize)
        };
        self.start.addr().is_multiple_of(self.tensor.dtype.size()) && self.strides.as_ref().is_none_or(dense)
    }
}

/// An array that shares the memory of a DLPack capsule, or of anything that has `__dlpack__`. Elements with gaps between them,
/// and arrays that must not be written, are copied.
#[pyfunction]
pub(crate) fn import_dlpack<'py>(py: Python<'py>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let made = match source.cast::<PyCapsule>() {
        Ok(capsule) => take(capsule)?,
        Err(_) => take(ask(source)?.cast::<PyCapsule>().map_err(PyErr::from)?)?,
    };
    let taken = Bound::new(py, made)?;
    let tensor_source = taken.get().source;
    let found = look(tensor_source.tensor())?;
    let engine = runtime::runtime()?.engine;
    let context = Context::cpu(0);
    let elements = found.tensor.checked_bytes();
    let array = if elements == Some(0) {
        NDArray::new(engine, context, found.tensor)
    } else if found.start.is_null() || elements.is_none() {
        return Err(PyBufferError::new_err("from_dlpack: the tensor has elements but no memory"));
    } else if found.is_plain() && !tensor_source.is_read_only() {
        let owner = Box::new(taken.unbind());
        // SAFETY: the producer keeps the memory until the deleter is called, which `owner` does; type and layout were
        // checked.
        unsafe { NDArray::from_shared(engine, context, found.tensor, found.start, owner) }
    } else {
        let own: SmallVec<[isize; 6]> = found.tensor.shape.strides().iter().map(|n| *n as isize).collect();
        let strides = found.strides.as_deref().unwrap_or(&own);
        // SAFETY: the producer keeps what shape and strides reach until the deleter is called.
        unsafe { NDArray::from_strided(engine, context, found.tensor, found.start, strides) }
    };
    wrap(py, array.map_err(|e| errors::from_op(py, &e))?)
}

/// Asks for a capsule with a version; older producers do not know the question.
fn ask<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let export = source.getattr("__dlpack__")?;
    let question = PyDict::new(py);
    question.set_item("max_version", abi::VERSION)?;
    match export.call((), Some(&question)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call0(),
        asked => asked,
    }
}

/// An array in the memory of a numpy array, which is C-contiguous, aligned and writable.
#[pyfunction]
pub(crate) fn share_numpy<'py>(py: Python<'py>, source: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyAny>> {
    let engine = runtime::runtime()?.engine;
    let shape = Shape::new(source.shape());
    let owner = source.clone().into_any().unbind();
    let array = convert::with_bytes(source, |dtype, bytes| {
        let tensor = TensorType::new(dtype, shape);
        let start = bytes.as_ptr().cast_mut();
        // SAFETY: the caller has made sure that the elements may be written and that numpy does not write them; the owner
        // keeps them.
        unsafe { NDArray::from_shared(engine, Context::cpu(0), tensor, start, Box::new(owner)) }
            .map_err(|e| errors::from_op(py, &e))
    })?;
    wrap(py, array)
}
