//! Taking arrays of other libraries.

use crate::exit::PythonCall;
use crate::ndarray::wrap;
use crate::{convert, devices, errors, runtime};
use mxrt_engine::{DeviceId, Engine, FailureKind, OpError};
use mxrt_tensor::dlpack::{self as abi, Device, Managed, ManagedVersioned, Tensor};
use mxrt_tensor::{Context, DeviceImport, NDArray, Shape, TensorType};
use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyDict};
use smallvec::SmallVec;
use std::ffi::CStr;
use std::ptr::NonNull;

/// A tensor taken from a capsule. It is a Python object, so that the producer's deleter runs
/// attached to the interpreter, whichever thread drops the last array.
#[pyclass(frozen, module = "mxrt._mxrt")]
struct Taken {
    source: ImportSource,
}

#[derive(Clone, Copy)]
enum ImportSource {
    Plain(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: the producer promises that its tensor may be used and deleted in any thread.
unsafe impl Send for Taken {}
// SAFETY: it is only looked at until it is deleted.
unsafe impl Sync for Taken {}

impl ImportSource {
    fn tensor(&self) -> &Tensor {
        // SAFETY: taken, and not deleted before the `Taken` around it is dropped.
        unsafe {
            match self {
                ImportSource::Plain(managed) => &managed.as_ref().tensor,
                ImportSource::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    fn is_read_only(&self) -> bool {
        match self {
            ImportSource::Plain(_) => false,
            // SAFETY: as in `tensor`.
            ImportSource::Versioned(managed) => unsafe { managed.as_ref() }.flags & abi::READ_ONLY != 0,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: the consumer of a capsule calls the deleter, once.
        unsafe {
            match self.source {
                ImportSource::Plain(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
                ImportSource::Versioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Takes the tensor out of a capsule: from now on the deleter is ours to call. Of several threads
/// one gets it, also where there is no interpreter lock.
fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Taken> {
    with_critical_section(capsule.as_any(), || take_alone(capsule))
}

fn take_alone(capsule: &Bound<'_, PyCapsule>) -> PyResult<Taken> {
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
        return Ok(Taken { source: ImportSource::Plain(found.cast()) });
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
        return Ok(Taken { source: ImportSource::Versioned(managed) });
    }
    Err(PyValueError::new_err(
        "from_dlpack: the capsule holds no DLPack tensor, or was taken already; a capsule can be \
         taken once",
    ))
}

/// The tensor's description of itself, checked.
struct Found {
    tensor: TensorType,
    start: *mut u8,
    strides: Option<SmallVec<[isize; 6]>>,
}

/// The place of a tensor: the host, or one of the devices here.
fn place(device: Device) -> PyResult<Option<DeviceId>> {
    if device.kind == abi::CPU || device.kind == abi::CUDA_HOST {
        return Ok(None);
    }
    let known = match device.kind {
        abi::EXTENSION => devices::with_number(runtime::runtime()?.engine, device.number),
        abi::CUDA => devices::gpu_with_number(device.number),
        _ => None,
    };
    known.map(Some).ok_or_else(|| {
        let text = format!(
            "from_dlpack: the array lives on a device of DLPack's kind {} (number {}), from which this build of mxrt takes none; \
             move it to the host first",
            device.kind, device.number
        );
        errors::plain(FailureKind::Device, &text)
    })
}

fn look(tensor: &Tensor) -> PyResult<Found> {
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
    /// Whether the elements are row-major without gaps, and aligned.
    fn is_plain(&self) -> bool {
        let dense = |strides: &SmallVec<[isize; 6]>| {
            let own = self.tensor.shape.strides();
            let axes = self.tensor.shape.iter().zip(strides).zip(own.iter());
            axes.into_iter().all(|((n, stride), own)| *n <= 1 || *stride == *own as isize)
        };
        self.start.addr().is_multiple_of(self.tensor.dtype.size()) && self.strides.as_ref().is_none_or(dense)
    }
}

/// Takes the tensor of a capsule, or of an object that makes one. An object on a device is asked
/// for a stream that the import waits for.
fn take_from(
    engine: &'static Engine,
    source: &Bound<'_, PyAny>,
) -> PyResult<(Taken, Option<(DeviceId, DeviceImport)>)> {
    if let Ok(capsule) = source.cast::<PyCapsule>() {
        return Ok((take(capsule)?, None));
    }
    let import = match device_of(source)? {
        Some(device) => {
            let import = DeviceImport::new(engine, device);
            Some((device, import.map_err(|error| errors::from_op(source.py(), &error))?))
        }
        None => None,
    };
    let stream = import.as_ref().map(|(_, import)| import.stream());
    Ok((take(ask(source, stream)?.cast::<PyCapsule>().map_err(PyErr::from)?)?, import))
}

/// An array that shares the memory of a DLPack capsule, or of anything that has `__dlpack__`.
/// Elements with gaps between them, and arrays that must not be written, are copied.
#[pyfunction]
pub(crate) fn import_dlpack<'py>(py: Python<'py>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let engine = runtime::runtime()?.engine;
    let raised = |error: OpError| errors::from_op(py, &error);
    let (taken, import) = take_from(engine, source)?;
    let taken = Bound::new(py, taken)?;
    let tensor = taken.get().source;
    let place = place(tensor.tensor().device)?;
    let found = look(tensor.tensor())?;
    let Some(bytes) = found.tensor.checked_bytes() else {
        let text = format!("from_dlpack: a tensor {} is larger than the address space", found.tensor);
        return Err(PyBufferError::new_err(text));
    };
    if bytes > 0 && found.start.is_null() {
        return Err(PyBufferError::new_err("from_dlpack: the tensor has elements but no memory"));
    }
    let shared = found.is_plain() && !tensor.is_read_only();
    let array = match (place, import) {
        (None, _) => found.on_host(engine, shared.then(|| taken.unbind())).map_err(raised)?,
        (Some(device), Some((asked, import))) if asked == device && shared => {
            let context = Context::on(device);
            let owner = Box::new(taken.unbind());
            // SAFETY: the producer keeps the memory until the deleter is called, which `owner`
            // does, and has made its stream ready for ours; type and layout were checked.
            unsafe { import.finish(context, found.tensor, found.start.expose_provenance() as u64, owner) }
                .map_err(raised)?
        }
        (Some(device), _) => {
            let text = format!(
                "from_dlpack: an array on {device} has to come from an object with __dlpack__ and __dlpack_device__, which is \
                 asked for a stream, and has to be dense and writable: copy it first"
            );
            return Err(errors::plain(FailureKind::Device, &text));
        }
    };
    wrap(py, array)
}

impl Found {
    /// The array; `owner` is given if it may share the memory.
    fn on_host(self, engine: &'static Engine, owner: Option<Py<Taken>>) -> Result<NDArray, OpError> {
        let context = Context::cpu(0);
        if self.tensor.checked_bytes() == Some(0) {
            return NDArray::new(engine, context, self.tensor);
        }
        match owner {
            // SAFETY: the producer keeps the memory until the deleter is called, which the owner
            // does; type and layout were checked.
            Some(owner) => unsafe {
                NDArray::from_shared(engine, context, self.tensor, (self.start, true), Box::new(owner))
            },
            None => {
                let own = || self.tensor.shape.strides().iter().map(|n| *n as isize).collect();
                let strides: SmallVec<[isize; 6]> = self.strides.clone().unwrap_or_else(own);
                // SAFETY: the producer keeps what shape and strides reach until the deleter is
                // called.
                unsafe { NDArray::from_strided(engine, context, self.tensor, self.start, &strides) }
            }
        }
    }
}

/// The device a producer says its array lives on, if that is one of ours.
fn device_of(source: &Bound<'_, PyAny>) -> PyResult<Option<DeviceId>> {
    let _call = PythonCall::enter(source.py());
    if !source.hasattr("__dlpack__")? || !source.hasattr("__dlpack_device__")? {
        return Ok(None);
    }
    let (kind, number) = source.call_method0("__dlpack_device__")?.extract()?;
    place(Device { kind, number })
}

/// Asks for a capsule with a version; older producers do not know the question.
fn ask<'py>(source: &Bound<'py, PyAny>, stream: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let _call = PythonCall::enter(py);
    let export = source.getattr("__dlpack__")?;
    let question = PyDict::new(py);
    if let Some(stream) = stream {
        question.set_item("stream", stream)?;
    }
    let older = question.copy()?;
    question.set_item("max_version", abi::VERSION)?;
    match export.call((), Some(&question)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call((), Some(&older)),
        asked => asked,
    }
}

/// An array in the memory of a numpy array, which becomes read-only; None if it has no elements, or
/// unaligned ones.
#[pyfunction]
pub(crate) fn share_numpy<'py>(source: &Bound<'py, PyUntypedArray>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, engine) = (source.py(), runtime::runtime()?.engine);
    if !source.is_c_contiguous() {
        return Err(PyValueError::new_err("Only c-contiguous arrays are supported for zero-copy"));
    }
    // SAFETY: a live array.
    let has = |flag| unsafe { (*_PyArray_GET_ITEM_DATA(source.as_array_ptr())).flags } & flag != 0;
    if source.is_empty() || !has(NPY_ARRAY_ALIGNED) {
        return Ok(None);
    }
    let shape = Shape::new(source.shape());
    let owner = source.clone().into_any().unbind();
    // Of several threads one finds the array writable, and shares it so.
    let array = with_critical_section(source.as_any(), || {
        let writable = has(NPY_ARRAY_WRITEABLE);
        let array = convert::with_bytes(source, |dtype, bytes| {
            let tensor = TensorType::new(dtype, shape);
            let memory = (bytes.as_ptr().cast_mut(), writable);
            // SAFETY: numpy says whether the elements may be written, and writes them no more from
            // now on; the owner keeps them.
            unsafe { NDArray::from_shared(engine, Context::cpu(0), tensor, memory, Box::new(owner)) }
                .map_err(|e| errors::from_op(py, &e))
        })?;
        if writable {
            source.call_method1("setflags", (false,))?;
        }
        PyResult::Ok(array)
    })?;
    wrap(py, array).map(Some)
}
