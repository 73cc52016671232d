//! A process that forks while devices work. Alone in its file: a fork waits for whatever other
//! tests are in the middle of.

mod common;

use common::*;
use mxrt_engine::{Access, EngineKind, Failure, OpSpec, WaitError};
use mxrt_sim::{Mode, SimConfig};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn threaded() -> SimConfig {
    SimConfig { mode: Mode::Threaded { seed: 1, max_delay_us: 0 }, ..SimConfig::default() }
}

#[test]
fn fork_child_cpu_only() {
    let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, threaded());
    for seed in 0..seeds() {
        let [done, pending, host, parked, busy] = rig.cells();
        rig.op("done", 0, &[], &[&done], |_| 3);
        rig.engine.wait_to_read(&done.var).unwrap();
        let (open, held) = gate();
        rig.op("held", 1, &[], &[&pending], move |_| held());
        rig.host("parked", &[&pending], &[&parked], |v| v[0]);
        let called = Arc::new(Mutex::new(None));
        let notified = called.clone();
        rig.engine.on_ready(&pending.var, move |result| *notified.lock().unwrap() = Some(result));
        // Other streams are in the middle of something.
        (0..seed % 7).for_each(|i| rig.op("busy", 2 + i as u16 % 3, &[], &[&busy], |_| 1));
        // SAFETY: the engine's handlers make forking safe; the child runs the checks below and
        // leaves without destructors.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let check = || child_checks(&rig, [&pending, &host, &parked], &called);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_or(9);
            // SAFETY: ends the child.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status), "seed {seed}: the child ended by a signal: {status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 0, "seed {seed}");
        open();
        rig.engine.wait_all().unwrap();
        assert_eq!((pending.get(), parked.get()), (1, 1), "seed {seed}: the parent goes on");
        // Another thread may still be on its way to the callback.
        let deadline = Instant::now() + Duration::from_secs(60);
        while called.lock().unwrap().is_none() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(matches!(&*called.lock().unwrap(), Some(Ok(()))), "seed {seed}: its callback is called there");
    }
}

/// 0: in a forked child devices cannot be used, what was on them is lost, and the CPU computes.
fn child_checks(rig: &Rig, [pending, host, parked]: [&Cell; 3], notified: &Mutex<Option<Result<(), Failure>>>) -> i32 {
    let spec = [(&host.var, Access::Write)];
    let refused = rig.engine.push_device(OpSpec::new("new", &spec).device(sim(0)), |_| Ok(()));
    if !refused.is_err_and(|e| e.message.contains("cannot be used in a forked process")) {
        return 1;
    }
    let lost = |cell: &Cell| match rig.engine.wait_to_read(&cell.var) {
        Err(WaitError::Failed(f)) => f.message().contains("forked process"),
        _ => false,
    };
    if !lost(pending) || !lost(parked) {
        return 2;
    }
    match &*notified.lock().unwrap() {
        Some(Err(failure)) if failure.message().contains("forked process") => {}
        _ => return 4,
    }
    rig.host("cpu", &[], &[host], |_| 8);
    if rig.engine.wait_to_read(&host.var).is_err() || host.get() != 8 {
        return 3;
    }
    let _ = rig.engine.wait_all();
    0
}
