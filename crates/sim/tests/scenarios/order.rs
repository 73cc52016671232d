//! The order of ops over streams, devices and the host. Names are those of the specification's
//! scenarios.

use crate::common::*;
use mxrt_engine::device::DeviceReserve;
use mxrt_engine::{Access, Cost, EngineKind, Lane, OpSpec};
use mxrt_sim::{Mode, Random, SimConfig};

#[test]
fn raw_cross_stream() {
    every_seed(|rig, seed| {
        let [x, y] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 7);
        rig.op("read", 1, &[&x], &[&y], |v| v[0] + 1);
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (1, 0));
        assert!(report.ordered("write", "read"));
        assert_eq!(rig.read(&y).unwrap(), 8);
    });
}

#[test]
fn war_cross_stream() {
    every_seed(|rig, seed| {
        let (x, y) = (rig.cell(3), rig.cell(0));
        rig.op("read", 0, &[&x], &[&y], |v| v[0]);
        rig.op("write", 1, &[], &[&x], |_| 9);
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (1, 0));
        assert!(report.ordered("read", "write"));
        assert_eq!((rig.read(&y).unwrap(), rig.read(&x).unwrap()), (3, 9));
    });
}

#[test]
fn waw_cross_stream() {
    every_seed(|rig, seed| {
        let [x, y] = rig.cells();
        rig.op("first", 0, &[], &[&x], |_| 1);
        rig.op("second", 1, &[], &[&x], |_| 2);
        rig.op("read", 2, &[&x], &[&y], |v| v[0]);
        assert_eq!(rig.check(seed).waits, 2);
        assert_eq!(rig.read(&y).unwrap(), 2);
    });
}

#[test]
fn same_stream_no_wait() {
    every_seed(|rig, seed| {
        let x = rig.cell(0);
        for i in 0..100 {
            rig.op("step", 3, &[&x], &[&x], move |v| v[0].wrapping_mul(3).wrapping_add(i));
        }
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (0, 0));
        assert_eq!(rig.read(&x).unwrap(), (0..100).fold(0, |v: i64, i| v.wrapping_mul(3).wrapping_add(i)));
    });
}

#[test]
fn n_readers_one_writer() {
    const READERS: [&str; 4] = ["reader 0", "reader 1", "reader 2", "reader 3"];
    every_seed(|rig, seed| {
        let (x, results) = (rig.cell(5), rig.cells::<4>());
        for (i, name) in READERS.iter().enumerate() {
            rig.op(name, i as u16, &[&x], &[&results[i]], move |v| v[0] * i as i64);
        }
        rig.op("writer", 4, &[], &[&x], |_| 6);
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (4, 0));
        for first in READERS {
            assert!(report.ordered(first, "writer"));
            let others = READERS.iter().filter(|r| **r != first);
            assert!(
                others.into_iter().all(|second| !report.ordered(first, second)),
                "readers must not wait for readers"
            );
        }
        for (i, result) in results.iter().enumerate() {
            assert_eq!(rig.read(result).unwrap(), 5 * i as i64);
        }
    });
}

#[test]
fn reader_after_reader_same_stream() {
    every_seed(|rig, seed| {
        let [x, y, z] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 4);
        rig.op("first reader", 1, &[&x], &[&y], |v| v[0]);
        assert_eq!(rig.check(seed).waits, 1);
        rig.op("second reader", 1, &[&x], &[&z], |v| v[0] + 1);
        assert_eq!(rig.check(seed).waits, 1);
        assert_eq!((rig.read(&y).unwrap(), rig.read(&z).unwrap()), (4, 5));
    });
}

#[test]
fn dedupe_by_stream() {
    every_seed(|rig, seed| {
        let mut random = Random::new(seed);
        let (inputs, sum) = (rig.cells::<10>(), rig.cell(0));
        for (i, x) in inputs.iter().enumerate() {
            rig.op("write", 0, &[], &[x], move |_| 1 << i);
        }
        let mut order: Vec<&Cell> = inputs.iter().collect();
        (1..order.len()).for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
        rig.op("sum", 1, &order, &[&sum], |v| v.iter().sum());
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (1, 0));
        assert_eq!(rig.read(&sum).unwrap(), 1023);
    });
}

