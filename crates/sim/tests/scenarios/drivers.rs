//! Devices of two drivers in one engine. Their streams cannot wait for each other, so ops do, and
//! no thread is blocked.

use crate::common::*;
use mxrt_engine::device::Driver;
use mxrt_engine::*;
use mxrt_sim::check::{Report, check};
use mxrt_sim::{Mode, Random, SimConfig, SimDriver, World};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

fn gpu(index: u16) -> DeviceId {
    DeviceId::new(DeviceKind::GPU, index)
}

/// A rig, and a second world of devices that call themselves `gpu`.
fn two_drivers(kind: EngineKind, mode: Mode) -> (Rig, World) {
    two_drivers_on(1, kind, mode)
}

fn two_drivers_on(cores: usize, kind: EngineKind, mode: Mode) -> (Rig, World) {
    let config = SimConfig { mode, record: true, memory: 1 << 20, ..SimConfig::default() };
    let (ours, theirs) =
        (SimDriver::new(config.clone()), SimDriver::new(SimConfig { kind: DeviceKind::GPU, ..config }));
    let worlds = (ours.world(), theirs.world());
    let drivers: Vec<Arc<dyn Driver>> = vec![ours, theirs];
    let engine = Engine::start(Config { kind, cores: Some(cores), drivers, compute_streams: 5, ..Config::default() });
    (Rig { engine: engine.unwrap(), world: worlds.0.into() }, worlds.1)
}

/// Runs a scenario with every seed; afterwards everything must be complete and, as each driver sees
/// it, in order.
fn every_seed_of_two_drivers(scenario: impl Fn(&Rig, &World, &mut Random)) {
    every_seed_with(scenario, |report| assert!(report.violations.is_empty(), "{}", report.violations.join("\n")));
}

fn every_seed_with(scenario: impl Fn(&Rig, &World, &mut Random), judge_other: impl Fn(&Report)) {
    let (rig, other) = two_drivers(EngineKind::ThreadedAsync, Mode::Scheduled { seed: 0 });
    for seed in 0..seeds() {
        other.restart(seed ^ 1);
        other.may_wait(false);
        rig.begin(seed);
        scenario(&rig, &other, &mut Random::new(seed));
        other.may_wait(true);
        rig.end(seed);
        assert_eq!(other.pending(), 0, "seed {seed}");
        judge_other(&check(&other.log()));
        assert_eq!(rig.check(seed).waits, 0, "seed {seed}: no stream waits for the other driver's");
    }
}

#[test]
fn an_op_waits_for_a_device_of_another_driver_without_blocking_the_host() {
    every_seed_of_two_drivers(|rig, other, random| {
        let [x, y, z, host] = rig.cells();
        rig.op_on(sim(0), Lane::Normal, "first", 0, &[], &[&x], |_| 1);
        rig.op_on(gpu(0), Lane::Normal, "second", 1, &[&x], &[&y], |v| v[0] + 1);
        assert_eq!((x.get(), y.get()), (0, 0), "nothing has run, and both pushes have returned");
        for _ in 0..random.below(4) {
            if random.below(2) == 0 {
                rig.world.step()
            } else {
                other.step()
            };
        }
        rig.op_on(sim(1), Lane::Normal, "third", 2, &[&y], &[&z], |v| v[0] + 1);
        // A writer waits for the other driver's readers as well.
        rig.op_on(sim(0), Lane::Normal, "overwrite", 3, &[], &[&x], |_| 50);
        rig.host("last", &[&z, &x], &[&host], |v| v[0] + v[1]);
        other.may_wait(true);
        assert_eq!(rig.read(&host).unwrap(), 53);
        assert_eq!((x.get(), y.get(), z.get()), (50, 2, 3));
    });
}

#[test]
fn streams_of_one_driver_wait_by_themselves_although_there_are_others() {
    let (rig, other) = two_drivers(EngineKind::ThreadedAsync, Mode::Scheduled { seed: 0 });
    let [x, y, z] = rig.cells();
    rig.op_on(gpu(0), Lane::Normal, "elsewhere", 0, &[], &[&z], |_| 1);
    for seed in 0..seeds() {
        rig.begin(seed);
        rig.op("write", 0, &[], &[&x], |_| 7);
        rig.op("read", 1, &[&x], &[&y], |v| v[0] + 1);
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (1, 0), "seed {seed}");
        assert!(report.ordered("write", "read"), "both are submitted, and the device keeps the order");
        assert_eq!(rig.read(&y).unwrap(), 8);
        rig.end(seed);
    }
    while other.step() {}
}

#[test]
fn a_failure_crosses_from_driver_to_driver() {
    every_seed_of_two_drivers(|rig, other, _| {
        let [x, y, z] = rig.cells();
        rig.fails("take", 0, &[], &[&x], "index 12 is out of range");
        rig.op_on(gpu(1), Lane::Normal, "behind", 0, &[&x], &[&y], |v| v[0] + 1);
        rig.op_on(sim(1), Lane::Normal, "further behind", 0, &[&y], &[&z], |v| v[0] + 1);
        other.may_wait(true);
        let failed = failure(rig.read(&z));
        assert_eq!((failed.op(), failed.device()), ("take", Some("sim(0)")));
        assert!(failure(rig.read(&y)).same_event(&failed));
    });
}

