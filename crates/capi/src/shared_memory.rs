//! Arrays in memory shared between processes.

use crate::border::{Error, c_functions};
use crate::handles::{NDArrayHandle, get};
use crate::ndarray::element_type;
use crate::pointers::{OpenFile, count, list, put};
use crate::runtime::engine;
use crate::views::give;
use mxrt::types::TensorType;
use mxrt::{NDArray, Shape};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, IntoRawFd};

/// # Safety
/// `file` is open, and no other code closes it; `out` is null or points to a place.
unsafe fn open(file: c_int, shape: Shape, dtype: c_int, out: *mut NDArrayHandle) -> Result<(), Error> {
    let tensor = TensorType { dtype: element_type(dtype)?, shape };
    // SAFETY: contract.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    let file = OpenFile::new(file, "shared_id")?;
    // SAFETY: contract.
    let array = NDArray::from_shared_file(engine()?, tensor, unsafe { file.borrow() })?;
    // SAFETY: contract.
    unsafe { file.close() };
    // SAFETY: contract.
    unsafe { give(array, out) }
}

c_functions! {
    /// An array in the memory of the file descriptor `shared_id`, which is one of this process:
    /// `MXNDArrayGetSharedMemHandle` of the process `shared_pid` gave it, and it was sent from there,
    /// or inherited. The function takes the descriptor over, unless it fails.
    fn MXNDArrayCreateFromSharedMem(
        shared_pid: c_int,
        shared_id: c_int,
        shape: *const u32,
        ndim: u32,
        dtype: c_int,
        out: *mut NDArrayHandle,
    ) {
        let _ = shared_pid;
        let dims = list(shape, count(ndim, "ndim")?, "shape")?;
        open(shared_id, dims.iter().map(|dim| *dim as usize).collect(), dtype, out)
    }

    /// Variant of `MXNDArrayCreateFromSharedMem` with extents in signed integers.
    fn MXNDArrayCreateFromSharedMemEx(
        shared_pid: c_int,
        shared_id: c_int,
        shape: *const c_int,
        ndim: c_int,
        dtype: c_int,
        out: *mut NDArrayHandle,
    ) {
        let _ = shared_pid;
        let dims = list(shape, count(ndim, "ndim")?, "shape")?;
        let shape = dims.iter().map(|dim| count(*dim, "shape")).collect::<Result<Shape, Error>>()?;
        open(shared_id, shape, dtype, out)
    }

    /// Waits for an array and gives its memory to other processes: the number of this process, and a
    /// file descriptor to be sent. Of an array on `cpu_shared` it is the array's own, and valid as
    /// long as that. Of any other array it is that of a copy, and the caller closes it.
    fn MXNDArrayGetSharedMemHandle(handle: NDArrayHandle, shared_pid: *mut c_int, shared_id: *mut c_int) {
        let array = get::<NDArray>(handle)?;
        put(shared_pid, std::process::id() as c_int, "shared_pid")?;
        put(shared_id, -1, "shared_id")?;
        array.wait_to_read()?;
        if let Some(file) = array.shared_file() {
            return put(shared_id, file.as_raw_fd(), "shared_id");
        }
        let copy = NDArray::new_shared(engine()?, array.tensor_type())?;
        crate::operators::copy(&array, &copy)?;
        copy.wait_to_read()?;
        let file = copy.shared_file().map(|file| file.try_clone_to_owned());
        let file = file.ok_or_else(|| Error::plain("the copy has no file"))?;
        let file = file.map_err(|error| Error::plain(format!("the file of the copy: {error}")))?;
        put(shared_id, file.into_raw_fd(), "shared_id")
    }
}
