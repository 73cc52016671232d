//! A compiled symbol, called as users call it: from many threads, with many shapes, with failing
//! inputs.

use crate::common::Calls as _;
use mxrt_engine::{Access, Config, Engine, FailureKind, OpError, OpSpec, WaitError};
use mxrt_graph::{BuildOptions, CacheLimit, CallOptions, Interrupter};
use mxrt_graph::{CachedOp, CachedOpFlags, Symbol};
use mxrt_ops::{Isa, KernelOptions, registry};
use mxrt_tensor::{Context, DType, NDArray, Shape, TensorType};
use std::collections::BTreeMap;
use std::sync::OnceLock;

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config::default()).expect("the engine starts"))
}

fn var(name: &str) -> Symbol {
    Symbol::variable(name, BTreeMap::new())
}

fn apply(op: &str, name: &str, attrs: &[(&str, &str)], inputs: &[&Symbol]) -> Symbol {
    let op = registry().get(op).expect("the operator is registered");
    let attrs = attrs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Symbol::create(op, name.to_owned(), attrs, inputs).expect("the symbol composes")
}

fn array(shape: &[usize], values: &[f32]) -> NDArray {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(DType::F32, shape), &bytes)
        .expect("the array is made")
}

fn values(array: &NDArray) -> Vec<f32> {
    let bytes = array.to_bytes().expect("the array has a value");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn compile(symbol: &Symbol, flags: &[(&str, &str)]) -> CachedOp {
    let flags = CachedOpFlags::parse(flags.iter().copied()).expect("the flags parse");
    CachedOp::new(engine(), symbol, &flags).expect("the symbol compiles")
}

/// relu(x * 2 + w) and x itself
fn two_outputs() -> Symbol {
    let (x, w) = (var("x"), var("w"));
    let doubled = apply("_mul_scalar", "doubled", &[("scalar", "2")], &[&x]);
    let sum = apply("elemwise_add", "sum", &[], &[&doubled, &w]);
    let relu = apply("Activation", "relu", &[("act_type", "relu")], &[&sum]);
    Symbol::group(&[relu, x])
}

#[test]
fn results_are_right_and_an_output_may_be_an_input() {
    let op = compile(&two_outputs(), &[]);
    let (x, w) = (array(&[2, 2], &[1.0, -2.0, 3.0, -4.0]), array(&[2, 2], &[0.5, 0.5, -10.0, 9.0]));
    let out = op.run(&[&x, &w]).expect("the call is accepted");
    assert_eq!(values(&out[0]), [2.5, 0.0, 0.0, 1.0]);
    assert_eq!(values(&out[1]), [1.0, -2.0, 3.0, -4.0]);
}

#[test]
fn a_quick_call_gives_up_before_it_builds_a_plan_and_runs_when_there_is_one() {
    let op = compile(&two_outputs(), &[]);
    let (x, w) = (array(&[2], &[1.0, -2.0]), array(&[2], &[0.5; 2]));
    let quick = |inputs: &[&NDArray]| {
        let mut quick = Interrupter::quick();
        let begun = op.call(inputs, None, &CallOptions::default(), &mut quick);
        (begun, quick.gave_up())
    };
    let (begun, gave_up) = quick(&[&x, &w]);
    assert!(gave_up && begun.is_err(), "there is no plan yet");
    op.run(&[&x, &w]).expect("the plan is built");
    let (begun, gave_up) = quick(&[&x, &w]);
    assert!(!gave_up);
    assert_eq!(values(&begun.expect("it runs").arrays().expect("they have shapes")[0]), [2.5, 0.0]);
    let (begun, gave_up) = quick(&[&x]);
    assert!(!gave_up && begun.is_err(), "one array for two inputs");
}

#[test]
fn a_reshape_costs_no_step() {
    let x = var("x");
    let flat = apply("Flatten", "flat", &[], &[&x]);
    let out = apply("_plus_scalar", "plus", &[("scalar", "1")], &[&flat]);
    let op = compile(&out, &[]);
    let input = array(&[2, 1, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let out = op.run(&[&input]).expect("the call is accepted");
    assert_eq!(out[0].shape(), &Shape::new(&[2, 3]));
    assert_eq!(values(&out[0]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let text = op.plan_text(&[input.tensor_type()]).expect("there is a plan");
    assert!(text.contains("1 steps"), "{text}");
}

#[test]
fn wrong_arguments_are_errors_of_the_call_that_name_them() {
    let op = compile(&two_outputs(), &[]);
    let x = array(&[2, 2], &[0.0; 4]);
    let message = |r: Result<_, OpError>| r.err().map(|e| e.message.clone()).unwrap_or_default();
    assert!(message(op.run(&[&x]).map(|_| ())).contains("requires 2 inputs but got 1; they are x, w"));
    let wrong = array(&[3, 2], &[0.0; 6]);
    let error = op.run(&[&x, &wrong]).map(|_| ()).expect_err("shapes differ");
    assert_eq!(error.kind, FailureKind::Shape);
    assert_eq!(error.node.as_deref(), Some("sum"));
    assert!(CachedOpFlags::parse([("static_shape", "True")]).is_err());
    assert!(CachedOpFlags::parse([("nonsense", "1")]).is_err());
}

#[test]
fn threads_with_different_shapes_share_one_op() {
    let op = compile(&two_outputs(), &[]);
    std::thread::scope(|scope| {
        for t in 0..8usize {
            let op = &op;
            scope.spawn(move || {
                for round in 0..100usize {
                    let n = 1 + (t + round) % 5;
                    let x = array(&[n], &vec![t as f32; n]);
                    let w = array(&[n], &vec![round as f32; n]);
                    let out = op.run(&[&x, &w]).expect("the call is accepted");
                    assert_eq!(values(&out[0]), vec![(2 * t + round) as f32; n]);
                }
            });
        }
    });
    assert_eq!(op.stats().plans, 5);
    assert_eq!(op.stats().built, 5, "each plan is built once");
}

#[test]
fn a_failed_input_fails_this_request_alone_and_the_op_goes_on() {
    let op = compile(&two_outputs(), &[]);
    let (x, w) = (array(&[2], &[1.0, 2.0]), array(&[2], &[0.0, 0.0]));
    let bad = array(&[2], &[0.0, 0.0]);
    engine().push(OpSpec::new("spoil", &[(bad.var(), Access::Write)]), |_| {
        Err(OpError::new(FailureKind::Value, "spoilt on purpose"))
    });
    let failing = op.run(&[&bad, &w]).expect("the call is accepted");
    let good = op.run(&[&x, &w]).expect("the call is accepted");
    match failing[0].wait_to_read() {
        Err(WaitError::Failed(failure)) => assert!(failure.message().contains("spoilt on purpose")),
        other => panic!("the failure is lost: {other:?}"),
    }
    assert_eq!(values(&good[0]), [2.0, 4.0]);
    w.wait_to_read().expect("a shared parameter is not poisoned by its reader");
}

fn folding_net() -> Symbol {
    let x = var("data");
    let fc = apply("FullyConnected", "fc", &[("num_hidden", "2")], &[&x]);
    apply("BatchNorm", "bn", &[("fix_gamma", "False"), ("eps", "0")], &[&fc])
}

#[test]
fn changed_parameters_are_seen_by_the_next_call() {
    let Some(_) = registry().get("_fold_batch_norm") else { panic!("the folding operator is registered") };
    let symbol = folding_net();
    let op = compile(&symbol, &[("data_indices", "(0,)"), ("param_indices", "(1, 2, 3, 4, 5, 6)")]);
    assert_eq!(
        symbol.list_inputs(),
        ["data", "fc_weight", "fc_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    );
    let x = array(&[1, 2], &[1.0, 10.0]);
    let weight = array(&[2, 2], &[1.0, 0.0, 0.0, 1.0]);
    let bias = array(&[2], &[0.0, 1.0]);
    let (gamma, beta) = (array(&[2], &[2.0, 1.0]), array(&[2], &[0.0, 0.0]));
    let (mean, variance) = (array(&[2], &[0.0, 1.0]), array(&[2], &[4.0, 1.0]));
    let inputs = [&x, &weight, &bias, &gamma, &beta, &mean, &variance];
    let plan = op.plan_text(&inputs.map(NDArray::tensor_type)).expect("there is a plan");
    assert!(!plan.contains("BatchNorm"), "{plan}");
    let call = || op.run(&inputs).expect("the call is accepted");
    assert_eq!(values(&call()[0]), [1.0, 10.0]);
    let moved = mean.clone();
    mxrt_tensor::launch(
        engine(),
        mxrt_tensor::Launch { name: "set".into(), inputs: &[], outputs: &[&moved], cost: mxrt_engine::Cost::Small },
        |_, _, out| {
            out[0].as_mut_slice::<f32>()?.copy_from_slice(&[1.0, 11.0]);
            Ok(())
        },
    );
    assert_eq!(values(&call()[0]), [0.0, 0.0]);
}

fn conv_net() -> Symbol {
    let conv =
        apply("Convolution", "c", &[("num_filter", "32"), ("kernel", "(3, 3)"), ("pad", "(1, 1)")], &[&var("x")]);
    apply("BatchNorm", "bn", &[("fix_gamma", "False")], &[&conv])
}

fn filled(shape: &[usize], value: f32) -> NDArray {
    array(shape, &vec![value; shape.iter().product()])
}

/// Calls `conv_net` on a batch with parameters of this call alone.
fn call_with_own_parameters(op: &CachedOp, batch: usize) {
    let x = filled(&[batch, 16, 6, 6], 1.0);
    let (weight, vector) = (filled(&[32, 16, 3, 3], 0.1), || filled(&[32], 1.0));
    let out = op.run(&[&x, &weight, &vector(), &vector(), &vector(), &vector(), &vector()]);
    values(&out.expect("the call is accepted")[0]);
}

/// Whether this process runs this test alone, so that the counters of memory belong to it. If not,
/// a process that does is started and must pass.
fn alone(test: &str) -> bool {
    if std::env::var_os("MXRT_TEST_ALONE").is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("the test has a program");
    let out = std::process::Command::new(program)
        .args([&format!("cached_op::{test}"), "--exact"])
        .env("MXRT_TEST_ALONE", "1")
        .output();
    let out = out.expect("the child runs");
    let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[test]
fn shapes_and_parameters_that_change_with_every_call_do_not_grow_memory() {
    if !alone("shapes_and_parameters_that_change_with_every_call_do_not_grow_memory") {
        return;
    }
    let in_use = || engine().memory().stats().in_use;
    let limit = CacheLimit { plans: 4, ..CacheLimit::default() };
    let options = BuildOptions { cache: limit, ..BuildOptions::default() };
    let before = in_use();
    let op = CachedOp::compile(engine(), &conv_net(), &CachedOpFlags::default(), options).expect("the symbol compiles");
    let mut seen = Vec::new();
    for batch in 1..=60 {
        call_with_own_parameters(&op, batch);
        engine().wait_all().expect("nothing failed");
        let stats = op.stats();
        assert!(stats.plans <= 4 && stats.constant_bytes > 0, "{stats:?}");
        seen.push(in_use());
    }
    assert_eq!((op.stats().built, op.stats().evicted), (60, 56));
    // Small batches have a method with smaller packed weights.
    assert!(seen[59] <= seen[29] + (64 << 10), "after 30 calls {}, after 60 calls {}", seen[29], seen[59]);
    drop(op);
    engine().wait_all().expect("nothing failed");
    assert!(in_use() <= before, "{} bytes in use, {before} before the op was made", in_use());
}

#[test]
fn folded_weights_are_given_back_once_they_are_packed() {
    if !alone("folded_weights_are_given_back_once_they_are_packed") {
        return;
    }
    const LAYERS: usize = 4;
    let conv = [("num_filter", "256"), ("kernel", "(1, 1)"), ("no_bias", "True")];
    let mut symbol = var("x");
    let mut inputs = vec![filled(&[1, 256, 8, 8], 1.0)];
    for i in 0..LAYERS {
        let [c, gamma, beta, mean, variance] = ["c", "gamma", "beta", "mean", "variance"].map(|n| format!("{n}{i}"));
        let stats = [&gamma, &beta, &mean, &variance].map(|name| var(name));
        symbol = apply("Convolution", &c, &conv, &[&symbol, &var(&format!("{c}_weight"))]);
        let [g, b, m, v] = &stats;
        symbol = apply("BatchNorm", &format!("{c}_norm"), &[("fix_gamma", "False")], &[&symbol, g, b, m, v]);
        inputs.push(filled(&[256, 256, 1, 1], 0.01));
        inputs.extend([1.0, 0.5, 0.25, 2.0].map(|value| filled(&[256], value)));
    }
    let weight = inputs[1].nbytes();
    let op = CachedOp::compile(engine(), &symbol, &CachedOpFlags::default(), BuildOptions::default());
    let op = op.expect("the symbol compiles");
    let memory = || engine().memory().stats();
    engine().wait_all().expect("nothing failed");
    let before = memory().in_use;
    let out = op.run(&inputs.iter().collect::<Vec<_>>()).expect("the call is accepted");
    out[0].wait_to_read().expect("nothing failed");
    let held = op.stats().constant_bytes;
    // Packed for tiles, a weight has three parts of bf16.
    let types: Vec<_> = inputs.iter().map(|a| a.tensor_type()).collect();
    let plan = op.plan_text(&types).expect("there is a plan");
    let layer = if plan.contains("amx") { weight * 3 / 2 } else { weight };
    assert!((LAYERS * layer..LAYERS * layer + weight / 4).contains(&held), "{held} bytes for {LAYERS} x {layer}");
    let more = memory().peak - before;
    assert!(more < (LAYERS + 2) * layer, "{more} bytes more at the peak, for {LAYERS} packed weights of {layer}");
}

#[test]
fn plans_are_given_up_when_they_hold_too_many_bytes() {
    let limit = CacheLimit { bytes: 1, ..CacheLimit::default() };
    let options = BuildOptions { cache: limit, ..BuildOptions::default() };
    let op = CachedOp::compile(engine(), &conv_net(), &CachedOpFlags::default(), options).expect("the symbol compiles");
    for batch in [1, 2, 1] {
        call_with_own_parameters(&op, batch);
        assert_eq!(op.stats().plans, 1, "only the last one stays: {:?}", op.stats());
    }
    assert_eq!(op.stats().built, 3);
    assert!(op.stats().plan_bytes > 1000, "{:?}", op.stats());
}

#[test]
fn the_plan_unused_for_longest_is_given_up_first() {
    let limit = CacheLimit { plans: 3, ..CacheLimit::default() };
    let options = BuildOptions { cache: limit, ..BuildOptions::default() };
    let op = CachedOp::compile(engine(), &conv_net(), &CachedOpFlags::default(), options).expect("the symbol compiles");
    let built_by = |batch: usize| {
        let before = op.stats().built;
        call_with_own_parameters(&op, batch);
        op.stats().built - before
    };
    assert_eq!([1, 2, 3, 1, 4].map(built_by), [1, 1, 1, 0, 1]);
    assert_eq!([1, 3, 4, 2].map(built_by), [0, 0, 0, 1], "the plan of two rows went");
}

/// Two layers on images of any size. In addition to the packings of one plan, the cache may hold
/// 1.5 times their weights.
struct AnySize {
    op: CachedOp,
    weights: [NDArray; 2],
}

impl AnySize {
    fn new(isa: Isa, plans: usize) -> AnySize {
        let layer = |name: &str, filters: &str, stride: &str, x: &Symbol| {
            let size = [("num_filter", filters), ("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("stride", stride)];
            apply("Convolution", name, &[&size[..], &[("no_bias", "True")]].concat(), &[x])
        };
        let symbol = layer("d", "64", "(2, 2)", &layer("c", "96", "(1, 1)", &var("x")));
        let options = BuildOptions {
            kernel: KernelOptions { isa, ..KernelOptions::default() },
            cache: CacheLimit { plans, packed: 0, ..CacheLimit::default() },
            ..BuildOptions::default()
        };
        let op = CachedOp::compile(engine(), &symbol, &CachedOpFlags::default(), options).expect("it compiles");
        AnySize { op, weights: [filled(&[96, 32, 3, 3], 0.1), filled(&[64, 96, 3, 3], 0.1)] }
    }

    fn inputs(&self, size: usize) -> [NDArray; 3] {
        let image: Vec<f32> = (0..32 * size * size).map(|i| (i % 23) as f32 / 23.0 - 0.5).collect();
        [array(&[1, 32, size, size], &image), self.weights[0].clone(), self.weights[1].clone()]
    }

    fn call(&self, size: usize) -> Vec<f32> {
        let out = self.op.run(&self.inputs(size).each_ref()).expect("the call is accepted");
        values(&out[0])
    }
}

const IMAGE_SIZES: [usize; 12] = [6, 14, 1, 9, 28, 56, 7, 100, 13, 20, 3, 5];

#[test]
fn the_bits_of_a_size_do_not_depend_on_the_sizes_called_before() {
    for isa in Isa::ALL {
        let alone = IMAGE_SIZES.map(|size| AnySize::new(isa, 1).call(size));
        let mut order: Vec<usize> = (0..IMAGE_SIZES.len()).collect();
        for round in 0..3 {
            let net = AnySize::new(isa, 64);
            for i in order.iter().chain(order.iter().rev()) {
                let size = IMAGE_SIZES[*i];
                assert!(net.call(size) == alone[*i], "{isa}: {size} after others, in the order {order:?}");
            }
            // The next order: every fifth, then every seventh of this one.
            order = (0..order.len()).map(|k| order[k * (5 + 2 * round) % order.len()]).collect();
        }
    }
}

#[test]
fn packings_of_many_sizes_stay_within_their_bound() {
    for isa in Isa::ALL {
        let alone = IMAGE_SIZES.map(|size| {
            let net = AnySize::new(isa, 1);
            net.call(size);
            net.op.stats().constant_bytes
        });
        let net = AnySize::new(isa, 64);
        let raw: usize = net.weights.iter().map(NDArray::nbytes).sum();
        let mut most = 0;
        for (size, bytes) in IMAGE_SIZES.iter().zip(&alone) {
            net.call(*size);
            most = most.max(*bytes);
            let held = net.op.stats().constant_bytes;
            assert!(held <= most + raw + raw / 2 + 8192, "{held} bytes for {raw} of weights, {most} needed");
        }
        assert_eq!(net.weights[0].to_bytes().expect("it has a value").len(), net.weights[0].nbytes(), "still readable");
    }
}

#[test]
fn a_wrong_input_is_named_with_what_fits_before_the_node() {
    let (data, weight) = (var("data"), var("weight"));
    let attrs = [("kernel", "(3, 3)"), ("num_filter", "2"), ("no_bias", "True")];
    let op = compile(&apply("Convolution", "conv", &attrs, &[&data, &weight]), &[]);
    let weight = array(&[2, 3, 3, 3], &[0.0; 54]);
    let message = |x: &NDArray| op.run(&[x, &weight]).err().map(|e| (e.kind, e.message.clone())).expect("an error");
    let (kind, text) = message(&array(&[1, 4, 5, 3], &[0.0; 60]));
    assert_eq!(kind, FailureKind::Shape);
    assert!(
        text.starts_with(
            "input 'data': got (1, 4, 5, 3), wanted (1, 3, 4, 5): the axes are in another order, pass \
             x.transpose((0, 3, 1, 2)). Convolution 'conv': weight has shape (2, 3, 3, 3)"
        ),
        "{text}"
    );
    let (_, text) = message(&array(&[1, 1, 4, 5], &[0.0; 20]));
    assert!(
        text.starts_with("input 'data': got (1, 1, 4, 5), wanted (1, 3, 4, 5): axis 1 must be 3, not 1. "),
        "{text}"
    );
    let double =
        NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(DType::F64, &[1, 3, 4, 5][..]), &[0; 480]);
    let (kind, text) = message(&double.expect("the array is made"));
    assert_eq!(kind, FailureKind::Type);
    assert!(text.starts_with("input 'data': got float64, wanted float32: pass x.astype('float32'). Conv"), "{text}");
    assert!(!text.contains("astype('float64')"), "the model is not to be converted: {text}");
}

#[test]
fn an_error_in_a_very_large_graph_is_not_searched_for_long() {
    let mut out = var("data");
    for i in 0..3000 {
        out = apply("Activation", &format!("relu{i}"), &[("act_type", "relu")], &[&out]);
    }
    let dense = apply("FullyConnected", "dense", &[("num_hidden", "2"), ("no_bias", "True")], &[&out, &var("weight")]);
    let op = compile(&dense, &[]);
    let (x, weight) = (array(&[1, 5], &[0.0; 5]), array(&[2, 4], &[0.0; 8]));
    let error = op.run(&[&x, &weight]).expect_err("the weight does not fit");
    assert_eq!(error.node.as_deref(), Some("dense"));
    assert!(error.message.contains("FullyConnected 'dense': weight has shape (2, 4)"), "{}", error.message);
}