#[test]
fn memory_used_by_a_device_of_another_driver_is_handed_on_when_that_is_done() {
    const BYTES: usize = 4096;
    // The other driver does not know whose memory it is, and says so.
    let unknown = |report: &Report| assert!(report.violations.iter().all(|v| v.contains("which does not exist")));
    let scenario = |rig: &Rig, other: &World, _: &mut Random| {
        let (x, seen, y) = (rig.engine.new_var(), rig.cell(0), rig.engine.new_var());
        let ptr = rig.memory_for(&x, sim(0), BYTES);
        let number: usize = ptr.0 as usize;
        let vars = [(&x, Access::Read), (&seen.var, Access::Write)];
        let (spec, to) = (OpSpec::new("reader", &vars).device(gpu(0)).cost(Cost::Small), seen.value.clone());
        let pushed = rig.engine.push_device(spec, move |ctx| {
            ctx.launch(move |_| {
                // SAFETY: memory of this op's variable, as large as BYTES; the host can address it.
                let first = unsafe { std::ptr::with_exposed_provenance::<u8>(number).read() };
                to.store(i64::from(first) + 1, Relaxed);
                Ok(())
            })
        });
        pushed.unwrap();
        drop(x);
        let next = rig.memory_for(&y, sim(0), BYTES);
        assert!(next != ptr || seen.get() > 0, "memory was handed on while the other driver may use it");
        other.may_wait(true);
        assert!(rig.read(&seen).unwrap() > 0);
        drop(y);
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        assert_eq!(rig.engine.device_stats(sim(0)).unwrap().in_use, 0, "it came back");
        rig.engine.trim_device(sim(0)).unwrap();
    };
    every_seed_with(scenario, unknown);
}

/// The kinds without `Async`, and real threads.
#[test]
fn chains_over_two_drivers_give_the_same_values_in_every_kind() {
    for kind in EngineKind::ALL {
        let (rig, _other) = two_drivers(kind, Mode::Threaded { seed: 3, max_delay_us: 3 });
        for round in 0..seeds() / 10 {
            let cells = rig.cells::<6>();
            for (i, pair) in cells.windows(2).enumerate() {
                let device = if i % 2 == 0 { sim(i as u16 / 2 % 2) } else { gpu(0) };
                rig.op_on(device, Lane::Normal, "link", i as u16, &[&pair[0]], &[&pair[1]], |v| v[0] + 1);
            }
            assert_eq!(rig.read(&cells[5]).unwrap(), 5, "{kind}, round {round}");
        }
        rig.engine.wait_all().unwrap();
    }
}

/// An op that cannot be put aside gets an error that names both devices.
#[test]
fn a_stream_that_cannot_wait_says_for_whom() {
    let (rig, other) = two_drivers(EngineKind::ThreadedAsync, Mode::Scheduled { seed: 0 });
    let x = rig.engine.new_var();
    rig.memory_for(&x, sim(0), 64);
    let vars = [(&x, Access::Write)];
    let spec = OpSpec::new("write", &vars).device(gpu(0)).cost(Cost::Small);
    rig.engine.push_device(spec, |ctx| ctx.launch(|_| Ok(()))).unwrap();
    let consumer = mxrt_engine::device::ConsumerStream::Number(1);
    let refused = rig.engine.export_to(&x, sim(0), consumer, false, &mut || true).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("sim(0) cannot wait for gpu(0): their drivers know nothing of each other"), "{text}");
    while other.step() {}
    rig.engine.wait_to_read(&x).unwrap();
    drop(rig.engine.export_to(&x, sim(0), consumer, false, &mut || true).unwrap());
}

/// The readers of a frozen value are unknown, so its writer waits for every stream. But it need not
/// wait for concurrent work of another driver, and its stream could not.
#[test]
fn a_frozen_value_is_written_while_devices_of_another_driver_are_busy() {
    let (rig, _other) = two_drivers_on(4, EngineKind::ThreadedAsync, Mode::Threaded { seed: 1, max_delay_us: 2 });
    let [x, one, two] = rig.cells();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (stream, busy) in [(0, &one), (1, &two)] {
            let (rig, done) = (&rig, &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    rig.op_on(gpu(0), Lane::Normal, "elsewhere", stream, &[], &[busy], |_| 1);
                    rig.engine.wait_to_read(&busy.var).unwrap();
                }
            });
        }
        for n in 0..5000 {
            rig.op_on(sim(0), Lane::Normal, "write", 0, &[], &[&x], move |_| n);
            rig.engine.freeze(&x.var);
            rig.op_on(sim(0), Lane::Normal, "write again", 1, &[], &[&x], move |_| n + 1);
            match rig.read(&x) {
                Ok(found) if found == n + 1 => {}
                other => {
                    done.store(true, Relaxed);
                    panic!("{n}: {other:?}");
                }
            }
        }
        done.store(true, Relaxed);
    });
    rig.engine.wait_all().unwrap();
}
