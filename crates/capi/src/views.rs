//! Arrays over the memory of others, arrays without a value, and the bytes of arrays.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, get, hold, hold_unset};
use crate::ndarray::{array_of, context, element_type, new_array, put_rank, value};
use crate::operators::by_name;
use crate::pointers::{count, list, put};
use crate::process::np_shape;
use crate::returned::{self, ResultPlace};
use crate::runtime::engine;
use mxrt::internal::infer_types;
use mxrt::params::NpShape;
use mxrt::types::TensorType;
use mxrt::{NDArray, Shape};
use std::ffi::{c_char, c_int, c_void};

/// Stores an array; the place is tried before there is a handle to lose.
///
/// # Safety
/// `out` is null or points to a place for the handle.
pub(crate) unsafe fn give(array: NDArray, out: *mut NDArrayHandle) -> Result<(), Error> {
    // SAFETY: contract.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: contract.
    unsafe { put(out, hold(array), "out") }
}

/// Stores another handle of the same array; an array without a value for one that has none.
///
/// # Safety
/// As above.
unsafe fn give_another(handle: NDArrayHandle, out: *mut NDArrayHandle) -> Result<(), Error> {
    match value(handle)? {
        // SAFETY: contract.
        Some(array) => unsafe { give((*array).clone(), out) },
        None => {
            // SAFETY: contract.
            unsafe { put(out, std::ptr::null_mut(), "out")? };
            // SAFETY: contract.
            unsafe { put(out, hold_unset(), "out") }
        }
    }
}

/// A view of consecutive elements of an array that has them.
fn view(array: &NDArray, start: usize, shape: Shape) -> Result<NDArray, Error> {
    let outside = || Error::value(format!("a view of the shape {shape} lies outside of {array:?}"));
    array.view(start, shape.clone()).ok_or_else(outside)
}

/// Elements of one entry of the first axis, and the number of entries.
fn rows(array: &NDArray) -> Result<(usize, usize), Error> {
    match array.shape().split_first() {
        Some((first, rest)) => Ok((rest.iter().product(), *first)),
        None => Err(Error::value("an array without axes cannot be sliced")),
    }
}

/// # Safety
/// `shape` is null or points to `ndim` extents.
unsafe fn extents(shape: *const i64, ndim: c_int) -> Result<Shape, Error> {
    // SAFETY: contract.
    let dims = unsafe { list(shape, count(ndim, "ndim")?, "shape")? };
    dims.iter().map(|dim| count(*dim, "shape")).collect()
}

fn slice(handle: NDArrayHandle, begin: i64, end: i64) -> Result<NDArray, Error> {
    let array = get::<NDArray>(handle)?;
    let (row, number) = rows(&array)?;
    let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
    let Some((from, to)) = range.filter(|(from, to)| from <= to && *to <= number) else {
        return Err(Error::value(format!("slice_begin {begin} and slice_end {end} are no range of {number} entries")));
    };
    let mut shape = array.shape().clone();
    shape.dims_mut()[0] = to - from;
    view(&array, from * row, shape)
}

fn at(handle: NDArrayHandle, index: i64) -> Result<NDArray, Error> {
    let array = get::<NDArray>(handle)?;
    let (row, number) = rows(&array)?;
    let Some(place) = usize::try_from(index).ok().filter(|place| *place < number) else {
        return Err(Error::value(format!("the argument idx is {index}, but there are {number} entries")));
    };
    // As in MXNet, where zero axes are no scalar unless np-shape says so.
    let shape = match &array.shape()[1..] {
        [] if np_shape() == NpShape::Off => [1].into(),
        rest => rest.iter().copied().collect(),
    };
    view(&array, place * row, shape)
}

