//! Loads a model that MXNet exported and answers from several threads at once.
//!
//! ```text
//! cargo run --release --example serve -- model-symbol.json model-0000.params data 1,3,224,224 [THREADS]
//! ```

use mxrt::params::{self, NpShape, Params};
use mxrt::{CachedOp, CachedOpFlags, Context, Engine, NDArray, Settings, Symbol, io};
use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

const CALLS: usize = 20;

/// A callable graph and an array for each of its inputs but one.
struct Model {
    engine: &'static Engine,
    op: CachedOp,
    parameters: Vec<Option<NDArray>>,
}

impl Model {
    fn load(symbol: &str, parameters: &str, data: &str) -> Result<Model, Box<dyn Error>> {
        let settings = Settings::from_environment(&|name| std::env::var(name).ok())?;
        let engine = Engine::start(settings.engine)?;
        let symbol = Symbol::load_json(&io::read_text(symbol)?)?.symbol;
        let named: HashMap<String, NDArray> = match params::load(engine, parameters, NpShape::Off)? {
            Params::Named(named) => named.into_iter().map(|(name, array)| (bare(&name), array)).collect(),
            Params::List(_) => return Err("the parameters have no names".into()),
        };
        let array_of = |name: &String| match named.get(name) {
            _ if name == data => Ok(None),
            Some(array) => Ok(Some(array.clone())),
            None => Err(format!("there is no parameter for the input '{name}'")),
        };
        let parameters = symbol.list_inputs().iter().map(array_of).collect::<Result<_, _>>()?;
        let op = CachedOp::compile(engine, &symbol, &CachedOpFlags::default(), settings.plans)?;
        Ok(Model { engine, op, parameters })
    }

    /// The first output for one input.
    fn predict(&self, shape: &[usize], data: &[f32]) -> Result<Vec<f32>, Box<dyn Error>> {
        let data = NDArray::from_slice(self.engine, Context::cpu(0), shape, data)?;
        let inputs: Vec<&NDArray> = self.parameters.iter().map(|p| p.as_ref().unwrap_or(&data)).collect();
        let outputs = self.op.call(&inputs)?;
        let answer = outputs[0].read()?;
        Ok(answer.tensor().as_slice::<f32>()?.to_vec())
    }
}

/// `arg:fc_weight` is the parameter `fc_weight`.
fn bare(name: &str) -> String {
    name.split_once(':').map_or(name, |(_, bare)| bare).to_owned()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [symbol, parameters, data, shape, rest @ ..] = &arguments[..] else {
        return Err("usage: serve SYMBOL.json FILE.params INPUT-NAME 1,3,224,224 [THREADS]".into());
    };
    let shape = shape.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let threads: usize = rest.first().map_or(Ok(8), |n| n.parse())?;
    let model = Model::load(symbol, parameters, data)?;
    let input: Vec<f32> = (0..shape.iter().product()).map(|i: usize| (i % 17) as f32 / 17.0).collect();

    let alone = model.predict(&shape, &input)?;
    let start = Instant::now();
    let equal = std::thread::scope(|scope| {
        let ask = || (0..CALLS).all(|_| model.predict(&shape, &input).is_ok_and(|answer| answer == alone));
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    let rate = (threads * CALLS) as f64 / start.elapsed().as_secs_f64();
    let best = (0..alone.len()).max_by(|a, b| alone[*a].total_cmp(&alone[*b])).unwrap_or(0);
    println!("{threads} threads, {rate:.0} answers/s, {}", if equal { "all equal" } else { "DIFFERENT" });
    println!("largest: {} at {best}", alone[best]);
    if equal { Ok(()) } else { Err("the answers differ".into()) }
}
