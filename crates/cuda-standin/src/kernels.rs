//! Kernels that were compiled for the host (`crates/cuda-kernels/tests/host/host.cpp`) in place of those
//! of an image: a module is the library that `STANDIN_KERNELS` names, whatever image it is loaded
//! from, unless the image is a library of the host itself (`nvrtc.rs`). Kernels run in their turn on
//! a stream, their threads in an order that `mxrt_standin_order` decides.

use crate::elf;
use crate::state::{Code, number, stop_at_exit};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Write as _;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

/// The order of a block's threads.
pub(crate) static ORDER: AtomicU32 = AtomicU32::new(0);

const INVALID_IMAGE: Code = 200;
const NO_BINARY: Code = 209;
const NOT_FOUND: Code = 500;

type HostBody = unsafe extern "C" fn(*mut *mut c_void);
type Launch = unsafe extern "C" fn(
    HostBody,
    c_int,
    *const c_uint,
    *const c_uint,
    usize,
    *mut *mut c_void,
    c_uint,
) -> *const c_char;

/// A kernel of the host's kind.
pub(crate) struct HostKernel {
    body: HostBody,
    launch: Launch,
    barriers: c_int,
    /// Bytes of each argument.
    sizes: Vec<usize>,
    /// Bytes of shared memory that a block may have.
    pub shared: AtomicU32,
}

/// Arguments, copied when a kernel is submitted.
#[derive(Clone)]
pub(crate) struct Arguments(Vec<Vec<u64>>);

/// Whether kernels have stopped. Kernels that run hold it: libraries take their memory down while
/// the process ends.
static STOPPED: RwLock<bool> = RwLock::new(false);

/// Waits for the kernels that run; no other begins.
pub(crate) fn stop() {
    *STOPPED.write().unwrap_or_else(PoisonError::into_inner) = true;
}

/// Opens a library. Kernels stop before the process takes it down.
fn open(path: &CStr) -> Option<usize> {
    // SAFETY: opening a library of kernels runs the initialisers of C++.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    // What was registered last is called first.
    stop_at_exit();
    (!handle.is_null()).then(|| handle.expose_provenance())
}

/// The library, opened once.
fn library() -> Result<usize, Code> {
    static LIBRARY: OnceLock<Option<usize>> = OnceLock::new();
    let opened = LIBRARY.get_or_init(|| open(&CString::new(std::env::var("STANDIN_KERNELS").ok()?).ok()?));
    opened.ok_or(NO_BINARY)
}

/// `cuModuleLoadData`: the image must look like one. A module is the handle of a library.
pub(crate) fn load(image: *const c_void) -> Result<usize, Code> {
    if image.is_null() {
        return Err(INVALID_IMAGE);
    }
    // SAFETY: an image has more than four bytes.
    let first = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), 4) };
    match first {
        // SAFETY: a file of this kind has a header.
        b"\x7fELF" => match unsafe { elf::of_the_host(image.cast()) } {
            Some(file) => open_image(file).ok_or(INVALID_IMAGE),
            None => library(),
        },
        [b'/', b'/', ..] => library(),
        _ => Err(INVALID_IMAGE),
    }
}

/// Opens a library that is in memory.
fn open_image(bytes: &[u8]) -> Option<usize> {
    // SAFETY: a name that ends.
    let file = unsafe { libc::memfd_create(c"kernels".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: a file that was just made, and that nothing else owns.
    let mut file = (file >= 0).then(|| unsafe { std::fs::File::from_raw_fd(file) })?;
    file.write_all(bytes).ok()?;
    // It stays open: the linker takes a library of the same name for the same one.
    open(&CString::new(format!("/proc/self/fd/{}", file.into_raw_fd())).ok()?)
}

fn find(module: usize, name: &str) -> Result<*mut c_void, Code> {
    let handle = std::ptr::with_exposed_provenance_mut(module);
    let name = CString::new(name).map_err(|_| NOT_FOUND)?;
    // SAFETY: the library is open.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() { Err(NOT_FOUND) } else { Ok(found) }
}

/// `cuModuleGetFunction`. The kernel lives as long as the process.
pub(crate) fn function(module: usize, name: *const c_char) -> Result<&'static HostKernel, Code> {
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| NOT_FOUND)?;
    let body = find(module, &format!("host_{name}"))?;
    let sizes_of = find(module, &format!("host_sizes_{name}"))?;
    let barriers = find(module, &format!("host_barriers_{name}"))?;
    let launch = find(module, "host_launch")?;
    if let Ok(path) = std::env::var("STANDIN_LAUNCHED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{name}")).map_err(|_| NOT_FOUND)?;
    }
    let mut sizes = [0usize; 16];
    // SAFETY: the signatures in host.h.
    unsafe {
        let sizes_of: unsafe extern "C" fn(*mut usize) -> c_int = std::mem::transmute(sizes_of);
        let barriers: unsafe extern "C" fn() -> c_int = std::mem::transmute(barriers);
        let count = sizes_of(sizes.as_mut_ptr()) as usize;
        Ok(Box::leak(Box::new(HostKernel {
            body: std::mem::transmute::<*mut c_void, HostBody>(body),
            launch: std::mem::transmute::<*mut c_void, Launch>(launch),
            barriers: barriers(),
            sizes: sizes[..count].to_vec(),
            shared: AtomicU32::new(49152),
        })))
    }
}

impl HostKernel {
    /// Copies the arguments of a launch.
    pub fn arguments(&self, given: *mut *mut c_void) -> Arguments {
        let copy = |(i, bytes): (usize, &usize)| {
            let mut words = vec![0u64; bytes.div_ceil(8)];
            // SAFETY: the caller's promise to the driver: an address for each argument.
            unsafe { std::ptr::copy_nonoverlapping((*given.add(i)).cast::<u8>(), words.as_mut_ptr().cast(), *bytes) };
            words
        };
        Arguments(self.sizes.iter().enumerate().map(copy).collect())
    }

    /// Runs all threads of a grid, unless the process ends. `STANDIN_BLOCKS` bounds its blocks
    /// along the first axis, so that those of kernels which stride over their work have several
    /// rows each.
    pub fn run(&self, mut grid: [c_uint; 3], block: [c_uint; 3], shared: usize, arguments: Arguments) {
        let stopped = STOPPED.read().unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return;
        }
        let most = number("STANDIN_BLOCKS", 0) as c_uint;
        if most > 0 {
            grid[0] = grid[0].min(most);
        }
        let Arguments(mut words) = arguments;
        let mut at: Vec<*mut c_void> = words.iter_mut().map(|w| w.as_mut_ptr().cast()).collect();
        let order = ORDER.load(Ordering::Relaxed);
        // SAFETY: the signature in host.cpp; arguments of the kernel's sizes.
        let wrong = unsafe {
            (self.launch)(self.body, self.barriers, grid.as_ptr(), block.as_ptr(), shared, at.as_mut_ptr(), order)
        };
        if !wrong.is_null() {
            // SAFETY: a text of the library.
            eprintln!("a kernel is wrong: {}", unsafe { CStr::from_ptr(wrong) }.to_string_lossy());
            std::process::abort();
        }
    }
}
