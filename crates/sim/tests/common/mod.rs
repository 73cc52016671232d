//! Helpers of the scenarios: variables with a number, ops over them on a device or on the host, and
//! the check of the record.
#![allow(dead_code)]

mod lab;

#[allow(unused_imports)] // not every file of tests asks
pub use lab::{Lab, on_gpu};
use mxrt_engine::device::{DeviceReserve, Driver};
use mxrt_engine::*;
use mxrt_sim::check::{Report, check};
use mxrt_sim::{Mode, Random, SimConfig, SimDriver};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Sizes of the pool of events that scenarios are run with.
pub const POOLS: [usize; 4] = [1, 2, 8, 64];

/// Seeds of a scenario; `MXRT_SIM_SEEDS` sets more.
pub fn seeds() -> u64 {
    std::env::var("MXRT_SIM_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000)
}

/// Number of engines for scenarios in which every seed needs its own engine: these, and their
/// workers, stay until the process ends, and a process can have some ten thousand threads.
pub fn engines() -> u64 {
    seeds().min(3_000)
}

/// One of the two devices; on a machine with a GPU that one in the place of both.
pub fn sim(index: u16) -> DeviceId {
    DeviceId::new(DeviceKind::SIM, if lab::on_gpu() { 0 } else { index })
}

/// An engine over two simulated devices whose work is done by the thread that waits.
pub struct Rig {
    pub engine: &'static Engine,
    pub world: Lab,
}

/// A variable and its value.
#[derive(Clone)]
pub struct Cell {
    pub var: Var,
    pub value: Arc<AtomicI64>,
}

impl Cell {
    pub fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }
}

pub fn rig_with(kind: EngineKind, config: SimConfig) -> Rig {
    rig_of(kind, config, DeviceReserve::default())
}

pub fn rig_of(kind: EngineKind, config: SimConfig, device_reserve: DeviceReserve) -> Rig {
    let (driver, world): (Arc<dyn Driver>, Lab) = match lab::through_the_driver(&config) {
        Some(found) => found,
        None => {
            let driver = SimDriver::new(config);
            let world = driver.world().into();
            (driver, world)
        }
    };
    let drivers = vec![driver];
    let config = Config { kind, cores: Some(1), drivers, compute_streams: 5, device_reserve, ..Config::default() };
    let engine = Engine::start(config).unwrap();
    world.open(engine);
    Rig { engine, world }
}

/// A rig whose runs depend on nothing but the seed.
pub fn rig() -> Rig {
    rig_that_keeps(DeviceReserve::default())
}

/// A rig as `rig` makes it, whose devices keep so much.
pub fn rig_that_keeps(reserve: DeviceReserve) -> Rig {
    let mode = Mode::Scheduled { seed: 0 };
    let config = SimConfig { mode, record: true, memory: 1 << 20, ..SimConfig::default() };
    rig_of(EngineKind::ThreadedAsync, config, reserve)
}

/// Runs a scenario with every seed, a quarter of them over each pool size; afterwards everything must
/// be complete and in order.
pub fn every_seed(scenario: impl Fn(&Rig, u64)) {
    every_seed_that_keeps(DeviceReserve::default(), scenario);
}

/// Runs a scenario like `every_seed`, on devices that keep so much besides events.
pub fn every_seed_that_keeps(reserve: DeviceReserve, scenario: impl Fn(&Rig, u64)) {
    for (first, events) in POOLS.into_iter().enumerate() {
        let rig = rig_that_keeps(DeviceReserve { events, ..reserve });
        for seed in (first as u64..seeds()).step_by(POOLS.len()) {
            rig.begin(seed);
            scenario(&rig, seed);
            rig.end(seed);
            rig.is_balanced(seed);
        }
    }
}

/// Runs the scenario like `every_seed`, with a new world and engine for each seed: for scenarios
/// that break something.
pub fn every_seed_afresh(scenario: impl Fn(&Rig, u64)) {
    for seed in 0..engines() {
        let rig = rig();
        rig.begin(seed);
        scenario(&rig, seed);
    }
}

impl Rig {
    /// Memory of a device for a variable, by an op that does nothing else.
    pub fn memory_for(&self, var: &Var, device: DeviceId, bytes: usize) -> DevicePtr {
        let (send, got) = std::sync::mpsc::channel();
        let vars = [(var, Access::Write)];
        let spec = OpSpec::new("memory", &vars).device(device).cost(Cost::Small);
        let pushed = self.engine.push_device(spec, move |ctx| {
            send.send(ctx.alloc(0, bytes)?).unwrap();
            Ok(())
        });
        pushed.unwrap();
        got.recv_timeout(std::time::Duration::from_secs(60)).expect("memory")
    }

    pub fn begin(&self, seed: u64) {
        self.world.restart(seed);
        self.world.may_wait(false);
    }

    pub fn end(&self, seed: u64) {
        self.world.may_wait(true);
        self.engine.wait_all().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(self.world.pending(), 0, "seed {seed}");
        self.check(seed);
    }

    /// The scenario is over, with all its variables: nothing refers to an event or owns memory of a
    /// device.
    pub fn is_balanced(&self, seed: u64) {
        self.world.settle(self.engine);
        let free: usize = [0, 1]
            .map(|index| {
                self.engine.trim_device(sim(index)).unwrap();
                let stats = self.engine.device_stats(sim(index)).unwrap();
                assert_eq!((stats.in_use, stats.cached, stats.live_events), (0, 0, 0), "seed {seed}: {stats:?}");
                stats.free_events
            })
            .iter()
            .sum();
        assert_eq!(self.world.pending(), 0, "seed {seed}");
        assert!(self.world.live_events() >= free, "seed {seed}: a free event does not exist");
    }

