//! Measures the engine's cost per op on a device: push, start, waits, event, registration, release.
//! The device is simulated and does its work (nothing) outside of the measurement.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mxrt_engine::*;
use mxrt_sim::{Mode, SimConfig, SimDriver};

const OPS: u64 = 1000;

fn device_ops(c: &mut Criterion) {
    let mut group = c.benchmark_group("device_op");
    group.throughput(Throughput::Elements(OPS));
    for (name, streams) in [("one_stream", 1u16), ("four_streams", 4)] {
        let driver = SimDriver::new(SimConfig { mode: Mode::Scheduled { seed: 1 }, ..SimConfig::default() });
        let kind = EngineKind::ThreadedPerDeviceAsync;
        let config = Config { kind, cores: Some(1), drivers: vec![driver], compute_streams: 4, ..Config::default() };
        let engine = Engine::start(config).unwrap();
        let sim = DeviceId::new(DeviceKind::SIM, 0);
        let vars: Vec<Var> = (0..16).map(|_| engine.new_var()).collect();
        group.bench_function(name, |b| {
            b.iter_batched(
                || engine.wait_all().unwrap(),
                |()| {
                    for i in 0..OPS as usize {
                        let reads = [(&vars[i % 16], Access::Read), (&vars[(i + 1) % 16], Access::Write)];
                        let spec = OpSpec::new("op", &reads).device(sim).stream(i as u16 % streams).cost(Cost::Small);
                        engine.push_device(spec, |ctx| ctx.launch(|_| Ok(()))).unwrap();
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, device_ops);
criterion_main!(benches);
