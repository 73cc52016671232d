//! Arrays that other libraries use on streams of their own, parameters that many read, arenas that
//! few share.

use crate::common::*;
use mxrt_engine::device::{ConsumerStream, Device, DevicePtr, EventHandle, StreamHandle};
use mxrt_engine::{Access, Cost, Engine, EngineKind, OpSpec, Var};
use mxrt_sim::{Call, Fault, LogEntry, Mode, Random, SimConfig, SimDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};

const BYTES: usize = 1024;

fn backend(engine: &'static Engine) -> Arc<dyn Device> {
    engine.device(sim(0)).unwrap().backend().clone()
}

/// Another library with a stream of its own: it knows the device and nothing of the engine.
struct Library {
    device: Arc<dyn Device>,
    stream: StreamHandle,
    events: std::cell::RefCell<Vec<EventHandle>>,
}

impl Library {
    fn new(engine: &'static Engine) -> Self {
        let device = backend(engine);
        let number = device.as_any().downcast_ref::<SimDevice>().unwrap().new_foreign_stream();
        Library { stream: StreamHandle(number), device, events: Default::default() }
    }

    /// Copies a number on its stream, as a kernel of its own would.
    fn copy(&self, to: *mut i64, from: DevicePtr, tag: &Arc<mxrt_engine::device::Tag>) {
        let (to, from) = (to.expose_provenance(), from.0 as usize);
        let kernel = move || {
            let (to, from) =
                (std::ptr::with_exposed_provenance_mut::<i64>(to), std::ptr::with_exposed_provenance(from));
            // SAFETY: the test keeps both until the run is over.
            unsafe { to.write(*from) };
        };
        let sim = self.device.as_any().downcast_ref::<SimDevice>().unwrap();
        sim.launch_own(self.stream, tag.clone(), kernel).unwrap();
    }

    /// Makes another stream wait for what this library has submitted: what a producer does when it
    /// is asked.
    fn be_ready_on(&self, number: u64) {
        let event = self.device.new_event(false).unwrap();
        self.device.record(self.stream, event, 0).unwrap();
        self.device.stream_wait(StreamHandle(number), event, 0).unwrap();
        self.events.borrow_mut().push(event);
    }
}

/// The tag with which the checker learns of the library's use of a variable.
fn tag(name: &'static str, var: &Var, write: bool) -> Arc<mxrt_engine::device::Tag> {
    let memory = var.memory().map(|m| m.ptr);
    let access = mxrt_engine::device::TagAccess { var: var.id(), memory, write };
    let (op, device, accesses) = (u64::MAX, sim(0), vec![access]);
    Arc::new(mxrt_engine::device::Tag { op, name: name.into(), device, accesses, behind_all: false })
}

/// Pushes an op that writes a number into the memory of a variable.
fn store(rig: &Rig, name: &'static str, stream: u16, var: &Var, value: i64) {
    let vars = [(var, Access::Write)];
    let spec = OpSpec::new(name, &vars).device(sim(0)).stream(stream).cost(Cost::Small);
    let pushed = rig.engine.push_device(spec, move |ctx| {
        let to = ctx.alloc(0, BYTES)?.0 as usize;
        ctx.launch(move |_| {
            // SAFETY: memory of this op's variable, kept behind its event.
            unsafe { std::ptr::with_exposed_provenance_mut::<i64>(to).write(value) };
            Ok(())
        })
    });
    pushed.unwrap();
}

#[test]
fn dlpack_stream_numbers_mean_what_the_protocol_says() {
    let parse = |stream| ConsumerStream::parse(stream).map_err(|e| e.message.clone());
    assert_eq!(parse(None), Ok(ConsumerStream::Number(1)));
    assert_eq!(parse(Some(1)), Ok(ConsumerStream::Number(1)));
    assert_eq!(parse(Some(2)), Ok(ConsumerStream::Number(2)));
    assert_eq!(parse(Some(0x7f5a_0000_0040)), Ok(ConsumerStream::Number(0x7f5a_0000_0040)));
    assert_eq!(parse(Some(-1)), Ok(ConsumerStream::NoSync));
    for wrong in [0, -2, i64::MIN] {
        assert!(
            parse(Some(wrong))
                .unwrap_err()
                .starts_with(&format!("exporting an array to stream {wrong}: expected None"))
        );
    }
}

