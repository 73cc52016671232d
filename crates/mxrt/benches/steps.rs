//! Measures where a network's time goes: processor time of every step of its plan, on one core; or
//! the gain from more cores.
//!
//! `cargo bench -p mxrt --bench steps -- FOLDER [--summary] [--bf16] [--tune] [--cores N] [--runs
//! N] [--batch N] NAME[@SIDE]...`
//!
//! FOLDER holds NAME-symbol.json and NAME-0000.params of networks with one input `data` and images
//! of three channels, 224 pixels on a side unless said otherwise (299 for inceptionv3). Settings
//! come from the environment, as always; one core is used. A row per step: best and median
//! microseconds, multiply-adds as GFLOP/s and operands as GB/s at the median, the kernel, the node.
//! Processor time leaves out what other programs take of the core, though not of caches and memory.
//! Networks take turns, run by run, so that what disturbs one disturbs all.
//!
//! With `--cores N` the rows are wall-clock times on one core and on N, interleaved: median
//! microseconds of both, their ratio, the microseconds by which the second misses the first's Nth
//! part, kernel and node. This needs an idle machine.
//!
//! With `--tune` the methods of every convolution are measured instead. What comes out is a table
//! for `MXRT_TUNED` of those for which another method than the chosen one was faster by 5 % or
//! more.

use mxrt::internal::{CachedOp, CachedOpFlags, ConvTable, Engine, Settings, Winograd, chosen, io, measure};
use mxrt::params::{self, NpShape, Params};
use mxrt::plan::StepReport;
use mxrt::types::TensorType;
use mxrt::{Context, NDArray, Symbol};
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

/// Turns that the runs are spread over.
const TURNS: usize = 5;

/// The arguments of the command line.
struct Asked {
    folder: String,
    networks: Vec<(String, usize)>,
    summary: bool,
    bf16: bool,
    tune: bool,
    cores: usize,
    runs: usize,
    batch: usize,
}

fn asked() -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked {
        folder: String::new(),
        networks: Vec::new(),
        summary: false,
        bf16: false,
        tune: false,
        cores: 1,
        runs: 20,
        batch: 1,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = |what: &str| -> Result<usize, Box<dyn Error>> {
            Ok(args.next().ok_or(format!("{what} needs a number"))?.parse()?)
        };
        match arg.as_str() {
            "--bench" => {}
            "--summary" => asked.summary = true,
            "--bf16" => asked.bf16 = true,
            "--tune" => asked.tune = true,
            "--cores" => asked.cores = number("--cores")?,
            "--runs" => asked.runs = number("--runs")?,
            "--batch" => asked.batch = number("--batch")?,
            folder if asked.folder.is_empty() => asked.folder = folder.to_owned(),
            network => {
                let (name, side) = network.split_once('@').unwrap_or((network, ""));
                let usual = if name.starts_with("inception") { 299 } else { 224 };
                let side = if side.is_empty() { usual } else { side.parse()? };
                asked.networks.push((name.to_owned(), side));
            }
        }
    }
    Ok(asked)
}

