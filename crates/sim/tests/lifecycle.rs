//! Stopping, starting again, forking, measuring.

mod common;

use common::*;
use mxrt_engine::device::Driver;
use mxrt_engine::{Access, Config, Cost, DeviceId, DeviceKind, Engine, EngineKind, Lane, OpSpec, WaitError, profile};
use mxrt_sim::{Mode, SimConfig, SimDriver};
use std::sync::{Arc, Mutex};

fn threaded() -> SimConfig {
    SimConfig { mode: Mode::Threaded { seed: 1, max_delay_us: 0 }, ..SimConfig::default() }
}

#[test]
fn shutdown_with_work_pending() {
    let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, threaded());
    let [x, y, host] = rig.cells();
    let (open, held) = gate();
    rig.op("held", 0, &[], &[&x], move |_| held());
    rig.op("behind", 1, &[&x], &[&y], |v| v[0] + 1);
    rig.host("parked", &[&y], &[&host], |v| v[0] + 1);
    std::thread::scope(|s| {
        let waiting = s.spawn(|| rig.engine.wait_to_read(&y.var));
        let all = s.spawn(|| rig.engine.wait_all());
        std::thread::sleep(std::time::Duration::from_millis(20));
        rig.engine.close();
        assert!(matches!(waiting.join().unwrap(), Err(WaitError::Closed)));
        assert!(matches!(all.join().unwrap(), Err(WaitError::Closed)));
    });
    // What was submitted goes on; nobody has to be there.
    drop((y, host));
    open();
    while rig.world.pending() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(x.get(), 1);
}

#[test]
fn shutdown_with_work_pending_in_every_interleaving() {
    every_seed_afresh(|rig, seed| {
        let mut random = mxrt_sim::Random::new(seed);
        let [x, y, host] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 1);
        rig.op("behind", 1, &[&x], &[&y], |v| v[0] + 1);
        rig.host("parked", &[&y], &[&host], |v| v[0] + 1);
        rig.some_steps(&mut random);
        rig.engine.close();
        drop(x);
        rig.some_steps(&mut random);
        drop((y, host));
        while rig.world.step() {}
        assert_eq!(rig.world.pending(), 0);
    });
}

#[test]
fn restart_after_stop() {
    let driver = SimDriver::new(SimConfig { mode: Mode::Scheduled { seed: 1 }, ..SimConfig::default() });
    for round in 0..seeds().min(100) as i64 {
        let drivers: Vec<Arc<dyn Driver>> = vec![driver.clone()];
        let kind = EngineKind::ThreadedAsync;
        let engine = Engine::start(Config { kind, cores: Some(1), drivers, ..Config::default() }).unwrap();
        let rig = Rig { engine, world: driver.world() };
        let [x, y] = rig.cells();
        rig.op("write", 0, &[], &[&x], move |_| round);
        rig.op("read", 1, &[&x], &[&y], |v| v[0] + 1);
        if round % 2 == 0 {
            assert_eq!(rig.read(&y).unwrap(), round + 1);
        }
        engine.close();
    }
}

#[test]
fn fork_child_cpu_only() {
    let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, threaded());
    let [done, pending, host, parked] = rig.cells();
    rig.op("done", 0, &[], &[&done], |_| 3);
    rig.engine.wait_to_read(&done.var).unwrap();
    let (open, held) = gate();
    rig.op("held", 1, &[], &[&pending], move |_| held());
    rig.host("parked", &[&pending], &[&parked], |v| v[0]);
    // SAFETY: the engine's handlers make forking safe; the child runs the checks below and leaves without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let check = || {
            let spec = [(&host.var, Access::Write)];
            let refused = rig.engine.push_device(OpSpec::new("new", &spec).device(sim(0)), |_| Ok(()));
            if !refused.is_err_and(|e| e.message.contains("cannot be used in a forked process")) {
                return 1;
            }
            let lost = |cell: &Cell| match rig.engine.wait_to_read(&cell.var) {
                Err(WaitError::Failed(f)) => f.message().contains("forked process"),
                _ => false,
            };
            if !lost(&pending) || !lost(&parked) {
                return 2;
            }
            rig.host("cpu", &[], &[&host], |_| 8);
            if rig.engine.wait_to_read(&host.var).is_err() || host.get() != 8 {
                return 3;
            }
            let _ = rig.engine.wait_all();
            0
        };
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_or(9);
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(libc::WIFEXITED(status), "the child ended by a signal: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0);
    open();
    rig.engine.wait_all().unwrap();
    assert_eq!((pending.get(), parked.get()), (1, 1), "the parent goes on");
}