#[test]
fn dlpack_export_streams() {
    every_seed(|rig, seed| {
        let library = Library::new(rig.engine);
        assert!(library.stream.0 > 1 << 32, "a handle that does not fit into 32 bits");
        let (x, next) = (rig.engine.new_var(), rig.engine.new_var());
        store(rig, "producer", 0, &x, 41);
        let consumer = ConsumerStream::parse(Some(library.stream.0 as i64)).unwrap();
        let export = rig.engine.export_to(&x, sim(0), consumer, false, &mut || true).unwrap();
        assert_eq!(rig.check(seed).host_waits, 0, "the host waits for nothing");
        let ptr = x.memory().unwrap().ptr;
        // The library uses the memory although the array is gone; it says so by dropping the export
        // afterwards.
        let seen = Box::into_raw(Box::new(0i64));
        let tag = tag("consumer", &x, false);
        drop(x);
        library.copy(seen, ptr, &tag);
        assert!(rig.engine.device_stats(sim(0)).unwrap().in_use >= BYTES, "the capsule keeps the memory");
        drop(export);
        rig.engine.trim_device(sim(0)).unwrap();
        rig.engine.set_device_limit(sim(0), Some(BYTES)).unwrap();
        store(rig, "next owner", 1, &next, 7);
        rig.engine.set_device_limit(sim(0), None).unwrap();
        let report = rig.check(seed);
        assert!(report.ordered("producer", "consumer"), "seed {seed}");
        assert!(report.ordered("consumer", "next owner"), "the next owner comes after the library");
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        rig.engine.wait_to_read(&next).unwrap();
        // SAFETY: the only copy into it is complete: the next owner's write came after it.
        assert_eq!(unsafe { *Box::from_raw(seen) }, 41, "seed {seed}");
    });
}

#[test]
fn dlpack_export_to_write_waits_for_readers() {
    every_seed(|rig, seed| {
        let library = Library::new(rig.engine);
        let (x, y) = (rig.engine.new_var(), rig.cell(0));
        store(rig, "producer", 0, &x, 3);
        let vars = [(&x, Access::Read), (&y.var, Access::Write)];
        let spec = OpSpec::new("reader", &vars).device(sim(0)).stream(1).cost(Cost::Small);
        rig.engine.push_device(spec, |ctx| ctx.launch(|_| Ok(()))).unwrap();
        let consumer = ConsumerStream::Number(library.stream.0);
        let export = rig.engine.export_to(&x, sim(0), consumer, true, &mut || true).unwrap();
        let sink = Box::into_raw(Box::new(0i64));
        library.copy(sink, x.memory().unwrap().ptr, &tag("consumer", &x, true));
        drop(export);
        let report = rig.check(seed);
        assert!(report.ordered("reader", "consumer") && report.ordered("producer", "consumer"));
        rig.world.may_wait(true);
        rig.engine.wait_to_write(&x).unwrap();
        // SAFETY: waiting for writing includes the library's use.
        drop(unsafe { Box::from_raw(sink) });
    });
}

