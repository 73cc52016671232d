//! NVRTC, CUDA's compiler as a library, where there is one: for GPUs that no image of the wheel serves,
//! and for kernels that are known at run time only.
//!
//! Results are numbers, as in `api.rs`, and functions come from the file that was chosen by its path.

#![allow(non_snake_case)]

use crate::cache;
use crate::driver::served;
use crate::library::{Opened, functions};
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// Source of kernels in CUDA C++, and the files that it includes.
pub struct KernelSource {
    name: &'static str,
    main: String,
    files: Vec<(&'static str, &'static str)>,
    options: &'static [&'static str],
    digest: Digested,
}

/// A hash that is equal for equal sources with equal files and options.
pub(crate) type Digested = [u8; 32];

impl KernelSource {
    /// Makes a source. Messages call it `name`; `files` are names and contents, `options` those of
    /// the compiler besides the one for the GPU.
    pub fn new(
        name: &'static str,
        main: String,
        files: Vec<(&'static str, &'static str)>,
        options: &'static [&'static str],
    ) -> KernelSource {
        let mut hash = Sha256::new();
        let of_files = files.iter().flat_map(|(name, text)| [*name, *text]);
        for part in [name, &main].into_iter().chain(of_files).chain(options.iter().copied()) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize().into();
        KernelSource { name, main, files, options, digest }
    }

    pub(crate) fn digest(&self) -> Digested {
        self.digest
    }
}

/// Majors of NVRTC that are known, the newest first, and their files.
const MAJORS: [(i32, &str); 2] = [(13, "libnvrtc.so.13"), (12, "libnvrtc.so.12")];

/// The code of a text for a compute capability: from the disk, or compiled. An error says what to do.
pub fn compile(text: &KernelSource, capability: (i32, i32)) -> Result<Vec<u8>, String> {
    let mut reasons = Vec::new();
    for nvrtc in compilers() {
        let nvrtc = match nvrtc {
            Ok(nvrtc) => nvrtc,
            Err(why) => {
                reasons.push(why.clone());
                continue;
            }
        };
        let Some(target) = nvrtc.target(capability) else {
            let (major, minor) = capability;
            reasons.push(format!("{nvrtc} does not compile for compute capability {major}.{minor}"));
            continue;
        };
        let (major, minor) = nvrtc.version;
        let mut hash = Sha256::new();
        hash.update(text.digest);
        hash.update(format!("{major}.{minor} {target}"));
        let key = hash.finalize().into();
        if let Some(code) = cache::read(&key) {
            return Ok(code);
        }
        let code = nvrtc.compile(text, &target)?;
        cache::write(&key, &code);
        return Ok(code);
    }
    Err(reasons.join("; "))
}

/// The compilers whose code the driver can load, or why there is none of a major version.
fn compilers() -> &'static [Result<Nvrtc, String>] {
    static COMPILERS: OnceLock<Vec<Result<Nvrtc, String>>> = OnceLock::new();
    COMPILERS.get_or_init(|| {
        let served = served();
        let mut all: Vec<_> = MAJORS.iter().map(|(major, file)| Nvrtc::open(*major, file, served)).collect();
        // One that is not there is not worth a word where another one is.
        if all.iter().any(Result::is_ok) {
            all.retain(Result::is_ok);
        }
        all
    })
}

/// A program of NVRTC.
type Handle = *mut c_void;
type Texts = *const *const c_char;

functions! {
    nvrtcVersion(*mut c_int, *mut c_int);
    nvrtcGetNumSupportedArchs(*mut c_int);
    nvrtcGetSupportedArchs(*mut c_int);
    nvrtcCreateProgram(*mut Handle, *const c_char, *const c_char, c_int, Texts, Texts);
    nvrtcCompileProgram(Handle, c_int, Texts);
    nvrtcDestroyProgram(*mut Handle);
    nvrtcGetProgramLogSize(Handle, *mut usize);
    nvrtcGetProgramLog(Handle, *mut c_char);
    nvrtcGetCUBINSize(Handle, *mut usize);
    nvrtcGetCUBIN(Handle, *mut c_char);
    nvrtcGetPTXSize(Handle, *mut usize);
    nvrtcGetPTX(Handle, *mut c_char);
}

struct Nvrtc {
    functions: Functions,
    version: (i32, i32),
    path: String,
    /// compute capabilities, times ten
    capabilities: Vec<c_int>,
}

impl std::fmt::Display for Nvrtc {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.version;
        write!(to, "NVRTC {major}.{minor} ({})", self.path)
    }
}