/// Nanoseconds that this thread has computed.
fn processor_time() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn time_of_day() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that the call may write.
    unsafe { libc::clock_gettime(id, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A network with its inputs.
struct Network {
    op: CachedOp,
    inputs: Vec<NDArray>,
    steps: Vec<StepReport>,
}

impl Network {
    fn load(
        engine: &'static Engine,
        settings: &Settings,
        asked: &Asked,
        name: &str,
        side: usize,
    ) -> Result<Network, Box<dyn Error>> {
        let base = format!("{}/{name}", asked.folder);
        let symbol = Symbol::load_json(&io::read_text(format!("{base}-symbol.json"))?)?.symbol;
        let Params::Named(params) = params::load(engine, format!("{base}-0000.params"), NpShape::Off)? else {
            return Err("the parameters have no names".into());
        };
        let short = |name: &str| name.split_once(':').map_or(name, |(_, short)| short).to_owned();
        let mut arrays: HashMap<String, NDArray> = params.into_iter().map(|(n, a)| (short(&n), a)).collect();
        let shape = [asked.batch, 3, side, side];
        let image: Vec<f32> =
            (0..shape.iter().product()).map(|i: usize| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect();
        arrays.insert("data".to_owned(), NDArray::from_slice(engine, Context::cpu(0), &shape[..], &image)?);
        let find = |n: &String| arrays.get(n).cloned().ok_or(format!("{base}: no parameter {n}"));
        let inputs = symbol.list_inputs().iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let flags = CachedOpFlags::parse(asked.bf16.then_some(("precision", "bf16")))?;
        Ok(Network { op: CachedOp::compile(engine, &symbol, &flags, settings.plans)?, inputs, steps: Vec::new() })
    }

    fn run(&mut self, runs: usize, clock: fn() -> u64) -> Result<(), Box<dyn Error>> {
        let inputs: Vec<&NDArray> = self.inputs.iter().collect();
        let more = self.op.measured_plan_by(&inputs, runs, clock, &mut || true)??.steps;
        if self.steps.is_empty() {
            self.steps = more;
        } else {
            self.steps.iter_mut().zip(more).for_each(|(step, more)| step.ns.extend(more.ns));
        }
        Ok(())
    }
}

impl Network {
    /// Best and median of the sums of all steps, in microseconds.
    fn sum(&self) -> (f64, f64) {
        let runs = self.steps.first().map_or(0, |s| s.ns.len());
        best_and_median((0..runs).map(|run| self.steps.iter().map(|s| s.ns[run]).sum()).collect())
    }
}

/// Best and median of some times, in microseconds.
fn best_and_median(mut ns: Vec<u64>) -> (f64, f64) {
    ns.sort_unstable();
    let at = |i: usize| ns.get(i).map_or(f64::NAN, |ns| *ns as f64 / 1e3);
    (at(0), at(ns.len() / 2))
}

/// Prints what the choice of methods should have been.
fn tune(networks: &[Network], settings: &Settings) -> Result<(), Box<dyn Error>> {
    let mut signatures = Vec::new();
    for network in networks {
        let types: Vec<TensorType> = network.inputs.iter().map(|a| a.tensor_type()).collect();
        signatures.extend(network.op.convolutions(&types)?);
    }
    signatures.sort_unstable();
    signatures.dedup();
    let winograd = if settings.plans.kernel.winograd < 4 { Winograd::F2 } else { Winograd::F4 };
    let mut table = ConvTable::default();
    for signature in signatures {
        let Some(chosen) = chosen(&signature, winograd) else { continue };
        let measured = measure(&signature, winograd, Duration::from_millis(200));
        let (Some(best), Some(now)) = (measured.first(), measured.iter().find(|m| m.method == chosen)) else {
            continue;
        };
        if best.ns * 105 < now.ns * 100 {
            println!("# {} us, {} {} us", best.ns / 1000, now.name, now.ns / 1000);
            table.insert(signature, best.method, best.ns);
        }
    }
    print!("{table}");
    Ok(())
}

/// A network's row per step and its sum, on one core.
fn print_steps(asked: &Asked, name: &str, network: &Network) {
    let steps = &network.steps;
    if !asked.summary {
        println!("\n{name}: best us, median us, GFLOP/s, GB/s, kernel, node");
        for step in steps {
            let (best, median) = best_and_median(step.ns.clone());
            let flops = step.multiply_adds.map_or(String::new(), |n| format!("{:.0}", 2e-3 * n as f64 / median));
            let bytes = 1e-3 * step.bytes as f64 / median;
            println!("{best:9.1} {median:9.1} {flops:>6} {bytes:7.1}  {:<52}  {}", step.kernel, step.node);
        }
    }
    let (best, median) = network.sum();
    println!("{name}, batch {}: best {:.3} ms, median {:.3} ms", asked.batch, best / 1e3, median / 1e3);
}

/// Prints a network on one core and on several: a row per step and the sum.
fn print_scaling(asked: &Asked, name: &str, one: &Network, many: &Network) {
    let cores = asked.cores as f64;
    if !asked.summary {
        println!("\n{name}: us on 1 core, on {}, ratio, us missed, kernel, node", asked.cores);
        for (a, b) in one.steps.iter().zip(&many.steps) {
            let ((_, a_us), (_, b_us)) = (best_and_median(a.ns.clone()), best_and_median(b.ns.clone()));
            let missed = b_us - a_us / cores;
            println!("{a_us:9.1} {b_us:9.1} {:6.2} {missed:7.1}  {:<52}  {}", a_us / b_us, a.kernel, a.node);
        }
    }
    let ((_, a), (_, b)) = (one.sum(), many.sum());
    println!("{name}, batch {}: median {:.3} ms and {:.3} ms: {:.2} x", asked.batch, a / 1e3, b / 1e3, a / b);
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = asked()?;
    if asked.networks.is_empty() {
        println!("nothing to measure: give a folder and names of networks in it");
        return Ok(());
    }
    let mut settings = Settings::from_environment(&|name| std::env::var(name).ok())?;
    let load_all = |settings: &Settings| -> Result<Vec<Network>, Box<dyn Error>> {
        let engine = Engine::start(settings.engine.clone())?;
        asked.networks.iter().map(|(name, side)| Network::load(engine, settings, &asked, name, *side)).collect()
    };
    settings.engine.cores = Some(1);
    let mut networks = load_all(&settings)?;
    if asked.tune {
        return tune(&networks, &settings);
    }
    settings.engine.cores = Some(asked.cores);
    let mut split = if asked.cores > 1 { load_all(&settings)? } else { Vec::new() };
    let clock = if split.is_empty() { processor_time } else { time_of_day };
    for _ in 0..TURNS {
        for network in networks.iter_mut().chain(&mut split) {
            network.run(asked.runs.div_ceil(TURNS), clock)?;
        }
    }
    for (i, ((name, _), network)) in asked.networks.iter().zip(&networks).enumerate() {
        match split.get(i) {
            Some(split) => print_scaling(&asked, name, network, split),
            None => print_steps(&asked, name, network),
        }
    }
    Ok(())
}
