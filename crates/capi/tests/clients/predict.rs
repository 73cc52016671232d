//! The predict interface from C, on every kind of engine, and devices.

use crate::common::{Directory, compile_test, digits, run};

#[test]
fn a_c_program_predicts_on_every_kind_of_engine() {
    let directory = Directory::new("predict-api");
    let program = compile_test("predict_api", &directory);
    let arguments = digits();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for kind in ["ThreadedEnginePerDevice", "ThreadedEngine", "NaiveEngine"] {
        let (success, text) = run(&program, &arguments, &[("MXNET_ENGINE_TYPE", kind)]);
        assert!(success && text.contains(" checks"), "{kind}: {text}");
    }
    let (success, text) = run(&program, &arguments, &[("MXNET_ENGINE_TYPE", "SteamEngine")]);
    assert!(!success && text.contains("SteamEngine"), "{text}");
}

#[test]
fn a_c_program_uses_devices() {
    let directory = Directory::new("devices-api");
    let program = compile_test("devices", &directory);
    let arguments = digits();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (success, text) = run(&program, &arguments, &[("MXRT_SIM_GPUS", "2")]);
    assert!(success && text.contains(" checks"), "{text}");
}