#[test]
fn dlpack_export_without_synchronisation_ends_behind_the_default_stream() {
    every_seed(|rig, seed| {
        let device = backend(rig.engine);
        let library = Library { stream: device.foreign_stream(1).unwrap(), device, events: Default::default() };
        let (x, next) = (rig.engine.new_var(), rig.engine.new_var());
        store(rig, "producer", 0, &x, 3);
        rig.world.may_wait(true);
        rig.engine.wait_to_read(&x).unwrap();
        rig.world.may_wait(false);
        let export = rig.engine.export_to(&x, sim(0), ConsumerStream::NoSync, false, &mut || true).unwrap();
        let (seen, ptr) = (Box::into_raw(Box::new(0i64)), x.memory().unwrap().ptr);
        let tag = tag("consumer", &x, false);
        drop(x);
        library.copy(seen, ptr, &tag);
        let before = rig.world.pending();
        drop(export);
        assert!(rig.world.pending() >= before, "the host waits for nobody");
        rig.engine.set_device_limit(sim(0), Some(BYTES)).unwrap();
        store(rig, "next owner", 1, &next, 7);
        rig.engine.set_device_limit(sim(0), None).unwrap();
        assert!(rig.check(seed).ordered("consumer", "next owner"), "seed {seed}");
        rig.world.may_wait(true);
        rig.engine.wait_to_read(&next).unwrap();
        // SAFETY: the next owner's write came after the copy into it.
        assert_eq!(unsafe { *Box::from_raw(seen) }, 3, "seed {seed}");
    });
}

/// The default stream of a thread has one number in all threads, so the legacy one stands for it.
#[test]
fn the_default_stream_of_a_thread_is_ordered_by_the_legacy_one() {
    every_seed(|rig, seed| {
        let device = backend(rig.engine);
        let library = Library { stream: device.foreign_stream(1).unwrap(), device, events: Default::default() };
        let x = rig.engine.new_var();
        store(rig, "producer", 0, &x, 3);
        let export = rig.engine.export_to(&x, sim(0), ConsumerStream::Number(2), false, &mut || true).unwrap();
        let seen = Box::into_raw(Box::new(0i64));
        library.copy(seen, x.memory().unwrap().ptr, &tag("consumer", &x, false));
        drop(export);
        store(rig, "writer", 1, &x, 7);
        let report = rig.check(seed);
        assert!(report.ordered("producer", "consumer"), "seed {seed}");
        assert!(report.ordered("consumer", "writer"), "seed {seed}");
        rig.world.may_wait(true);
        rig.engine.wait_to_read(&x).unwrap();
        // SAFETY: the writer came after the copy into it.
        assert_eq!(unsafe { *Box::from_raw(seen) }, 3, "seed {seed}");
    });
}

/// A library may destroy its stream and get one of the same handle, which has waited for nothing.
#[test]
fn every_export_to_a_handle_is_ordered_anew() {
    let rig = rig();
    rig.begin(1);
    let library = Library::new(rig.engine);
    let x = rig.engine.new_var();
    store(&rig, "producer", 0, &x, 3);
    let waits = || rig.world.log().iter().filter(|entry| matches!(entry, LogEntry::Wait { .. })).count();
    let consumer = ConsumerStream::Number(library.stream.0);
    for number in 1..4 {
        let before = waits();
        drop(rig.engine.export_to(&x, sim(0), consumer, false, &mut || true).unwrap());
        // For the producer, and to be behind the last record of this handle.
        assert_eq!(waits() - before, 1 + usize::from(number > 1), "export {number}");
    }
    rig.world.may_wait(true);
    rig.engine.wait_all().unwrap();
}

#[test]
fn an_event_of_a_library_that_the_driver_never_answers_for_costs_the_device_nothing() {
    let rig = rig();
    rig.begin(1);
    let x = rig.cell(0);
    rig.op("producer", 0, &[], &[&x], |_| 1);
    rig.world.may_wait(true);
    rig.engine.wait_all().unwrap();
    let library = Library::new(rig.engine);
    let consumer = ConsumerStream::Number(library.stream.0);
    let refuse =
        || (0..3).for_each(|_| rig.world.inject(Fault { device: 0, call: Call::HostWait, after: 0, code: 907 }));
    drop(rig.engine.export_to(&x.var, sim(0), consumer, false, &mut || true).unwrap());
    refuse();
    rig.engine.wait_all().unwrap();
    rig.op("writer", 1, &[], &[&x], |_| 2);
    assert_eq!(rig.read(&x).unwrap(), 2);
    // The value of an operator is another matter.
    rig.op("unknown", 1, &[], &[&x], |_| 3);
    refuse();
    assert!(rig.read(&x).unwrap_err().to_string().contains("is lost"));
}

