//! The predict interface from C, on every kind of engine, and devices.

use crate::common::{Arguments, Directory, check_program, compile_test, digits, run};

#[test]
fn a_c_program_predicts_on_every_kind_of_engine() {
    let kinds = ["ThreadedEnginePerDevice", "ThreadedEngine", "NaiveEngine"];
    check_program("predict_api", Arguments::Digits, &kinds.map(|kind| ("MXNET_ENGINE_TYPE", kind)));
}

#[test]
fn an_unknown_kind_of_engine_is_named() {
    let directory = Directory::new("predict-unknown");
    let program = compile_test("predict_api", &directory);
    let files = digits();
    let (success, text) = run(&program, &files.each_ref().map(String::as_str), &[("MXNET_ENGINE_TYPE", "SteamEngine")]);
    assert!(!success && text.contains("SteamEngine"), "{text}");
}

#[test]
fn a_c_program_uses_devices() {
    check_program("devices", Arguments::Digits, &[("MXRT_SIM_GPUS", "2")]);
}
