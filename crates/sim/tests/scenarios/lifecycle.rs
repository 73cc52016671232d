//! Stopping, starting again, overlapping.

use crate::common::*;
use mxrt_engine::device::Driver;
use mxrt_engine::{Access, Config, Cost, DeviceId, DeviceKind, Engine, EngineKind, Lane, OpSpec, WaitError};
use mxrt_sim::{Mode, Random, SimConfig, SimDriver};
use std::sync::Arc;

fn threaded() -> SimConfig {
    SimConfig { mode: Mode::Threaded { seed: 1, max_delay_us: 0 }, ..SimConfig::default() }
}

#[test]
fn shutdown_with_work_pending() {
    // A wait for a device looks about every 50 ms whether the engine closes: sixteen rounds at a
    // time.
    const SIDE_BY_SIDE: u64 = 16;
    std::thread::scope(|s| {
        for first in 0..SIDE_BY_SIDE {
            s.spawn(move || (first..engines()).step_by(SIDE_BY_SIDE as usize).for_each(close_in_the_middle));
        }
    });
}

fn close_in_the_middle(seed: u64) {
    let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, threaded());
    let [x, y, host] = rig.cells();
    let (open, held) = gate();
    rig.op("held", 0, &[], &[&x], move |_| held());
    rig.op("behind", 1, &[&x], &[&y], |v| v[0] + 1);
    rig.host("parked", &[&y], &[&host], |v| v[0] + 1);
    std::thread::scope(|s| {
        let waiting = s.spawn(|| rig.engine.wait_to_read(&y.var));
        let all = s.spawn(|| rig.engine.wait_all());
        // Most often the waits begin while the engine closes, now and then long before.
        (0..seed % 64).for_each(|_| std::thread::yield_now());
        if seed.is_multiple_of(8) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        rig.engine.close();
        assert!(matches!(waiting.join().unwrap(), Err(WaitError::Closed)), "seed {seed}");
        assert!(matches!(all.join().unwrap(), Err(WaitError::Closed)), "seed {seed}");
    });
    // What was submitted goes on; no thread has to be there.
    drop((y, host));
    open();
    while rig.world.pending() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(x.get(), 1);
    rig.world.end();
}

#[test]
fn shutdown_with_work_pending_in_every_interleaving() {
    every_seed_afresh(|rig, seed| {
        let mut random = Random::new(seed);
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
    for round in 0..seeds() as i64 {
        let drivers: Vec<Arc<dyn Driver>> = vec![driver.clone()];
        let kind = EngineKind::ThreadedAsync;
        let engine = Engine::start(Config { kind, cores: Some(1), drivers, ..Config::default() }).unwrap();
        let rig = Rig { engine, world: driver.world().into() };
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
    // `push` makes an op of the host whatever its device: it may touch what the device has
    // finished, and only that.
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
