//! Loads a model that MXNet exported and prints the best class of a random image.
//!
//! ```text
//! cargo run --release --example simple -- PREFIX EPOCH 1,3,224,224
//! ```

use mxrt::Model;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [prefix, epoch, shape] = &arguments[..] else {
        return Err("usage: simple PREFIX EPOCH 1,3,224,224".into());
    };
    let shape = shape.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let image: Vec<f32> = (0..shape.iter().product()).map(|i: usize| (i % 17) as f32 / 17.0).collect();

    let model = Model::load(prefix, epoch.parse()?)?;
    let input = model.inputs().first().ok_or("the model has no input")?;
    let y = model.run([(&input.name, (shape, &image))])?;
    let scores: Vec<f32> = y[0].to_vec()?;

    let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).ok_or("no scores")?;
    println!("class {best}: {}", scores[best]);
    Ok(())
}
