//! Compiling and running C programs against the library that was built with the tests.

#![allow(dead_code, reason = "each test uses some of it")]

pub mod header;

use std::path::{Path, PathBuf};
use std::process::Command;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the library that was built together with this test.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let directories: Vec<&Path> = test.ancestors().skip(1).take(2).collect();
    let found = directories.iter().find(|directory| directory.join("libmxrt_capi.so").exists());
    found.unwrap_or_else(|| panic!("libmxrt_capi.so is in none of {directories:?}")).to_path_buf()
}

/// The words of a variable: scripts/sanitize_c.sh sets flags of the compiler, or a program that runs
/// the others.
fn words(variable: &str) -> Vec<String> {
    std::env::var(variable).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Whether programs get an allocator of a sanitizer: its locks do not survive a fork while other
/// threads run, and it keeps freed memory.
pub fn has_own_allocator() -> bool {
    words("MXRT_TEST_CFLAGS").iter().any(|flag| flag.starts_with("-fsanitize"))
}

/// A command that runs a program.
fn runner(program: &Path) -> Command {
    match words("MXRT_TEST_RUNNER").split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Compiles a program with every warning an error.
pub fn compile(source: &Path, to: &Path) {
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-o"]).arg(to).arg(source);
    // Function pointers of different types: never compared and never called.
    cc.arg("-Wno-cast-function-type").arg("-I").arg(repository().join("crates/capi/include"));
    cc.arg("-L").arg(library()).args(["-lmxrt_capi", "-lpthread"]);
    cc.args(["-lm"]).args(words("MXRT_TEST_CFLAGS"));
    let output = cc.output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a C++17 program with every warning an error.
pub fn compile_cpp(source: &Path, to: &Path) {
    let mut cxx = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    cxx.args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-o"]).arg(to).arg(source);
    cxx.arg("-I").arg(repository().join("crates/capi/include"));
    cxx.arg("-L").arg(library()).args(["-lmxrt_capi", "-lpthread"]).args(words("MXRT_TEST_CFLAGS"));
    let output = cxx.output().expect("a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a program. Returns whether it ended well, and what it wrote.
pub fn run(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (bool, String) {
    let mut command = runner(program);
    command.envs(environment.iter().copied());
    let output = command.args(arguments).env("LD_LIBRARY_PATH", library()).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.into_owned())
}

/// Runs a program. Returns its exit code, if it ended by itself, and what it wrote.
pub fn exit_code(program: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = runner(program).args(arguments).env("LD_LIBRARY_PATH", library()).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

/// Runs a program without arguments in a directory.
pub fn run_in(program: &Path, directory: &Path) -> (bool, String) {
    let mut command = runner(program);
    let output = command.current_dir(directory).env("LD_LIBRARY_PATH", library()).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), format!("{} {text}", output.status))
}

/// A directory that is removed when it is dropped.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("mxrt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of the repository.
pub fn file(path: &str) -> String {
    repository().join(path).to_str().expect("UTF-8").to_owned()
}

/// Setting of a run of a program.
pub type Setting = (&'static str, &'static str);

/// Settings with which most programs run: one run each.
pub const ENGINES: &[Setting] =
    &[("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"), ("MXNET_ENGINE_TYPE", "NaiveEngine")];

/// Arguments of a program of `tests/programs`.
#[derive(Clone, Copy)]
pub enum Arguments {
    None,
    /// a folder for the files that it writes
    Folder,
    /// the files of `digits`
    Digits,
}

/// Compiles a program of `tests/programs`, and runs it once with each of these settings. Fails if one
/// of its checks fails, or if it makes none.
pub fn check_program(name: &str, arguments: Arguments, settings: &[Setting]) {
    check_compiled(name, compile_test, arguments, settings);
}

/// Does the same for a program in C++.
pub fn check_cpp_program(name: &str, arguments: Arguments, settings: &[Setting]) {
    check_compiled(name, compile_test_cpp, arguments, settings);
}

fn check_compiled(name: &str, compile: fn(&str, &Directory) -> PathBuf, arguments: Arguments, settings: &[Setting]) {
    let directory = Directory::new(name);
    let program = compile(name, &directory);
    let arguments: Vec<String> = match arguments {
        Arguments::None => Vec::new(),
        Arguments::Folder => vec![directory.0.to_str().expect("UTF-8").to_owned()],
        Arguments::Digits => digits().to_vec(),
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for setting in settings {
        let (success, text) = run(&program, &arguments, &[*setting]);
        assert!(success && text.contains(" checks"), "{name}, {setting:?}: {text}");
    }
}

/// Compiles a program of `tests/programs`.
pub fn compile_test(name: &str, directory: &Directory) -> PathBuf {
    let program = directory.0.join(name);
    compile(&repository().join(format!("crates/capi/tests/programs/{name}.c")), &program);
    program
}

/// Compiles a C++ program of `tests/programs`.
pub fn compile_test_cpp(name: &str, directory: &Directory) -> PathBuf {
    let program = directory.0.join(name);
    compile_cpp(&repository().join(format!("crates/capi/tests/programs/{name}.cpp")), &program);
    program
}

/// Files of a small network: symbol, parameters, raw float32 inputs (3, 1, 8, 8) and MXNet's
/// outputs (3, 10).
pub fn digits() -> [String; 4] {
    [
        file("tests/models/digits_cnn/digits_cnn-symbol.json"),
        file("tests/models/digits_cnn/digits_cnn-0000.params"),
        file("crates/capi/tests/recorded/digits_b3_in.f32"),
        file("crates/capi/tests/recorded/digits_b3_out.f32"),
    ]
}
