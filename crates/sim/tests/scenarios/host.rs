//! The host waits for devices where a program asks it to, and nowhere else.

use crate::common::*;
use mxrt_engine::{Access, Cost, EngineKind, Lane, OpSpec, WaitError};
use mxrt_sim::{Mode, Random, SimConfig};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

#[test]
fn wait_to_read_really_waits() {
    let delayed = AtomicUsize::new(0);
    every_seed(|rig, seed| {
        let mut random = Random::new(seed);
        let [x, y] = rig.cells();
        rig.op("write", 0, &[], &[&x], |_| 7);
        rig.op("unrelated", 1, &[], &[&y], |_| 8);
        rig.some_steps(&mut random);
        delayed.fetch_add((x.get() == 0) as usize, SeqCst);
        assert_eq!(rig.read(&x).unwrap(), 7, "seed {seed}");
        // The engine has nothing queued for it: a second wait must look at the device as well.
        assert_eq!(rig.read(&x).unwrap(), 7);
        rig.op("rewrite", 2, &[&x], &[&x], |v| v[0] + 1);
        assert_eq!(rig.read(&x).unwrap(), 8, "seed {seed}");
    });
    assert!(delayed.into_inner() > 0, "the work was never late");
}

#[test]
fn wait_to_write_flushes_readers() {
    every_seed(|rig, seed| {
        let (x, y, z) = (rig.cell(5), rig.cell(0), rig.cell(0));
        rig.op("reader", 0, &[&x], &[&y], |v| v[0] + 1);
        rig.op("other reader", 1, &[&x], &[&z], |v| v[0] + 2);
        rig.world.may_wait(true);
        rig.engine.wait_to_write(&x.var).unwrap();
        rig.world.may_wait(false);
        rig.world.host_uses("overwrite", &[(x.var.id(), true)]);
        assert_eq!((y.get(), z.get()), (6, 7), "seed {seed}");
    });
}

#[test]
fn waitall_all_devices() {
    every_seed(|rig, seed| {
        let cells = rig.cells::<6>();
        for (i, lane) in [Lane::Normal, Lane::CopyIn, Lane::CopyOut].into_iter().enumerate() {
            for device in 0..2 {
                let cell = &cells[i * 2 + usize::from(device)];
                rig.op_on(sim(device), lane, "write", 0, &[], &[cell], move |_| 1 + i as i64);
            }
        }
        let last = rig.cell(0);
        std::thread::scope(|s| {
            s.spawn(|| rig.op("from another thread", 3, &[&cells[0]], &[&last], |v| v[0] + 10));
        });
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        assert_eq!(rig.world.pending(), 0, "seed {seed}");
        assert_eq!(cells.each_ref().map(Cell::get), [1, 1, 2, 2, 3, 3]);
        assert_eq!(last.get(), 11);
    });
}

#[test]
fn guards_and_callbacks_wait_for_the_device() {
    every_seed(|rig, seed| {
        let [x, y] = rig.cells();
        let notified = Arc::new(Mutex::new(None));
        rig.op("write", 0, &[], &[&x], |_| 7);
        let (seen, value) = (notified.clone(), x.value.clone());
        rig.engine.on_ready(&x.var, move |result| {
            *seen.lock().unwrap() = Some((result.is_ok(), value.load(SeqCst)));
        });
        assert!(notified.lock().unwrap().is_none_or(|t| t == (true, 7)), "seed {seed}");
        rig.world.may_wait(true);
        let guard = rig.engine.read_guard(&x.var).unwrap();
        assert_eq!(x.get(), 7);
        // A writer pushed now is not even submitted before the guard is gone.
        rig.op("rewrite", 1, &[], &[&x], |_| 9);
        while rig.world.step() {}
        assert_eq!(x.get(), 7);
        drop(guard);
        rig.engine.wait_to_write(&x.var).unwrap();
        assert_eq!(x.get(), 9);
        assert_eq!(*notified.lock().unwrap(), Some((true, 7)));
        rig.op("after", 2, &[&x], &[&y], |v| v[0] + 1);
        assert!(!rig.engine.is_ready(&y.var) || y.get() == 10);
        while !rig.engine.is_ready(&y.var) {}
        assert_eq!(y.get(), 10);
        rig.world.may_wait(false);
    });
}

#[test]
fn a_wait_for_the_device_can_be_given_up() {
    let rig = rig_with(
        EngineKind::ThreadedAsync,
        SimConfig { mode: Mode::Threaded { seed: 1, max_delay_us: 0 }, ..SimConfig::default() },
    );
    let (x, (open, held)) = (rig.cell(0), gate());
    rig.op("held", 0, &[], &[&x], move |_| held());
    let mut polls = 0;
    let result = rig.engine.wait_to_read_with(&x.var, &mut || {
        polls += 1;
        polls < 2
    });
    assert!(matches!(result, Err(WaitError::Interrupted)), "{result:?}");
    let result = rig.engine.wait_all_with(&mut || false);
    assert!(matches!(result, Err(WaitError::Interrupted)), "{result:?}");
    open();
    rig.engine.wait_to_read(&x.var).unwrap();
    assert_eq!(x.get(), 1);
}

