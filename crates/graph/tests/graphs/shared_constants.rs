//! Folded and packed weights that several compiled symbols share.

use crate::common::Calls as _;
use crate::common::compare::{array_of, conv, inputs, norm, relu, values};
use crate::common::{apply, var};
use mxrt_engine::{Config, Cost, Engine, FailureKind, WaitError};
use mxrt_graph::{BoundOp, BuildOptions, CachedOp, CachedOpFlags, CallOptions, Symbol};
use mxrt_ops::KernelOptions;
use mxrt_tensor::{Launch, NDArray, Shape, launch};

/// An engine whose memory belongs to the test.
fn new_engine() -> &'static Engine {
    Engine::start(Config::default()).expect("the engine starts")
}

/// Two residual blocks and a dense layer.
fn residual_net() -> Symbol {
    let mut x = relu("r0", &norm("n0", &conv("c0", &var("data"), "64", &[])));
    for block in ["a", "b"] {
        let named = |name: &str| format!("{name}_{block}");
        let first = relu(&named("r1"), &norm(&named("n1"), &conv(&named("c1"), &x, "64", &[])));
        let second = norm(&named("n2"), &conv(&named("c2"), &first, "64", &[]));
        x = relu(&named("r2"), &apply("elemwise_add", &named("add"), &[], &[&x, &second]));
    }
    apply("FullyConnected", "dense", &[("num_hidden", "100")], &[&x])
}

/// Arrays on this engine with the values of these.
fn copies(engine: &'static Engine, arrays: &[NDArray]) -> Vec<NDArray> {
    arrays.iter().map(|a| array_of(engine, a.shape(), values(a).into_iter())).collect()
}

fn compile(engine: &'static Engine, symbol: &Symbol) -> CachedOp {
    CachedOp::new(engine, symbol, &CachedOpFlags::default()).expect("the symbol compiles")
}

fn call(op: &CachedOp, inputs: &[NDArray]) -> Vec<u32> {
    let out = op.run(&inputs.iter().collect::<Vec<_>>()).expect("the call is accepted");
    values(&out[0]).iter().map(|v| v.to_bits()).collect()
}

fn in_use(engine: &'static Engine) -> usize {
    engine.wait_all().expect("nothing failed");
    engine.memory().stats().in_use
}

fn overwrite(array: &NDArray, value: f32) {
    let spec = Launch { name: "overwrite".into(), inputs: &[], outputs: &[array], cost: Cost::Small };
    launch(array.engine(), spec, move |_, _, out| {
        out[0].as_mut_slice::<f32>()?.fill(value);
        Ok(())
    });
}

#[test]
fn five_ops_over_the_same_parameters_hold_the_weights_of_one_and_have_its_bits() {
    let (engine, symbol) = (new_engine(), residual_net());
    let given = inputs(&symbol, &[1, 16, 12, 12]);
    let arrays = copies(engine, &given);
    let parameters = in_use(engine);
    let first = compile(engine, &symbol);
    let alone = call(&first, &arrays);
    let of_one = in_use(engine);
    let others: Vec<CachedOp> = (0..4).map(|_| compile(engine, &symbol)).collect();
    for op in &others {
        assert!(call(op, &arrays) == alone);
    }
    let of_five = in_use(engine);
    assert!(of_five * 10 <= of_one * 13, "one op: {of_one} bytes, five ops: {of_five}");
    assert!(first.stats().constant_bytes * 2 > of_one, "{:?} are most of {of_one}", first.stats());
    // Other arrays with these values share nothing, and have these bits.
    let own = copies(engine, &arrays);
    assert!(call(&compile(engine, &symbol), &own) == alone);
    // The last op may go: released weights are restored from what they shared.
    drop((first, others, own));
    for (array, given) in arrays.iter().zip(&given) {
        assert!(array.to_bytes().ok() == given.to_bytes().ok());
    }
    let left = in_use(engine);
    assert!(left <= parameters + (64 << 10), "{left} bytes in use, {parameters} before the first op");
}

