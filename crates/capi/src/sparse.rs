//! Sparse arrays: their types, their parts, and arrays that are filled part by part.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, get};
use crate::ndarray::{context, element_type};
use crate::pointers::{count, list, put};
use crate::runtime::engine;
use crate::views::give;
use mxrt::internal::{ForkSafeMutex, SparseContent, StorageType, StoredGuard};
use mxrt::{DType, NDArray, Shape, TensorType};
use std::collections::HashMap;
use std::ffi::c_int;

/// Parts of a sparse array that the caller has given so far.
#[derive(Default)]
struct Parts {
    values: Option<Vec<u8>>,
    positions: [Option<Vec<i64>>; 2],
}

/// The unfinished parts of each array, by its handle.
static UNFINISHED: ForkSafeMutex<Option<HashMap<usize, Parts>>> = ForkSafeMutex::new(None);

/// Forgets the parts of an array that is freed.
pub(crate) fn forget(handle: NDArrayHandle) {
    let mut unfinished = UNFINISHED.lock();
    let parts = unfinished.as_mut().and_then(|parts| parts.remove(&handle.addr()));
    drop(unfinished);
    drop(parts);
}

/// The part of that number: -1 the values, others as MXNet numbers them.
fn part(array: &NDArray, i: c_int) -> Result<Option<usize>, Error> {
    let storage = array.storage_type();
    match usize::try_from(i) {
        Err(_) if i == -1 => Ok(None),
        Ok(position) if position < storage.positions() => Ok(Some(position)),
        _ => Err(Error::value(format!(
            "the argument i is {i}, but an array stored as {storage} has {} arrays of positions",
            storage.positions()
        ))),
    }
}

/// Copies a dense array into a part of a sparse one. When all parts are there, the sparse array is
/// made of them.
pub(crate) fn copy_part(handle: NDArrayHandle, target: &NDArray, source: &NDArray, i: c_int) -> Result<(), Error> {
    let bytes = source.to_bytes()?;
    let part = part(target, i)?;
    let mut unfinished = UNFINISHED.lock();
    let all = unfinished.get_or_insert_default();
    let parts = all.entry(handle.addr()).or_default();
    match part {
        None if source.dtype() != target.dtype() => {
            return Err(Error::value(format!("values of {} for an array of {}", source.dtype(), target.dtype())));
        }
        None => parts.values = Some(bytes),
        Some(_) if source.dtype() != DType::I64 => {
            return Err(Error::value(format!("positions are int64, not {}", source.dtype())));
        }
        Some(position) => parts.positions[position] = Some(numbers_of(&bytes)),
    }
    let wanted = target.storage_type().positions();
    let complete = parts.values.is_some() && parts.positions[..wanted].iter().all(Option::is_some);
    let finished = if complete { all.remove(&handle.addr()) } else { None };
    drop(unfinished);
    finished.map_or(Ok(()), |parts| finish(target, parts))
}

fn numbers_of(bytes: &[u8]) -> Vec<i64> {
    let (numbers, _) = bytes.as_chunks::<8>();
    numbers.iter().map(|number| i64::from_ne_bytes(*number)).collect()
}