/// The beginning of an array in a shape that may be smaller, by MXNet's rule: 0 is the extent of the
/// array there, and one -1 what the others leave. With numpy's shapes all elements are needed.
fn beginning(handle: NDArrayHandle, dims: &[c_int]) -> Result<NDArray, Error> {
    let array = get::<NDArray>(handle)?;
    let wrong = |what: &str| Error::value(format!("the shape {dims:?} for {array:?}: {what}"));
    let mut shape: Vec<usize> = Vec::with_capacity(dims.len());
    let mut open = None;
    for (place, dim) in dims.iter().enumerate() {
        shape.push(match dim {
            -1 if open.replace(place).is_some() => return Err(wrong("more than one extent is -1")),
            -1 => 1,
            0 => *array.shape().get(place).ok_or_else(|| wrong("an extent of 0 is beyond the axes of the array"))?,
            dim => usize::try_from(*dim).map_err(|_| wrong("extents are -1, 0 or positive"))?,
        });
    }
    let size = shape.iter().try_fold(1usize, |size, dim| size.checked_mul(*dim));
    if let (Some(place), Some(size)) = (open, size) {
        shape[place] =
            array.shape().size().checked_div(size).ok_or_else(|| wrong("-1 stands next to an extent of 0"))?;
    }
    let shape: Shape = shape.into_iter().collect();
    if np_shape() != NpShape::Off && shape.size() != array.shape().size() {
        return Err(wrong("with numpy's shapes the sizes must be equal"));
    }
    view(&array, 0, shape)
}

/// The shape that the operator `Reshape` gives, with its codes 0, -1, -2, -3 and -4.
fn reshape(handle: NDArrayHandle, dims: &[i64], reverse: bool) -> Result<NDArray, Error> {
    let array = get::<NDArray>(handle)?;
    // The operator takes no extents for a shape that was not given.
    if dims.is_empty() && np_shape() != NpShape::Off && array.shape().size() == 1 {
        return view(&array, 0, Shape::new(&[]));
    }
    let numbers: String = dims.iter().map(|dim| format!("{dim},")).collect();
    let shape = format!("({numbers})");
    let def = by_name("Reshape")?;
    let attrs = def.parse_attrs([("shape", shape.as_str()), ("reverse", if reverse { "True" } else { "False" })])?;
    let made = infer_types(def, &attrs, &[array.tensor_type()])?;
    let shape = made.into_iter().next().map(|tensor| tensor.shape).unwrap_or_default();
    if shape.size() != array.shape().size() {
        return Err(Error::value(format!("{array:?} cannot be reshaped to {shape}")));
    }
    view(&array, 0, shape)
}

