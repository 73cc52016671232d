//! Giving arrays away.

use crate::devices::number_of;
use crate::ndarray::NDArrayBase;
use crate::{errors, runtime};
use mxrt_engine::Engine;
use mxrt_tensor::dlpack::{self as abi, Device, ElementType, Managed, ManagedVersioned, Tensor};
use mxrt_tensor::{ConsumerStream, Context, NDArray, Shared};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::ffi::CStr;
use std::ptr::null_mut;

/// The target of the capsule, and the objects it needs: freed by the deleter. The first field is
/// the one that crosses.
#[repr(C)]
struct Exported<M> {
    managed: M,
    shared: Shared,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
}

/// One of the two forms of what crosses.
trait CapsuleForm: Sized + 'static {
    const NAME: &'static CStr;
    fn new(flags: u64) -> Self;
    fn tensor(&mut self) -> &mut Tensor;
    fn delete(this: *mut Self);
}

fn nothing() -> Tensor {
    Tensor {
        data: null_mut(),
        device: Device { kind: abi::CPU, number: 0 },
        ndim: 0,
        dtype: ElementType { code: 0, bits: 8, lanes: 1 },
        shape: null_mut(),
        strides: null_mut(),
        byte_offset: 0,
    }
}

/// The deleter of both forms.
///
/// # Safety
/// `managed` is the first field of an [`Exported`] that was boxed by [`capsule`], and is not used
/// any more.
unsafe extern "C" fn delete<M>(managed: *mut M) {
    // SAFETY: the contract; the struct is laid out as in C, so its address is that of its first
    // field.
    drop(unsafe { Box::from_raw(managed.cast::<Exported<M>>()) });
}

impl CapsuleForm for Managed {
    const NAME: &'static CStr = abi::PLAIN;

    fn new(_: u64) -> Self {
        Managed { tensor: nothing(), context: null_mut(), deleter: Some(delete::<Managed>) }
    }

    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }

    fn delete(this: *mut Self) {
        // SAFETY: the capsule was not taken, so what it points to is as `capsule` made it.
        unsafe { delete(this) }
    }
}

impl CapsuleForm for ManagedVersioned {
    const NAME: &'static CStr = abi::VERSIONED;

    fn new(flags: u64) -> Self {
        let (major, minor) = abi::VERSION;
        let deleter = Some(delete::<ManagedVersioned> as unsafe extern "C" fn(*mut Self));
        ManagedVersioned { major, minor, context: null_mut(), deleter, flags, tensor: nothing() }
    }

    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }

    fn delete(this: *mut Self) {
        // SAFETY: as for `Managed`.
        unsafe { delete(this) }
    }
}

/// Frees a capsule that no consumer has taken.
unsafe extern "C" fn free_capsule<M: CapsuleForm>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule it was made for, attached. A taken capsule has
    // another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 1 {
            M::delete(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast());
        }
    }
}

fn capsule<M: CapsuleForm>(py: Python<'_>, shared: Shared, device: Device, flags: u64) -> PyResult<Bound<'_, PyAny>> {
    let shape: Box<[i64]> = shared.array().shape().iter().map(|n| *n as i64).collect();
    let strides: Box<[i64]> = shared.array().shape().strides().iter().map(|n| *n as i64).collect();
    let mut exported = Box::new(Exported { managed: M::new(flags), shared, shape, strides });
    let (data, ndim) = (exported.shared.address().cast(), exported.shape.len() as i32);
    let (shape, strides) = (exported.shape.as_mut_ptr(), exported.strides.as_mut_ptr());
    let dtype = ElementType::of(exported.shared.array().dtype());
    *exported.managed.tensor() = Tensor { data, device, ndim, dtype, shape, strides, byte_offset: 0 };
    let pointer = Box::into_raw(exported);
    // SAFETY: the name is static; the pointer is freed once, by the deleter or with the capsule; on
    // an error it is freed here. A new capsule is a new reference.
    unsafe {
        let made = ffi::PyCapsule_New(pointer.cast(), M::NAME.as_ptr(), Some(free_capsule::<M>));
        if made.is_null() {
            drop(Box::from_raw(pointer));
        }
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// DLPack's kind and number of the device of an array. Simulated devices are known to no other
/// library.
fn device(engine: &'static Engine, context: Context) -> Device {
    match context.device() {
        None => Device { kind: abi::CPU, number: 0 },
        Some(device) => match number_of(engine, device) {
            Some(number) => Device { kind: abi::EXTENSION, number },
            None => Device { kind: abi::CUDA, number: device.index().into() },
        },
    }
}

/// DLPack's kind and number of the device an array lives on.
#[pyfunction]
pub(crate) fn dlpack_device(array: &NDArrayBase) -> (i32, i32) {
    let device = device(array.engine(), array.context());
    (device.kind, device.number)
}

/// A stream is an integer, and arrays on the host have none.
fn consumer(stream: &Bound<'_, PyAny>, array: &NDArray) -> PyResult<Option<ConsumerStream>> {
    if !stream.is_none() && !stream.is_instance_of::<PyInt>() {
        let class = stream.get_type().name()?;
        return Err(PyTypeError::new_err(format!("__dlpack__: a stream is an integer or None, not {class}")));
    }
    if array.context().device().is_some() {
        let parsed = ConsumerStream::parse(stream.extract()?);
        return parsed.map(Some).map_err(|e| errors::from_op(stream.py(), &e));
    }
    if stream.is_none() {
        return Ok(None);
    }
    Err(PyValueError::new_err(format!(
        "__dlpack__: an array on the host has no streams, but stream={stream} was asked for"
    )))
}

/// Whether the consumer understands capsules with a version.
fn wants_version(max_version: Option<(u32, u32)>) -> bool {
    max_version.is_some_and(|(major, _)| major >= abi::VERSION.0)
}

/// A capsule with the memory of an array, after waiting for its value. `writable`: also for all its
/// readers.
///
/// `stream` is the consumer's. `copied` says that the array was copied for this.
#[pyfunction]
#[pyo3(signature = (array, stream, max_version, writable, copied))]
pub(crate) fn export_dlpack<'py>(
    py: Python<'py>,
    array: &NDArrayBase,
    stream: &Bound<'py, PyAny>,
    max_version: Option<(u32, u32)>,
    writable: bool,
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let array = array.array(py)?;
    let consumer = consumer(stream, array)?;
    let shared = runtime::wait(py, |poll| match consumer {
        None => array.share(writable, poll),
        Some(stream) => array.share_on(stream, writable, poll),
    })?;
    let device = device(array.engine(), array.context());
    if wants_version(max_version) {
        let flags = if writable { 0 } else { abi::READ_ONLY } | if copied { abi::COPIED } else { 0 };
        return capsule::<ManagedVersioned>(py, shared, device, flags);
    }
    capsule::<Managed>(py, shared, device, 0)
}
