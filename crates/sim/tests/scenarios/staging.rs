//! Copies between the host and a device go through a ring of page-locked chunks, which are reused
//! after their events.

use crate::common::*;
use mxrt_engine::device::DeviceReserve;
use mxrt_engine::*;
use mxrt_sim::check::check;
use mxrt_sim::{Call, Fault, Mode, Random, SimConfig};
use std::sync::{Arc, Mutex};

/// Chunks of the rings in these tests: few, so that copies need several rounds.
const CHUNKS: usize = 3;
const CHUNK: usize = 64;

/// Bytes of the host with a variable.
#[derive(Clone)]
struct Host {
    var: Var,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Host {
    fn new(rig: &Rig, bytes: Vec<u8>) -> Host {
        Host { var: rig.engine.new_var(), bytes: Arc::new(Mutex::new(bytes)) }
    }

    fn address(&self) -> *mut u8 {
        self.bytes.lock().unwrap().as_mut_ptr()
    }

    fn get(&self, rig: &Rig) -> Result<Vec<u8>, WaitError> {
        rig.world.may_wait(true);
        let result = rig.engine.wait_to_read(&self.var);
        rig.world.may_wait(false);
        result.map(|()| self.bytes.lock().unwrap().clone())
    }
}

fn upload(rig: &Rig, name: &str, from: &Host, to: &Var) {
    let vars = [(&from.var, Access::Read), (to, Access::Write)];
    let spec = OpSpec::new(name.to_owned(), &vars).device(sim(0)).lane(Lane::CopyIn).cost(Cost::Small);
    let (source, bytes) = (from.clone(), from.bytes.lock().unwrap().len());
    let pushed = rig.engine.push_device(spec, move |ctx| {
        let to = ctx.alloc(1, bytes)?;
        let from = source.address();
        ctx.keep(source.bytes.clone());
        // SAFETY: memory of this op's variables, with so many bytes; the host's is kept.
        unsafe { ctx.copy_in((1, to), (0, from), bytes) }
    });
    pushed.unwrap();
}

fn download(rig: &Rig, name: &str, from: &Var, to: &Host) {
    let vars = [(from, Access::Read), (&to.var, Access::Write)];
    let spec = OpSpec::new(name.to_owned(), &vars).device(sim(0)).lane(Lane::CopyOut).cost(Cost::Small);
    let (target, bytes) = (to.clone(), to.bytes.lock().unwrap().len());
    let pushed = rig.engine.push_device(spec, move |ctx| {
        let from = ctx.memory(0).ok_or_else(|| OpError::new(FailureKind::Value, "no memory"))?;
        let to = target.address();
        ctx.keep(target.bytes.clone());
        // SAFETY: memory of this op's variables, with so many bytes; the host's is kept.
        unsafe { ctx.copy_out((1, to), (0, from), bytes) }
    });
    pushed.unwrap();
}

/// Adds one to every byte, on the device; a GPU, which runs no code of the host, clears them.
fn change(rig: &Rig, stream: u16, var: &Var, bytes: usize) {
    let vars = [(var, Access::Update)];
    let spec = OpSpec::new("change", &vars).device(sim(0)).stream(stream).cost(Cost::Small);
    let pushed = rig.engine.push_device(spec, move |ctx| {
        let memory = ctx.memory(0).ok_or_else(|| OpError::new(FailureKind::Value, "no memory"))?;
        if on_gpu() {
            // SAFETY: memory of this op's variable, with so many bytes.
            return unsafe { ctx.clear(memory, bytes) };
        }
        let at = memory.0 as usize;
        ctx.launch(move |_| {
            // SAFETY: memory of this op's variable; this device's memory is the host's.
            let all = unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(at), bytes) };
            all.iter_mut().for_each(|b| *b = b.wrapping_add(1));
            Ok(())
        })
    });
    pushed.unwrap();
}

/// Devices that cut copies into such chunks.
fn cutting() -> DeviceReserve {
    DeviceReserve { staging_chunks: CHUNKS, staging_bytes: CHUNK, ..DeviceReserve::default() }
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let (len, first) = (1 + random.below(6 * CHUNK as u64), random.below(200));
    (0..len).map(|i| (first + i * 7) as u8).collect()
}

/// The array that comes back, and its expected content.
struct Trip {
    back: Host,
    right: Vec<u8>,
}

