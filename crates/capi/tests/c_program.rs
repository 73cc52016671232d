//! The C example, compiled with the header against the built library, as a user would.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the library that was built together with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let directories: Vec<&Path> = test.ancestors().skip(1).take(2).collect();
    let found = directories.iter().find(|directory| directory.join("libmxrt_capi.so").exists());
    found.unwrap_or_else(|| panic!("libmxrt_capi.so is in none of {directories:?}")).to_path_buf()
}

/// Compiles a program with every warning an error.
fn compile(source: &Path, to: &Path) {
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-o"]).arg(to).arg(source);
    // Function pointers of different types: never compared and never called.
    cc.arg("-Wno-cast-function-type").arg("-I").arg(repository().join("crates/capi/include"));
    cc.arg("-L").arg(library()).args(["-lmxrt_capi", "-lpthread"]);
    let output = cc.output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn predict(program: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(program);
    let output = command.args(arguments).env("LD_LIBRARY_PATH", library()).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.into_owned())
}

#[test]
fn a_c_program_gets_the_same_answers_from_eight_threads_on_one_cached_op() {
    let directory = std::env::temp_dir().join(format!("mxrt-c-program-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let program = directory.join("predict");
    compile(&repository().join("examples/c/predict.c"), &program);
    let model = repository().join("tests/models/digits_cnn");
    let (symbol, params) = (model.join("digits_cnn-symbol.json"), model.join("digits_cnn-0000.params"));
    let (symbol, params) = (symbol.to_str().expect("UTF-8"), params.to_str().expect("UTF-8"));

    let (success, text) = predict(&program, &[symbol, params, "data", "3,1,8,8"]);
    assert!(success, "{text}");
    assert!(text.contains("8 threads, 160 answers of 30 values each, all equal"), "{text}");

    let (success, text) = predict(&program, &[symbol, params, "data", "3,2,8,8"]);
    assert!(!success && text.contains("(3, 2, 8, 8)"), "{text}");
    let (success, text) = predict(&program, &["none.json", params, "data", "3,1,8,8"]);
    assert!(!success && text.contains("Open \"none.json\": No such file or directory"), "{text}");
    std::fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn every_function_of_the_header_is_in_the_library() {
    let header = std::fs::read_to_string(repository().join("crates/capi/include/mxrt.h")).expect("the header");
    let declared: Vec<&str> = header
        .lines()
        .filter(|line| line.starts_with("int ") || line.starts_with("const char *"))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .collect();
    assert!(declared.len() > 30 && declared.contains(&"MXInvokeCachedOp"), "{declared:?}");
    let mut program = String::from("#include <mxrt.h>\ntypedef void (*function)(void);\nfunction all[] = {\n");
    for name in &declared {
        program += &format!("  (function)&{name},\n");
    }
    program += "};\nint main(void) { return all[0] == 0; }\n";
    let directory = std::env::temp_dir().join(format!("mxrt-c-header-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let source = directory.join("all.c");
    std::fs::write(&source, program).expect("a file");
    compile(&source, &directory.join("all"));
    std::fs::remove_dir_all(directory).expect("removed");
}
