//! The engine's behaviour with a GPU whose driver fails, is too old, or is missing. Every case is a
//! child process with the stand-in in place of the driver, or without it: this test program itself,
//! asked for one of the programs at the end.

mod programs;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder in which a loader finds the stand-in.
fn folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let target = program.parent().unwrap();
    let library = target.join("libmxrt_standin.so");
    assert!(library.exists(), "{library:?} is built with this test");
    let folder = target.join("standin");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        let temporary = folder.join(format!("{name}.{}.{:?}", std::process::id(), std::thread::current().id()));
        symlink(&library, &temporary).unwrap();
        std::fs::rename(temporary, folder.join(name)).unwrap();
    }
    folder
}

fn run_with(libraries: &Path, program: &str, env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("programs::{program}"), "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("LD_LIBRARY_PATH", libraries).env_remove("CUDA_VISIBLE_DEVICES").envs(env.iter().copied());
    command.output().unwrap()
}

/// The output of a program, which must end with success.
fn run(program: &str, env: &[(&str, &str)]) -> String {
    let output = run_with(&folder(), program, env);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{env:?}\n{text}\n{errors}");
    text.into_owned()
}

/// A fault, how many of 200 programs fail, and words of the first failure.
#[test]
fn a_fault_reaches_the_op_that_it_belongs_to() {
    let expected: [(&str, &str, &[&str]); 9] = [
        ("", "200 rounds, 0 failed", &[]),
        // What was freed is given back, and the second try succeeds.
        ("alloc:3:2", "200 rounds, 0 failed", &[]),
        ("launch:5:1", "200 rounds, 1 failed", &["copying for out on gpu(0)", "CUDA_ERROR_INVALID_VALUE"]),
        // The op is marked at the second try.
        ("record:40:1", "200 rounds, ", &["on gpu(0): CUDA error 1"]),
        ("wait:30:1", "200 rounds, 1 failed", &["gpu(0)", "CUDA error 1"]),
        ("copy:20:2", "200 rounds, 1 failed", &["kind: Memory", "CUDA_ERROR_OUT_OF_MEMORY"]),
        ("query:60:1", "200 rounds, ", &[]),
        ("copy:30:700,copy:31:1", "lost", &["gpu(0) is lost: CUDA error 700, CUDA_ERROR_ILLEGAL_ADDRESS"]),
        ("copy:20:12345", "200 rounds, 1 failed", &["CUDA error 12345 (device error 12345)"]),
    ];
    for (fault, outcome, words) in expected {
        let text = run("child_copies", &[("STANDIN_FAULTS", fault)]);
        assert!(text.contains(outcome), "{fault}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{fault}: {text}");
    }
}

#[test]
fn a_lost_device_is_noticed_by_whatever_is_asked_next() {
    for (fault, noticed) in [("record:300:700", "noticed when"), ("execute:100:719", "noticed when")] {
        let text = run("child_copies", &[("STANDIN_FAULTS", fault)]);
        let code = fault.rsplit(':').next().unwrap();
        assert!(
            text.contains(&format!("gpu(0) is lost: CUDA error {code}")) && text.contains(noticed),
            "{fault}: {text}"
        );
        assert!(text.contains("lost for good"), "{fault}: {text}");
    }
}

#[test]
fn callers_of_a_lost_device_all_get_an_answer_and_the_others_go_on() {
    let env = [("STANDIN_DEVICES", "2"), ("STANDIN_FAULTS", "execute:900:700")];
    let text = run("child_callers", &env);
    assert!(text.contains("64 callers: gpu(0) lost for 32 of 32, gpu(1) right for 32 of 32, cpu right"), "{text}");
}

#[test]
fn work_and_copies_of_two_devices_are_ordered_by_events() {
    let text = run("child_two_devices", &[("STANDIN_DEVICES", "2"), ("STANDIN_DELAY_US", "300")]);
    assert!(text.contains("in order"), "{text}");
}

#[test]
fn a_call_leaves_the_threads_context_as_it_was() {
    assert!(run("child_context", &[("STANDIN_DEVICES", "2")]).contains("context kept"));
}

#[test]
fn memory_that_others_took_is_the_failure_of_one_op() {
    let text = run("child_memory", &[("STANDIN_MEMORY_MB", "8")]);
    assert!(text.contains("kind: Memory") && text.contains("the next one succeeded"), "{text}");
}

#[test]
fn every_reason_for_no_gpu_is_a_text() {
    let reasons = [
        ("STANDIN_INIT", "100", "the driver finds no GPU (cuInit: CUDA error 100, CUDA_ERROR_NO_DEVICE)"),
        ("STANDIN_INIT", "34", "a stub library of the CUDA toolkit"),
        ("STANDIN_INIT", "803", "of different versions"),
        ("STANDIN_INIT", "54321", "the driver cannot be initialised (cuInit: CUDA error 54321)"),
        ("STANDIN_DEVICES", "0", "the driver finds no GPU"),
        ("CUDA_VISIBLE_DEVICES", "", "all GPUs are hidden by CUDA_VISIBLE_DEVICES=''"),
        ("CUDA_VISIBLE_DEVICES", "-1", "all GPUs are hidden by CUDA_VISIBLE_DEVICES='-1'"),
        ("TEST_CUDA", "0", "GPUs are switched off by MXRT_CUDA=0"),
    ];
    for (variable, value, words) in reasons {
        let text = run("child_status", &[(variable, value)]);
        assert!(text.contains("0 devices") && text.contains(words), "{variable}={value}: {text}");
        assert!(text.contains("error: gpu(0): there is no device of kind gpu: "), "{variable}={value}: {text}");
    }
    let text = run("child_status", &[("STANDIN_CONTEXT", "2")]);
    assert!(
        text.contains("1 devices") && text.contains("opening gpu(0): CUDA error 2, CUDA_ERROR_OUT_OF_MEMORY"),
        "{text}"
    );
    let text = run("child_status", &[]);
    assert!(
        text.contains("CUDA 13000") && text.contains("simulated GPU (9, 0)") && text.contains("no error"),
        "{text}"
    );
}

#[test]
fn without_a_library_there_is_no_driver() {
    let nowhere = std::env::temp_dir().join("mxrt-no-driver-here");
    let text = String::from_utf8(run_with(&nowhere, "child_status", &[]).stdout).unwrap();
    let real = Path::new("/proc/driver/nvidia").exists();
    assert!(real || text.contains("0 devices, no NVIDIA driver: libcuda.so.1 was not found"), "{text}");
}

/// A library that has `cuInit` and little else.
#[test]
fn a_driver_that_is_too_old_is_told_what_it_lacks() {
    let folder = std::env::temp_dir().join(format!("mxrt-old-driver-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("old.c");
    std::fs::write(
        &source,
        "int cuInit(unsigned f) { return 0; }\nint cuDeviceGetCount(int *n) { *n = 1; return 0; }\n",
    )
    .unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so")).arg(&source).status();
    assert!(made.unwrap().success());
    let text = String::from_utf8(run_with(&folder, "child_status", &[]).stdout).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        text.contains("0 devices, the NVIDIA driver is too old: it lacks cuDriverGetVersion, cuDeviceGet, "),
        "{text}"
    );
    assert!(!text.contains("lacks cuInit"), "{text}");
}