#[test]
fn gpu_to_cpu_read() {
    every_seed(|rig, seed| {
        let [x, y, z] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 4);
        rig.op("other reader", 1, &[&x], &[&y], |v| v[0]);
        rig.host("host read", &[&x], &[&z], |v| v[0] + 1);
        assert_eq!(rig.read(&z).unwrap(), 5);
        let report = rig.check(seed);
        assert!(report.ordered("write", "host read"));
        assert!(!report.ordered("other reader", "host read"), "a reader does not wait for readers");
    });
}

#[test]
fn gpu_to_cpu_write() {
    every_seed(|rig, seed| {
        let [x, y] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 4);
        rig.op("reader", 1, &[&x], &[&y], |v| v[0]);
        rig.host("host write", &[], &[&x], |_| 8);
        assert_eq!(rig.read(&x).unwrap(), 8);
        let report = rig.check(seed);
        assert!(report.ordered("write", "host write") && report.ordered("reader", "host write"));
        assert_eq!(rig.read(&y).unwrap(), 4);
    });
}

#[test]
fn cpu_to_gpu() {
    every_seed(|rig, seed| {
        let [x, y] = rig.cells();
        rig.host("host write", &[], &[&x], |_| 4);
        rig.op("read", 1, &[&x], &[&y], |v| v[0] + 1);
        let report = rig.check(seed);
        assert_eq!((report.waits, report.host_waits), (0, 0));
        assert_eq!(rig.read(&y).unwrap(), 5);
    });
}

/// Copies between a number of the host and one in the memory of a variable.
struct Copies<'a> {
    rig: &'a Rig,
    host: Cell,
    on_device: mxrt_engine::Var,
}

impl Copies<'_> {
    fn push(&self, lane: Lane) {
        let to_device = lane == Lane::CopyIn;
        let (read, written) = match to_device {
            true => (&self.host.var, &self.on_device),
            false => (&self.on_device, &self.host.var),
        };
        let vars = [(read, Access::Read), (written, Access::Write)];
        let spec = OpSpec::new("copy", &vars).device(sim(0)).lane(lane).cost(Cost::Small);
        let value = self.host.value.clone();
        let pushed = self.rig.engine.push_device(spec, move |ctx| {
            let host: *mut u8 = value.as_ptr().cast();
            ctx.keep(value);
            // SAFETY: both have eight bytes, belong to variables of this op, and stay: the device's
            // with its variable, the host's by `keep`.
            unsafe {
                if to_device {
                    return ctx.copy_in((1, ctx.alloc(1, 8)?), (0, host), 8);
                }
                let empty = || mxrt_engine::OpError::new(mxrt_engine::FailureKind::Value, "empty");
                ctx.copy_out((1, host), (0, ctx.memory(0).ok_or_else(empty)?), 8)
            }
        });
        pushed.unwrap();
    }
}

#[test]
fn h2d_then_cpu_overwrite() {
    every_seed(|rig, _| {
        let copies = Copies { rig, host: rig.cell(11), on_device: rig.engine.new_var() };
        copies.push(Lane::CopyIn);
        rig.host("overwrite", &[], &[&copies.host], |_| 99);
        let back = Copies { rig, host: rig.cell(0), on_device: copies.on_device.clone() };
        back.push(Lane::CopyOut);
        assert_eq!(rig.read(&back.host).unwrap(), 11, "the copy must have the old value");
        assert_eq!(rig.read(&copies.host).unwrap(), 99);
    });
}

#[test]
fn d2h_then_cpu_read() {
    every_seed(|rig, seed| {
        let copies = Copies { rig, host: rig.cell(11), on_device: rig.engine.new_var() };
        copies.push(Lane::CopyIn);
        let back = Copies { rig, host: rig.cell(0), on_device: copies.on_device.clone() };
        back.push(Lane::CopyOut);
        let z = rig.cell(0);
        rig.host("host read", &[&back.host], &[&z], |v| v[0] * 2);
        assert_eq!(rig.check(seed).host_waits, 0, "an op of the host is put aside, no thread waits");
        assert_eq!(rig.read(&z).unwrap(), 22);
        assert!(rig.check(seed).ordered("copy", "host read"));
    });
}

#[test]
fn event_reuse_under_pressure() {
    let run = |rig: &Rig, seed: u64, completions: usize| {
        let mut random = Random::new(seed);
        let (x, y, others) = (rig.cell(0), rig.cell(0), rig.cells::<3>());
        rig.op("write", 0, &[], &[&x], |_| 42);
        for i in 0..completions {
            let stream = 1 + random.below(4) as u16;
            rig.op("unrelated", stream, &[], &[&others[i % 3]], |_| 1);
        }
        rig.op("read", 1, &[&x], &[&y], |v| v[0]);
        assert!(rig.check(seed).ordered("write", "read"), "seed {seed}");
        assert_eq!(rig.read(&y).unwrap(), 42);
    };
    every_seed(|rig, seed| run(rig, seed, 24));
    for pool in POOLS {
        let rig = rig_that_keeps(DeviceReserve { events: pool, ..DeviceReserve::default() });
        rig.begin(1);
        run(&rig, 1, 10_000);
        rig.end(1);
    }
}