impl Nvrtc {
    fn open(major: i32, file: &str, served: i32) -> Result<Nvrtc, String> {
        let library = Opened::find(file)?;
        let functions = Functions::load(&library)?;
        let mut version = (0, 0);
        // SAFETY: two numbers are written.
        let result = unsafe { (functions.nvrtcVersion)(&mut version.0, &mut version.1) };
        let path = library.path;
        if result != 0 || version.0 != major {
            return Err(format!("{path} is NVRTC {}.{}, where {major} was expected", version.0, version.1));
        }
        // Code of a newer major is not for this driver.
        if major > served / 1000 {
            let (served, minor) = (served / 1000, served % 1000 / 10);
            return Err(format!("{path} is NVRTC {major}, but the driver serves CUDA {served}.{minor}"));
        }
        let mut count = 0;
        // SAFETY: one number is written.
        let counted = unsafe { (functions.nvrtcGetNumSupportedArchs)(&mut count) };
        let mut capabilities = vec![0; usize::try_from(count).unwrap_or_default().min(1000)];
        // SAFETY: as many numbers are written as were counted.
        let listed = counted == 0 && unsafe { (functions.nvrtcGetSupportedArchs)(capabilities.as_mut_ptr()) } == 0;
        if !listed {
            return Err(format!("{path} does not say which GPUs it compiles for"));
        }
        Ok(Nvrtc { functions, version, path, capabilities })
    }

    /// The target to compile for; none if this version knows no target that runs on such a GPU.
    fn target(&self, (major, minor): (i32, i32)) -> Option<String> {
        let fits = |one: &&c_int| **one <= 10 * major + minor;
        let newest = *self.capabilities.iter().filter(fits).max()?;
        // Code runs on later minors of its major; what came later still takes PTX.
        let kind = if newest / 10 == major { "sm" } else { "compute" };
        Some(format!("{kind}_{newest}"))
    }

    fn compile(&self, text: &KernelSource, target: &str) -> Result<Vec<u8>, String> {
        let refused = |what: &str, code: c_int, log: &str| {
            let log: String = log.chars().take(2000).collect();
            format!("{self} {what} {} for {target}: error {code} {}", text.name, log.trim())
        };
        let program = NvrtcProgram::new(self, text).map_err(|code| refused("takes no program for", code, ""))?;
        let options =
            [vec![format!("--gpu-architecture={target}")], text.options.iter().map(|o| (*o).to_owned()).collect()];
        let options = Strings::new(options.iter().flatten().map(String::as_str));
        // SAFETY: a program, and as many options as are counted.
        let code = unsafe { (self.functions.nvrtcCompileProgram)(program.handle, options.count(), options.at()) };
        if code != 0 {
            let f = &self.functions;
            let log = program.result(f.nvrtcGetProgramLogSize, f.nvrtcGetProgramLog).unwrap_or_default();
            return Err(refused("does not compile", code, &String::from_utf8_lossy(&log).replace('\0', "")));
        }
        let f = &self.functions;
        let made = match target.starts_with("sm_") {
            true => program.result(f.nvrtcGetCUBINSize, f.nvrtcGetCUBIN),
            false => program.result(f.nvrtcGetPTXSize, f.nvrtcGetPTX),
        };
        made.map_err(|code| refused("gives no code of", code, ""))
    }
}

/// Texts that end with zeros, and their addresses.
struct Strings {
    _texts: Vec<CString>,
    addresses: Vec<*const c_char>,
}

impl Strings {
    fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Strings {
        let texts: Vec<CString> = texts.map(|text| CString::new(text).unwrap_or_default()).collect();
        let addresses = texts.iter().map(|text| text.as_ptr()).collect();
        Strings { _texts: texts, addresses }
    }

    fn count(&self) -> c_int {
        self.addresses.len() as c_int
    }

    fn at(&self) -> Texts {
        self.addresses.as_ptr()
    }
}

struct NvrtcProgram<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

impl NvrtcProgram<'_> {
    fn new<'a>(nvrtc: &'a Nvrtc, text: &KernelSource) -> Result<NvrtcProgram<'a>, c_int> {
        let mut main = text.main.clone().into_bytes();
        main.push(0);
        let main = CStr::from_bytes_until_nul(&main).unwrap_or_default();
        let name = CString::new(text.name).unwrap_or_default();
        let names = Strings::new(text.files.iter().map(|(name, _)| *name));
        let texts = Strings::new(text.files.iter().map(|(_, text)| *text));
        let mut handle = std::ptr::null_mut();
        // SAFETY: a variable for the result; texts that end, and as many files as are counted. NVRTC
        // copies them.
        let code = unsafe {
            let create = nvrtc.functions.nvrtcCreateProgram;
            create(&mut handle, main.as_ptr(), name.as_ptr(), texts.count(), texts.at(), names.at())
        };
        if code == 0 { Ok(NvrtcProgram { nvrtc, handle }) } else { Err(code) }
    }

    /// A result of compiling, by the functions for its size and its bytes.
    fn result(
        &self,
        size_of: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, c_int> {
        let mut size = 0;
        // SAFETY: a program, and a variable for the result.
        let code = unsafe { size_of(self.handle, &mut size) };
        if code != 0 {
            return Err(code);
        }
        let mut bytes = vec![0; size];
        // SAFETY: as many bytes are written as was said.
        match unsafe { get(self.handle, bytes.as_mut_ptr().cast()) } {
            0 => Ok(bytes),
            code => Err(code),
        }
    }
}

impl Drop for NvrtcProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used again.
        unsafe { (self.nvrtc.functions.nvrtcDestroyProgram)(&mut self.handle) };
    }
}
