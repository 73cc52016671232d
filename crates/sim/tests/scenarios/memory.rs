//! Memory is reused after the events of its last users.

use crate::common::*;
use mxrt_engine::device::DevicePtr;
use mxrt_engine::{Access, Cost, DeviceCtx, FailureKind, OpError, OpSpec, Var};
use mxrt_sim::{Call, Fault, Knows, Random};

const BYTES: usize = 4096;

fn number(ptr: DevicePtr) -> *mut i64 {
    std::ptr::with_exposed_provenance_mut(ptr.0 as usize)
}

/// Pushes an op that allocates memory for `to` and fills its first place from that of `from`, or
/// with `value`.
fn fill(rig: &Rig, name: &'static str, stream: u16, from: Option<&Var>, to: &Var, value: i64) {
    let mut vars = vec![(to, Access::Write)];
    vars.extend(from.map(|f| (f, Access::Read)));
    let spec = OpSpec::new(name, &vars).device(sim(0)).stream(stream).cost(Cost::Small);
    let reads = from.is_some();
    let pushed = rig.engine.push_device(spec, move |ctx| {
        let to = ctx.alloc(0, BYTES)?;
        let from = if reads {
            Some(ctx.memory(1).ok_or_else(|| OpError::new(FailureKind::Value, "no memory"))?)
        } else {
            None
        };
        ctx.launch(move |_| {
            // SAFETY: the memory belongs to variables of this op, has BYTES bytes, and is kept
            // behind its event.
            unsafe { number(to).write(from.map_or(value, |f| number(f).read() + value)) };
            Ok(())
        })
    });
    pushed.unwrap();
}

/// Waits for a variable and looks at its memory.
fn look(rig: &Rig, var: &Var) -> i64 {
    rig.world.may_wait(true);
    rig.engine.wait_to_read(var).unwrap();
    rig.world.may_wait(false);
    let memory = var.memory().unwrap();
    // SAFETY: the last write is complete, nothing else was pushed, and the handle keeps the memory.
    unsafe { number(memory.ptr).read() }
}

fn fresh_blocks(rig: &Rig) -> usize {
    rig.engine.device_stats(sim(0)).unwrap().fresh_blocks
}

#[test]
fn free_then_alloc_same_size() {
    every_seed(|rig, seed| {
        let (x, y, z) = (rig.engine.new_var(), rig.engine.new_var(), rig.engine.new_var());
        fill(rig, "source", 0, None, &x, 5);
        fill(rig, "reader", 1, Some(&x), &y, 1);
        // Room for two blocks: the third owner gets memory that is still in use.
        rig.engine.set_device_limit(sim(0), Some(2 * BYTES)).unwrap();
        drop(x);
        fill(rig, "next owner", 2, None, &z, 50);
        rig.engine.set_device_limit(sim(0), None).unwrap();
        let report = rig.check(seed);
        assert!(report.ordered("reader", "next owner"), "seed {seed}");
        assert_eq!(report.host_waits, 0, "the device keeps the order");
        assert_eq!((look(rig, &y), look(rig, &z)), (6, 50), "seed {seed}");
    });
}

#[test]
fn free_then_alloc_prefers_what_needs_no_wait() {
    let rig = rig();
    for seed in 0..seeds() {
        rig.begin(seed);
        let (x, y) = (rig.engine.new_var(), rig.engine.new_var());
        fill(&rig, "first", 0, None, &x, 5);
        drop(x);
        let before = fresh_blocks(&rig);
        fill(&rig, "same stream", 0, None, &y, 6);
        assert_eq!(rig.check(seed).waits, 0, "a block used on this stream only needs no wait");
        assert_eq!(fresh_blocks(&rig), before);
        assert_eq!(look(&rig, &y), 6);
        drop(y);
        rig.end(seed);
    }
}