/// Several arrays go there, are changed, and come back, in any interleaving.
fn round_trips(rig: &Rig, random: &mut Random, count: u16) -> Vec<Trip> {
    (0..count)
        .map(|i| {
            let values = bytes(random);
            let (from, there) = (Host::new(rig, values.clone()), rig.engine.new_var());
            upload(rig, "upload", &from, &there);
            change(rig, i % 5, &there, values.len());
            let back = Host::new(rig, vec![0; values.len()]);
            download(rig, "download", &there, &back);
            rig.some_steps(random);
            // The thread that overwrites the source comes after the copy.
            let (source, overwritten) = (from.bytes.clone(), [(&from.var, Access::Write)]);
            rig.engine.push(OpSpec::new("overwrite", &overwritten).cost(Cost::Small), move |_| {
                source.lock().unwrap().fill(0xEE);
                Ok(())
            });
            Trip { back, right: values.iter().map(|b| if on_gpu() { 0 } else { b.wrapping_add(1) }).collect() }
        })
        .collect()
}

fn compare(rig: &Rig, trips: Vec<Trip>) {
    trips.into_iter().for_each(|trip| assert_eq!(trip.back.get(rig).unwrap(), trip.right));
}

#[test]
fn pinned_staging_reuse() {
    let rig = rig_that_keeps(cutting());
    rig.begin(0);
    upload(&rig, "first", &Host::new(&rig, vec![1]), &rig.engine.new_var());
    rig.end(0);
    let room = 2 * CHUNKS * rig.world.pinned_bytes(0);
    for seed in 0..seeds() {
        rig.begin(seed);
        compare(&rig, round_trips(&rig, &mut Random::new(seed), 4));
        rig.end(seed);
        let used = rig.world.pinned_bytes(0);
        assert!(used <= room, "seed {seed}: {used} bytes of page-locked memory, {room} are allowed");
    }
    // Everything can be given back.
    rig.engine.trim_device(sim(0)).unwrap();
    assert_eq!(rig.world.pinned_bytes(0), 0);
    rig.begin(0);
    compare(&rig, round_trips(&rig, &mut Random::new(0), 4));
    rig.end(0);
}

#[test]
fn staging_without_events_would_be_caught() {
    let config =
        SimConfig { mode: Mode::Scheduled { seed: 0 }, record: true, ignore_waits: true, ..SimConfig::default() };
    let rig = rig_of(EngineKind::ThreadedAsync, config, cutting());
    for seed in 0..seeds() {
        rig.begin(seed);
        let from = Host::new(&rig, vec![1; 6 * CHUNK]);
        upload(&rig, "upload", &from, &rig.engine.new_var());
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        let violations = check(&rig.world.log()).violations;
        assert!(violations.iter().any(|v| v.contains("upload")), "seed {seed}: {violations:?}");
    }
}

#[test]
fn an_upload_waits_for_nothing_but_its_source_and_its_target() {
    every_seed_that_keeps(cutting(), |rig, seed| {
        let mut random = Random::new(seed);
        let (slow, there, from) = (rig.cell(0), rig.engine.new_var(), Host::new(rig, vec![3; 5 * CHUNK]));
        rig.op("slow", 0, &[], &[&slow], |_| 1);
        upload(rig, "first", &from, &there);
        change(rig, 1, &there, 5 * CHUNK);
        rig.some_steps(&mut random);
        upload(rig, "second", &from, &there);
        let report = rig.check(seed);
        assert!(!report.ordered("slow", "second"));
        assert!(report.ordered("change", "second"), "its target was in use");
        assert_eq!(report.host_waits, 0, "the pushes have waited for nothing");
        let back = Host::new(rig, vec![0; 5 * CHUNK]);
        download(rig, "download", &there, &back);
        assert_eq!(back.get(rig).unwrap(), vec![3; 5 * CHUNK], "seed {seed}");
    });
}

/// The next piece is filled while one piece is transferred, so a copy takes the time of the slower
/// half, and a piece.
#[test]
fn pieces_of_a_copy_overlap() {
    const PIECES: u64 = 40;
    const TIME: u64 = 1_000_000;
    for out in [false, true] {
        let rig = rig_that_keeps(cutting());
        rig.begin(1);
        rig.world.set_time("copy", TIME);
        let (host, there) = (Host::new(&rig, vec![1; PIECES as usize * CHUNK]), rig.engine.new_var());
        if out {
            upload(&rig, "before", &host, &there);
            rig.world.may_wait(true);
            rig.engine.wait_all().unwrap();
        }
        let began = rig.world.end_time();
        match out {
            false => upload(&rig, "copy", &host, &there),
            true => download(&rig, "copy", &there, &host),
        }
        rig.end(1);
        let took = rig.world.end_time() - began;
        assert!((PIECES * TIME..=PIECES * TIME * 11 / 10).contains(&took), "out: {out}: {took} ns");
    }
}

