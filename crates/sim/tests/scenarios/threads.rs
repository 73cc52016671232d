//! Eight threads push over two devices whose streams are threads: everything is ordered, and
//! nothing more than that.

use crate::common::*;
use mxrt_engine::*;
use mxrt_sim::check::check;
use mxrt_sim::{Mode, Random, SimConfig};

const THREADS: u64 = 8;
const OPS: usize = 12;

fn threads(kind: EngineKind, max_delay_us: u64) -> Rig {
    let mode = Mode::Threaded { seed: 9, max_delay_us };
    rig_with(kind, SimConfig { mode, record: true, ..SimConfig::default() })
}

/// Pushes ops that read two cells and write a third.
fn pushes(rig: &Rig, cells: &[Cell], random: &mut Random) {
    let pick = |random: &mut Random| random.below(cells.len() as u64) as usize;
    for _ in 0..OPS {
        let (a, b, to) = (pick(random), pick(random), pick(random));
        if to == a || to == b {
            continue;
        }
        let (device, stream) = (sim(random.below(2) as u16), random.below(5) as u16);
        let lane = [Lane::Normal, Lane::Normal, Lane::CopyIn, Lane::CopyOut, Lane::Priority][random.below(5) as usize];
        rig.op_on(device, lane, "op", stream, &[&cells[a], &cells[b]], &[&cells[to]], |v| v[0] + v[1]);
    }
}

#[test]
fn no_stream_and_no_thread_waits_without_a_reason() {
    let rigs = [EngineKind::ThreadedAsync, EngineKind::ThreadedPerDeviceAsync].map(|kind| threads(kind, 1));
    let mut waits = 0;
    for seed in 0..seeds() {
        let rig = &rigs[seed as usize % rigs.len()];
        rig.world.restart(seed);
        // No thread has asked for a value, so until then no thread may wait for a device.
        rig.world.may_wait(false);
        let shared: Vec<Cell> = (0..12).map(|i| rig.cell(i)).collect();
        std::thread::scope(|s| {
            for thread in 0..THREADS {
                let shared = &shared;
                s.spawn(move || pushes(rig, shared, &mut Random::new(seed << 8 | thread)));
            }
        });
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        waits += rig.check(seed).waits;
    }
    assert!(waits > seeds() as usize, "{waits} waits of streams were judged");
}

/// The check would notice: a wait for an op with which nothing is shared is submitted by hand.
#[test]
fn a_wait_without_a_reason_is_noticed_among_threads() {
    let rig = threads(EngineKind::ThreadedAsync, 0);
    let shared: Vec<Cell> = (0..12).map(|i| rig.cell(i)).collect();
    let [x, y] = rig.cells();
    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (rig, shared) = (&rig, &shared);
            s.spawn(move || pushes(rig, shared, &mut Random::new(thread)));
        }
        s.spawn(|| {
            let (tell, notified) = std::sync::mpsc::channel();
            let push = |name: &'static str, cell: &Cell, work: Box<dyn FnOnce(&DeviceCtx<'_>) + Send>| {
                let vars = accesses(&[], &[cell]);
                let pushed = rig.engine.push_device(OpSpec::new(name, &vars).device(sim(0)), move |ctx| {
                    work(ctx);
                    ctx.launch(|_| Ok(()))
                });
                pushed.unwrap();
            };
            let mark = move |ctx: &DeviceCtx<'_>| {
                let event = ctx.backend().new_event(false).unwrap();
                ctx.backend().record(ctx.stream(), event, ctx.tag().op).unwrap();
                tell.send(event).unwrap();
            };
            push("alone", &x, Box::new(mark));
            let event = notified.recv().unwrap();
            let wait = move |ctx: &DeviceCtx<'_>| ctx.backend().stream_wait(ctx.stream(), event, ctx.tag().op).unwrap();
            push("patient", &y, Box::new(wait));
        });
    });
    rig.engine.wait_all().unwrap();
    let violations = check(&rig.world.log()).violations;
    assert_eq!(violations, ["patient waits for alone, with which it shares nothing"]);
}