    /// The record up to now, without anything wrong in it.
    pub fn check(&self, seed: u64) -> Report {
        let report = check(&self.world.log());
        assert!(report.violations.is_empty(), "seed {seed}: {}", report.violations.join("\n"));
        report
    }

    pub fn cell(&self, value: i64) -> Cell {
        Cell { var: self.engine.new_var(), value: Arc::new(AtomicI64::new(value)) }
    }

    pub fn cells<const N: usize>(&self) -> [Cell; N] {
        std::array::from_fn(|_| self.cell(0))
    }

    /// Pushes an op on `sim(0)`, stream `stream`: every written cell becomes `f` of the values
    /// read.
    pub fn op(
        &self,
        name: &str,
        stream: u16,
        reads: &[&Cell],
        writes: &[&Cell],
        f: impl Fn(&[i64]) -> i64 + Send + 'static,
    ) {
        self.op_on(sim(0), Lane::Normal, name, stream, reads, writes, f);
    }

    #[allow(clippy::too_many_arguments)]
    pub fn op_on(
        &self,
        device: DeviceId,
        lane: Lane,
        name: &str,
        stream: u16,
        reads: &[&Cell],
        writes: &[&Cell],
        f: impl Fn(&[i64]) -> i64 + Send + 'static,
    ) {
        let vars = accesses(reads, writes);
        let spec = OpSpec::new(name.to_owned(), &vars).device(device).lane(lane).stream(stream).cost(Cost::Small);
        let (ins, outs) = (values(reads), values(writes));
        let pushed = self.engine.push_device(spec, move |ctx| {
            ctx.launch(move |_| {
                let read: Vec<i64> = ins.iter().map(|v| v.load(Relaxed)).collect();
                let result = f(&read);
                outs.iter().for_each(|v| v.store(result, Relaxed));
                Ok(())
            })
        });
        pushed.unwrap();
    }

    /// Pushes an op on the device that fails late.
    pub fn fails(&self, name: &str, stream: u16, reads: &[&Cell], writes: &[&Cell], message: &'static str) {
        let vars = accesses(reads, writes);
        let spec = OpSpec::new(name.to_owned(), &vars).device(sim(0)).stream(stream).cost(Cost::Small);
        let outs = values(writes);
        let pushed = self.engine.push_device(spec, move |ctx| {
            ctx.launch(move |_| {
                outs.iter().for_each(|v| v.store(-1, Relaxed));
                Err(OpError::new(FailureKind::Index, message))
            })
        });
        pushed.unwrap();
    }

    /// Pushes an op of the host.
    pub fn host(&self, name: &str, reads: &[&Cell], writes: &[&Cell], f: impl Fn(&[i64]) -> i64 + Send + 'static) {
        let vars = accesses(reads, writes);
        let (ins, outs, world) = (values(reads), values(writes), self.world.clone());
        let used: Vec<(u64, bool)> = vars.iter().map(|(v, a)| (v.id(), *a != Access::Read)).collect();
        let name = name.to_owned();
        self.engine.push(OpSpec::new(name.clone(), &vars).cost(Cost::Small), move |_| {
            world.host_uses(&name, &used);
            let read: Vec<i64> = ins.iter().map(|v| v.load(Relaxed)).collect();
            let result = f(&read);
            outs.iter().for_each(|v| v.store(result, Relaxed));
            Ok(())
        });
    }

    /// Waits for a cell as a program would, and looks at it.
    pub fn read(&self, cell: &Cell) -> Result<i64, WaitError> {
        self.world.may_wait(true);
        let result = self.engine.wait_to_read(&cell.var);
        self.world.may_wait(false);
        if result.is_ok() {
            self.world.host_uses("look", &[(cell.var.id(), false)]);
        }
        result.map(|()| cell.get())
    }

    /// Lets the device do some of its work.
    pub fn some_steps(&self, random: &mut Random) {
        for _ in 0..random.below(6) {
            self.world.step();
        }
    }
}

pub fn accesses<'a>(reads: &[&'a Cell], writes: &[&'a Cell]) -> Vec<(&'a Var, Access)> {
    let reads = reads.iter().map(|c| (&c.var, Access::Read));
    reads.chain(writes.iter().map(|c| (&c.var, Access::Write))).collect()
}

pub fn values(cells: &[&Cell]) -> Vec<Arc<AtomicI64>> {
    cells.iter().map(|c| c.value.clone()).collect()
}

/// The failure that a wait raised.
pub fn failure(result: Result<i64, WaitError>) -> Failure {
    match result {
        Err(WaitError::Failed(failure)) => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// A call that opens a gate, and one that waits for it and returns 1.
pub fn gate() -> (impl Fn() + Send + 'static, impl Fn() -> i64 + Send + 'static) {
    let gate = Arc::new((std::sync::Mutex::new(false), std::sync::Condvar::new()));
    let other = gate.clone();
    let open = move || {
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
    };
    let pass = move || {
        let mut is_open = other.0.lock().unwrap();
        while !*is_open {
            is_open = other.1.wait(is_open).unwrap();
        }
        1
    };
    (open, pass)
}
