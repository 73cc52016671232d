//! `mxrt.hpp`, from C++17.

use crate::common::{
    self, Arguments, Directory, check_cpp_program, compile_cpp, compile_test_cpp, file, repository, run,
};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[test]
fn a_cpp_program_gets_answers_exceptions_and_futures_from_many_threads() {
    check_cpp_program(
        "cpp_api",
        Arguments::Digits,
        &[("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"), ("MXNET_ENGINE_TYPE", "ThreadedEngine")],
    );
}

#[test]
fn the_example_checks_the_answers_of_sixteen_threads() {
    let directory = Directory::new("cpp-example");
    let program = directory.0.join("multi_threaded_inference");
    compile_cpp(&repository().join("examples/cpp/multi_threaded_inference.cpp"), &program);
    let prefix = file("tests/models/digits_cnn/digits_cnn");
    let arguments = [&prefix, "0", "--shape", "1,1,8,8", "--threads", "16", "--requests", "20"];
    let (success, text) = run(&program, &arguments, &[]);
    assert!(success && text.contains("16 threads, 320 requests, 0 wrong") && text.contains("p99"), "{text}");
    let (success, text) = run(&program, &["none", "0"], &[]);
    assert!(!success && text.contains("none-symbol.json"), "{text}");
    let (success, text) = run(&program, &[&prefix, "1", "--shape", "1,1,8,8"], &[]);
    assert!(!success && text.contains("gpu"), "{text}");
}

/// The status of a process that a signal has ended.
const ABORTED: i32 = 6;

#[test]
fn an_exception_that_leaves_a_function_of_the_program_ends_the_process() {
    let directory = Directory::new("cpp-throwing");
    let program = compile_test_cpp("throwing", &directory);
    for function in ["sync", "async", "ready", "monitor", "deleter"] {
        for kind in ["ThreadedEnginePerDevice", "NaiveEngine"] {
            let mut command = Command::new(&program);
            command.arg(function).env("LD_LIBRARY_PATH", common::library()).env("MXNET_ENGINE_TYPE", kind);
            let output = command.output().expect("the program runs");
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(ABORTED), "{function}, {kind}: {} {text}", output.status);
            assert!(!text.contains("went on"), "{function}, {kind}: {text}");
        }
    }
}

#[test]
fn every_kind_of_failure_has_an_exception() {
    let include = repository().join("crates/capi/include");
    let header = std::fs::read_to_string(include.join("mxrt/error.hpp")).expect("the header");
    for kind in mxrt::internal::FailureKind::ALL {
        assert!(header.contains(&format!("{{\"{}\", raise<", kind.name())), "{kind:?} has no row in mxrt/error.hpp");
    }
}

#[test]
fn each_header_compiles_alone() {
    let directory = Directory::new("cpp-headers");
    let source = directory.0.join("alone.cpp");
    for header in ["mxrt.hpp", "mxrt/error.hpp", "mxrt/array.hpp", "mxrt/symbol_block.hpp"] {
        std::fs::write(&source, format!("#include <{header}>\nint main() {{ return 0; }}\n")).expect("a file");
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]);
        compiler.args(["-fsyntax-only", "-I"]).arg(repository().join("crates/capi/include")).arg(&source);
        let output = compiler.output().expect("a C++ compiler");
        assert!(output.status.success(), "{header}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The code of a page between fences of a language.
fn blocks(page: &str, language: &str) -> String {
    let text = std::fs::read_to_string(repository().join(page)).expect("a page");
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_code_of_the_first_page_compiles() {
    let directory = Directory::new("cpp-readme");
    for (language, compile) in [("c", common::compile as fn(&_, &_)), ("cpp", compile_cpp)] {
        let source = directory.0.join(format!("readme.{language}"));
        let code = blocks("README.md", language);
        assert!(code.contains("answer("), "README.md has no code in {language}");
        std::fs::write(&source, code + "int main(void) { return 0; }\n").expect("a file");
        compile(&source, &directory.0.join(language));
    }
}