#[test]
fn free_then_alloc_for_cpu() {
    every_seed(|rig, seed| {
        let (x, y, z) = (rig.engine.new_var(), rig.engine.new_var(), rig.engine.new_var());
        fill(rig, "source", 0, None, &x, 5);
        fill(rig, "reader", 1, Some(&x), &y, 1);
        rig.engine.set_device_limit(sim(0), Some(2 * BYTES)).unwrap();
        drop(x);
        let ptr = rig.memory_for(&z, sim(0), BYTES);
        rig.engine.set_device_limit(sim(0), None).unwrap();
        assert_eq!(rig.check(seed).host_waits, 0);
        let (world, id) = (rig.world.clone(), z.id());
        rig.engine.push(OpSpec::new("host", &[(&z, Access::Write)]).cost(Cost::Small), move |_| {
            world.host_uses("host", &[(id, true)]);
            // SAFETY: the op has the only grant of the variable, and its memory's last user is
            // complete.
            unsafe { number(ptr).write(77) };
            Ok(())
        });
        assert_eq!((look(rig, &z), look(rig, &y)), (77, 6), "seed {seed}");
        assert!(rig.check(seed).ordered("reader", "host"));
    });
}

#[test]
fn aux_buffers_carry_events() {
    every_seed(|rig, seed| {
        let (x, y) = (rig.engine.new_var(), rig.engine.new_var());
        let with_scratch = |name: &'static str, stream: u16, var: &Var, value: i64| {
            let vars = [(var, Access::Write)];
            let spec = OpSpec::new(name, &vars).device(sim(0)).stream(stream).cost(Cost::Small);
            let pushed = rig.engine.push_device(spec, move |ctx: &DeviceCtx<'_>| {
                let (to, aside) = (ctx.alloc(0, BYTES)?, ctx.scratch(BYTES)?);
                ctx.launch(move |_| {
                    // SAFETY: memory of this op until its event is complete.
                    unsafe { number(aside).write(value) };
                    Ok(())
                })?;
                ctx.launch(move |_| {
                    // SAFETY: as above; the kernel before this one has written it.
                    unsafe { number(to).write(number(aside).read()) };
                    Ok(())
                })
            });
            pushed.unwrap();
        };
        rig.engine.trim_device(sim(0)).unwrap();
        rig.engine.set_device_limit(sim(0), Some(3 * BYTES)).unwrap();
        with_scratch("first", 0, &x, 1);
        with_scratch("second", 1, &y, 2);
        rig.engine.set_device_limit(sim(0), None).unwrap();
        let report = rig.check(seed);
        assert!(report.ordered("first", "second"), "the scratch is the same memory");
        assert_eq!(report.host_waits, 0);
        assert_eq!((look(rig, &x), look(rig, &y)), (1, 2), "seed {seed}");
    });
}

#[test]
fn delayed_alloc_regrow() {
    every_seed(|rig, seed| {
        let (x, y, z) = (rig.engine.new_var(), rig.engine.new_var(), rig.engine.new_var());
        fill(rig, "small", 0, None, &x, 3);
        fill(rig, "reader", 1, Some(&x), &y, 1);
        let old = x.memory().unwrap().ptr;
        let vars = [(&x, Access::Write)];
        let spec = OpSpec::new("grow", &vars).device(sim(0)).stream(2).cost(Cost::Small);
        let pushed = rig.engine.push_device(spec, |ctx| {
            let to = ctx.alloc(0, 4 * BYTES)?;
            ctx.launch(move |_| {
                // SAFETY: memory of this op's variable, four times as large.
                unsafe { number(to).add(BYTES / 8 * 3).write(9) };
                Ok(())
            })
        });
        pushed.unwrap();
        assert_ne!(x.memory().unwrap().ptr, old);
        rig.engine.trim_device(sim(0)).unwrap();
        rig.engine.set_device_limit(sim(0), Some(6 * BYTES)).unwrap();
        // The memory that was too small goes to another owner, behind its reader.
        fill(rig, "next owner", 3, None, &z, 50);
        rig.engine.set_device_limit(sim(0), None).unwrap();
        let report = rig.check(seed);
        assert_eq!(z.memory().unwrap().ptr, old);
        assert!(report.ordered("reader", "next owner") && report.ordered("grow", "next owner"));
        assert_eq!((look(rig, &y), look(rig, &z)), (4, 50), "seed {seed}");
    });
}