fn bytes_of(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn finish(target: &NDArray, parts: Parts) -> Result<(), Error> {
    let [first, second] = parts.positions.map(Option::unwrap_or_default);
    let (pointers, indices) = if target.storage_type() == StorageType::Csr { (first, second) } else { (second, first) };
    let values = parts.values.unwrap_or_default();
    target.fill_stored("sparse array", move |engine, storage, tensor| {
        SparseContent::new(engine, storage, tensor, &values, &indices, &pointers)
    })?;
    Ok(target.wait_to_read()?)
}

/// A copy of a part of a sparse array.
fn copied(array: &NDArray, part: Option<usize>) -> Result<NDArray, Error> {
    let guard: StoredGuard<'_> = array.read_stored(None)?;
    let make = |tensor, bytes: &[u8]| Ok(NDArray::from_bytes(array.engine(), array.context(), tensor, bytes)?);
    let Some(content) = guard.parts()? else { return Err(Error::value("a dense array has no parts")) };
    let numbers = match (array.storage_type(), part) {
        (_, None) => {
            let values = guard.content()?.values();
            return make(TensorType { dtype: values.dtype, shape: values.shape.clone() }, values.bytes());
        }
        (StorageType::Csr, Some(0)) => content.pointers(),
        _ => content.indices(),
    };
    let shape = [numbers.len()].into();
    make(TensorType { dtype: DType::I64, shape }, &bytes_of(numbers))
}

/// Makes a sparse array of a storage type and a shape. Types of positions, if given, are int64.
fn create(storage: c_int, shape: Shape, device: (c_int, c_int), dtype: c_int, aux: &[c_int]) -> Result<NDArray, Error> {
    let storage = StorageType::from_code(storage).filter(|storage| storage.is_sparse()).ok_or_else(|| {
        Error::value(format!("storage_type {storage} is no sparse one; expected 1 (row_sparse) or 2 (csr)"))
    })?;
    if let Some(other) = aux.iter().find(|code| **code != DType::I64.code()) {
        return Err(Error::value(format!("aux_type {other}: positions are int64 ({})", DType::I64.code())));
    }
    let tensor = TensorType { dtype: element_type(dtype)?, shape };
    Ok(NDArray::new_stored(engine()?, context(device.0, device.1)?, tensor, storage)?)
}

c_functions! {
    /// Makes a sparse array without a stored value, whatever shapes of positions are given.
    /// `MXNDArraySyncCopyFromNDArray` fills it part by part: values with i = -1, and its positions.
    fn MXNDArrayCreateSparseEx(
        storage_type: c_int,
        shape: *const u32,
        ndim: u32,
        dev_type: c_int,
        dev_id: c_int,
        delay_alloc: c_int,
        dtype: c_int,
        num_aux: u32,
        aux_type: *mut c_int,
        aux_ndims: *mut u32,
        aux_shape: *const u32,
        out: *mut NDArrayHandle,
    ) {
        let _ = (delay_alloc, aux_ndims, aux_shape);
        let dims = list(shape, count(ndim, "ndim")?, "shape")?.iter().map(|n| *n as usize).collect();
        let aux = list(aux_type.cast_const(), count(num_aux, "num_aux")?, "aux_type")?;
        give(create(storage_type, dims, (dev_type, dev_id), dtype, aux)?, out)
    }

    /// Variant of `MXNDArrayCreateSparseEx` for extents of 64 bits.
    fn MXNDArrayCreateSparseEx64(
        storage_type: c_int,
        shape: *const i64,
        ndim: c_int,
        dev_type: c_int,
        dev_id: c_int,
        delay_alloc: c_int,
        dtype: c_int,
        num_aux: u32,
        aux_type: *mut c_int,
        aux_ndims: *mut c_int,
        aux_shape: *const i64,
        out: *mut NDArrayHandle,
    ) {
        let _ = (delay_alloc, aux_ndims, aux_shape);
        let extent = |n: &i64| usize::try_from(*n).map_err(|_| Error::value(format!("the extent {n} is negative")));
        let dims = list(shape, count(ndim, "ndim")?, "shape")?.iter().map(extent).collect::<Result<Shape, Error>>()?;
        let aux = list(aux_type.cast_const(), count(num_aux, "num_aux")?, "aux_type")?;
        give(create(storage_type, dims, (dev_type, dev_id), dtype, aux)?, out)
    }

    /// The element type of positions: int64.
    fn MXNDArrayGetAuxType(handle: NDArrayHandle, i: u32, out_type: *mut c_int) {
        part(&*get::<NDArray>(handle)?, c_int::try_from(i).unwrap_or(c_int::MAX))?;
        put(out_type, DType::I64.code(), "out_type")
    }

    /// A copy of positions of a sparse array, after waiting for it.
    fn MXNDArrayGetAuxNDArray(handle: NDArrayHandle, i: u32, out: *mut NDArrayHandle) {
        let array = get::<NDArray>(handle)?;
        let part = part(&array, c_int::try_from(i).unwrap_or(c_int::MAX))?;
        give(copied(&array, part)?, out)
    }

    /// A copy of the values of a sparse array, after waiting for it.
    fn MXNDArrayGetDataNDArray(handle: NDArrayHandle, out: *mut NDArrayHandle) {
        give(copied(&*get::<NDArray>(handle)?, None)?, out)
    }

    /// Waits for an array. Its positions were checked when it was made; what was wrong is the error.
    fn MXNDArraySyncCheckFormat(handle: NDArrayHandle, full_check: u8) {
        let _ = full_check;
        Ok(get::<NDArray>(handle)?.wait_to_read()?)
    }
}
