//! Kernels of a device's own: they know nothing of the engine, and report what they find in their
//! data by a status word.

use crate::common::*;
use mxrt_engine::*;
use mxrt_sim::{Random, SimDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

const VALUES: usize = 8;

/// Reports bad data from a kernel of a device: the first report counts.
fn report(status: device::DevicePtr, value: u64) {
    let word = std::ptr::with_exposed_provenance_mut(status.0 as usize);
    // SAFETY: the op's status word until its event is complete.
    let _ = unsafe { AtomicU64::from_ptr(word) }.compare_exchange(0, value, SeqCst, SeqCst);
}

/// Pushes a gather as a backend with kernels of its own would: `to` becomes the element of the
/// table whose number `index` holds.
fn take(rig: &Rig, stream: u16, index: &Cell, to: &Cell) {
    let vars = accesses(&[index], &[to]);
    let spec = OpSpec::new("take", &vars).device(sim(0)).stream(stream).cost(Cost::Small);
    let (index, to): (Arc<AtomicI64>, Arc<AtomicI64>) = (index.value.clone(), to.value.clone());
    let pushed = rig.engine.push_device(spec, move |ctx| {
        let status = ctx.status_word(|said| {
            let message = format!("index {} is out of range for an axis of {VALUES}", said - 1);
            OpError::new(FailureKind::Index, message)
        })?;
        let device: &SimDevice = ctx.backend().as_any().downcast_ref().unwrap();
        let kernel = move || {
            let i = index.load(Relaxed);
            if i < 0 || i as usize >= VALUES {
                report(status, i as u64 + 1);
                // It goes on with what it has, and finds something else that is not heard.
                report(status, 1);
                return to.store(-1, Relaxed);
            }
            to.store(100 + i, Relaxed);
        };
        device.launch_own(ctx.stream(), ctx.tag(), kernel).map_err(OpError::from)
    });
    pushed.unwrap();
}

#[test]
fn status_word_of_a_kernel_of_the_devices_own() {
    every_seed(|rig, seed| {
        let mut random = Random::new(seed);
        let (good, bad) = (rig.cell(3), rig.cell(12));
        let [a, b, c, d, e] = rig.cells();
        take(rig, 0, &good, &a);
        take(rig, 0, &bad, &b);
        rig.some_steps(&mut random);
        rig.op("dependant", 1, &[&b], &[&c], |v| v[0] + 1);
        rig.host("host dependant", &[&c], &[&d], |v| v[0] + 1);
        rig.some_steps(&mut random);
        take(rig, 0, &good, &e);
        assert_eq!((rig.read(&a).unwrap(), rig.read(&e).unwrap()), (103, 103), "seed {seed}: neighbours are well");
        for cell in [&b, &c, &d] {
            let failed = failure(rig.read(cell));
            assert_eq!(failed.message(), "index 12 is out of range for an axis of 8", "seed {seed}");
            assert_eq!((failed.op(), failed.kind(), failed.device()), ("take", FailureKind::Index, Some("sim(0)")));
        }
        // what such a kernel says about data that has failed is not an error of the op.
        take(rig, 2, &b, &e);
        assert_eq!(failure(rig.read(&e)).message(), "index 12 is out of range for an axis of 8");
        // Written again it is well, and so is the word that the next op gets.
        take(rig, 1, &good, &b);
        assert_eq!(rig.read(&b).unwrap(), 103);
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
    });
}

/// A part of an op that one of its outputs depends on.
struct Part(usize);

impl device::KernelScope for Part {
    fn describe(&self, error: OpError) -> OpError {
        error.node(format!("part{}", self.0))
    }

    fn reaches(&self, output: usize) -> bool {
        output == self.0
    }
}

/// Pushes one op of two gathers, each a part of its own.
fn take_twice(rig: &Rig, indices: [&Cell; 2], to: [&Cell; 2]) {
    let vars = accesses(&indices, &to);
    let spec = OpSpec::new("takes", &vars).device(sim(0)).kind(OpKind::Selective).cost(Cost::Small);
    let values = [0, 1].map(|i| (indices[i].value.clone(), to[i].value.clone()));
    let pushed = rig.engine.push_device(spec, move |ctx| {
        ctx.inherit(|read| vec![2 + read]);
        let device: &SimDevice = ctx.backend().as_any().downcast_ref().unwrap();
        for (part, (index, to)) in values.into_iter().enumerate() {
            ctx.within(Arc::new(Part(part)), 2..4, || {
                let message = move |said| format!("index {} is out of range", said - 1);
                let status = ctx.status_word(move |said| OpError::new(FailureKind::Index, message(said)))?;
                let kernel = move || match index.load(Relaxed) {
                    i if (0..VALUES as i64).contains(&i) => to.store(100 + i, Relaxed),
                    i => report(status, i as u64 + 1),
                };
                device.launch_own(ctx.stream(), ctx.tag(), kernel).map_err(OpError::from)
            })?;
        }
        Ok(())
    });
    pushed.unwrap();
}

#[test]
fn what_a_part_does_not_like_fails_the_outputs_that_depend_on_it() {
    every_seed(|rig, seed| {
        let mut random = Random::new(seed);
        let (good, bad) = (rig.cell(3), rig.cell(12));
        let [a, b, c, d, e] = rig.cells();
        take_twice(rig, [&bad, &good], [&a, &b]);
        rig.some_steps(&mut random);
        rig.op("dependant", 1, &[&a], &[&c], |v| v[0] + 1);
        rig.some_steps(&mut random);
        // A failed index fails what it leads to, whatever the kernel says of it.
        take_twice(rig, [&good, &c], [&d, &e]);
        assert_eq!((rig.read(&b).unwrap(), rig.read(&d).unwrap()), (103, 103), "seed {seed}: neighbours are well");
        for cell in [&a, &c, &e] {
            let failed = failure(rig.read(cell));
            assert_eq!(failed.message(), "index 12 is out of range", "seed {seed}");
            assert_eq!((failed.op(), failed.node()), ("takes", Some("part0")), "seed {seed}");
        }
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap_or_else(|e| panic!("seed {seed}: a failure that nothing held: {e:?}"));
    });
}

#[test]
fn status_words_are_used_again_and_only_when_their_op_is_complete() {
    let rig = rig();
    for seed in 0..seeds() {
        rig.begin(seed);
        let indices: Vec<Cell> = (0..12).map(|i| rig.cell(i)).collect();
        let results: Vec<Cell> = indices.iter().map(|_| rig.cell(0)).collect();
        let mut random = Random::new(seed);
        for (i, (index, result)) in indices.iter().zip(&results).enumerate() {
            take(&rig, i as u16 % 5, index, result);
            rig.some_steps(&mut random);
        }
        for (i, result) in results.iter().enumerate() {
            match rig.read(result) {
                Ok(value) => assert_eq!((value, i < VALUES), (100 + i as i64, true), "seed {seed}"),
                Err(WaitError::Failed(f)) => {
                    assert_eq!(f.message(), format!("index {i} is out of range for an axis of 8"), "seed {seed}")
                }
                Err(other) => panic!("seed {seed}: {other:?}"),
            }
        }
        rig.world.may_wait(true);
        let _ = rig.engine.wait_all();
        rig.end(seed);
    }
    assert_eq!(rig.world.pinned_bytes(0), 4096, "one slab of words was enough for all of it");
}
