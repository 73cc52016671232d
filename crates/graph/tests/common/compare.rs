//! Plans, compared with their operators run one by one.

use super::Calls as _;
use super::apply;
use mxrt_engine::{Config, Engine};
use mxrt_graph::BuildOptions;
use mxrt_graph::{CachedOp, CachedOpFlags, Symbol};
use mxrt_ops::{Invocation, KernelOptions, RandomState, invoke};
use mxrt_tensor::{Context, DType, NDArray, PartialShape, Shape, TensorType};
use std::collections::HashMap;
use std::sync::OnceLock;

pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config::default()).expect("the engine starts"))
}

pub fn array(shape: &Shape, values: impl Iterator<Item = f32>) -> NDArray {
    array_of(engine(), shape, values)
}

pub fn array_of(engine: &'static Engine, shape: &Shape, values: impl Iterator<Item = f32>) -> NDArray {
    let bytes: Vec<u8> = values.take(shape.size()).flat_map(f32::to_le_bytes).collect();
    let tensor = TensorType::new(DType::F32, shape.clone());
    NDArray::from_bytes(engine, Context::cpu(0), tensor, &bytes).expect("the array is made")
}

pub fn values(array: &NDArray) -> Vec<f32> {
    let bytes = array.to_bytes().expect("the array has a value");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Inputs of a symbol whose shapes follow from that of `data`.
pub fn inputs(symbol: &Symbol, data: &[usize]) -> Vec<NDArray> {
    inputs_for(symbol, &[("data", data)])
}

/// Numbers between -1 and 1, or between 0.5 and 1.5 for what has to be positive; small for weights
/// of wide layers.
pub fn inputs_for(symbol: &Symbol, known: &[(&str, &[usize])]) -> Vec<NDArray> {
    let known: Vec<_> = known.iter().map(|(n, s)| (n.to_string(), PartialShape::from(Shape::new(s)))).collect();
    let shapes = symbol.infer_shape(&known, false).expect("all shapes follow from those that are known");
    let mut by_name: HashMap<String, Shape> = HashMap::new();
    let names = symbol.list_arguments().into_iter().chain(symbol.list_auxiliary_states());
    for (name, shape) in names.zip(shapes.args.iter().chain(&shapes.aux)) {
        by_name.insert(name, shape.complete().expect("every shape is known"));
    }
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let make = |name: String| {
        let shape = by_name[&name].clone();
        let fan_in: usize = shape.iter().skip(1).product();
        let scale = if name.ends_with("weight") { (3.0 / fan_in as f32).sqrt() } else { 1.0 };
        let positive = name.ends_with("var") || name.ends_with("gamma");
        let numbers: Vec<f32> =
            (0..shape.size()).map(|_| if positive { 1.0 + 0.5 * random() } else { scale * random() }).collect();
        array(&shape, numbers.into_iter())
    };
    symbol.list_inputs().into_iter().map(make).collect()
}

pub fn op_by_op(symbol: &Symbol, inputs: &[NDArray]) -> Vec<Vec<f32>> {
    let random = RandomState::new(0);
    let options = KernelOptions { winograd: 0, ..KernelOptions::default() };
    let how = Invocation { engine: engine(), context: Context::cpu(0), options, random: &random };
    let mut made: HashMap<(String, usize), NDArray> = HashMap::new();
    let mut given = inputs.iter();
    for node in symbol.topo() {
        match node.op {
            None => {
                made.insert((node.name.clone(), 0), given.next().expect("an input for every variable").clone());
            }
            Some(op) => {
                let arguments: Vec<&NDArray> =
                    node.inputs.iter().map(|e| &made[&(e.node.name.clone(), e.index)]).collect();
                let results = invoke(&how, op, node.parsed(), &arguments, None).expect("the operator runs");
                for (i, result) in results.into_iter().enumerate() {
                    made.insert((node.name.clone(), i), result);
                }
            }
        }
    }
    symbol.outputs().iter().map(|e| values(&made[&(e.node.name.clone(), e.index)])).collect()
}

pub fn check(symbol: &Symbol, data: &[usize]) -> String {
    check_with(symbol, data, BuildOptions::default())
}

pub fn check_with(symbol: &Symbol, data: &[usize], options: BuildOptions) -> String {
    check_on(symbol, &inputs(symbol, data), options)
}

pub fn check_on(symbol: &Symbol, inputs: &[NDArray], options: BuildOptions) -> String {
    let refs: Vec<&NDArray> = inputs.iter().collect();
    let op = CachedOp::compile(engine(), symbol, &CachedOpFlags::default(), options).expect("the symbol compiles");
    let got = op.run(&refs).expect("the call is accepted");
    let types: Vec<TensorType> = inputs.iter().map(|a| a.tensor_type()).collect();
    let text = op.plan_text(&types).expect("there is a plan");
    for (got, want) in got.iter().zip(op_by_op(symbol, inputs)) {
        let got = values(got);
        let scale = want.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            assert!((g - w).abs() <= 1e-4 * scale, "element {i}: {g}, op by op {w}\n{text}");
        }
    }
    text
}

pub fn conv(name: &str, x: &Symbol, filters: &str, more: &[(&str, &str)]) -> Symbol {
    let mut attrs = vec![("num_filter", filters), ("kernel", "(3, 3)"), ("pad", "(1, 1)")];
    attrs.extend(more);
    apply("Convolution", name, &attrs, &[x])
}

pub fn relu(name: &str, x: &Symbol) -> Symbol {
    apply("Activation", name, &[("act_type", "relu")], &[x])
}

pub fn norm(name: &str, x: &Symbol) -> Symbol {
    apply("BatchNorm", name, &[("fix_gamma", "False")], &[x])
}