#[test]
fn oom_trim_retry() {
    every_seed_afresh(|rig, seed| {
        let mut random = Random::new(seed);
        rig.world.set_memory(0, 3 * BYTES);
        let (x, y, big, after) =
            (rig.engine.new_var(), rig.engine.new_var(), rig.engine.new_var(), rig.engine.new_var());
        fill(rig, "first", 0, None, &x, 1);
        fill(rig, "second", 1, Some(&x), &y, 1);
        drop(x);
        rig.some_steps(&mut random);
        // Two blocks fit once the freed one was given back, which its reader delays.
        rig.world.may_wait(true);
        rig.memory_for(&big, sim(0), 2 * BYTES);
        let stats = rig.engine.device_stats(sim(0)).unwrap();
        assert_eq!((stats.in_use, stats.cached), (3 * BYTES, 0), "seed {seed}");
        // An op that gets no memory fails alone.
        fill(rig, "third", 0, None, &after, 3);
        let refused = failure(rig.engine.wait_to_read(&after).map(|()| 0));
        assert_eq!(refused.kind(), FailureKind::Memory);
        assert!(
            refused.message().starts_with("allocating 4096 bytes on sim(0): the device has no more and 12288 bytes"),
            "{}",
            refused.message()
        );
        assert_eq!(look(rig, &y), 2);
        drop(big);
        fill(rig, "fourth", 0, Some(&y), &after, 3);
        assert_eq!(look(rig, &after), 5);
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        rig.check(seed);
    });
}

#[test]
fn a_refused_allocation_is_tried_again_after_trimming() {
    every_seed_afresh(|rig, _| {
        let (x, y) = (rig.engine.new_var(), rig.engine.new_var());
        fill(rig, "first", 0, None, &x, 1);
        drop(x);
        rig.world.inject(Fault { device: 0, call: Call::Alloc, after: 0, code: 2 });
        rig.world.may_wait(true);
        fill(rig, "second", 1, None, &y, 2);
        assert_eq!(look(rig, &y), 2);
    });
}

#[test]
fn memory_is_given_back_only_when_no_thread_uses_it() {
    every_seed(|rig, seed| {
        let (x, y) = (rig.engine.new_var(), rig.engine.new_var());
        fill(rig, "source", 0, None, &x, 5);
        fill(rig, "reader", 1, Some(&x), &y, 1);
        drop(x);
        rig.some_steps(&mut Random::new(seed));
        rig.engine.trim_device(sim(0)).unwrap();
        rig.check(seed);
        assert_eq!(look(rig, &y), 6);
    });
}

#[test]
fn everything_is_back_when_it_is_quiet() {
    let rig = rig();
    for seed in 0..seeds() {
        rig.begin(seed);
        let vars: Vec<Var> = (0..4).map(|_| rig.engine.new_var()).collect();
        for i in 0..12usize {
            let from = (i > 3).then(|| &vars[(i + 1) % 4]);
            fill(&rig, "fill", (i % 5) as u16, from, &vars[i % 4], i as i64);
        }
        rig.end(seed);
        drop(vars);
        let stats = rig.engine.device_stats(sim(0)).unwrap();
        assert_eq!((stats.in_use, stats.cached > 0), (0, true), "seed {seed}");
        rig.engine.trim_device(sim(0)).unwrap();
        let stats = rig.engine.device_stats(sim(0)).unwrap();
        assert_eq!(
            (stats.cached, stats.live_events),
            (0, 0),
            "seed {seed}: {stats:?}, {} events",
            rig.world.live_events()
        );
        assert_eq!(rig.world.live_events(), stats.free_events);
    }
    assert!(!rig.world.log().iter().any(|e| matches!(e, mxrt_sim::LogEntry::Known { how: Knows::Called, .. })));
}
