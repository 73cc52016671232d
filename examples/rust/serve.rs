//! Answers from several threads at once with one model, and compares the answers.
//!
//! ```text
//! cargo run --release --example serve -- PREFIX EPOCH 1,3,224,224 [THREADS]
//! ```

use mxrt::{Error, Model};
use std::time::Instant;

const CALLS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [prefix, epoch, shape, rest @ ..] = &arguments[..] else {
        return Err("usage: serve PREFIX EPOCH 1,3,224,224 [THREADS]".into());
    };
    let shape = shape.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let threads: usize = rest.first().map_or(Ok(8), |n| n.parse())?;
    let model = Model::builder().from_environment()?.load(prefix, epoch.parse()?)?;
    let name = &model.inputs().first().ok_or("the model has no input")?.name;
    let image: Vec<f32> = (0..shape.iter().product()).map(|i: usize| (i % 17) as f32 / 17.0).collect();

    let ask = || -> Result<Vec<f32>, Error> { Ok(model.run([(name, (&shape[..], &image))])?[0].to_vec()?) };
    let alone = ask()?;
    let start = Instant::now();
    let equal = std::thread::scope(|scope| {
        let many = || (0..CALLS).all(|_| ask().is_ok_and(|answer| answer == alone));
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(many)).collect();
        threads.into_iter().all(|thread| thread.join().unwrap_or(false))
    });
    let rate = (threads * CALLS) as f64 / start.elapsed().as_secs_f64();
    println!("{threads} threads, {rate:.0} answers/s, {}", if equal { "all equal" } else { "DIFFERENT" });
    if equal { Ok(()) } else { Err("the answers differ".into()) }
}