#[test]
fn two_threads_one_stream() {
    // A thread of its own for each stream, and two that submit to one of them.
    let mode = Mode::Threaded { seed: 1, max_delay_us: 3 };
    let rig = rig_with(EngineKind::ThreadedAsync, SimConfig { mode, record: true, ..SimConfig::default() });
    for round in 0..seeds() {
        rig.world.restart(round);
        let cells: Vec<[Cell; 8]> = (0..2).map(|_| rig.cells()).collect();
        std::thread::scope(|s| {
            for mine in &cells {
                let rig = &rig;
                s.spawn(move || {
                    mine.iter().enumerate().for_each(|(i, x)| rig.op("write", 0, &[], &[x], move |_| 1 << i))
                });
            }
        });
        let (sum, all) = (rig.cell(0), cells.iter().flatten().collect::<Vec<_>>());
        rig.op("sum", 1, &all, &[&sum], |v| v.iter().sum());
        assert_eq!(rig.read(&sum).unwrap(), 510, "round {round}");
        let report = rig.check(round);
        assert!(report.waits <= 1, "of one stream only the latest record counts");
    }
}

#[test]
fn skip_on_poison_keeps_order() {
    every_seed(|rig, seed| {
        let (x, y, out) = (rig.cell(3), rig.cell(0), rig.cell(0));
        let bad = rig.cell(0);
        // A failure the engine knows at once: the op that reads it does not run.
        rig.engine.push(OpSpec::new("bad", &[(&bad.var, Access::Write)]).cost(Cost::Small), |_| {
            Err(mxrt_engine::OpError::new(mxrt_engine::FailureKind::Operator, "bad input"))
        });
        rig.op("reader", 0, &[&x], &[&y], |v| v[0]);
        rig.op("skipped", 1, &[&bad], &[&x], |_| 1000);
        rig.op("writer", 2, &[], &[&x], |_| 4);
        rig.op("last", 3, &[&x], &[&out], |v| v[0]);
        assert!(rig.check(seed).ordered("reader", "writer"), "seed {seed}");
        assert_eq!((rig.read(&y).unwrap(), rig.read(&out).unwrap()), (3, 4));
        assert_eq!(failure(rig.read(&bad)).message(), "bad input");
    });
}

#[test]
fn work_on_two_devices_is_ordered_by_events_too() {
    every_seed(|rig, seed| {
        let [x, y, z] = rig.cells();
        rig.op_on(sim(0), Lane::Normal, "write", 0, &[], &[&x], |_| 2);
        rig.op_on(sim(1), Lane::Normal, "square", 0, &[&x], &[&y], |v| v[0] * v[0]);
        rig.op_on(sim(0), Lane::Priority, "rewrite", 0, &[&y], &[&x], |v| v[0] + 1);
        rig.op_on(sim(1), Lane::CopyOut, "take", 0, &[&x], &[&z], |v| v[0] * 10);
        let report = rig.check(seed);
        assert_eq!(report.host_waits, 0);
        assert!(report.ordered("write", "square") && report.ordered("square", "rewrite"));
        assert_eq!(rig.read(&z).unwrap(), 50);
    });
}

#[test]
fn an_engine_that_ignores_events_is_caught() {
    let config =
        SimConfig { mode: Mode::Scheduled { seed: 0 }, record: true, ignore_waits: true, ..SimConfig::default() };
    let rig = rig_with(EngineKind::ThreadedAsync, config);
    let mut wrong_values = 0;
    for seed in 0..seeds() {
        rig.begin(seed);
        let [x, y] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 7);
        rig.op("read", 1, &[&x], &[&y], |v| v[0]);
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        let report = mxrt_sim::check::check(&rig.world.log());
        assert_eq!(report.violations.len(), 1, "seed {seed}: {:?}", report.violations);
        assert!(report.violations[0].contains("nothing orders the two"));
        wrong_values += (y.get() != 7) as u64;
    }
    assert!(wrong_values > seeds() / 10, "the device gives the wrong order a chance: {wrong_values}");
}
