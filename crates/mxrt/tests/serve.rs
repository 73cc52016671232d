//! The example for Rust programs, run on a trained model.

use std::path::Path;
use std::process::{Command, Output};

/// Runs the example, which cargo builds together with this test.
fn serve(arguments: &[&str]) -> Output {
    let test = std::env::current_exe().expect("the test's own path");
    let program = test.ancestors().nth(2).expect("the build directory").join("examples/serve");
    assert!(program.exists(), "{} is not built: run all tests of the package", program.display());
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/digits_cnn");
    Command::new(program).args(arguments).current_dir(model).output().expect("the example runs")
}

#[test]
fn many_threads_get_the_same_answers_from_one_model() {
    let output = serve(&["digits_cnn-symbol.json", "digits_cnn-0000.params", "data", "3,1,8,8", "16"]);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("16 threads") && text.contains("all equal"), "{text}");
}

#[test]
fn what_is_missing_is_named() {
    let output = serve(&["digits_cnn-symbol.json", "digits_cnn-0000.params", "image", "3,1,8,8"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("there is no parameter for the input 'data'"), "{text}");
}
