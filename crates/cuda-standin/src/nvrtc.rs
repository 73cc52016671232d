//! NVRTC for tests: the same library under the name `libnvrtc.so.12` or `libnvrtc.so.13`. It
//! compiles for the host, with the files next to the library of `STANDIN_KERNELS`. It takes the
//! source of all kernels for compiled, because that library is.

use crate::elf;
use crate::state::{number, put};
use std::ffi::{CStr, c_char, c_int};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

type Code = c_int;
const INVALID_INPUT: Code = 3;
const INVALID_PROGRAM: Code = 4;
const INVALID_OPTION: Code = 5;
const COMPILATION: Code = 6;

/// A program that was created, and what came of compiling it.
struct CompiledProgram {
    name: String,
    main: String,
    files: Vec<(String, String)>,
    log: Vec<u8>,
    code: Vec<u8>,
}

/// The version times ten.
fn version() -> c_int {
    number("STANDIN_NVRTC", 129) as c_int
}

/// Compute capabilities that this version compiles for, as the real ones.
fn targets() -> &'static [c_int] {
    match version() {
        130.. => &[75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121],
        _ => &[50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121],
    }
}

/// # Safety
/// As many texts as are counted, each ended by a zero.
unsafe fn texts(count: c_int, at: *const *const c_char) -> Vec<String> {
    // SAFETY: contract.
    let text = |i| unsafe { CStr::from_ptr(*at.add(i)) }.to_string_lossy().into_owned();
    (0..count as usize).map(text).collect()
}

/// # Safety
/// Null, or a program that was not destroyed.
unsafe fn program<'a>(at: *mut CompiledProgram) -> Result<&'a mut CompiledProgram, Code> {
    // SAFETY: contract.
    unsafe { at.as_mut() }.ok_or(INVALID_PROGRAM)
}

impl CompiledProgram {
    fn compile(&mut self, options: &[String]) -> Result<(), Code> {
        let target = options.iter().find_map(|option| option.strip_prefix("--gpu-architecture=")).unwrap_or_default();
        let known =
            |kind: &str| target.strip_prefix(kind).and_then(|t| t.parse().ok()).is_some_and(|t| targets().contains(&t));
        if !known("sm_") && !known("compute_") {
            return Err(INVALID_OPTION);
        }
        if let Ok(path) = std::env::var("STANDIN_COMPILED") {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| writeln!(file, "{} {target}", self.name)).map_err(|_| INVALID_INPUT)?;
        }
        match number("STANDIN_NVRTC_FAILS", 0) {
            0 => {}
            code => {
                self.log = b"the stand-in was told to fail\0".to_vec();
                return Err(code as Code);
            }
        }
        self.code = if self.name == "kernels.cu" { elf::of_a_gpu() } else { self.for_the_host()? };
        Ok(())
    }

    fn for_the_host(&mut self) -> Result<Vec<u8>, Code> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let kernels = std::env::var("STANDIN_KERNELS").map_err(|_| COMPILATION)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mxrt-standin-{}-{number}", std::process::id()));
        let made = self.build(&folder, Path::new(&kernels));
        let _ = std::fs::remove_dir_all(&folder);
        made.map_err(|error| {
            self.log = format!("{error}\0").into_bytes();
            COMPILATION
        })
    }

    fn build(&self, folder: &Path, kernels: &Path) -> std::io::Result<Vec<u8>> {
        std::fs::create_dir_all(folder)?;
        let main = (&self.name, &self.main);
        for (name, text) in self.files.iter().map(|(name, text)| (name, text)).chain([main]) {
            std::fs::write(folder.join(name), text)?;
        }
        let out = folder.join("out.so");
        let mut command = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
        command.args("-std=c++17 -O1 -ffp-contract=off -w -shared -fPIC".split(' ')).arg("-I").arg(folder);
        command.arg("-I").arg(kernels.parent().unwrap_or(folder)).args(["-x", "c++"]).arg(folder.join(&self.name));
        let done = command.args(["-x", "none"]).arg(kernels).arg("-o").arg(&out).output()?;
        match done.status.success() {
            true => std::fs::read(out),
            false => Err(std::io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned())),
        }
    }
}

/// Defines functions of NVRTC: each is a `Result` inside, and a number outside.
macro_rules! nvrtc {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of NVRTC.")]
        ///
        /// # Safety
        /// Pointers are as NVRTC's documentation says.
        #[unsafe(no_mangle)]
        #[allow(private_interfaces)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Code {
            let body = || -> Result<(), Code> { $body };
            body().err().unwrap_or(0)
        }
    )*};
}

/// Stores a result.
fn give<T>(to: *mut T, value: T) -> Result<(), Code> {
    put(to, value).map_err(|_| INVALID_INPUT)
}

/// # Safety
/// Room for all bytes.
unsafe fn copy(to: *mut c_char, bytes: &[u8]) {
    // SAFETY: contract.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
}

nvrtc! {
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) {
        give(major, version() / 10)?;
        give(minor, version() % 10)
    }
    fn nvrtcGetNumSupportedArchs(count: *mut c_int) { give(count, targets().len() as c_int) }
    fn nvrtcGetSupportedArchs(to: *mut c_int) {
        // SAFETY: room for as many as were counted.
        unsafe { std::ptr::copy_nonoverlapping(targets().as_ptr(), to, targets().len()) };
        Ok(())
    }
    fn nvrtcCreateProgram(
        made: *mut *mut CompiledProgram, main: *const c_char, name: *const c_char, count: c_int, headers: *const *const c_char,
        names: *const *const c_char
    ) {
        // SAFETY: the caller's texts.
        let (names, headers, own) = unsafe { (texts(count, names), texts(count, headers), texts(2, [name, main].as_ptr())) };
        let files = names.into_iter().zip(headers).collect();
        let (name, main) = (own[0].clone(), own[1].clone());
        give(made, Box::into_raw(Box::new(CompiledProgram { name, main, files, log: vec![0], code: Vec::new() })))
    }
    fn nvrtcCompileProgram(at: *mut CompiledProgram, count: c_int, options: *const *const c_char) {
        // SAFETY: the caller's program and texts.
        unsafe { program(at)?.compile(&texts(count, options)) }
    }
    fn nvrtcDestroyProgram(at: *mut *mut CompiledProgram) {
        // SAFETY: the caller's program, which it does not use again.
        drop(unsafe { Box::from_raw(*at) });
        Ok(())
    }
    // SAFETY: the caller's program, and room for what it was told.
    fn nvrtcGetProgramLogSize(at: *mut CompiledProgram, to: *mut usize) { give(to, unsafe { program(at)? }.log.len()) }
    // SAFETY: as above.
    fn nvrtcGetProgramLog(at: *mut CompiledProgram, to: *mut c_char) { unsafe { copy(to, &program(at)?.log) }; Ok(()) }
    // SAFETY: as above.
    fn nvrtcGetCUBINSize(at: *mut CompiledProgram, to: *mut usize) { give(to, unsafe { program(at)? }.code.len()) }
    // SAFETY: as above.
    fn nvrtcGetCUBIN(at: *mut CompiledProgram, to: *mut c_char) { unsafe { copy(to, &program(at)?.code) }; Ok(()) }
    // SAFETY: as above.
    fn nvrtcGetPTXSize(at: *mut CompiledProgram, to: *mut usize) { give(to, unsafe { program(at)? }.code.len()) }
    // SAFETY: as above.
    fn nvrtcGetPTX(at: *mut CompiledProgram, to: *mut c_char) { unsafe { copy(to, &program(at)?.code) }; Ok(()) }
}
