//! Random programs over the host and two devices, with copies between streams, memory that is freed
//! and faults: the values and failures are those of the program run one op after the other.

use crate::common::*;
use mxrt_engine::{EngineKind, Lane};
use mxrt_sim::check::check;
use mxrt_sim::{Call, Fault, Mode, Random, SimConfig};

const CELLS: usize = 7;
const OPS: usize = 40;

/// A value, or the number of the op whose failure it holds.
type Value = Result<i64, usize>;

fn mix(values: &[i64], salt: i64) -> i64 {
    values.iter().fold(salt, |sum, v| sum.wrapping_mul(31).wrapping_add(*v))
}

/// Pushes one random op and does the same to the model.
fn random_op(rig: &Rig, random: &mut Random, cells: &[Cell], model: &mut [Value], number: usize, faults: bool) {
    let pick = |random: &mut Random| random.below(CELLS as u64) as usize;
    let (a, b) = (pick(random), pick(random));
    let to = loop {
        let to = pick(random);
        if to != a && to != b {
            break to;
        }
    };
    let (reads, salt) = ([&cells[a], &cells[b]], number as i64);
    let inherited = [a, b].iter().find_map(|i| model[*i].err());
    let read: Vec<i64> = [a, b].iter().filter_map(|i| model[*i].ok()).collect();
    let name = format!("op {number}");
    let result = match random.below(10) {
        0..=1 => {
            rig.host(&name, &reads, &[&cells[to]], move |v| mix(v, salt));
            Ok(mix(&read, salt))
        }
        2 if faults => {
            let vars = accesses(&reads, &[&cells[to]]);
            let spec = mxrt_engine::OpSpec::new(name.clone(), &vars).device(sim(0)).stream(random.below(5) as u16);
            let pushed = rig.engine.push_device(spec.cost(mxrt_engine::Cost::Small), move |ctx| {
                ctx.launch(move |_| Err(mxrt_engine::OpError::new(mxrt_engine::FailureKind::Value, name)))
            });
            pushed.unwrap();
            Err(number)
        }
        kind => {
            let lane =
                [Lane::Normal, Lane::Normal, Lane::CopyIn, Lane::CopyOut, Lane::Priority][random.below(5) as usize];
            let device = sim((kind % 2) as u16);
            rig.op_on(device, lane, &name, random.below(5) as u16, &reads, &[&cells[to]], move |v| mix(v, salt));
            Ok(mix(&read, salt))
        }
    };
    model[to] = inherited.map_or(result, Err);
}

fn compare(rig: &Rig, cell: &Cell, expected: Value, seed: u64) {
    match (rig.read(cell), expected) {
        (Ok(value), Ok(right)) => assert_eq!(value, right, "seed {seed}"),
        (got, Err(op)) => assert_eq!(failure(got).message(), format!("op {op}"), "seed {seed}"),
        (got, Ok(right)) => panic!("seed {seed}: expected {right}, got {got:?}"),
    }
}

fn program(rig: &Rig, seed: u64, faults: bool) {
    let mut random = Random::new(seed);
    let cells: [Cell; CELLS] = std::array::from_fn(|i| rig.cell(i as i64));
    let mut model: Vec<Value> = (0..CELLS as i64).map(Ok).collect();
    for number in 0..OPS {
        random_op(rig, &mut random, &cells, &mut model, number, faults);
        if random.below(4) == 0 {
            rig.some_steps(&mut random);
        }
        if random.below(12) == 0 {
            let i = random.below(CELLS as u64) as usize;
            compare(rig, &cells[i], model[i], seed);
        }
    }
    cells.iter().zip(&model).for_each(|(cell, expected)| compare(rig, cell, *expected, seed));
}

#[test]
fn random_programs() {
    every_seed(|rig, seed| program(rig, seed, false));
}

#[test]
fn random_programs_with_failures() {
    every_seed(|rig, seed| {
        program(rig, seed, true);
        rig.world.may_wait(true);
        // What was overwritten before any read.
        let _ = rig.engine.wait_all();
    });
}

#[test]
fn random_programs_on_a_device_that_is_lost() {
    every_seed_afresh(|rig, seed| {
        let mut random = Random::new(seed);
        let call = [Call::Execute, Call::Launch, Call::Record, Call::Wait, Call::HostWait][random.below(5) as usize];
        rig.world.inject(Fault { device: 0, call, after: random.below(20), code: 700 });
        let [x, y, other, host] = rig.cells();
        for i in 0..30u16 {
            let device = sim(random.below(2) as u16);
            let (from, to) = if random.below(2) == 0 { (&x, &y) } else { (&y, &x) };
            let vars = accesses(&[from], &[to]);
            let spec =
                mxrt_engine::OpSpec::new("op", &vars).device(device).stream(i % 5).cost(mxrt_engine::Cost::Small);
            let _ = rig.engine.push_device(spec, |ctx| ctx.launch(|_| Ok(())));
            rig.host("host", &[to], &[&host], |v| v[0]);
            rig.some_steps(&mut random);
        }
        // Every thread gets an answer, and what has nothing to do with the device its value.
        for cell in [&x, &y, &host] {
            let _ = rig.read(cell);
        }
        rig.op_on(sim(1), Lane::Normal, "other", 0, &[], &[&other], |_| 5);
        assert_eq!(rig.read(&other).unwrap(), 5, "seed {seed}");
        rig.world.may_wait(true);
        let _ = rig.engine.wait_all();
        rig.engine.wait_all().unwrap();
    });
}

#[test]
fn random_programs_in_threads() {
    let kinds = [EngineKind::ThreadedAsync, EngineKind::ThreadedPerDeviceAsync, EngineKind::ThreadedPerDevice];
    let mode = Mode::Threaded { seed: 0, max_delay_us: 5 };
    let rigs = kinds.map(|kind| rig_with(kind, SimConfig { mode, record: true, ..SimConfig::default() }));
    for seed in 0..seeds() {
        let rig = &rigs[seed as usize % rigs.len()];
        rig.world.restart(seed);
        program(rig, seed, true);
        let _ = rig.engine.wait_all();
    }
}

#[test]
fn random_programs_without_events_are_caught() {
    let mode = Mode::Scheduled { seed: 0 };
    let config = SimConfig { mode, record: true, ignore_waits: true, ..SimConfig::default() };
    let rig = rig_with(EngineKind::ThreadedAsync, config);
    for seed in 0..seeds() {
        rig.begin(seed);
        let mut random = Random::new(seed);
        let cells: [Cell; CELLS] = std::array::from_fn(|i| rig.cell(i as i64));
        let mut model: Vec<Value> = (0..CELLS as i64).map(Ok).collect();
        (0..OPS).for_each(|number| random_op(&rig, &mut random, &cells, &mut model, number, false));
        rig.world.may_wait(true);
        rig.engine.wait_all().unwrap();
        assert!(!check(&rig.world.log()).violations.is_empty(), "seed {seed}");
    }
}
