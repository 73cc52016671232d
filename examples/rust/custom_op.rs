//! A graph with an operator of this program: `x * sigmoid(beta * x)`.
//!
//! ```text
//! cargo run --release --example custom_op
//! ```

use mxrt::operators::Operator;
use mxrt::types::{TensorMut, TensorRef};
use mxrt::{Error, Model, Symbol};

/// The operator with its attribute.
struct Swish {
    beta: f32,
}

impl Operator for Swish {
    fn run(&self, inputs: &[TensorRef<'_>], outputs: &mut [TensorMut<'_>]) -> Result<(), Error> {
        let from = inputs[0].as_slice::<f32>()?;
        let to = outputs[0].as_mut_slice::<f32>()?;
        to.iter_mut().zip(from).for_each(|(y, x)| *y = x / (1.0 + (-self.beta * x).exp()));
        Ok(())
    }
}

/// The graph that `mx.sym.Custom(x, op_type="swish", beta=2)` writes.
const GRAPH: &str = r#"{
  "nodes": [
    {"op": "null", "name": "x", "inputs": []},
    {"op": "Custom", "name": "y", "attrs": {"op_type": "swish", "beta": "2"}, "inputs": [[0, 0, 0]]},
    {"op": "_mul_scalar", "name": "z", "attrs": {"scalar": "10"}, "inputs": [[1, 0, 0]]}
  ],
  "arg_nodes": [0],
  "heads": [[2, 0, 0]]
}"#;

fn main() -> Result<(), Error> {
    mxrt::operators::register_operator("swish", |attrs| Ok(Swish { beta: attrs.parse("beta", 1.0)? }));

    let model = Model::builder().from_symbol(Symbol::load_json(GRAPH)?.symbol, Default::default())?;
    let z = model.run([("x", ([3], &[-1.0f32, 0.0, 1.0]))])?;
    println!("{:?}", z[0].to_vec::<f32>()?);
    Ok(())
}