#[test]
fn devices_that_do_not_exist_are_refused_at_the_push() {
    let rig = rig_with(EngineKind::ThreadedAsync, threaded());
    let x = rig.engine.new_var();
    let push = |id: DeviceId| {
        let vars = [(&x, Access::Write)];
        rig.engine.push_device(OpSpec::new("op", &vars).device(id), |_| Ok(())).unwrap_err().message.clone()
    };
    assert_eq!(push(sim(2)), "sim(2): invalid number, devices of kind sim have numbers below 2");
    assert_eq!(push(DeviceId::new(DeviceKind::GPU, 0)), "gpu(0): this engine has no devices of kind gpu; use cpu()");
    assert_eq!(push(DeviceId::cpu(0)), "cpu(0): this engine has no devices of kind cpu; use cpu()");
    assert_eq!((rig.engine.device_count(DeviceKind::SIM), rig.engine.device_count(DeviceKind::GPU)), (2, 0));
    rig.engine.wait_to_read(&x).unwrap();
}

/// The profiler belongs to the process: those who look at it take turns.
static PROFILE: Mutex<()> = Mutex::new(());

#[test]
fn profiler_device_time() {
    let _alone = PROFILE.lock().unwrap();
    let rig = rig();
    rig.begin(1);
    rig.world.set_time("measured", 1_000_000);
    profile::set_on(true);
    let [x, y] = rig.cells();
    rig.op("measured write", 0, &[], &[&x], |_| 1);
    rig.op("measured read", 1, &[&x], &[&y], |v| v[0]);
    rig.fails("measured failure", 2, &[&x], &[&y], "no");
    profile::set_on(false);
    rig.world.may_wait(true);
    let _ = rig.engine.wait_all();
    let taken = profile::snapshot(true);
    let of = |name: &str| taken.device_records.iter().find(|r| r.name.as_str() == name).unwrap();
    for name in ["measured write", "measured read", "measured failure"] {
        let record = of(name);
        let took = record.ended - record.started;
        assert!((took - 1000.0).abs() < 0.01, "{name} took {took} µs on the device");
        assert!(record.started >= record.submitted - 0.01);
        assert_eq!((record.device, record.failed), (sim(0), name.ends_with("failure")));
    }
    assert!(of("measured read").started >= of("measured write").ended - 0.01);
    assert_ne!(of("measured read").stream, of("measured write").stream);
    let host = taken.records.iter().find(|r| r.name.as_str() == "measured write").unwrap();
    assert!(host.ended - host.started < 900.0, "the host was done when it had submitted");
    let trace = taken.trace_events();
    let lanes = trace.iter().filter(|e| e.contains("thread_name") && e.contains("sim(0) stream")).count();
    assert_eq!(lanes, 3);
    assert!(trace.iter().any(|e| e.contains(r#""process_name""#) && e.contains(r#""name":"sim(0)""#)));
    assert!(trace.iter().any(|e| e.contains("measured read") && e.contains(r#""dur":1000.000"#)));
}

/// Copies and kernels on streams of their own take the time of the longer side.
#[test]
fn copies_and_kernels_overlap() {
    const PAIRS: u64 = 100;
    const TIME: u64 = 1_000_000;
    let rig = rig();
    rig.begin(1);
    rig.world.set_time("copy", TIME);
    rig.world.set_time("compute", TIME);
    let results: Vec<Cell> = (0..PAIRS).map(|_| rig.cell(0)).collect();
    let began = rig.world.end_time();
    for (i, result) in results.iter().enumerate() {
        let input = rig.cell(0);
        rig.op_on(sim(0), Lane::CopyIn, "copy", 0, &[], &[&input], move |_| i as i64);
        rig.op("compute", 0, &[&input], &[result], |v| v[0] * 2);
    }
    rig.end(1);
    let took = rig.world.end_time() - began;
    assert!((PAIRS * TIME..=PAIRS * TIME * 11 / 10).contains(&took), "{took} ns");
    assert!(results.iter().enumerate().all(|(i, r)| r.get() == 2 * i as i64));
}

#[test]
fn an_op_of_the_host_on_a_devices_queue_gets_no_stream() {
    // `push` makes an op of the host whatever its device: it may touch what the device has finished, and only that.
    let rig = rig();
    rig.begin(1);
    let [x, y] = rig.cells();
    rig.op("write", 0, &[], &[&x], |_| 4);
    let (from, to, vars) = (x.value.clone(), y.value.clone(), accesses(&[&x], &[&y]));
    rig.engine.push(OpSpec::new("host", &vars).device(sim(0)).cost(Cost::Small), move |_| {
        to.store(from.load(std::sync::atomic::Ordering::Relaxed) + 1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    });
    assert_eq!(rig.read(&y).unwrap(), 5);
}
