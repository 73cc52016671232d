//! Arrays.

use crate::border::{Error, guard};
use crate::handles::{NDArrayHandle, free, free_unset, get, hold, is_unset};
use crate::pointers::{count, list, list_mut, put};
use crate::process::np_shape;
use crate::returned::{self, ResultPlace};
use crate::runtime::engine;
use mxrt::internal::DeviceType;
use mxrt::params::NpShape;
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray, Shape};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The kinds of devices that there may be.
fn kinds() -> impl Iterator<Item = DeviceType> {
    let host = [DeviceType::Cpu, DeviceType::CpuPinned, DeviceType::CpuShared];
    host.into_iter().chain(mxrt::internal::devices::kinds().map(DeviceType::Device))
}

/// A device by MXNet's number of its kind; a negative number of the device is 0, as in MXNet.
/// Whether it is there turns out when it is used.
pub(crate) fn context(dev_type: c_int, dev_id: c_int) -> Result<Context, Error> {
    let device_type = kinds().find(|kind| kind.code() == dev_type).ok_or_else(|| {
        let known: Vec<String> = kinds().map(|kind| format!("{} ({kind})", kind.code())).collect();
        Error::value(format!("dev_type {dev_type} is unknown; expected one of {}", known.join(", ")))
    })?;
    Ok(Context { device_type, device_id: dev_id.max(0) })
}

/// A device by its name, as `cpu(0)`. Whether it is there turns out when it is used.
pub(crate) fn named_context(text: &str) -> Result<Context, Error> {
    let found = Context::parse(text).filter(|found| kinds().any(|kind| kind == found.device_type));
    let found = found.ok_or_else(|| {
        let known: Vec<String> = kinds().map(|kind| format!("{kind}(0)")).collect();
        Error::value(format!("Invalid context string {text}: the attribute ctx is one of {}", known.join(", ")))
    })?;
    Ok(Context { device_id: found.device_id.max(0), ..found })
}

/// The element type of a code.
pub(crate) fn element_type(code: c_int) -> Result<DType, Error> {
    DType::from_code(code)
        .ok_or_else(|| Error::value(format!("dtype {code} is unknown; expected 0 (float32) to 12 (bfloat16)")))
}

/// An array of zeros; in shared memory where the context says so.
pub(crate) fn new_array(context: Context, tensor: TensorType) -> Result<NDArray, Error> {
    Ok(match context.device_type {
        DeviceType::CpuShared => NDArray::new_shared(engine()?, tensor)?,
        _ => NDArray::new(engine()?, context, tensor)?,
    })
}

/// An array with a copy of these elements; in shared memory where the context says so.
pub(crate) fn array_of(context: Context, tensor: TensorType, bytes: &[u8]) -> Result<NDArray, Error> {
    if context.device_type != DeviceType::CpuShared {
        return Ok(NDArray::from_bytes(engine()?, context, tensor, bytes)?);
    }
    let array = new_array(context, tensor)?;
    array.fill_with(bytes)?;
    Ok(array)
}

/// # Safety
/// As for `MXNDArrayCreateEx`.
unsafe fn create(
    shape: *const u32,
    ndim: u32,
    dev_type: c_int,
    dev_id: c_int,
    dtype: c_int,
    out: *mut NDArrayHandle,
) -> Result<(), Error> {
    // SAFETY: the caller promises `ndim` extents.
    let dims = unsafe { list(shape, count(ndim, "ndim")?, "shape")? };
    let dtype = element_type(dtype)?;
    let shape: Shape = dims.iter().map(|dim| *dim as usize).collect();
    let (context, tensor) = (context(dev_type, dev_id)?, TensorType { dtype, shape });
    let array = new_array(context, tensor)?;
    // SAFETY: the caller promises a place for the handle.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: as above.
    unsafe { put(out, hold(array), "out") }
}

/// Makes a float32 array. Memory is allocated at the first use, whatever `delay_alloc` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayCreate(
    shape: *const u32,
    ndim: u32,
    dev_type: c_int,
    dev_id: c_int,
    delay_alloc: c_int,
    out: *mut NDArrayHandle,
) -> c_int {
    let _ = delay_alloc;
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { create(shape, ndim, dev_type, dev_id, DType::F32.code(), out) })
}

/// Makes an array of any element type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayCreateEx(
    shape: *const u32,
    ndim: u32,
    dev_type: c_int,
    dev_id: c_int,
    delay_alloc: c_int,
    dtype: c_int,
    out: *mut NDArrayHandle,
) -> c_int {
    let _ = delay_alloc;
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { create(shape, ndim, dev_type, dev_id, dtype, out) })
}

/// Frees an array. Work that uses it continues.
#[unsafe(no_mangle)]
pub extern "C" fn MXNDArrayFree(handle: NDArrayHandle) -> c_int {
    crate::unfinished::forget(handle);
    guard(|| free::<NDArray>(handle).or_else(|error| if free_unset(handle) { Ok(()) } else { Err(error) }))
}

/// The array of a handle; none where the array has no value yet.
pub(crate) fn value(handle: NDArrayHandle) -> Result<Option<Arc<NDArray>>, Error> {
    if is_unset(handle) { Ok(None) } else { get::<NDArray>(handle).map(Some) }
}

/// The extents of an array; none for one without a value.
pub(crate) fn dims<T: TryFrom<usize>>(handle: NDArrayHandle) -> Result<Vec<T>, Error> {
    value(handle)?.map_or(Ok(Vec::new()), |array| returned::extents(array.shape()))
}

