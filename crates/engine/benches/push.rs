//! Push to completion of empty ops, amortised.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mxrt_engine::{Access, Config, Cost, Engine, EngineKind, OpSpec, Var};

const OPS: usize = 4096;

fn start(kind: EngineKind, cores: usize) -> &'static Engine {
    Engine::start(Config { kind, cores: Some(cores), ..Config::default() }).unwrap()
}

/// Pushes empty ops over 64 sets of variables: the first is written, the others are read.
fn burst(engine: &'static Engine, sets: &[Vec<Var>], cost: Cost) {
    let mut accesses = Vec::with_capacity(8);
    for i in 0..OPS {
        accesses.clear();
        let set = &sets[i % sets.len()];
        accesses.extend(set.iter().enumerate().map(|(k, v)| (v, if k == 0 { Access::Write } else { Access::Read })));
        engine.push(OpSpec::new("empty", &accesses).cost(cost), |_| Ok(()));
    }
    engine.wait_all().unwrap();
}

fn empty_ops(c: &mut Criterion) {
    for (name, cost) in [("inline", Cost::Small), ("pool", Cost::Large)] {
        let mut group = c.benchmark_group(format!("empty op, {name}"));
        group.throughput(Throughput::Elements(OPS as u64));
        for vars in [1, 2, 4, 8] {
            let engine = start(EngineKind::ThreadedPerDevice, 1);
            let sets: Vec<Vec<Var>> = (0..64).map(|_| (0..vars).map(|_| engine.new_var()).collect()).collect();
            group.bench_function(BenchmarkId::new("variables", vars), |b| b.iter(|| burst(engine, &sets, cost)));
        }
        group.finish();
    }
}

/// What the profiler costs: the same ops, recorded.
fn profiled(c: &mut Criterion) {
    let mut group = c.benchmark_group("empty op, profiled");
    group.throughput(Throughput::Elements(OPS as u64));
    for (name, cost) in [("inline", Cost::Small), ("pool", Cost::Large)] {
        let engine = start(EngineKind::ThreadedPerDevice, 1);
        let sets: Vec<Vec<Var>> = (0..64).map(|_| (0..2).map(|_| engine.new_var()).collect()).collect();
        for on in [false, true] {
            mxrt_engine::profile::set_on(on);
            let number = BenchmarkId::new(name, if on { "on" } else { "off" });
            group.bench_function(number, |b| b.iter(|| burst(engine, &sets, cost)));
        }
        mxrt_engine::profile::set_on(false);
    }
    group.finish();
}

fn shapes(c: &mut Criterion) {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let vars: Vec<Var> = (0..1001).map(|_| engine.new_var()).collect();
    let mut group = c.benchmark_group("shapes");
    group.bench_function("chain of 1000", |b| {
        b.iter(|| {
            for _ in 0..1000 {
                engine.push(OpSpec::new("link", &[(&vars[0], Access::Update)]), |_| Ok(()));
            }
            engine.wait_to_read(&vars[0]).unwrap();
        });
    });
    group.bench_function("fan 1 to 1000 to 1", |b| {
        b.iter(|| {
            engine.push(OpSpec::new("source", &[(&vars[0], Access::Write)]), |_| Ok(()));
            for v in &vars[1..] {
                engine.push(OpSpec::new("leaf", &[(&vars[0], Access::Read), (v, Access::Write)]), |_| Ok(()));
            }
            engine.push(OpSpec::new("sink", &[(&vars[0], Access::Write)]), |_| Ok(()));
            engine.wait_to_read(&vars[0]).unwrap();
        });
    });
    group.bench_function("wait for a finished variable", |b| b.iter(|| engine.wait_to_read(&vars[1]).unwrap()));
    group.bench_function("one op on the pool and back", |b| {
        b.iter(|| {
            engine.push(OpSpec::new("trip", &[(&vars[1], Access::Write)]), |_| Ok(()));
            engine.wait_to_read(&vars[1]).unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, empty_ops, profiled, shapes);
criterion_main!(benches);
