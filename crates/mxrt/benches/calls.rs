//! Measures the cost of a call of a small plan in addition to the time of its operator: pushed, run
//! and waited for by one thread.
//!
//! `cargo bench -p mxrt --bench calls`
//!
//! Plans that are expected to run for less than 0.2 ms run in the calling thread, others are handed
//! to a worker. The second kind is measured with layers in double precision, which take a fraction
//! of what is expected of them. How long the operator ran is what the profiler recorded of the same
//! call. Rows give medians of calls, of operators and of their differences.

use mxrt::internal::{CachedOp, CachedOpFlags, Config, Engine, Interrupter};
use mxrt::types::Element;
use mxrt::{CallOptions, Context, NDArray, Symbol};
use mxrt_engine::profile;
use std::error::Error;
use std::time::Instant;

const CALLS: usize = 4000;

/// A chain of dense layers.
fn chain(layers: usize, width: usize) -> Result<Symbol, Box<dyn Error>> {
    let attrs = format!(r#"{{"num_hidden": "{width}", "no_bias": "True"}}"#);
    let mut nodes = vec![r#"{"op": "null", "name": "x", "inputs": []}"#.to_owned()];
    for layer in 0..layers {
        let (last, weight) = (nodes.len() - 1, nodes.len());
        nodes.push(format!(r#"{{"op": "null", "name": "w{layer}", "inputs": []}}"#));
        nodes.push(format!(
            r#"{{"op": "FullyConnected", "name": "d{layer}", "attrs": {attrs}, "inputs": [[{last}, 0, 0], [{weight}, 0, 0]]}}"#
        ));
    }
    let args: Vec<String> = (0..layers).map(|layer| (2 * layer + 1).to_string()).collect();
    let (head, nodes, args) = (nodes.len() - 1, nodes.join(", "), args.join(", "));
    let json = format!(r#"{{"nodes": [{nodes}], "arg_nodes": [0, {args}], "heads": [[{head}, 0, 0]]}}"#);
    Ok(Symbol::load_json(&json)?.symbol)
}

/// The median, of microseconds.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Measures a chain of layers of some width on a number of rows.
fn measure<T>(
    engine: &'static Engine,
    what: &str,
    layers: usize,
    [rows, width]: [usize; 2],
) -> Result<(), Box<dyn Error>>
where
    T: Element + From<f32>,
{
    let array = |rows: usize| {
        let values: Vec<T> = (0..rows * width).map(|i| T::from((i % 17) as f32 / 64.0)).collect();
        NDArray::from_slice(engine, Context::cpu(0), &[rows, width][..], &values)
    };
    let op = CachedOp::new(engine, &chain(layers, width)?, &CachedOpFlags::default())?;
    let weights = (0..layers).map(|_| array(width));
    let inputs = std::iter::once(array(rows)).chain(weights).collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<&NDArray> = inputs.iter().collect();
    let mut calls = Vec::with_capacity(CALLS);
    profile::snapshot(true);
    profile::set_on(true);
    for _ in 0..CALLS {
        let begin = Instant::now();
        op.call(&inputs, None, &CallOptions::default(), &mut Interrupter::never())?.wait()?;
        calls.push(begin.elapsed().as_nanos() as f64 / 1e3);
    }
    profile::set_on(false);
    let records = profile::snapshot(true).records;
    let name = format!("d{}_output", layers - 1);
    let ran: Vec<f64> = records.iter().filter(|r| r.name.as_str() == name).map(|r| r.ended - r.started).collect();
    if ran.len() != CALLS {
        return Err(format!("{} of {CALLS} calls of {name} were recorded", ran.len()).into());
    }
    let more = median(calls.iter().zip(&ran).map(|(call, ran)| call - ran).collect());
    println!("{what}: a call takes {:.2} us, its operator {:.2} us, {more:.2} us more", median(calls), median(ran));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::start(Config::default())?;
    for _ in 0..3 {
        measure::<f32>(engine, "in the calling thread", 4, [32, 128])?;
        measure::<f64>(engine, "handed over", 1, [64, 84])?;
    }
    Ok(())
}
