//! Parameter files.

use crate::border::{Error, guard};
use crate::handles::{NDArrayHandle, get, hold};
use crate::pointers::{count, list, put, text};
use crate::process::np_shape;
use crate::returned::{self, ResultPlace};
use crate::runtime::engine;
use mxrt::NDArray;
use mxrt::params::Params;
use std::ffi::{c_char, c_int, c_void};

/// The addresses for the four results of loading.
struct Out {
    size: *mut u32,
    arrays: *mut *mut NDArrayHandle,
    name_size: *mut u32,
    names: *mut *mut *const c_char,
}

impl Out {
    /// # Safety
    /// The pointers are null or point to places for the results.
    unsafe fn fill(self, params: Params, [arrays_at, names_at]: [ResultPlace; 2]) -> Result<(), Error> {
        let (names, arrays): (Vec<String>, Vec<NDArray>) = match params {
            Params::List(arrays) => (Vec::new(), arrays),
            Params::Named(named) => named.into_iter().unzip(),
        };
        // Everything that can fail comes before there are handles to lose.
        // SAFETY: the caller promises a place.
        unsafe { put(self.size, arrays.len() as u32, "out_size")? };
        // SAFETY: the caller promises a place.
        unsafe { put(self.name_size, names.len() as u32, "out_name_size")? };
        // SAFETY: the caller promises a place.
        unsafe { put(self.arrays, std::ptr::null_mut(), "out_arr")? };
        // SAFETY: the caller promises a place.
        unsafe { put(self.names, returned::texts(names_at, names)?, "out_names")? };
        let handles = returned::list(arrays_at, arrays.into_iter().map(hold).collect())?;
        // SAFETY: the caller promises a place.
        unsafe { put(self.arrays, handles, "out_arr") }
    }
}

/// Loads a parameter file: all arrays in order, also those of equal names. The arrays of handles and
/// names belong to the thread, the NDArrays to the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayLoad(
    fname: *const c_char,
    out_size: *mut u32,
    out_arr: *mut *mut NDArrayHandle,
    out_name_size: *mut u32,
    out_names: *mut *mut *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller promises a text.
        let path = unsafe { text(fname, "fname")? };
        let params = mxrt::params::load_all(engine()?, path, np_shape())?;
        let places = ["MXNDArrayLoad arrays", "MXNDArrayLoad names"].map(ResultPlace::of);
        let out = Out { size: out_size, arrays: out_arr, name_size: out_name_size, names: out_names };
        // SAFETY: the caller promises places for the results.
        unsafe { out.fill(params, places) }
    })
}

/// Loads a parameter file that is in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArrayLoadFromBuffer(
    ndarray_buffer: *const c_void,
    size: usize,
    out_size: *mut u32,
    out_arr: *mut *mut NDArrayHandle,
    out_name_size: *mut u32,
    out_names: *mut *mut *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller promises `size` bytes.
        let bytes = unsafe { list(ndarray_buffer.cast::<u8>(), size, "ndarray_buffer")? };
        let params = mxrt::params::load_all_from_bytes(engine()?, bytes, np_shape())?;
        let places = ["MXNDArrayLoadFromBuffer arrays", "MXNDArrayLoadFromBuffer names"].map(ResultPlace::of);
        let out = Out { size: out_size, arrays: out_arr, name_size: out_name_size, names: out_names };
        // SAFETY: the caller promises places for the results.
        unsafe { out.fill(params, places) }
    })
}

/// Saves arrays, with names unless `keys` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MXNDArraySave(
    fname: *const c_char,
    num_args: u32,
    args: *const NDArrayHandle,
    keys: *const *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller promises a text.
        let path = unsafe { text(fname, "fname")? };
        let number = count(num_args, "num_args")?;
        // SAFETY: the caller promises `num_args` handles.
        let handles = unsafe { list(args, number, "args")? };
        let arrays = handles.iter().map(|handle| Ok((*get::<NDArray>(*handle)?).clone()));
        let arrays = arrays.collect::<Result<Vec<NDArray>, Error>>()?;
        let params = if keys.is_null() {
            Params::List(arrays)
        } else {
            // SAFETY: the caller promises `num_args` keys, which are texts.
            let keys = unsafe { list(keys, number, "keys")? };
            let mut names = Vec::with_capacity(number);
            for key in keys {
                // SAFETY: as above.
                names.push(unsafe { text(*key, "keys")? }.to_owned());
            }
            Params::Named(names.into_iter().zip(arrays).collect())
        };
        Ok(mxrt::params::save(path, &params, np_shape(), &mut || true)?)
    })
}