#[test]
fn a_parked_op_blocks_no_worker() {
    // One core: a worker that waited for the device would keep the other op from running.
    let config = SimConfig { mode: Mode::Threaded { seed: 1, max_delay_us: 0 }, ..SimConfig::default() };
    for kind in [EngineKind::ThreadedAsync, EngineKind::ThreadedPerDeviceAsync] {
        let rig = rig_with(kind, config.clone());
        let [x, y, z] = rig.cells();
        let (open, held) = gate();
        rig.op("held", 0, &[], &[&x], move |_| held());
        let ran = |cell: &Cell, reads: &[&Cell]| {
            let (value, vars) = (cell.value.clone(), accesses(reads, &[cell]));
            rig.engine.push(OpSpec::new("host", &vars), move |_| {
                value.store(5, SeqCst);
                Ok(())
            });
        };
        ran(&y, &[&x]);
        ran(&z, &[]);
        rig.engine.wait_to_read(&z.var).unwrap();
        assert_eq!((y.get(), z.get()), (0, 5), "{kind}");
        open();
        rig.engine.wait_all().unwrap();
        assert_eq!(y.get(), 5);
    }
}

/// A push with `Async` returns, and dependants are submitted, while the kernel has not run. Without
/// it, the op is complete before anything that depends on it starts. `NaiveEngine` has it complete
/// when the push returns.
#[test]
fn kinds_are_notified_apart_on_two_devices() {
    for kind in EngineKind::ALL {
        let rig = rig_with(kind, SimConfig { mode: Mode::Scheduled { seed: 3 }, record: true, ..SimConfig::default() });
        let [x, y] = rig.cells();
        let submitted = Arc::new(Mutex::new(Vec::new()));
        for (device, name, cell) in [(0, "first", &x), (1, "second", &y)] {
            let vars = if device == 0 { accesses(&[], &[cell]) } else { accesses(&[&x], &[cell]) };
            let spec = OpSpec::new(name, &vars).device(sim(device)).cost(Cost::Small);
            let (seen, before, value) = (submitted.clone(), x.value.clone(), cell.value.clone());
            let pushed = rig.engine.push_device(spec, move |ctx| {
                seen.lock().unwrap().push(before.load(SeqCst));
                ctx.launch(move |_| {
                    value.store(1, SeqCst);
                    Ok(())
                })
            });
            pushed.unwrap();
        }
        let after_push = (x.get(), y.get(), submitted.lock().unwrap().clone());
        match kind.is_async() {
            true => assert_eq!(after_push, (0, 0, vec![0, 0]), "{kind}: everything is submitted, nothing has run"),
            false => {
                assert_eq!(after_push, (1, 1, vec![0, 1]), "{kind}: the second op starts after the first is complete")
            }
        }
        rig.engine.wait_all().unwrap();
        assert_eq!((x.get(), y.get()), (1, 1), "{kind}");
        let waits = mxrt_sim::check::check(&rig.world.log());
        assert!(waits.violations.is_empty(), "{kind}: {:?}", waits.violations);
    }
}

/// The kinds with a set of queues for each device serve devices in turn; the others serve in order
/// of arrival.
#[test]
fn kinds_serve_devices_differently() {
    let order_of = |kind| {
        let config = SimConfig { mode: Mode::Threaded { seed: 1, max_delay_us: 0 }, ..SimConfig::default() };
        let rig = rig_with(kind, config);
        let (started, release, order) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (on, go) = (started.clone(), release.clone());
        rig.engine.push(OpSpec::new("plug", &[]), move |_| {
            on.store(1, SeqCst);
            while go.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            Ok(())
        });
        while started.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let vars: Vec<_> = (0..6).map(|_| rig.engine.new_var()).collect();
        for (i, var) in vars.iter().enumerate() {
            let seen = order.clone();
            let device = sim((i >= 4) as u16);
            let spec = [(var, Access::Write)];
            let spec = OpSpec::new("op", &spec).device(device);
            let pushed = rig.engine.push_device(spec, move |_| {
                seen.lock().unwrap().push(i);
                Ok(())
            });
            pushed.unwrap();
        }
        release.store(1, SeqCst);
        rig.engine.wait_all().unwrap();
        order.lock().unwrap().clone()
    };
    for kind in [EngineKind::Threaded, EngineKind::ThreadedAsync] {
        assert_eq!(order_of(kind), [0, 1, 2, 3, 4, 5], "{kind}");
    }
    for kind in [EngineKind::ThreadedPerDevice, EngineKind::ThreadedPerDeviceAsync] {
        assert_eq!(order_of(kind), [0, 4, 1, 5, 2, 3], "{kind}");
    }
}