/// Stores the rank of a signed shape: with numpy's shapes, that of an array without a value is -1.
///
/// # Safety
/// `out_dim` is null or points to a place.
pub(crate) unsafe fn put_rank(handle: NDArrayHandle, rank: usize, out_dim: *mut c_int) -> Result<(), Error> {
    let unknown = is_unset(handle) && np_shape() != NpShape::Off;
    // SAFETY: contract.
    unsafe { put(out_dim, if unknown { -1 } else { rank as c_int }, "out_dim") }
}

/// The shape of an array, in memory that belongs to the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetShape(
    handle: NDArrayHandle,
    out_dim: *mut u32,
    out_pdata: *mut *const u32,
) -> c_int {
    guard(|| {
        let dims = dims::<u32>(handle)?;
        // SAFETY: the caller promises a place for the number.
        unsafe { put(out_dim, dims.len() as u32, "out_dim")? };
        // SAFETY: the caller promises a place for the pointer.
        unsafe { put(out_pdata, returned::list(ResultPlace::of("shape"), dims)?.cast_const(), "out_pdata") }
    })
}

/// Variant of `MXNDArrayGetShape` that returns signed integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetShapeEx(
    handle: NDArrayHandle,
    out_dim: *mut c_int,
    out_pdata: *mut *const c_int,
) -> c_int {
    guard(|| {
        let dims = dims::<c_int>(handle)?;
        // SAFETY: the caller promises a place for the number.
        unsafe { put_rank(handle, dims.len(), out_dim)? };
        // SAFETY: the caller promises a place for the pointer.
        unsafe { put(out_pdata, returned::list(ResultPlace::of("signed shape"), dims)?.cast_const(), "out_pdata") }
    })
}

/// The code of the element type; -1 for an array without a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetDType(handle: NDArrayHandle, out_dtype: *mut c_int) -> c_int {
    // SAFETY: the caller promises a place for the number.
    guard(|| unsafe { put(out_dtype, value(handle)?.map_or(-1, |array| array.dtype().code()), "out_dtype") })
}

/// The storage type: 0 dense, 1 row_sparse, 2 csr; -1 for an array without a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetStorageType(handle: NDArrayHandle, out_storage_type: *mut c_int) -> c_int {
    guard(|| {
        let code = value(handle)?.map_or(-1, |array| array.storage_type().code());
        // SAFETY: the caller promises a place for the number.
        unsafe { put(out_storage_type, code, "out_storage_type") }
    })
}

/// The device of an array; kind and number are 0 for one without a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetContext(
    handle: NDArrayHandle,
    out_dev_type: *mut c_int,
    out_dev_id: *mut c_int,
) -> c_int {
    guard(|| {
        let context = value(handle)?.map(|array| array.context());
        let (kind, id) = context.map_or((0, 0), |context| (context.device_type.code(), context.device_id));
        // SAFETY: the caller promises a place for the number.
        unsafe { put(out_dev_type, kind, "out_dev_type")? };
        // SAFETY: the caller promises a place for the number.
        unsafe { put(out_dev_id, id, "out_dev_id") }
    })
}

/// The bytes of `size` elements, if the array has as many.
fn bytes_of(array: &NDArray, size: usize) -> Result<usize, Error> {
    let has = array.shape().size();
    if size != has {
        let message =
            format!("Memory size do not match: {size} elements were given, but the array {array:?} has {has}");
        return Err(Error::value(message));
    }
    Ok(array.nbytes())
}

/// Copies `size` elements into an array. The caller may reuse its memory when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArraySyncCopyFromCPU(handle: NDArrayHandle, data: *const c_void, size: usize) -> c_int {
    guard(|| {
        let array = get::<NDArray>(handle)?;
        let bytes = bytes_of(&array, size)?;
        // SAFETY: the caller promises `size` elements of the array's type.
        let content = unsafe { list(data.cast::<u8>(), bytes, "data")? };
        array.fill_with(content)?;
        Ok(())
    })
}

/// Waits for an array and copies its `size` elements out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArraySyncCopyToCPU(handle: NDArrayHandle, data: *mut c_void, size: usize) -> c_int {
    guard(|| {
        let array = get::<NDArray>(handle)?;
        let bytes = bytes_of(&array, size)?;
        // SAFETY: the caller promises room for `size` elements of the array's type.
        let to = unsafe { list_mut(data.cast::<u8>(), bytes, "data")? };
        array.copy_out(to)?;
        Ok(())
    })
}

/// Waits until an array can be read. Returns the array's failure, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn MXNDArrayWaitToRead(handle: NDArrayHandle) -> c_int {
    guard(|| value(handle)?.map_or(Ok(()), |array| Ok(array.wait_to_read()?)))
}

/// Waits until an array can be written.
#[unsafe(no_mangle)]
pub extern "C" fn MXNDArrayWaitToWrite(handle: NDArrayHandle) -> c_int {
    guard(|| match value(handle)? {
        Some(array) => Ok(array.engine().wait_to_write(array.var())?),
        None => Ok(()),
    })
}

/// Stores null: there are no gradients, as for any array of MXNet without one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetGrad(handle: NDArrayHandle, out: *mut NDArrayHandle) -> c_int {
    guard(|| {
        value(handle)?;
        // SAFETY: the caller promises a place for the handle.
        unsafe { put(out, std::ptr::null_mut(), "out") }
    })
}

/// Stores 0: no gradient is fresh.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayGetGradState(handle: NDArrayHandle, out: *mut c_int) -> c_int {
    guard(|| {
        value(handle)?;
        // SAFETY: the caller promises a place for the number.
        unsafe { put(out, 0, "out") }
    })
}

/// Waits for all pending work. Returns the failures that no wait has returned yet.
#[unsafe(no_mangle)]
pub extern "C" fn MXNDArrayWaitAll() -> c_int {
    guard(|| Ok(engine()?.wait_all()?))
}