/// A hundred copies that take 1 ms and kernels on them that take 1 ms are done in little more than
/// 100 ms.
#[test]
fn copies_overlap_with_kernels() {
    const PAIRS: u64 = 100;
    const TIME: u64 = 1_000_000;
    let rig = rig_that_keeps(cutting());
    rig.begin(1);
    rig.world.set_time("upload", TIME);
    rig.world.set_time("change", TIME);
    let began = rig.world.end_time();
    let pairs: Vec<Var> = (0..PAIRS)
        .map(|_| {
            let (from, there) = (Host::new(&rig, vec![1; CHUNK]), rig.engine.new_var());
            upload(&rig, "upload", &from, &there);
            change(&rig, 0, &there, CHUNK);
            there
        })
        .collect();
    rig.end(1);
    let took = rig.world.end_time() - began;
    assert!((PAIRS * TIME..=PAIRS * TIME * 11 / 10).contains(&took), "{took} ns");
    drop(pairs);
}

/// Whichever call of a copy fails: that op fails, its neighbours do not, and the ring has all its
/// chunks afterwards.
#[test]
fn a_copy_that_fails_in_the_middle_takes_nothing_with_it() {
    let rig = rig_that_keeps(cutting());
    let mut hit = 0;
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        rig.begin(seed);
        // A wait that is refused in the middle of a copy leaves nothing but waiting for what was
        // submitted.
        rig.world.may_wait(true);
        let call = [Call::Copy, Call::Launch, Call::Wait, Call::Record][random.below(4) as usize];
        let (from, there, before) = (Host::new(&rig, vec![5; 6 * CHUNK]), rig.engine.new_var(), rig.engine.new_var());
        upload(&rig, "before", &from, &before);
        rig.some_steps(&mut random);
        rig.world.inject(Fault { device: 0, call, after: random.below(14), code: 1 });
        upload(&rig, "in", &from, &there);
        let (world, id, source) = (rig.world.clone(), from.var.id(), from.bytes.clone());
        rig.engine.push(OpSpec::new("overwrite", &[(&from.var, Access::Write)]).cost(Cost::Small), move |_| {
            world.host_uses("overwrite", &[(id, true)]);
            source.lock().unwrap().fill(0xEE);
            Ok(())
        });
        let (back, other) = (Host::new(&rig, vec![0; 6 * CHUNK]), Host::new(&rig, vec![0; 6 * CHUNK]));
        let failed = rig.engine.wait_to_read(&there).is_err();
        if !failed {
            download(&rig, "out", &there, &back);
        }
        hit += usize::from(failed || back.get(&rig).is_err());
        rig.world.forget_faults();
        download(&rig, "other", &before, &other);
        rig.world.may_wait(true);
        let _ = rig.engine.wait_all();
        assert_eq!(other.get(&rig).unwrap(), vec![5; 6 * CHUNK], "seed {seed}, {call:?}");
        rig.end(seed);
        drop((there, before));
        rig.world.may_wait(true);
        assert_eq!(rig.world.pending(), 0);
    }
    assert!(hit > seeds() as usize / 4, "{hit} faults were met");
}

#[test]
fn threads_copy_in_and_out_at_the_same_time() {
    let kinds = [EngineKind::ThreadedAsync, EngineKind::ThreadedPerDeviceAsync, EngineKind::ThreadedPerDevice];
    let mode = Mode::Threaded { seed: 4, max_delay_us: 2 };
    let config = || SimConfig { mode, record: true, ..SimConfig::default() };
    let rigs = kinds.map(|kind| rig_of(kind, config(), cutting()));
    for seed in 0..seeds() {
        let rig = &rigs[seed as usize % rigs.len()];
        rig.world.restart(seed);
        // No thread has asked for a value: until then no thread may wait for a device, in the kinds
        // that do not always wait.
        rig.world.may_wait(!rig.engine.kind().is_async());
        let trips: Vec<Trip> = std::thread::scope(|s| {
            let push = |thread: u64| move || round_trips(rig, &mut Random::new(seed << 8 | thread), 1);
            let pushing: Vec<_> = (0..4).map(|thread| s.spawn(push(thread))).collect();
            pushing.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        compare(rig, trips);
        rig.check(seed);
    }
}
