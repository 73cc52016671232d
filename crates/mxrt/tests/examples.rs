//! The examples for Rust programs, run on a trained model.

use std::path::Path;
use std::process::{Command, Output};

/// Runs an example, which cargo builds together with this test.
fn example(name: &str, arguments: &[&str]) -> Output {
    let test = std::env::current_exe().expect("the test's own path");
    let program = test.ancestors().nth(2).expect("the build directory").join("examples").join(name);
    assert!(program.exists(), "{} is not built: run all tests of the package", program.display());
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/digits_cnn");
    Command::new(program).args(arguments).current_dir(model).output().expect("the example runs")
}

/// The output of a program as text.
fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn many_threads_get_the_same_answers_from_one_model() {
    let output = example("serve", &["digits_cnn", "0", "3,1,8,8", "16"]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("16 threads") && text.contains("all equal"), "{text}");
}

#[test]
fn an_image_has_a_class() {
    let output = example("simple", &["digits_cnn", "0", "1,1,8,8"]);
    let text = text(&output);
    assert!(output.status.success() && text.starts_with("class "), "{text}");
}

#[test]
fn what_is_missing_is_named() {
    let output = example("simple", &["digits_cnn", "3", "1,1,8,8"]);
    let text = text(&output);
    assert!(!output.status.success() && text.contains("digits_cnn-0003.params"), "{text}");
}

#[test]
fn an_operator_of_the_program_runs() {
    let output = example("custom_op", &[]);
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let numbers = text.trim().trim_matches(['[', ']']).split(", ").map(str::parse::<f32>);
    let swish = |x: f32| 10.0 * x / (1.0 + (-2.0 * x).exp());
    for (number, x) in numbers.zip([-1.0, 0.0, 1.0]) {
        assert!((number.expect("a number") - swish(x)).abs() < 1e-5, "{text}");
    }
}
