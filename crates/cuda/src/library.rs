//! The optional libraries of CUDA: where they are, and which version. `mxrt doctor` names them. Of
//! NVRTC there is more in `nvrtc.rs`, of the others in `provider.rs`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Defines `Functions`, a table of functions of a library that return numbers.
macro_rules! functions {
    ($($name:ident($($type:ty),* $(,)?);)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> std::ffi::c_int,)*
        }

        impl Functions {
            /// Looks all functions up; an error names those that are missing.
            fn load(library: &$crate::library::Opened) -> Result<Functions, String> {
                let mut missing: Vec<&str> = Vec::new();
                $(
                    let $name = {
                        let name = std::ffi::CString::new(stringify!($name)).unwrap_or_default();
                        let at = library.symbol(&name);
                        if at.is_null() {
                            missing.push(stringify!($name));
                        }
                        // SAFETY: the signature is that of the library's header; null is none.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                Option<unsafe extern "C" fn($($type),*) -> std::ffi::c_int>,
                            >(at)
                        }
                    };
                )*
                match ($($name,)*) {
                    ($(Some($name),)*) => Ok(Functions { $($name,)* }),
                    _ => Err(format!("{} lacks {}", library.path, missing.join(", "))),
                }
            }
        }
    };
}
pub(crate) use functions;

/// The known facts about a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryStatus {
    /// NVRTC, cuBLASLt or cuDNN.
    pub name: &'static str,
    /// The file that the process uses.
    pub path: Option<String>,
    /// The version in words.
    pub version: Option<String>,
    /// The reason why the library is not used.
    pub reason: Option<String>,
}

/// Looks a function of a library up by its name; null if there is none.
type Find<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

struct Library {
    name: &'static str,
    /// Names of the file, the newest first.
    files: &'static [&'static str],
    version: fn(Find<'_>) -> Option<String>,
}

static LIBRARIES: [Library; 3] = [
    Library { name: "NVRTC", files: &["libnvrtc.so.13", "libnvrtc.so.12"], version: nvrtc_version },
    Library {
        name: "cuBLASLt",
        files: &["libcublasLt.so.13", "libcublasLt.so.12"],
        version: |find| number(find(c"cublasLtGetVersion")).map(words),
    },
    Library { name: "cuDNN", files: &["libcudnn.so.9"], version: |find| number(find(c"cudnnGetVersion")).map(words) },
];

fn nvrtc_version(find: Find<'_>) -> Option<String> {
    let function = find(c"nvrtcVersion");
    if function.is_null() {
        return None;
    }
    // SAFETY: the signature in the library's header.
    let function: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = unsafe { std::mem::transmute(function) };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two numbers are written.
    let result = unsafe { function(&mut major, &mut minor) };
    (result == 0).then(|| format!("{major}.{minor}"))
}

/// The number that a function without arguments returns, as those for versions do.
pub(crate) fn number(function: *mut c_void) -> Option<usize> {
    if function.is_null() {
        return None;
    }
    // SAFETY: the signature in the libraries' headers.
    let function: unsafe extern "C" fn() -> usize = unsafe { std::mem::transmute(function) };
    // SAFETY: no arguments.
    Some(unsafe { function() })
}

/// The version that a number of cuBLASLt or cuDNN stands for.
pub(crate) fn words(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version % 10_000 / 100, version % 100)
}

static ROOTS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Says where packages of NVIDIA are: the folder `nvidia` of each folder on Python's search path. The
/// first call counts. Nothing is read before a library is looked for.
pub fn set_library_roots(roots: Vec<PathBuf>) {
    let _ = ROOTS.set(roots);
}

/// The folders of libraries in packages.
fn folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in ROOTS.get().into_iter().flatten() {
        let packages = std::fs::read_dir(root).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = packages.map(|package| package.path().join("lib")).collect();
        folders.sort();
        found.extend(folders.into_iter().filter(|folder| folder.is_dir()));
    }
    found
}

/// Looks for all libraries: in packages first, then where the system looks. Opens them, which stays so
/// until the process ends.
pub fn libraries() -> Vec<LibraryStatus> {
    LIBRARIES.iter().map(Library::find).collect()
}

impl Library {
    fn find(&self) -> LibraryStatus {
        let mut reason = None;
        for file in self.files {
            match Opened::find(file) {
                Ok(opened) => {
                    let version = (self.version)(&|symbol| opened.symbol(symbol));
                    let reason = version.is_none().then(|| format!("{} does not say its version", opened.path));
                    return LibraryStatus { name: self.name, path: Some(opened.path), version, reason };
                }
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        LibraryStatus { name: self.name, path: None, version: None, reason }
    }
}

/// An open library; it stays open until the process ends.
pub(crate) struct Opened {
    handle: *mut c_void,
    /// file of the library
    pub path: String,
}

impl Opened {
    /// The library of this name: of a package, or where the system looks.
    pub fn find(file: &str) -> Result<Opened, String> {
        let in_packages = folders().into_iter().map(|folder| folder.join(file)).filter(|path| path.exists());
        let mut reason = None;
        for name in in_packages.map(|path| path.display().to_string()).chain([file.to_owned()]) {
            match open(&name) {
                Ok(handle) => return Ok(Opened { handle, path: path_of(handle, &name) }),
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        Err(reason.unwrap_or_else(|| format!("{file} was not found")))
    }

    /// A function by its name; null if there is none.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is open.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }
}

fn open(name: &str) -> Result<*mut c_void, String> {
    let file = CString::new(name).map_err(|_| format!("{name:?} is no name of a file"))?;
    // SAFETY: opening a library runs its initialisers, as in every program that uses it.
    let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: the text is this thread's until its next call.
    let text: *const c_char = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err(format!("{name} cannot be opened"));
    }
    // SAFETY: as above.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The file that a name led to.
fn path_of(handle: *mut c_void, name: &str) -> String {
    /// The request of `dlinfo` for the entry of a library in the list of the linker.
    const LINK_MAP: c_int = 2;
    /// How that entry begins.
    #[repr(C)]
    struct LinkMap {
        address: usize,
        name: *const c_char,
    }
    unsafe extern "C" {
        fn dlinfo(handle: *mut c_void, request: c_int, answer: *mut c_void) -> c_int;
    }
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the library is open; a variable for the result.
    let result = unsafe { dlinfo(handle, LINK_MAP, (&raw mut map).cast()) };
    if result != 0 || map.is_null() {
        return name.to_owned();
    }
    // SAFETY: the entry and its name live as long as the library is open.
    unsafe { CStr::from_ptr((*map).name) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_has_a_reason_and_what_is_there_a_path() {
        for found in libraries() {
            assert_eq!(found.path.is_some(), found.reason.is_none(), "{found:?}");
        }
        let handle = open("libc.so.6").unwrap();
        assert!(path_of(handle, "?").starts_with('/') && open("libno-such.so.1").unwrap_err().contains("libno-such"));
    }
}
