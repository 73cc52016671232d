//! Arrays to and from other libraries by DLPack.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, get, hold, kind_of};
use crate::pointers::{Foreign, export, put, read};
use crate::runtime::engine;
use mxrt::internal::FailureKind;
use mxrt::internal::dlpack::{CPU, CUDA_HOST, Managed, Tensor};
use mxrt::types::TensorType;
use mxrt::{Context, NDArray, Shape};
use std::ffi::c_void;

/// A pointer to a `DLManagedTensor`.
pub type DLManagedTensorHandle = *mut c_void;

/// No program has memory below this address.
const LOWEST: usize = 1 << 16;

/// Refuses what is surely no pointer to a tensor: the rest is promised by the caller.
fn tensor_pointer(handle: DLManagedTensorHandle) -> Result<*mut Managed, Error> {
    let what = match kind_of(handle) {
        Some(kind) => format!("it is the handle of {kind}"),
        None if handle.is_null() => "it is null".to_owned(),
        None if handle.addr() < LOWEST || !handle.cast::<Managed>().is_aligned() => "it is no address".to_owned(),
        None => return Ok(handle.cast()),
    };
    Err(Error::value(format!("{:#x} is not a pointer to a DLManagedTensor: {what}", handle.addr())))
}

/// Type and shape that a tensor says it has, and the distances of its elements if they are not
/// row-major.
fn describe(
    tensor: &Tensor,
    extents: &[i64],
    strides: Option<&[i64]>,
) -> Result<(TensorType, Option<Vec<isize>>), Error> {
    if !matches!(tensor.device.kind, CPU | CUDA_HOST) {
        let message = format!(
            "the tensor lives on a device of DLPack's kind {}, from which this build of mxrt takes none; move it to the host first",
            tensor.device.kind
        );
        return Err(Error::of_kind(FailureKind::Device, message));
    }
    let dtype = tensor.dtype.dtype().ok_or_else(|| {
        let found = tensor.dtype;
        let (code, bits, lanes) = (found.code, found.bits, found.lanes);
        let message = format!("there are no arrays of elements of kind {code}, {bits} bits, {lanes} lanes");
        Error::of_kind(FailureKind::Type, message)
    })?;
    let extent = |n: &i64| usize::try_from(*n).map_err(|_| Error::value(format!("the tensor has the extent {n}")));
    let shape = extents.iter().map(extent).collect::<Result<Shape, Error>>()?;
    let tensor_type = TensorType { dtype, shape };
    let own = tensor_type.shape.strides();
    let dense = |strides: &[i64]| {
        tensor_type.shape.iter().zip(strides).zip(own.iter()).all(|((n, given), own)| *n <= 1 || *given == *own as i64)
    };
    let strides = strides.filter(|strides| !dense(strides));
    Ok((tensor_type, strides.map(|strides| strides.iter().map(|n| *n as isize).collect())))
}

/// # Safety
/// `dlpack` points to such a tensor, unless `tensor_pointer` refuses it.
unsafe fn import(dlpack: DLManagedTensorHandle, transient: bool, out: *mut NDArrayHandle) -> Result<(), Error> {
    let managed = tensor_pointer(dlpack)?;
    // SAFETY: the caller promises a tensor.
    let (tensor, (extents, strides)) = unsafe { crate::pointers::tensor(managed)? };
    let (tensor_type, strides) = describe(&tensor, extents, strides)?;
    // SAFETY: the caller promises a place for the handle.
    unsafe { put(out, std::ptr::null_mut(), "out_handle")? };
    let start = memory(&tensor, &tensor_type)?;
    let (engine, context) = (engine()?, Context::cpu(0));
    let aligned = start.addr().is_multiple_of(tensor_type.dtype.size());
    if tensor_type.bytes() != 0 && aligned && strides.is_none() {
        // SAFETY: the caller gives the tensor away; it is deleted with the array.
        let owner = unsafe { Foreign::take(managed, transient) };
        // SAFETY: the caller promises memory of this type and layout until the deleter is called.
        let array = unsafe { owner.share(engine, context, tensor_type, start)? };
        // SAFETY: the caller promises a place for the handle.
        return unsafe { put(out, hold(array), "out_handle") };
    }
    let own = || tensor_type.shape.strides().iter().map(|n| *n as isize).collect();
    let array = match tensor_type.bytes() {
        0 => NDArray::new(engine, context, tensor_type)?,
        _ => {
            let strides: Vec<isize> = strides.unwrap_or_else(own);
            // SAFETY: the caller promises memory of this type and layout.
            unsafe { NDArray::from_strided(engine, context, tensor_type, start, &strides)? }
        }
    };
    // SAFETY: the caller gives the tensor away; it is deleted now that it was copied.
    drop(unsafe { Foreign::take(managed, transient) });
    // SAFETY: the caller promises a place for the handle.
    unsafe { put(out, hold(array), "out_handle") }
}

/// The first byte of a tensor, which has memory unless it has no elements.
fn memory(tensor: &Tensor, tensor_type: &TensorType) -> Result<*mut u8, Error> {
    let start = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    match tensor_type.checked_bytes() {
        None => Err(Error::value(format!("a tensor {tensor_type} is larger than the address space"))),
        Some(1..) if start.is_null() => Err(Error::value("the tensor has elements but no memory")),
        _ => Ok(start),
    }
}

c_functions! {
    /// Waits for an array and gives its memory away as a `DLManagedTensor`, which keeps it. The
    /// consumer calls the deleter of the tensor, once. What it writes is not ordered with operators.
    fn MXNDArrayToDLPack(handle: NDArrayHandle, out_dlpack: *mut DLManagedTensorHandle) {
        let array = get::<NDArray>(handle)?;
        put(out_dlpack, std::ptr::null_mut(), "out_dlpack")?;
        let shared = array.share(true, &mut || true)?;
        put(out_dlpack, export(shared).cast(), "out_dlpack")
    }

    /// An array in the memory of a tensor of another library, whose deleter is called when no
    /// thread uses the array any more. Elements with gaps between them are copied.
    fn MXNDArrayFromDLPack(dlpack: DLManagedTensorHandle, out_handle: *mut NDArrayHandle) {
        import(dlpack, false, out_handle)
    }

    /// Variant of `MXNDArrayFromDLPack`. `transient_handle`: the struct itself, but not the memory
    /// that it points to, may be gone when this returns.
    fn MXNDArrayFromDLPackEx(dlpack: DLManagedTensorHandle, transient_handle: u8, out_handle: *mut NDArrayHandle) {
        import(dlpack, transient_handle != 0, out_handle)
    }

    /// Calls the deleter of a tensor that no consumer has taken.
    fn MXNDArrayCallDLPackDeleter(dlpack: DLManagedTensorHandle) {
        let managed = tensor_pointer(dlpack)?;
        if read(managed, "dlpack")?.deleter.is_none() {
            return Err(Error::value("the tensor has no deleter"));
        }
        drop(Foreign::take(managed, false));
        Ok(())
    }
}