#[test]
fn dlpack_export_of_a_failed_or_unknown_thing_is_refused() {
    let rig = rig();
    rig.begin(1);
    let x = rig.cell(0);
    rig.world.inject(Fault { device: 0, call: Call::Launch, after: 0, code: 1 });
    rig.op("hit", 0, &[], &[&x], |_| 1);
    let poll = &mut || true;
    let refused = rig.engine.export_to(&x.var, sim(0), ConsumerStream::Number(1), false, poll).unwrap_err();
    assert!(refused.to_string().contains("launching hit"), "{refused}");
    let fresh = rig.engine.new_var();
    let refused = rig.engine.export_to(&fresh, sim(0), ConsumerStream::Number(12345), false, poll).unwrap_err();
    assert!(refused.to_string().contains("device error 400"), "{refused}");
    assert!(rig.engine.export_to(&fresh, sim(9), ConsumerStream::Number(1), false, poll).is_err());
}

#[test]
fn dlpack_import_orders() {
    every_seed(|rig, seed| {
        let library = Library::new(rig.engine);
        // The library's array: its last write is under way on its own stream.
        let source = rig.engine.new_var();
        let from = rig.memory_for(&source, sim(0), BYTES);
        let to = library.device.alloc(BYTES).unwrap();
        let x = rig.engine.new_var();
        let (notified, done) = (Arc::new(AtomicUsize::new(0)), library.device.clone());
        let counted = notified.clone();
        let free = move || {
            counted.fetch_add(1, SeqCst);
            done.free(to);
        };
        rig.engine.adopt_memory(&x, sim(0), to, BYTES, free).unwrap();
        let job = mxrt_engine::device::CopyJob {
            to: mxrt_engine::MemoryPlace::Device(to),
            from: mxrt_engine::MemoryPlace::Device(from),
            bytes: 8,
            tag: tag("producer", &x, true),
        };
        // SAFETY: both blocks have BYTES bytes and stay until the run is over.
        unsafe { library.device.copy(library.stream, job).unwrap() };
        let import = rig.engine.import_stream(sim(0)).unwrap();
        library.be_ready_on(import.number());
        import.finish(&x).unwrap();
        let y = rig.cell(0);
        let vars = [(&x, Access::Read), (&y.var, Access::Write)];
        let spec = OpSpec::new("consumer", &vars).device(sim(0)).stream(3).cost(Cost::Small);
        rig.engine.push_device(spec, |ctx| ctx.launch(|_| Ok(()))).unwrap();
        drop(x);
        assert_eq!(notified.load(SeqCst), 0, "the memory is in use");
        let report = rig.check(seed);
        assert!(report.ordered("producer", "consumer"), "seed {seed}");
        assert_eq!(report.host_waits, 0);
        rig.read(&y).unwrap();
        while rig.world.step() {}
        assert_eq!(notified.load(SeqCst), 1, "the library is notified once, when its memory is not used any more");
        library.events.borrow().iter().for_each(|e| library.device.free_event(*e));
    });
}

#[test]
fn frozen_write_waits_all_streams() {
    every_seed(|rig, seed| {
        let mut random = Random::new(seed);
        let parameters: [Cell; 3] = rig.cells();
        let refs: Vec<&Cell> = parameters.iter().collect();
        rig.op("load", 0, &[], &refs, |_| 1);
        parameters.iter().for_each(|p| rig.engine.freeze(&p.var));
        let results: Vec<Cell> = (0..8).map(|_| rig.cell(0)).collect();
        let call = |i: usize| rig.op("call", (i % 5) as u16, &refs, &[&results[i]], |v| v.iter().sum());
        (0..4).for_each(call);
        rig.some_steps(&mut random);
        assert!(rig.engine.is_frozen(&parameters[0].var));
        rig.op("update", 4, &[], &refs, |_| 10);
        assert!(!rig.engine.is_frozen(&parameters[0].var), "a write ends it");
        (4..8).for_each(call);
        rig.check(seed);
        for (i, result) in results.iter().enumerate() {
            assert_eq!(rig.read(result).unwrap(), if i < 4 { 3 } else { 30 }, "seed {seed}: call {i}");
        }
    });
}

