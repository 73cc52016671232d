//! Weights stored in fewer bytes than float32: what plans say, and the answers of models.

use crate::common::Calls as _;
use crate::common::{apply, var};
use mxrt_engine::{Config, Engine};
use mxrt_graph::{BuildOptions, CachedOp, CachedOpFlags, Symbol};
use mxrt_ops::{Isa, KernelOptions};
use mxrt_tensor::{Context, DType, NDArray, PartialShape, Shape, TensorType};
use std::sync::OnceLock;

const STEPS: usize = 6;
const INPUTS: usize = 48;
const SIZE: &str = "64";

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config::default()).expect("the engine starts"))
}

fn recurrent(mode: &str) -> Symbol {
    let names = ["data", "parameters", "state", "cell"].map(var);
    let inputs: Vec<&Symbol> = names.iter().take(if mode == "lstm" { 4 } else { 3 }).collect();
    apply("RNN", "layers", &[("mode", mode), ("state_size", SIZE), ("num_layers", "2")], &inputs)
}

/// Steps of a simple cell, as unrolled loops are exported: dense layers and their sum.
fn unrolled() -> Symbol {
    let dense = |name: &str, data: &Symbol, weight: &Symbol| {
        apply("FullyConnected", name, &[("num_hidden", SIZE), ("no_bias", "True")], &[data, weight])
    };
    let (of_inputs, of_state) = (var("i2h_weight"), var("h2h_weight"));
    let mut state = dense("i2h", &var("data"), &of_inputs);
    for step in 0..STEPS {
        let sums = dense(&format!("h2h{step}"), &state, &of_state);
        state = apply("Activation", &format!("state{step}"), &[("act_type", "tanh")], &[&sums]);
    }
    state
}

fn inputs(symbol: &Symbol, data: &[usize]) -> Vec<NDArray> {
    let known = [("data".to_owned(), PartialShape::from(Shape::new(data)))];
    let shapes = symbol.infer_shape(&known, false).expect("all shapes follow from the data's");
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let make = |(name, shape): (String, &PartialShape)| {
        let shape = shape.complete().expect("every shape is known");
        let scale = if name == "data" { 1.0 } else { 0.2 };
        let bytes: Vec<u8> = (0..shape.size()).flat_map(|_| (scale * random()).to_le_bytes()).collect();
        NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(DType::F32, shape), &bytes).expect("it is made")
    };
    symbol.list_arguments().into_iter().zip(&shapes.args).map(make).collect()
}

fn compile(symbol: &Symbol, precision: &str, isa: Isa) -> CachedOp {
    let flags = CachedOpFlags::parse([("precision", precision)]).expect("a precision");
    let kernel = KernelOptions { isa, ..KernelOptions::default() };
    CachedOp::compile(engine(), symbol, &flags, BuildOptions { kernel, ..BuildOptions::default() })
        .expect("the symbol compiles")
}

fn answer(op: &CachedOp, inputs: &[NDArray]) -> Vec<f32> {
    let results = op.run(&inputs.iter().collect::<Vec<_>>()).expect("the call is accepted");
    let bytes = results[0].to_bytes().expect("there is an answer");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
}

fn text(op: &CachedOp, inputs: &[NDArray]) -> String {
    op.plan_text(&inputs.iter().map(|a| a.tensor_type()).collect::<Vec<_>>()).expect("there is a plan")
}

#[test]
fn answers_on_small_weights_lie_near_those_of_float32_and_the_plan_says_where_weights_are_small() {
    let networks = [recurrent("lstm"), recurrent("gru"), recurrent("rnn_tanh"), unrolled()];
    for (i, symbol) in networks.iter().enumerate() {
        for batch in [1, 20] {
            let shape: &[usize] = if i == 3 { &[batch, INPUTS] } else { &[STEPS, batch, INPUTS] };
            let inputs = inputs(symbol, shape);
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                let exact = answer(&compile(symbol, "default", isa), &inputs);
                let largest = exact.iter().fold(0.0f32, |m, v| m.max(v.abs()));
                for (precision, most) in [("w8", 3e-2), ("bf16", 2e-2)] {
                    let op = compile(symbol, precision, isa);
                    let got = answer(&op, &inputs);
                    let error = got.iter().zip(&exact).fold(0.0, |m: f32, (g, w)| m.max((g - w).abs())) / largest;
                    let rounds = precision == "w8" || batch == 1;
                    assert!(error <= most, "{i} {isa} {precision} batch {batch}: {error}");
                    assert!(error > 0.0 || !rounds, "{i} {isa} {precision} batch {batch} rounded nothing");
                    let plan = text(&op, &inputs);
                    let word = if precision == "w8" { "w8" } else { "bf16" };
                    let steps = plan.lines().filter(|line| line.contains("RNN") || line.contains("FullyConnected"));
                    assert!(steps.clone().count() > 0, "{plan}");
                    assert!(!rounds || steps.clone().all(|line| line.contains(word)), "{plan}");
                }
            }
        }
    }
}

#[test]
fn sixty_four_threads_get_the_same_bits_on_small_weights() {
    for (symbol, shape) in [(recurrent("lstm"), vec![STEPS, 1, INPUTS]), (unrolled(), vec![1, INPUTS])] {
        let inputs = inputs(&symbol, &shape);
        for precision in ["w8", "bf16"] {
            let op = compile(&symbol, precision, Isa::detect());
            let want = answer(&op, &inputs);
            std::thread::scope(|scope| {
                for _ in 0..64 {
                    scope.spawn(|| (0..4).for_each(|_| assert_eq!(answer(&op, &inputs), want, "{precision}")));
                }
            });
        }
    }
}
