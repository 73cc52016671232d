//! Push to completion of empty ops, amortised.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mxrt_engine::{Access, Config, Cost, Engine, EngineKind, OpSpec, Var};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const OPS: usize = 4096;
const MILLION: usize = 1_000_000;

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

/// Pushes a million empty ops over 64 variables of its own. Every few thousand it waits for one
/// that it pushed shortly before, so that what is under way stays bounded.
fn pipeline(engine: &'static Engine, cost: Cost) {
    let vars: Vec<Var> = (0..64).map(|_| engine.new_var()).collect();
    for i in 0..MILLION {
        let access = [(&vars[i % vars.len()], Access::Write)];
        engine.push(OpSpec::new("empty", &access).cost(cost), |_| Ok(()));
        if i % OPS == OPS - 1 {
            engine.wait_to_read(&vars[(i + vars.len() / 2) % vars.len()]).unwrap();
        }
    }
}

/// A million pushes in a row, from one thread and from eight; the time of one op is the reciprocal
/// of the throughput.
fn pipelined(c: &mut Criterion) {
    let mut group = c.benchmark_group("a million pipelined ops");
    group.sample_size(10).measurement_time(Duration::from_secs(8));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    for threads in [1, 8] {
        group.throughput(Throughput::Elements((threads * MILLION) as u64));
        for (name, cost) in [("inline", Cost::Small), ("pool", Cost::Large)] {
            // One thread pushes and one works; with eight every core works.
            let engine = start(EngineKind::ThreadedPerDevice, if threads == 1 { 1 } else { cores });
            group.bench_function(BenchmarkId::new(name, format!("{threads} threads")), |b| {
                b.iter(|| {
                    std::thread::scope(|s| {
                        for _ in 0..threads {
                            s.spawn(|| pipeline(engine, cost));
                        }
                    });
                    engine.wait_all().unwrap();
                });
            });
        }
    }
    group.finish();
}

/// Eight threads push to one engine, each over variables of its own; then one waits for all.
fn eight_pushers(c: &mut Criterion) {
    let mut group = c.benchmark_group("empty op, 8 threads");
    group.throughput(Throughput::Elements(8 * OPS as u64));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    for (name, cost) in [("inline", Cost::Small), ("pool", Cost::Large)] {
        let engine = start(EngineKind::ThreadedPerDevice, cores);
        let vars: Vec<Vec<Var>> = (0..8).map(|_| (0..64).map(|_| engine.new_var()).collect()).collect();
        group.bench_function(name, |b| {
            b.iter(|| {
                std::thread::scope(|s| {
                    for own in &vars {
                        s.spawn(move || {
                            for i in 0..OPS {
                                let access = [(&own[i % own.len()], Access::Write)];
                                engine.push(OpSpec::new("empty", &access).cost(cost), |_| Ok(()));
                            }
                        });
                    }
                });
                engine.wait_all().unwrap();
            });
        });
    }
    group.finish();
}

/// How long a sleeping thread takes to begin: once through the engine, once by nothing but
/// `unpark`.
fn wakes(c: &mut Criterion) {
    const ASLEEP: Duration = Duration::from_micros(500);
    let mut group = c.benchmark_group("wake");
    group.sample_size(20);
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let var = engine.new_var();
    group.bench_function("push until a sleeping worker runs the op", |b| {
        b.iter_custom(|rounds| {
            let took = Arc::new(AtomicU64::new(0));
            for _ in 0..rounds {
                std::thread::sleep(ASLEEP);
                let (sum, pushed) = (took.clone(), Instant::now());
                engine.push(OpSpec::new("wake", &[(&var, Access::Write)]), move |_| {
                    sum.fetch_add(pushed.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    Ok(())
                });
                engine.wait_to_read(&var).unwrap();
            }
            Duration::from_nanos(took.load(Ordering::Relaxed))
        });
    });
    group.bench_function("unpark until the thread runs", |b| {
        let notified = Arc::new((AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false)));
        let origin = Instant::now();
        let sleeper = {
            let notified = notified.clone();
            std::thread::spawn(move || {
                while !notified.2.load(Ordering::Acquire) {
                    std::thread::park();
                    let sent = notified.0.swap(0, Ordering::AcqRel);
                    if sent != 0 {
                        notified.1.store(origin.elapsed().as_nanos() as u64 - sent, Ordering::Release);
                    }
                }
            })
        };
        b.iter_custom(|rounds| {
            let mut sum = 0;
            for _ in 0..rounds {
                std::thread::sleep(ASLEEP);
                notified.0.store(origin.elapsed().as_nanos() as u64, Ordering::Release);
                sleeper.thread().unpark();
                let took = loop {
                    match notified.1.swap(0, Ordering::AcqRel) {
                        0 => std::thread::yield_now(),
                        took => break took,
                    }
                };
                sum += took;
            }
            Duration::from_nanos(sum)
        });
        notified.2.store(true, Ordering::Release);
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    });
    group.finish();
}

/// Measures the overhead of one small op in addition to its own time, from the push until its
/// caller continues. The caller runs it, or a worker.
fn small_ops(c: &mut Criterion) {
    const WORK: Duration = Duration::from_micros(20);
    let mut group = c.benchmark_group("op of 20 us, push and wait, beyond its own time");
    for (name, cost) in [("inline", Cost::Small), ("handed over", Cost::Large)] {
        let engine = start(EngineKind::ThreadedPerDevice, 2);
        let var = engine.new_var();
        group.bench_function(name, |b| {
            b.iter_custom(|rounds| {
                let own = Arc::new(AtomicU64::new(0));
                let begin = Instant::now();
                for _ in 0..rounds {
                    let own = own.clone();
                    engine.push(OpSpec::new("small", &[(&var, Access::Write)]).cost(cost), move |_| {
                        let begin = Instant::now();
                        while begin.elapsed() < WORK {
                            std::hint::spin_loop();
                        }
                        own.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
                        Ok(())
                    });
                    engine.wait_to_read(&var).unwrap();
                }
                begin.elapsed().saturating_sub(Duration::from_nanos(own.load(Ordering::Relaxed)))
            });
        });
    }
    group.finish();
}

/// Measures the cost of the profiler: the same ops, recorded.
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

criterion_group!(benches, empty_ops, pipelined, profiled, eight_pushers, shapes, wakes, small_ops);
criterion_main!(benches);
