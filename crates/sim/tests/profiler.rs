//! The profiler's records of devices. The profiler belongs to the process, so these tests run in
//! their own process, one after the other.

mod common;

use common::*;
use mxrt_engine::profile;
use mxrt_sim::Random;
use std::sync::Mutex;

static PROFILE: Mutex<()> = Mutex::new(());

/// How long a measured op takes on the device: an hour of virtual time, which no host needs to
/// submit it.
const TOOK_MICROS: f64 = 3.6e9;

#[test]
fn profiler_device_time() {
    let _alone = PROFILE.lock();
    let rig = rig();
    for seed in 0..seeds() {
        rig.begin(seed);
        rig.world.set_time("measured", TOOK_MICROS as u64 * 1000);
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
            assert!((took - TOOK_MICROS).abs() < 0.01, "seed {seed}: {name} took {took} µs on the device");
            assert!(record.started >= record.submitted - 0.01);
            assert_eq!((record.device, record.failed), (sim(0), name.ends_with("failure")));
        }
        assert!(of("measured read").started >= of("measured write").ended - 0.01);
        assert_ne!(of("measured read").stream, of("measured write").stream);
        let host = taken.records.iter().find(|r| r.name.as_str() == "measured write").unwrap();
        assert!(host.ended - host.started < TOOK_MICROS / 2.0, "the host was done when it had submitted");
        let trace = taken.trace_events();
        let lanes = trace.iter().filter(|e| e.contains("thread_name") && e.contains("sim(0) stream")).count();
        assert_eq!(lanes, 3);
        assert!(trace.iter().any(|e| e.contains(r#""process_name""#) && e.contains(r#""name":"sim(0)""#)));
        assert!(trace.iter().any(|e| e.contains("measured read") && e.contains(r#""dur":3600000000.0,"#)));
        rig.end(seed);
    }
}

/// Ops that no thread has waited for are in the profile as soon as they are complete, and not
/// before.
#[test]
fn the_profile_has_what_is_complete_whoever_waited() {
    let _alone = PROFILE.lock();
    let rig = rig();
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        rig.begin(seed);
        let cells: [Cell; 6] = rig.cells();
        profile::set_on(true);
        cells.iter().enumerate().for_each(|(i, x)| rig.op("unawaited", i as u16 % 5, &[], &[x], |_| 1));
        profile::set_on(false);
        let found =
            || profile::snapshot(false).device_records.iter().filter(|r| r.name.as_str() == "unawaited").count();
        assert_eq!(found(), 0, "seed {seed}: nothing has run");
        rig.some_steps(&mut random);
        let (some, ran) = (found(), cells.iter().filter(|x| x.get() == 1).count());
        assert!(some <= ran, "seed {seed}: {some} records of {ran} kernels that have run");
        if seed % 2 == 0 {
            while rig.world.step() {}
        } else {
            rig.world.may_wait(true);
            rig.engine.wait_for_devices(&mut || true).unwrap();
            rig.world.may_wait(false);
        }
        assert_eq!(found(), 6, "seed {seed}: everything is complete");
        assert_eq!(profile::snapshot(true).device_records.len(), 6);
        assert_eq!(found(), 0, "what was taken is gone");
        rig.end(seed);
    }
}