c_functions! {
    /// An array that gets shape, type and value when it is given to an operator as output.
    fn MXNDArrayCreateNone(out: *mut NDArrayHandle) {
        put(out, std::ptr::null_mut(), "out")?;
        put(out, hold_unset(), "out")
    }

    /// Variant of `MXNDArrayCreateEx` with extents of 64 bits.
    fn MXNDArrayCreateEx64(
        shape: *const i64,
        ndim: c_int,
        dev_type: c_int,
        dev_id: c_int,
        delay_alloc: c_int,
        dtype: c_int,
        out: *mut NDArrayHandle,
    ) {
        let _ = delay_alloc;
        let tensor = TensorType { dtype: element_type(dtype)?, shape: extents(shape, ndim)? };
        give(new_array(context(dev_type, dev_id)?, tensor)?, out)
    }

    /// An array with a copy of `size` bytes: its elements, row-major.
    fn MXRTNDArrayFromData(
        data: *const c_void,
        size: usize,
        shape: *const i64,
        ndim: c_int,
        dev_type: c_int,
        dev_id: c_int,
        dtype: c_int,
        out: *mut NDArrayHandle,
    ) {
        let tensor = TensorType { dtype: element_type(dtype)?, shape: extents(shape, ndim)? };
        let bytes = list(data.cast::<u8>(), size, "data")?;
        give(array_of(context(dev_type, dev_id)?, tensor, bytes)?, out)
    }

    /// The entries `slice_begin .. slice_end` of the first axis, over the same memory.
    fn MXNDArraySlice(handle: NDArrayHandle, slice_begin: u32, slice_end: u32, out: *mut NDArrayHandle) {
        give(slice(handle, i64::from(slice_begin), i64::from(slice_end))?, out)
    }

    /// Variant of `MXNDArraySlice` with 64-bit indices.
    fn MXNDArraySlice64(handle: NDArrayHandle, slice_begin: i64, slice_end: i64, out: *mut NDArrayHandle) {
        give(slice(handle, slice_begin, slice_end)?, out)
    }

    /// One entry of the first axis, over the same memory and without that axis. Of an array with one
    /// axis it is an array of one element; with np-shape a scalar.
    fn MXNDArrayAt(handle: NDArrayHandle, idx: u32, out: *mut NDArrayHandle) {
        give(at(handle, i64::from(idx))?, out)
    }

    /// Variant of `MXNDArrayAt` with a 64-bit index.
    fn MXNDArrayAt64(handle: NDArrayHandle, idx: i64, out: *mut NDArrayHandle) {
        give(at(handle, idx)?, out)
    }

    /// Returns the beginning of an array in another shape, over the same memory. An extent of 0 is
    /// that of the array at this place; one may be -1, for what the others leave.
    fn MXNDArrayReshape(handle: NDArrayHandle, ndim: c_int, dims: *const c_int, out: *mut NDArrayHandle) {
        give(beginning(handle, list(dims, count(ndim, "ndim")?, "dims")?)?, out)
    }

    /// Returns an array with the same memory and another shape. The extents may be codes as for the
    /// operator `Reshape`; with `reverse` these count from the last axis.
    fn MXNDArrayReshape64(
        handle: NDArrayHandle,
        ndim: c_int,
        dims: *const i64,
        reverse: u8,
        out: *mut NDArrayHandle,
    ) {
        give(reshape(handle, list(dims, count(ndim, "ndim")?, "dims")?, reverse != 0)?, out)
    }

    /// Variant of `MXNDArrayGetShapeEx` that returns integers of 64 bits.
    fn MXNDArrayGetShapeEx64(handle: NDArrayHandle, out_dim: *mut c_int, out_pdata: *mut *const i64) {
        let dims = crate::ndarray::dims::<i64>(handle)?;
        put_rank(handle, dims.len(), out_dim)?;
        put(out_pdata, returned::list(ResultPlace::of("shape of 64 bits"), dims)?.cast_const(), "out_pdata")
    }

    /// Waits for an array and gives the address of its first element. It is valid until the array is
    /// freed, and its content until the next operator that writes the array. What the program writes
    /// there, the next call of a graph sees. Weights that were packed away come back, and stay. Null
    /// for an array without a value or without elements.
    fn MXNDArrayGetData(handle: NDArrayHandle, out_pdata: *mut *mut c_void) {
        put(out_pdata, std::ptr::null_mut(), "out_pdata")?;
        let Some(array) = value(handle)? else { return Ok(()) };
        let address = array.lend_address(&mut || true)?;
        put(out_pdata, if array.nbytes() == 0 { std::ptr::null_mut() } else { address.cast() }, "out_pdata")
    }

    /// The bytes of an array, as files hold them, in memory that belongs to the thread.
    fn MXNDArraySaveRawBytes(handle: NDArrayHandle, out_size: *mut usize, out_buf: *mut *const c_char) {
        let bytes = mxrt::params::save_raw(&*get::<NDArray>(handle)?, np_shape(), &mut || true)?;
        put(out_size, bytes.len(), "out_size")?;
        put(out_buf, returned::list(ResultPlace::of("raw bytes"), bytes)?.cast_const().cast(), "out_buf")
    }

    /// The array of such bytes.
    fn MXNDArrayLoadFromRawBytes(buf: *const c_void, size: usize, out: *mut NDArrayHandle) {
        let bytes = list(buf.cast::<u8>(), size, "buf")?;
        let array = mxrt::params::load_raw(engine()?, bytes, np_shape())?;
        give(array.ok_or_else(|| Error::value("the argument buf holds no array"))?, out)
    }

    /// Copies an array of the same shape and waits for it. Of a sparse target it fills a part: the
    /// values for i = -1, or its positions.
    fn MXNDArraySyncCopyFromNDArray(handle_dst: NDArrayHandle, handle_src: NDArrayHandle, i: c_int) {
        let (target, source) = (get::<NDArray>(handle_dst)?, get::<NDArray>(handle_src)?);
        if target.is_sparse() && !source.is_sparse() {
            return crate::sparse::copy_part(&target, &source, i);
        }
        if i != -1 {
            return Err(Error::value(format!("the argument i is {i}, but a dense array has no positions; pass -1")));
        }
        crate::operators::copy(&source, &target)?;
        Ok(target.wait_to_read()?)
    }

    /// Another handle of the same array; another array without a value for one that has none.
    fn MXShallowCopyNDArray(src: NDArrayHandle, out: *mut NDArrayHandle) {
        give_another(src, out)
    }

    /// Another handle of the same array: no array has a history of operators.
    fn MXNDArrayDetach(handle: NDArrayHandle, out: *mut NDArrayHandle) {
        give_another(handle, out)
    }
}
