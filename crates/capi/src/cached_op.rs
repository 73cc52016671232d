//! Callable graphs.

use crate::border::{Error, guard};
use crate::handles::{CachedOpHandle, NDArrayHandle, SymbolHandle, all, free, get, hold};
use crate::outputs::{deliver, give_storage_types};
use crate::pointers::{count, distinct, list, put, texts};
use crate::returned::ResultPlace;
use crate::symbol;
use crate::training::{site, trains};
use mxrt::internal::{CachedOpFlags, Interrupter, TwoModeOp};
use mxrt::{CallOptions, NDArray};
use std::ffi::{c_char, c_int};
use std::sync::Arc;

/// # Safety
/// As for `MXCreateCachedOpEx`.
unsafe fn create(
    handle: SymbolHandle,
    num_flags: c_int,
    keys: *const *const c_char,
    vals: *const *const c_char,
    out: *mut CachedOpHandle,
) -> Result<(), Error> {
    let symbol = symbol::of(handle)?;
    let number = count(num_flags, "num_flags")?;
    // SAFETY: the caller promises `num_flags` texts in each.
    let (keys, vals) = unsafe { (distinct(keys, number, "keys")?, texts(vals, number, "vals")?) };
    let flags = keys.into_iter().zip(vals);
    let op = TwoModeOp::compile(site()?, symbol, &CachedOpFlags::parse(flags)?)?;
    // SAFETY: the caller promises a place for the handle.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: as above.
    unsafe { put(out, hold(op), "out") }
}

/// Makes a symbol callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXCreateCachedOp(handle: SymbolHandle, out: *mut CachedOpHandle) -> c_int {
    // SAFETY: the caller keeps the promises of the header; no flags need no pointers.
    guard(|| unsafe { create(handle, 0, std::ptr::null(), std::ptr::null(), out) })
}

/// Makes a symbol callable, with flags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXCreateCachedOpEx(
    handle: SymbolHandle,
    num_flags: c_int,
    keys: *const *const c_char,
    vals: *const *const c_char,
    out: *mut CachedOpHandle,
) -> c_int {
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { create(handle, num_flags, keys, vals, out) })
}

/// Variant of `MXCreateCachedOpEx`. `thread_safe` is accepted without effect: every CachedOp is
/// thread-safe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXCreateCachedOpEX(
    handle: SymbolHandle,
    num_flags: c_int,
    keys: *const *const c_char,
    vals: *const *const c_char,
    out: *mut CachedOpHandle,
    thread_safe: u8,
) -> c_int {
    let _ = thread_safe;
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { create(handle, num_flags, keys, vals, out) })
}

/// Frees a callable graph. Running calls continue.
#[unsafe(no_mangle)]
pub extern "C" fn MXFreeCachedOp(handle: CachedOpHandle) -> c_int {
    guard(|| free::<TwoModeOp>(handle))
}

pub(crate) fn borrow(arrays: &[Arc<NDArray>]) -> Vec<&NDArray> {
    arrays.iter().map(|array| &**array).collect()
}

/// # Safety
/// As for `MXInvokeCachedOp`.
unsafe fn invoke(
    function: &'static str,
    handle: CachedOpHandle,
    num_inputs: c_int,
    inputs: *const NDArrayHandle,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
) -> Result<(), Error> {
    let op = get::<TwoModeOp>(handle)?;
    // SAFETY: the caller promises `num_inputs` handles.
    let inputs = all::<NDArray>(unsafe { list(inputs, count(num_inputs, "num_inputs")?, "inputs")? })?;
    inputs.iter().for_each(|array| array.notice_outside_writes());
    let call = |outputs: Option<&[&NDArray]>| {
        let started =
            op.call(trains(), &borrow(&inputs), outputs, &CallOptions::default(), &mut Interrupter::never())?;
        Ok(started.arrays()?)
    };
    // SAFETY: contract.
    unsafe { deliver(function, num_outputs, outputs, call) }
}

/// # Safety
/// As for `MXInvokeCachedOpEx`.
unsafe fn invoke_typed(
    [results, types]: [&'static str; 2],
    handle: CachedOpHandle,
    num_inputs: c_int,
    inputs: *const NDArrayHandle,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
    out_stypes: *mut *const c_int,
) -> Result<(), Error> {
    // SAFETY: the caller promises a place for the pointer. It is tried before there are handles to
    // lose.
    unsafe { put(out_stypes, std::ptr::null(), "out_stypes")? };
    // SAFETY: contract.
    unsafe { invoke(results, handle, num_inputs, inputs, num_outputs, outputs)? };
    // SAFETY: as above.
    unsafe { give_storage_types(ResultPlace::of(types), num_outputs, outputs, out_stypes) }
}

/// Calls a graph, as in training if the thread has the mode of training. Returns at once; the
/// results are computed in the background.
///
/// If `*outputs` is null, new arrays are made: the array of handles belongs to the thread, the
/// NDArrays belong to the caller. Otherwise `*num_outputs` must be the number of outputs, and the
/// results go into the given arrays; those of `MXNDArrayCreateNone` get their shape and type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXInvokeCachedOp(
    handle: CachedOpHandle,
    num_inputs: c_int,
    inputs: *const NDArrayHandle,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
) -> c_int {
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { invoke("MXInvokeCachedOp", handle, num_inputs, inputs, num_outputs, outputs) })
}

/// Variant of `MXInvokeCachedOp` that also returns the storage types of the results (0 dense, 1
/// row_sparse, 2 csr).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXInvokeCachedOpEx(
    handle: CachedOpHandle,
    num_inputs: c_int,
    inputs: *const NDArrayHandle,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
    out_stypes: *mut *const c_int,
) -> c_int {
    let places = ["MXInvokeCachedOpEx", "MXInvokeCachedOpEx types"];
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { invoke_typed(places, handle, num_inputs, inputs, num_outputs, outputs, out_stypes) })
}

/// Variant of `MXInvokeCachedOpEx`. `thread_safe` is accepted without effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXInvokeCachedOpEX(
    handle: CachedOpHandle,
    num_inputs: c_int,
    inputs: *const NDArrayHandle,
    num_outputs: *mut c_int,
    outputs: *mut *mut NDArrayHandle,
    out_stypes: *mut *const c_int,
    thread_safe: u8,
) -> c_int {
    let _ = thread_safe;
    let places = ["MXInvokeCachedOpEX", "MXInvokeCachedOpEX types"];
    // SAFETY: the caller keeps the promises of the header.
    guard(|| unsafe { invoke_typed(places, handle, num_inputs, inputs, num_outputs, outputs, out_stypes) })
}

/// Variant of `MXFreeCachedOp`. `thread_safe` is accepted without effect.
#[unsafe(no_mangle)]
pub extern "C" fn MXFreeCachedOpEX(handle: CachedOpHandle, thread_safe: u8) -> c_int {
    let _ = thread_safe;
    guard(|| free::<TwoModeOp>(handle))
}
