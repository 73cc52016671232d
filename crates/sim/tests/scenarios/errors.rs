//! Errors on a device reach the ops that depend on it, and nothing else.

use crate::common::*;
use mxrt_engine::{Access, Cost, EngineKind, FailureKind, OpKind, OpSpec, WaitError};
use mxrt_sim::{Call, Fault, Mode, Random, SimConfig};

fn fault(call: Call, after: u64, code: i32) -> Fault {
    Fault { device: 0, call, after, code }
}

/// The failures that `wait_all` raises, by message.
fn unobserved(rig: &Rig) -> Vec<String> {
    rig.world.may_wait(true);
    match rig.engine.wait_all() {
        Ok(()) => Vec::new(),
        Err(WaitError::Failures(list, 0)) => list.iter().map(|f| f.message().to_owned()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn launch_error_poisons_outputs() {
    every_seed(|rig, seed| {
        let [a, b, c, d, e] = rig.cells();
        rig.world.inject(fault(Call::Launch, 1, 1));
        rig.op("first", 0, &[], &[&a], |_| 1);
        rig.op("hit", 0, &[&a], &[&b], |_| 2);
        rig.op("dependant", 1, &[&b], &[&c], |_| 3);
        rig.op("sibling", 0, &[&a], &[&d], |v| v[0] + 3);
        rig.op("heals", 1, &[&a], &[&b], |v| v[0] + 4);
        rig.op("after", 1, &[&b], &[&e], |v| v[0] + 5);
        let failed = failure(rig.read(&c));
        assert_eq!(failed.kind(), FailureKind::Device);
        assert_eq!((failed.op(), failed.device()), ("hit", Some("sim(0)")));
        assert_eq!(failed.message(), "launching hit on sim(0): invalid value (device error 1)");
        assert!(failure(rig.read(&c)).same_event(&failed), "every wait raises until it is overwritten");
        assert_eq!((rig.read(&a).unwrap(), rig.read(&d).unwrap()), (1, 4), "seed {seed}");
        assert_eq!((rig.read(&b).unwrap(), rig.read(&e).unwrap()), (5, 10), "seed {seed}");
        assert!(unobserved(rig).is_empty());
    });
}

#[test]
fn status_word_error() {
    every_seed(|rig, seed| {
        let mut random = Random::new(seed);
        let [a, b, c, d] = rig.cells();
        rig.fails("take", 0, &[], &[&a], "index 12 is out of range");
        rig.some_steps(&mut random);
        rig.op("dependant", 1, &[&a], &[&b], |v| v[0] + 1);
        rig.some_steps(&mut random);
        rig.host("host dependant", &[&b], &[&c], |v| v[0] + 1);
        rig.op("sibling", 0, &[], &[&d], |_| 6);
        for cell in [&a, &b, &c] {
            let failed = failure(rig.read(cell));
            assert_eq!(failed.message(), "index 12 is out of range", "seed {seed}");
            assert_eq!((failed.op(), failed.kind(), failed.device()), ("take", FailureKind::Index, Some("sim(0)")));
        }
        assert_eq!(rig.read(&d).unwrap(), 6, "the device stays usable");
        // Overwriting heals, on the device as on the host.
        rig.op("heals", 2, &[&d], &[&a], |v| v[0] + 1);
        assert_eq!(rig.read(&a).unwrap(), 7);
        rig.host("heals too", &[], &[&b], |_| 8);
        assert_eq!(rig.read(&b).unwrap(), 8);
        assert!(unobserved(rig).is_empty(), "seed {seed}");
    });
}

#[test]
fn a_wait_that_the_device_refuses_once_waits_again() {
    every_seed(|rig, seed| {
        let a = rig.cell(0);
        rig.op("write", 0, &[], &[&a], |_| 7);
        rig.world.inject(fault(Call::HostWait, 0, 1));
        rig.world.inject(fault(Call::HostWait, 1, 1));
        assert_eq!(rig.read(&a).unwrap(), 7, "seed {seed}");
        assert!(unobserved(rig).is_empty());
    });
}

#[test]
fn a_device_that_refuses_every_wait_is_lost() {
    every_seed_afresh(|rig, seed| {
        let a = rig.cell(0);
        rig.op("write", 0, &[], &[&a], |_| 7);
        (0..3).for_each(|after| rig.world.inject(fault(Call::HostWait, after, 1)));
        let failed = failure(rig.read(&a));
        assert_eq!(failed.kind(), FailureKind::Device);
        assert!(failed.message().starts_with("sim(0) is lost: invalid value"), "seed {seed}: {failed}");
    });
}

#[test]
fn wait_all_tells_late_failures_of_values_that_are_gone() {
    every_seed(|rig, seed| {
        {
            let [a, b] = rig.cells();
            rig.fails("take", 0, &[], &[&a], "not looked at");
            rig.op("dependant", 1, &[&a], &[&b], |v| v[0]);
        }
        assert_eq!(unobserved(rig), ["not looked at"], "seed {seed}: once, although a dependant has inherited it");
        assert!(unobserved(rig).is_empty());
    });
}

#[test]
fn what_was_enqueued_behind_a_failure_inherits_the_original() {
    every_seed(|rig, seed| {
        // A chain over streams; every kernel but the first would fail by itself on the garbage it
        // gets.
        let chain: [Cell; 12] = rig.cells();
        rig.fails("origin", 0, &[], &[&chain[0]], "the first");
        for i in 1..chain.len() {
            rig.fails("behind", (i % 5) as u16, &[&chain[i - 1]], &[&chain[i]], "a later one");
        }
        let last = failure(rig.read(&chain[11]));
        assert_eq!((last.message(), last.op()), ("the first", "origin"), "seed {seed}");
        assert!(chain.iter().all(|cell| failure(rig.read(cell)).same_event(&last)));
        assert!(unobserved(rig).is_empty(), "errors about garbage belong to no op");
    });
}

#[test]
fn a_long_chain_behind_a_failure_needs_no_stack() {
    let rig = rig();
    rig.begin(1);
    let x = rig.cell(0);
    rig.fails("origin", 0, &[], &[&x], "the first");
    let vars = [(&x.var, Access::Update)];
    for i in 0..20_000 {
        let spec = OpSpec::new("update", &vars).device(sim(0)).stream(i % 5).cost(Cost::Small);
        rig.engine.push_device(spec, |ctx| ctx.launch(|_| Ok(()))).unwrap();
    }
    assert_eq!(failure(rig.read(&x)).message(), "the first");
}

#[test]
fn a_selective_op_fails_single_writes_late() {
    every_seed(|rig, seed| {
        let [bad, a, b, other] = rig.cells();
        rig.fails("bad", 0, &[], &[&bad], "bad input");
        let vars =
            [(&bad.var, Access::Read), (&a.var, Access::Write), (&b.var, Access::Write), (&other.var, Access::Update)];
        let spec = OpSpec::new("split", &vars).kind(OpKind::Selective).device(sim(0)).stream(1).cost(Cost::Small);
        let value = b.value.clone();
        let pushed = rig.engine.push_device(spec, move |ctx| {
            ctx.launch(move |kernel| {
                assert_eq!(kernel.failed_reads().collect::<Vec<_>>(), [0]);
                kernel.fail_write(1, kernel.failure_of(0).unwrap());
                value.store(4, std::sync::atomic::Ordering::Relaxed);
                Ok(())
            })
        });
        pushed.unwrap();
        assert_eq!(failure(rig.read(&a)).message(), "bad input", "seed {seed}");
        assert_eq!(rig.read(&b).unwrap(), 4);
        assert!(rig.read(&other).is_ok());
        assert!(unobserved(rig).is_empty());
    });
}

#[test]
fn a_panicking_kernel_is_a_late_failure() {
    every_seed(|rig, _| {
        let [x, y] = rig.cells();
        rig.op("divide", 0, &[&y], &[&x], |v| 1 / v[0]);
        let failed = failure(rig.read(&x));
        assert_eq!(failed.message(), "operator divide panicked: attempt to divide by zero");
        assert_eq!(failed.kind(), FailureKind::Panic);
    });
}

#[test]
fn error_in_on_start() {
    every_seed(|rig, seed| {
        let (x, y, z) = (rig.cell(1), rig.cell(0), rig.cell(0));
        rig.op("write", 0, &[], &[&x], |_| 2);
        rig.world.inject(fault(Call::Wait, 0, 1));
        rig.op("hit", 1, &[&x], &[&y], |v| v[0]);
        rig.op("after", 2, &[&x], &[&z], |v| v[0] + 1);
        // What the failed op did not wait for must still be waited for by the thread that writes.
        rig.op("writer", 3, &[], &[&y], |_| 9);
        assert_eq!((rig.read(&z).unwrap(), rig.read(&y).unwrap()), (3, 9), "seed {seed}");
        assert_eq!(unobserved(rig), ["ordering an operator on sim(0): invalid value (device error 1)"]);
    });
}

#[test]
fn error_in_complete() {
    every_seed(|rig, seed| {
        let (x, y, z) = (rig.cell(1), rig.cell(0), rig.cell(0));
        rig.world.inject(fault(Call::Record, 0, 1));
        rig.op("hit", 0, &[&x], &[&y], |v| v[0]);
        rig.op("writer", 1, &[], &[&x], |_| 2);
        assert!(rig.check(seed).ordered("hit", "writer"), "its work has an end all the same");
        let failed = failure(rig.read(&y));
        assert_eq!(failed.message(), "recording the end of an operator on sim(0): invalid value (device error 1)");
        rig.op("after", 0, &[&x], &[&z], |v| v[0] + 1);
        assert_eq!(rig.read(&z).unwrap(), 3);
    });
}

#[test]
fn a_device_that_cannot_mark_the_end_of_work_is_lost() {
    every_seed_afresh(|rig, _| {
        let [x, y] = rig.cells();
        rig.world.inject(fault(Call::Record, 0, 1));
        rig.world.inject(fault(Call::Record, 0, 1));
        rig.op("hit", 0, &[], &[&x], |_| 1);
        assert!(failure(rig.read(&x)).message().contains("device error 1"));
        let spec = [(&y.var, Access::Write)];
        let refused = rig.engine.push_device(OpSpec::new("new", &spec).device(sim(0)), |_| Ok(())).unwrap_err();
        assert!(refused.message.starts_with("sim(0) is lost:"), "{refused}");
    });
}

#[test]
fn sticky_error_marks_device_lost() {
    every_seed_afresh(|rig, seed| {
        let mut random = Random::new(seed);
        let [done, a, b, c, host, other] = rig.cells();
        rig.op("done", 0, &[], &[&done], |_| 1);
        assert_eq!(rig.read(&done).unwrap(), 1);
        let with_memory = rig.engine.new_var();
        rig.memory_for(&with_memory, sim(0), 64);
        // The kernel dies; the thread that calls next is notified.
        rig.world.inject(fault(Call::Execute, 0, 700));
        rig.op("guilty", 0, &[], &[&a], |_| 2);
        rig.op("behind", 1, &[&a], &[&b], |v| v[0]);
        rig.op_on(sim(1), mxrt_engine::Lane::Normal, "elsewhere", 0, &[&b], &[&c], |v| v[0]);
        rig.host("parked", &[&b], &[&host], |v| v[0]);
        rig.some_steps(&mut random);
        rig.op_on(sim(1), mxrt_engine::Lane::Normal, "other device", 0, &[], &[&other], |_| 7);
        for cell in [&a, &b, &c, &host] {
            let failed = failure(rig.read(cell));
            assert_eq!(failed.kind(), FailureKind::Device);
            assert!(failed.message().starts_with("sim(0) is lost: the context is lost by error 700"), "{failed}");
        }
        rig.world.may_wait(true);
        let lost = rig.engine.wait_to_read(&with_memory).unwrap_err();
        assert!(lost.to_string().starts_with("sim(0) is lost"), "its memory is gone: {lost}");
        let spec = [(&a.var, Access::Write)];
        let refused = rig.engine.push_device(OpSpec::new("new", &spec).device(sim(0)), |_| Ok(())).unwrap_err();
        assert!(refused.message.contains("restart the process"), "{refused}");
        assert_eq!(rig.read(&other).unwrap(), 7, "seed {seed}: other devices go on");
        rig.host("cpu", &[], &[&host], |_| 8);
        assert_eq!(rig.read(&host).unwrap(), 8, "and so does the host");
        assert_eq!(rig.read(&done).unwrap(), 1, "what was known to be complete stays");
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        rig.engine.wait_all().unwrap();
    });
}

#[test]
fn a_lost_device_hangs_no_thread() {
    for seed in 0..engines() {
        let config = SimConfig { mode: Mode::Threaded { seed, max_delay_us: 30 }, ..SimConfig::default() };
        let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, config);
        let mut random = Random::new(seed);
        rig.world.inject(fault(Call::Execute, random.below(12), 719));
        let cells = rig.cells::<8>();
        let host = rig.cell(0);
        for i in 0..24 {
            let (from, to) = (&cells[i % 8], &cells[(i + 3) % 8]);
            let vars = [(&from.var, Access::Read), (&to.var, Access::Write)];
            let spec = OpSpec::new("op", &vars).device(sim(0)).stream((i % 5) as u16);
            if rig.engine.push_device(spec, |ctx| ctx.launch(|_| Ok(()))).is_err() {
                break;
            }
            if i % 5 == 0 {
                rig.host("host", &[to], &[&host], |v| v[0]);
            }
        }
        for cell in &cells {
            let _ = rig.engine.wait_to_read(&cell.var);
        }
        let _ = rig.engine.wait_all();
        rig.engine.wait_all().unwrap();
        rig.world.end();
        rig.engine.close();
    }
}

#[test]
fn a_host_op_learns_of_every_failure_although_it_waits_for_a_stream_once() {
    every_seed(|rig, seed| {
        let [a, b, c] = rig.cells();
        rig.fails("first", 0, &[], &[&a], "the first of two");
        rig.op("second", 0, &[], &[&b], |_| 1);
        // Both are complete, and the host has not asked yet: it asks for the latest only.
        while rig.world.step() {}
        rig.host("host", &[&b, &a], &[&c], |v| v[0]);
        assert_eq!(failure(rig.read(&c)).message(), "the first of two", "seed {seed}");
    });
}