#[test]
fn calls_see_all_old_or_all_new_parameters_while_others_update_them() {
    let config = SimConfig { mode: Mode::Threaded { seed: 7, max_delay_us: 20 }, ..SimConfig::default() };
    let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, config);
    let parameters: Vec<Cell> = (0..4).map(|_| rig.cell(0)).collect();
    let refs: Vec<&Cell> = parameters.iter().collect();
    parameters.iter().for_each(|p| rig.engine.freeze(&p.var));
    let call = |stream: u16| {
        let out = rig.cell(0);
        let (ins, to, vars) = (values(&refs), out.value.clone(), accesses(&refs, &[&out]));
        let pushed = rig.engine.push_device(OpSpec::new("call", &vars).device(sim(0)).stream(stream), move |ctx| {
            ctx.launch(move |_| {
                let all: Vec<i64> = ins.iter().map(|v| v.load(SeqCst)).collect();
                to.store(all.iter().all(|v| *v == all[0]) as i64, SeqCst);
                Ok(())
            })
        });
        pushed.unwrap();
        rig.engine.wait_to_read(&out.var).unwrap();
        assert_eq!(out.get(), 1, "a call saw a mixture");
    };
    let call = &call;
    for seed in 0..seeds() {
        rig.world.reseed(seed);
        std::thread::scope(|s| {
            (0..8).for_each(|thread| drop(s.spawn(move || call((seed + thread) as u16 % 5))));
            s.spawn(|| {
                for value in [seed as i64, -1] {
                    rig.op_on(sim(0), mxrt_engine::Lane::Normal, "update", 4, &[], &refs, move |_| value);
                    parameters.iter().for_each(|p| rig.engine.freeze(&p.var));
                }
            });
        });
    }
    rig.engine.wait_all().unwrap();
}

#[test]
fn plan_lease() {
    let config = SimConfig { mode: Mode::Threaded { seed: 5, max_delay_us: 5 }, ..SimConfig::default() };
    let rig = rig_with(EngineKind::ThreadedPerDeviceAsync, config);
    // An arena is a variable with memory, and leased by writing it; ops inside are counted.
    let arenas: Vec<(Cell, Arc<AtomicI64>)> = (0..3).map(|_| (rig.cell(0), Arc::new(AtomicI64::new(0)))).collect();
    let calls = AtomicUsize::new(0);
    let plan = |input: i64| {
        let number = calls.fetch_add(1, SeqCst);
        let (arena, inside) = &arenas[number % 3];
        let out = rig.cell(0);
        let vars = [(&arena.var, Access::Write), (&out.var, Access::Write)];
        let spec = OpSpec::new("plan", &vars).device(sim(0)).stream((number % 5) as u16);
        let (inside, space, to) = (inside.clone(), arena.value.clone(), out.value.clone());
        let pushed = rig.engine.push_device(spec, move |ctx| {
            let (first, second) = (space.clone(), inside.clone());
            ctx.launch(move |_| {
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two plans in one arena");
                first.store(input * 3, SeqCst);
                Ok(())
            })?;
            ctx.launch(move |_| {
                to.store(space.load(SeqCst) + 1, SeqCst);
                second.fetch_sub(1, SeqCst);
                Ok(())
            })
        });
        pushed.unwrap();
        (out, input)
    };
    let (plan, engine) = (&plan, rig.engine);
    let sixteen_threads = |calls: i64| {
        std::thread::scope(|s| {
            for thread in 0..16i64 {
                s.spawn(move || {
                    let outs: Vec<(Cell, i64)> = (0..calls).map(|i| plan(thread * 1000 + i)).collect();
                    for (out, input) in outs {
                        engine.wait_to_read(&out.var).unwrap();
                        assert_eq!(out.get(), input * 3 + 1);
                    }
                });
            }
        });
    };
    sixteen_threads(200);
    for seed in 0..seeds() {
        rig.world.reseed(seed);
        sixteen_threads(1);
    }
    rig.engine.wait_all().unwrap();
}
