//! A test that hangs is ended, and says what its threads and engines were doing
//! (`scripts/watch-test.sh`).
#![cfg(target_os = "linux")]

mod common;
use common::*;
use mxrt_engine::*;
use std::process::{Command, Output};

/// Simulates a hanging test: an op that does not end, one that waits for it, and a thread that
/// waits for that.
#[test]
#[ignore = "hangs on purpose; run by the tests below"]
fn an_op_that_never_ends() {
    let engine = start(EngineKind::Threaded, 1);
    let (var, copy) = (engine.new_var(), engine.new_var());
    engine.push(OpSpec::new("endless", &[(&var, Access::Write)]), |_| {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    });
    engine.push(OpSpec::new("behind it", &[(&var, Access::Read), (&copy, Access::Write)]), |_| Ok(()));
    engine.wait_to_read(&copy).unwrap();
}

#[test]
#[ignore = "fails on purpose; run by the tests below"]
fn a_test_that_fails() {
    std::process::exit(42);
}

/// Simulates a test that waits for a program, which started another one.
#[test]
#[ignore = "hangs on purpose; run by the tests below"]
fn a_program_that_never_ends() {
    let script = "sleep 1000 & echo program $! >&2; wait";
    Command::new("sh").args(["-c", script]).status().unwrap();
}

/// Works for three times as long as a test may hang.
#[test]
#[ignore = "takes long on purpose; run by the tests below"]
fn a_test_that_works_for_six_seconds() {
    let begin = std::time::Instant::now();
    while begin.elapsed().as_secs() < 6 {
        std::hint::black_box((0..10_000).sum::<u64>());
    }
}

/// Output of a hanging test, which is ended after two seconds without work. On a busy machine it
/// may not have begun to hang by then: it gets more time.
fn of_a_hang(test: &str, debugger: &str, begun: impl Fn(&str) -> bool) -> Output {
    let found = |seconds| watched_for(seconds, test, debugger);
    let has_begun = |output: &Output| begun(&String::from_utf8_lossy(&output.stderr));
    [2, 8].into_iter().map(found).find(has_begun).unwrap_or_else(|| found(32))
}

fn watched_for(seconds: u32, test: &str, debugger: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/watch-test.sh");
    Command::new(script)
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env("MXRT_TEST_SECONDS", seconds.to_string())
        .env("MXRT_TEST_DEBUGGER", debugger)
        .output()
        .unwrap()
}

#[test]
fn a_test_that_hangs_is_ended_and_its_engine_says_what_runs_and_who_waits() {
    for debugger in ["any", "none"] {
        let words = ["endless on cpu(0) since", "an_op_that_never_ends since"];
        let output =
            of_a_hang("an_op_that_never_ends", debugger, |said| words.iter().all(|words| said.contains(words)));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(124), "{said}");
        assert!(said.contains("HANG") && said.contains("has not ended after "), "{said}");
        assert!(said.contains("endless on cpu(0) since"), "no word of what runs: {said}");
        assert!(said.contains("an_op_that_never_ends since"), "no word of the waiting thread: {said}");
        assert!(said.contains(" an_op_that_neve"), "the waiting thread is missing: {said}");
        if debugger == "none" {
            assert!(said.contains("in system call"), "{said}");
        }
    }
}

#[test]
fn a_watched_test_ends_with_its_own_status() {
    assert_eq!(watched_for(20, "a_test_that_fails", "any").status.code(), Some(42));
}

#[test]
fn a_test_that_takes_long_but_works_is_not_ended() {
    let output = watched_for(2, "a_test_that_works_for_six_seconds", "none");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn programs_of_a_test_that_hangs_end_with_it() {
    let output =
        of_a_hang("a_program_that_never_ends", "none", |said| said.lines().any(|line| line.starts_with("program ")));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{said}");
    let program = said.lines().find_map(|line| line.strip_prefix("program ")).expect(&said);
    // A signal takes its time; without it the limit of this test passes.
    let state = || std::fs::read_to_string(format!("/proc/{program}/stat"));
    while state().is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
}