#[test]
fn first_calls_at_once_share_as_well() {
    let (engine, symbol) = (new_engine(), residual_net());
    let arrays = copies(engine, &inputs(&symbol, &[1, 16, 12, 12]));
    let ops: Vec<CachedOp> = (0..6).map(|_| compile(engine, &symbol)).collect();
    let results: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = ops.iter().map(|op| scope.spawn(|| call(op, &arrays))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(results.iter().all(|bits| *bits == results[0]));
    let of_six = in_use(engine);
    let (held, all) = (ops[0].stats().constant_bytes, arrays.iter().map(NDArray::nbytes).sum::<usize>());
    assert!(of_six < all + 2 * held, "{of_six} bytes in use; parameters {all}, packed {held}");
}

#[test]
fn a_changed_parameter_is_packed_anew_for_each_op_and_old_weights_go_at_once() {
    let (engine, symbol) = (new_engine(), residual_net());
    let arrays = copies(engine, &inputs(&symbol, &[1, 16, 12, 12]));
    let (busy, idle) = (compile(engine, &symbol), compile(engine, &symbol));
    let before = call(&busy, &arrays);
    assert!(call(&idle, &arrays) == before);
    let held = in_use(engine);
    for value in [0.01, 0.02, 0.03] {
        for weight in arrays.iter().filter(|a| a.shape().len() == 4 && a.shape()[0] == 64) {
            overwrite(weight, value);
        }
        let now = call(&busy, &arrays);
        assert!(now != before);
        let more = in_use(engine);
        // The raw weights are back; the old packings, which the idle op has too, are not kept.
        let raw: usize = arrays.iter().map(NDArray::nbytes).sum();
        assert!(more <= held + raw + (64 << 10), "{held} bytes, then {more}, {raw} of them parameters");
    }
    assert!(call(&idle, &arrays) == call(&compile(engine, &symbol), &copies(engine, &arrays)), "the idle op repacks");
}

#[test]
fn views_of_one_array_with_other_shapes_are_packed_apart() {
    let engine = new_engine();
    let dense = apply("FullyConnected", "dense", &[("num_hidden", "6"), ("no_bias", "True")], &[&var("data")]);
    let turned = apply("FullyConnected", "turned", &[("num_hidden", "4"), ("no_bias", "True")], &[&var("data")]);
    let weight = array_of(engine, &Shape::new(&[6, 4]), (0..24).map(|i| i as f32));
    let view = weight.view(0, Shape::new(&[4, 6])).expect("it fits");
    let ones = |n: usize| array_of(engine, &Shape::new(&[1, n]), (0..n).map(|_| 1.0));
    let sums = |bits: Vec<u32>| bits.into_iter().map(f32::from_bits).collect::<Vec<_>>();
    let rows = |n: usize| (0..24 / n).map(|r| (r * n..(r + 1) * n).sum::<usize>() as f32).collect::<Vec<_>>();
    assert_eq!(sums(call(&compile(engine, &dense), &[ones(4), weight])), rows(4));
    assert_eq!(sums(call(&compile(engine, &turned), &[ones(6), view])), rows(6));
}

#[test]
fn ops_with_other_methods_do_not_meet() {
    let (engine, symbol) = (new_engine(), residual_net());
    let arrays = copies(engine, &inputs(&symbol, &[1, 16, 12, 12]));
    let exact = || {
        let kernel = KernelOptions { winograd: 0, ..KernelOptions::default() };
        let options = BuildOptions { kernel, ..BuildOptions::default() };
        CachedOp::compile(engine, &symbol, &CachedOpFlags::default(), options).expect("the symbol compiles")
    };
    let alone = call(&exact(), &copies(engine, &arrays));
    let fast = call(&compile(engine, &symbol), &arrays);
    assert!(call(&exact(), &arrays) == alone, "as if no other op had packed before");
    assert!(call(&compile(engine, &symbol), &arrays) == fast);
}

#[test]
fn a_packing_that_does_not_fit_fails_every_call_until_there_is_memory() {
    let (engine, symbol) = (new_engine(), residual_net());
    let arrays = copies(engine, &inputs(&symbol, &[1, 16, 12, 12]));
    let refs: Vec<&NDArray> = arrays.iter().collect();
    let ops: Vec<CachedOp> = (0..2).map(|_| compile(engine, &symbol)).collect();
    engine.memory().set_limit(Some(in_use(engine) + (8 << 10)));
    for op in ops.iter().chain(&ops) {
        let out = op.run(&refs).expect("the call is accepted");
        match out[0].wait_to_read() {
            Err(WaitError::Failed(failure)) => assert_eq!(failure.kind(), FailureKind::Memory, "{failure}"),
            other => panic!("{other:?}"),
        }
    }
    let _ = engine.wait_all();
    engine.memory().set_limit(None);
    assert!(call(&ops[0], &arrays) == call(&ops[1], &arrays));
}

#[test]
fn long_and_branching_expressions_of_constants_take_no_stack_and_linear_time() {
    let engine = new_engine();
    let (mut long, mut wide) = (var("w"), var("w"));
    for i in 0..20_000 {
        long = apply("negative", &format!("l{i}"), &[], &[&long]);
    }
    for i in 0..60 {
        // Spelt out, this expression has 2 to the power of 60 terms.
        let mean = apply("elemwise_add", &format!("s{i}"), &[], &[&wide, &wide]);
        wide = apply("_mul_scalar", &format!("h{i}"), &[("scalar", "0.5")], &[&mean]);
    }
    let weight = array_of(engine, &Shape::new(&[2]), [1.5, -2.0].into_iter());
    let data = array_of(engine, &Shape::new(&[2]), [1.0, 1.0].into_iter());
    let flags = CachedOpFlags::parse([("data_indices", "(0,)"), ("param_indices", "(1,)")]).expect("they parse");
    for constant in [long, wide] {
        let symbol = apply("elemwise_add", "sum", &[], &[&var("data"), &constant]);
        let op = CachedOp::new(engine, &symbol, &flags).expect("the symbol compiles");
        let out = op.run(&[&data, &weight]).expect("the call is accepted");
        assert_eq!(values(&out[0]), [2.5, -1.0]);
    }
}

/// Bytes in use after a call of a model that is bound to a weight of 256 x 256.
fn in_use_with_bound_weight(engine: &'static Engine, symbol: &Symbol) -> usize {
    let flags = CachedOpFlags::parse([("data_indices", "(0,)"), ("param_indices", "(1,)")]).expect("they parse");
    let op = CachedOp::new(engine, symbol, &flags).expect("the symbol compiles");
    let before = in_use(engine);
    let weight = array_of(engine, &Shape::new(&[256, 256]), (0..256 * 256).map(|i| (i % 251) as f32 / 64.0));
    let bound = BoundOp::new(op.into(), &[None, Some(&weight)]).expect("it binds");
    let x = array_of(engine, &Shape::new(&[1, 256]), (0..256).map(|i| i as f32 / 16.0));
    // A second call would restore what the first one released.
    bound.run_with(&[&x], None, &CallOptions::default()).expect("the call is accepted");
    in_use(engine) - before
}

#[test]
fn raw_weights_stay_while_a_step_reads_them_beside_their_packing() {
    let (data, weight) = (var("data"), var("weight"));
    let attrs = [("num_hidden", "256"), ("no_bias", "True")];
    let dense = apply("FullyConnected", "dense", &attrs, &[&data, &weight]);
    let product = apply("broadcast_mul", "product", &[], &[&data, &weight]);
    let raw = 256 * 256 * size_of::<f32>();
    let alone = in_use_with_bound_weight(new_engine(), &dense);
    assert!((raw..raw + raw / 2).contains(&alone), "the packing alone: {alone} bytes, {raw} of a weight");
    let both = in_use_with_bound_weight(new_engine(), &Symbol::group(&[dense, product]));
    assert!(both >= 2 * raw, "the packing and what a step reads: {both} bytes, {raw} of a weight");
}
