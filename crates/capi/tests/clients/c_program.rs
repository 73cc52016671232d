//! The C example, compiled with the header against the built library, as a user would.

use crate::common::{compile, repository, run};

#[test]
fn a_c_program_gets_the_same_answers_from_eight_threads_on_one_cached_op() {
    let directory = std::env::temp_dir().join(format!("mxrt-c-program-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let program = directory.join("predict");
    compile(&repository().join("examples/c/predict.c"), &program);
    let model = repository().join("tests/models/digits_cnn");
    let (symbol, params) = (model.join("digits_cnn-symbol.json"), model.join("digits_cnn-0000.params"));
    let (symbol, params) = (symbol.to_str().expect("UTF-8"), params.to_str().expect("UTF-8"));

    let (success, text) = run(&program, &[symbol, params, "data", "3,1,8,8"], &[]);
    assert!(success, "{text}");
    assert!(text.contains("8 threads, 160 answers of 30 values each, all equal"), "{text}");

    let (success, text) = run(&program, &[symbol, params, "data", "3,2,8,8"], &[]);
    assert!(!success && text.contains("(3, 2, 8, 8)"), "{text}");
    let (success, text) = run(&program, &["none.json", params, "data", "3,1,8,8"], &[]);
    assert!(!success && text.contains("Open \"none.json\": No such file or directory"), "{text}");
    std::fs::remove_dir_all(directory).expect("removed");
}

#[test]
fn every_function_of_the_header_is_in_the_library() {
    let include = repository().join("crates/capi/include");
    let headers = ["mxrt.h", "mxnet/c_api.h", "mxnet/c_predict_api.h", "nnvm/c_api.h"];
    let text: String =
        headers.iter().map(|name| std::fs::read_to_string(include.join(name)).expect("the header")).collect();
    let declared: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("MXNET_DLL ")?.split_once('(')?.0.rsplit([' ', '*']).next())
        .collect();
    assert!(declared.len() > 100 && declared.contains(&"MXInvokeCachedOp"), "{declared:?}");
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
