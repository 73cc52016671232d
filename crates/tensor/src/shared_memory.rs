//! Arrays in memory that several processes map: that of a file without a name.

use crate::memory::Memory;
use crate::{Context, DeviceType, NDArray, TensorType};
use mxrt_engine::{Engine, FailureKind, OpError};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// Name of the files in lists of open files.
const NAME: &CStr = c"mxrt-array";

/// A file in this process's memory. It stays open, so that other processes can map it too.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
    file: OwnedFd,
}

// SAFETY: the memory is mapped until the drop, whichever thread that is in; its bytes are touched
// under the grants of the array's variable.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared `Mapping` gives out an address only.
unsafe impl Sync for Mapping {}

fn refused(what: &str, error: &io::Error) -> OpError {
    OpError::new(FailureKind::Memory, format!("shared memory: {what}: {error}"))
}

impl Mapping {
    /// Maps the first `len` bytes of a regular file.
    fn of(file: OwnedFd, len: usize) -> Result<Mapping, OpError> {
        if len == 0 {
            return Ok(Mapping { start: NonNull::<u64>::dangling().cast(), len, file });
        }
        // SAFETY: a new mapping, at an address that the system chooses, of an open file.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Mapping { start, len, file }),
            None => Err(refused(&format!("mapping {len} bytes"), &io::Error::last_os_error())),
        }
    }

    fn into_array(self, engine: &'static Engine, tensor: TensorType) -> Result<NDArray, OpError> {
        let context = Context { device_type: DeviceType::CpuShared, device_id: 0 };
        let (start, len) = (self.start.as_ptr(), self.len);
        // SAFETY: the bytes are there, page-aligned and initialised (files begin with zeros), until
        // the owner is dropped. That other processes do not write while operators use them is what
        // the functions below ask for.
        let memory = unsafe { Memory::of_others(start, len, true, Box::new(self)) };
        NDArray::from_memory(engine, context, tensor, memory)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped in `of` with this length, and not used any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

/// A file of `len` zeros that has no name and cannot shrink.
fn unnamed(len: usize) -> Result<OwnedFd, OpError> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // By its number: old C libraries lack the function.
    // SAFETY: the name is a text, and the result is a new descriptor of nobody else, or negative.
    let file = unsafe {
        match libc::syscall(libc::SYS_memfd_create, NAME.as_ptr(), flags) {
            made if made < 0 => return Err(refused("making it", &io::Error::last_os_error())),
            made => File::from_raw_fd(made as i32),
        }
    };
    file.set_len(len as u64).map_err(|error| refused(&format!("{len} bytes"), &error))?;
    // SAFETY: a call with numbers. Who maps the file must find all of it later.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) };
    Ok(file.into())
}

impl NDArray {
    /// An array of zeros on `cpu_shared(0)`, in memory that other processes can map by
    /// [`NDArray::shared_file`]. What they write is not ordered with operators here: the programs
    /// agree on who writes when.
    pub fn new_shared(engine: &'static Engine, tensor: TensorType) -> Result<NDArray, OpError> {
        let bytes = tensor.checked_bytes().filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(|| {
            OpError::new(FailureKind::Memory, format!("an array of {tensor} is larger than the address space"))
        })?;
        Mapping::of(unnamed(bytes)?, bytes)?.into_array(engine, tensor)
    }

    /// An array in the memory of a file, such as another process has from [`NDArray::shared_file`].
    /// The caller's descriptor stays the caller's.
    pub fn from_shared_file(
        engine: &'static Engine,
        tensor: TensorType,
        file: BorrowedFd<'_>,
    ) -> Result<NDArray, OpError> {
        let file = File::from(file.try_clone_to_owned().map_err(|error| refused("no open file", &error))?);
        let found = file.metadata().map_err(|error| refused("no file", &error))?;
        let bytes = tensor.checked_bytes().filter(|bytes| found.is_file() && found.len() >= *bytes as u64);
        let Some(bytes) = bytes else {
            let what = if found.is_file() { format!("{} bytes", found.len()) } else { "a file without bytes".into() };
            return Err(OpError::new(FailureKind::Value, format!("shared memory: {what}: too few for {tensor}")));
        };
        Mapping::of(file.into(), bytes)?.into_array(engine, tensor)
    }

    /// The file that holds the array, whole and from its beginning, if other processes can map it.
    pub fn shared_file(&self) -> Option<BorrowedFd<'_>> {
        let mapping = self.chunk.block().ok()?.owner()?.downcast_ref::<Mapping>()?;
        (self.offset == 0).then(|| mapping.file.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use mxrt_engine::Config;

    fn tensor(len: usize) -> TensorType {
        TensorType::new(DType::F32, [len])
    }

    #[test]
    fn two_arrays_of_one_file_have_one_memory_and_the_file_outlives_them() {
        let engine = Engine::start(Config::default()).unwrap();
        let first = NDArray::new_shared(engine, tensor(3)).unwrap();
        let second = NDArray::from_shared_file(engine, tensor(2), first.shared_file().unwrap()).unwrap();
        assert_eq!(second.to_vec::<f32>().unwrap(), [0.0, 0.0]);
        let whole = NDArray::from_slice(engine, Context::cpu(0), [3], &[1.0f32, 2.0, 3.0]).unwrap();
        crate::index::copy_region(
            &first,
            crate::index::Region::whole(first.shape()),
            &whole,
            crate::index::Region::whole(first.shape()),
        )
        .unwrap();
        first.wait_to_read().unwrap();
        assert_eq!(second.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        let file = second.shared_file().unwrap().try_clone_to_owned().unwrap();
        drop((first, second));
        let third = NDArray::from_shared_file(engine, tensor(3), file.as_fd()).unwrap();
        assert_eq!(third.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert!(third.view(1, [2].into()).unwrap().shared_file().is_none());
        assert!(whole.shared_file().is_none());
    }

    #[test]
    fn a_file_that_is_too_short_or_has_no_bytes_is_refused() {
        let engine = Engine::start(Config::default()).unwrap();
        let small = NDArray::new_shared(engine, tensor(3)).unwrap();
        let file = small.shared_file().unwrap();
        let error = NDArray::from_shared_file(engine, tensor(4), file).unwrap_err();
        assert_eq!((error.kind, error.message.contains("12 bytes: too few")), (FailureKind::Value, true));
        let (reader, _writer) = std::io::pipe().unwrap();
        let error = NDArray::from_shared_file(engine, tensor(1), reader.as_fd()).unwrap_err();
        assert!(error.message.contains("a file without bytes"), "{error}");
        // No process can take its memory away from the others.
        let file = File::from(file.try_clone_to_owned().unwrap());
        assert!(file.set_len(1).is_err());
        let empty = NDArray::new_shared(engine, tensor(0)).unwrap();
        assert_eq!(NDArray::from_shared_file(engine, tensor(0), empty.shared_file().unwrap()).unwrap().nbytes(), 0);
    }
}
