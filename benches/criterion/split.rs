//! The cost of sharing a loop: splits of two chunks that do nothing, or count for about 0.3 or 1.2
//! microseconds each.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mxrt_engine::{Access, Config, Cost, Engine, EngineKind, OpSpec};
use std::hint::black_box;

const SPLITS: usize = 2000;

/// A chain of `cycles` additions, a cycle each.
fn work(cycles: u64, seed: u64) -> u64 {
    (0..cycles).fold(seed, |sum, i| black_box(sum.wrapping_add(i)))
}

fn splits(c: &mut Criterion) {
    let mut group = c.benchmark_group("split of two chunks");
    group.throughput(Throughput::Elements(SPLITS as u64));
    for cores in [1, 2] {
        let engine =
            Engine::start(Config { kind: EngineKind::ThreadedPerDevice, cores: Some(cores), ..Config::default() });
        let engine = engine.unwrap();
        let var = engine.new_var();
        for cycles in [0, 1000, 4000] {
            group.bench_function(BenchmarkId::new(format!("{cores} cores, iterations"), cycles), |b| {
                b.iter(|| {
                    engine.push(OpSpec::new("splits", &[(&var, Access::Write)]).cost(Cost::Large), move |ctx| {
                        for seed in 0..SPLITS as u64 {
                            ctx.split(2, 0, &|chunk, _| _ = black_box(work(cycles, seed + chunk as u64)));
                        }
                        Ok(())
                    });
                    engine.wait_to_read(&var).unwrap();
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, splits);
criterion_main!(benches);
