//! Arrays for the results of calls: those of the caller, some of which may have no value yet, or new
//! ones.

use crate::border::Error;
use crate::cached_op::borrow;
use crate::handles::{NDArrayHandle, all, get, hold, is_unset, set};
use crate::pointers::{count, list, put, read};
use crate::returned::{self, ResultPlace};
use mxrt::NDArray;
use std::ffi::c_int;

/// Runs `call` on the arrays that the caller has for the results, or returns new ones;
/// `num_outputs` and `outputs` as for `MXInvokeCachedOp`. The list of new arrays is in the place of
/// `function`.
///
/// # Safety
/// As for `MXInvokeCachedOp`.
pub(crate) unsafe fn deliver<R: IntoIterator<Item = NDArray>>(
    function: &'static str,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
    call: impl FnOnce(Option<&[&NDArray]>) -> Result<R, Error>,
) -> Result<(), Error> {
    // SAFETY: the caller promises a pointer, null or to `*num_outputs` handles.
    let given = unsafe { read(outputs, "outputs")? };
    if !given.is_null() {
        // SAFETY: the caller promises a number.
        let number = count(unsafe { read(num_outputs, "num_outputs")? }, "num_outputs")?;
        // SAFETY: the caller promises as many handles.
        return fill(unsafe { list(given.cast_const(), number, "outputs")? }, call);
    }
    // SAFETY: the caller promises a place for the number. It is tried before there are handles to
    // lose.
    unsafe { put(num_outputs, 0, "num_outputs")? };
    let made = call(None)?;
    // SAFETY: contract.
    unsafe { give_made(function, made, num_outputs, outputs) }
}

/// Stores handles of new arrays and their number, in the place of `function`.
///
/// # Safety
/// The pointers point to places, which have been tried.
pub(crate) unsafe fn give_made(
    function: &'static str,
    made: impl IntoIterator<Item = NDArray>,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
) -> Result<(), Error> {
    let results: Vec<NDArrayHandle> = made.into_iter().map(hold).collect();
    let number = results.len();
    let handles = returned::list(ResultPlace::of(function), results)?;
    // SAFETY: contract.
    unsafe { put(num_outputs, number as c_int, "num_outputs")? };
    // SAFETY: contract.
    unsafe { put(outputs, handles, "outputs") }
}

/// Runs `call` on arrays that the caller has for the results. Those without a value become the
/// arrays that the call makes.
pub(crate) fn fill<R: IntoIterator<Item = NDArray>>(
    outputs: &[NDArrayHandle],
    call: impl FnOnce(Option<&[&NDArray]>) -> Result<R, Error>,
) -> Result<(), Error> {
    if !outputs.iter().any(|handle| is_unset(*handle)) {
        let outputs = all::<NDArray>(outputs)?;
        return call(Some(&borrow(&outputs))).map(drop);
    }
    let given =
        outputs.iter().map(|handle| if is_unset(*handle) { Ok(None) } else { get::<NDArray>(*handle).map(Some) });
    let given = given.collect::<Result<Vec<_>, Error>>()?;
    let made: Vec<NDArray> = call(None)?.into_iter().collect();
    if made.len() != outputs.len() {
        let message = format!("the call gives {} results, but num_outputs is {}", made.len(), outputs.len());
        return Err(Error::value(message));
    }
    // Nothing is stored before all given arrays are known to fit.
    for (i, (array, result)) in given.iter().zip(&made).enumerate() {
        if let Some(array) = array.as_ref().filter(|array| array.tensor_type() != result.tensor_type()) {
            let (given, wanted) = (array.tensor_type(), result.tensor_type());
            return Err(Error::value(format!(
                "output {i} is {given}, but the result is {wanted}: pass an array of that"
            )));
        }
    }
    for ((handle, array), result) in outputs.iter().zip(given).zip(made) {
        match array {
            Some(array) => crate::operators::copy(&result, &array)?,
            None => set(*handle, result)?,
        }
    }
    Ok(())
}

/// Stores the storage types of the results that a call has left in `outputs`, in this place.
///
/// # Safety
/// The pointers are those of the call that has worked; `out_stypes` points to a place.
pub(crate) unsafe fn give_storage_types(
    place: ResultPlace,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
    out_stypes: *mut *const c_int,
) -> Result<(), Error> {
    // SAFETY: contract.
    let number = count(unsafe { read(num_outputs, "num_outputs")? }, "num_outputs")?;
    // SAFETY: contract.
    let handles = unsafe { list(read(outputs, "outputs")?.cast_const(), number, "outputs")? };
    let codes = handles.iter().map(|handle| Ok(get::<NDArray>(*handle)?.storage_type().code()));
    let codes = codes.collect::<Result<Vec<c_int>, Error>>()?;
    // SAFETY: contract.
    unsafe { put(out_stypes, returned::list(place, codes)?.cast_const(), "out_stypes") }
}
