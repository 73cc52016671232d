//! The names that the library exports, and its headers.

use crate::common::{Directory, compile, library, repository};
use std::collections::BTreeSet;
use std::process::Command;

/// Functions of ours that MXNet's library lacks.
const OWN: [&str; 17] = [
    "MXFreeCachedOpEX",
    "MXInvokeCachedOpEX",
    "MXRTEngineComplete",
    "MXRTGetLastError",
    "MXRTGetVersion",
    "MXRTImageDecode",
    "MXRTModelCall",
    "MXRTModelCreate",
    "MXRTModelFree",
    "MXRTModelListInputs",
    "MXRTModelListOutputs",
    "MXRTModelLoad",
    "MXRTNDArrayCancel",
    "MXRTNDArrayFromData",
    "MXRTNDArrayIsReady",
    "MXRTNDArrayOnReady",
    "MXRTSetFlushDenormals",
];

fn recorded() -> BTreeSet<String> {
    let path = repository().join("crates/capi/tests/recorded/libmxnet_exports.txt");
    std::fs::read_to_string(path).expect("the list").lines().map(str::to_owned).collect()
}

#[test]
fn exactly_the_names_of_mxnets_library_and_our_own_are_exported() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library().join("libmxrt_capi.so"))
        .output()
        .expect("nm, of the tools that cc needs");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let exported: BTreeSet<String> =
        text.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect();
    let mut expected = recorded();
    assert!(expected.len() > 290);
    expected.extend(OWN.map(str::to_owned));
    let difference: Vec<&String> = exported.symmetric_difference(&expected).collect();
    assert!(difference.is_empty(), "exported by one of the two only: {difference:?}");
}

#[test]
fn a_program_that_names_every_function_of_mxnets_library_links() {
    let names = recorded();
    let mut program = String::new();
    for name in &names {
        program += &format!("extern void {name}(void);\n");
    }
    program += "typedef void (*function)(void);\nfunction all[] = {\n";
    for name in &names {
        program += &format!("  {name},\n");
    }
    program += "};\nint main(void) { return all[0] == 0; }\n";
    let directory = Directory::new("all-names");
    let source = directory.0.join("all.c");
    std::fs::write(&source, program).expect("a file");
    compile(&source, &directory.0.join("all"));
}

#[test]
fn each_header_compiles_alone_as_c99_and_as_cpp98() {
    let directory = Directory::new("headers");
    let include = repository().join("crates/capi/include");
    for header in ["mxrt.h", "mxnet/c_types.h", "mxnet/c_api.h", "mxnet/c_predict_api.h", "nnvm/c_api.h"] {
        for (extension, standard) in [("c", "-std=c99"), ("cpp", "-std=c++98")] {
            let source = directory.0.join(format!("alone.{extension}"));
            std::fs::write(&source, format!("#include <{header}>\nint main(void) {{ return 0; }}\n")).expect("a file");
            let mut compiler = Command::new("cc");
            // C++98 has no <stdint.h>; every compiler gives it, and says so when it is pedantic.
            compiler.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Wno-long-long", "-Werror", "-fsyntax-only"]);
            let output = compiler.arg("-I").arg(&include).arg(&source).output().expect("a C compiler");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{header} {standard}: {text}");
        }
    }
}
