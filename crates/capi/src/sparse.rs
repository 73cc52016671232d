//! Sparse arrays: their types and their parts.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, get};
use crate::ndarray::{context, element_type};
use crate::pointers::{count, list, put};
use crate::runtime::engine;
use crate::unfinished;
use crate::views::give;
use mxrt::internal::{StorageType, StoredGuard};
use mxrt::types::TensorType;
use mxrt::{DType, NDArray, Shape};
use std::ffi::c_int;

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

/// Copies a dense array into a part of a sparse one. Parts that agree are its content at once.
pub(crate) fn copy_part(target: &NDArray, source: &NDArray, i: c_int) -> Result<(), Error> {
    let part = part(target, i)?;
    match part {
        None if source.dtype() != target.dtype() => {
            return Err(Error::value(format!("values of {} for an array of {}", source.dtype(), target.dtype())));
        }
        Some(_) if source.dtype() != DType::I64 => {
            return Err(Error::value(format!("positions are int64, not {}", source.dtype())));
        }
        _ => {}
    }
    unfinished::set_part(target, part, source.shape().clone(), source.to_bytes()?)
}

/// A copy of a part of a sparse array.
fn copied(array: &NDArray, part: Option<usize>) -> Result<NDArray, Error> {
    let make = |tensor, bytes: &[u8]| Ok(NDArray::from_bytes(array.engine(), array.context(), tensor, bytes)?);
    if let Some((shape, bytes)) = unfinished::part_of(array, part) {
        return make(TensorType { dtype: if part.is_none() { array.dtype() } else { DType::I64 }, shape }, &bytes);
    }
    let guard: StoredGuard<'_> = array.read_stored(None)?;
    let Some(content) = guard.parts()? else { return Err(Error::value("a dense array has no parts")) };
    let numbers = match (array.storage_type(), part) {
        (_, None) => {
            let values = guard.content()?.values();
            return make(TensorType { dtype: values.dtype, shape: values.shape.clone() }, values.bytes());
        }
        (StorageType::Csr, Some(0)) => content.pointers(),
        _ => content.indices(),
    };
    make(TensorType { dtype: DType::I64, shape: [numbers.len()].into() }, &unfinished::bytes_of(numbers))
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
    /// Parts can be replaced later, in any order: until they agree, reading the array is an error.
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

    /// A copy of the values of a sparse array, after waiting for it; another handle of a dense one.
    fn MXNDArrayGetDataNDArray(handle: NDArrayHandle, out: *mut NDArrayHandle) {
        let array = get::<NDArray>(handle)?;
        give(if array.is_sparse() { copied(&array, None)? } else { (*array).clone() }, out)
    }

    /// Waits for an array. Its positions were checked when it was made; what was wrong is the error.
    fn MXNDArraySyncCheckFormat(handle: NDArrayHandle, full_check: u8) {
        let _ = full_check;
        Ok(get::<NDArray>(handle)?.wait_to_read()?)
    }
}
