//! Batches that are run in parts, and what stays together.

use crate::calls::{apply, array, compile, failure, occupy, slow_inputs, slow_net, spoil, start, values, var};
use crate::common::Calls as _;
use mxrt_engine::EngineKind;
use mxrt_graph::{CachedOp, CachedOpFlags, CallOptions, Symbol};
use mxrt_tensor::TensorType;
use std::sync::mpsc;

/// A network whose rows do not see each other.
fn rows_apart() -> Symbol {
    let conv = apply("Activation", "relu", &[("act_type", "relu")], &[&slow_net()]);
    let pooled = apply("Pooling", "pool", &[("global_pool", "True"), ("pool_type", "avg")], &[&conv]);
    let flat = apply("Flatten", "flat", &[], &[&pooled]);
    apply("softmax", "softmax", &[], &[&flat])
}

#[test]
fn rows_of_a_large_batch_have_the_bits_of_single_calls_whoever_helps_and_whatever_the_load() {
    for (kind, cores) in
        [(EngineKind::Naive, 1), (EngineKind::ThreadedPerDevice, 1), (EngineKind::ThreadedPerDevice, 3)]
    {
        let engine = start(kind, cores);
        let op = compile(engine, &rows_apart());
        let (x, w) = slow_inputs(engine, 7);
        let text = op.plan_text(&[x.tensor_type(), w.tensor_type()]).expect("there is a plan");
        assert!(text.starts_with("7 rows in parts of 1"), "{text}");
        let size = x.shape().size() / 7;
        let mut single = Vec::new();
        for row in 0..7 {
            let one = x.view(row * size, [1, 32, 56, 56].as_slice().into()).expect("it fits");
            single.extend(values(&op.run(&[&one, &w]).expect("the call is accepted")[0]));
        }
        for callers in [1, 2, 8] {
            std::thread::scope(|scope| {
                for caller in 0..callers {
                    let (op, x, w, single) = (&op, &x, &w, &single);
                    scope.spawn(move || {
                        for round in 0..3 {
                            let priority = (caller + round) % 3;
                            let options = CallOptions { priority, ..CallOptions::default() };
                            let out = op.run_with(&[x, w], None, &options).expect("the call is accepted");
                            assert_eq!(values(&out[0]), *single, "{callers} callers on {kind}, {cores} cores");
                        }
                    });
                }
            });
        }
        assert_eq!(op.stats().plans, 2, "the batch uses the plan of one row");
    }
}

#[test]
fn rows_that_depend_on_each_other_stay_together() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (x, w) = slow_inputs(engine, 3);
    let types = [x.tensor_type(), w.tensor_type()];
    let sum = |attrs: &[(&str, &str)]| apply("sum", "sum", attrs, &[&rows_apart()]);
    let transposed = apply("transpose", "t", &[("axes", "(1, 0)")], &[&rows_apart()]);
    let shifted = apply("broadcast_add", "b", &[], &[&rows_apart(), &var("shift")]);
    let together =
        [sum(&[("axis", "0")]), sum(&[]), transposed, apply("softmax", "s", &[("axis", "0")], &[&rows_apart()])];
    for symbol in &together {
        let text = compile(engine, symbol).plan_text(&types).expect("there is a plan");
        assert!(text.starts_with("plan for"), "{text}");
    }
    let text = compile(engine, &sum(&[("axis", "1")])).plan_text(&types).expect("there is a plan");
    assert!(text.starts_with("3 rows"), "{text}");
    // A second operand with as many rows that is no data has to be cut too, which no flag says: it
    // stays together.
    let flags = CachedOpFlags::parse([("data_indices", "(0,)"), ("param_indices", "(1, 2)")]).expect("they parse");
    let op = CachedOp::new(engine, &shifted, &flags).expect("the symbol compiles");
    let with =
        |rows: usize| [types[0].clone(), types[1].clone(), TensorType::new(types[0].dtype, [rows, 256].as_slice())];
    assert!(op.plan_text(&with(3)).expect("there is a plan").starts_with("plan for"));
    assert!(op.plan_text(&with(1)).expect("there is a plan").starts_with("3 rows"));
}

#[test]
fn single_calls_are_served_between_the_parts_of_a_batch() {
    let engine = start(EngineKind::ThreadedPerDevice, 1);
    let op = compile(engine, &rows_apart());
    let ((batch, w), (one, _)) = (slow_inputs(engine, 64), slow_inputs(engine, 1));
    values(&op.run(&[&one, &w]).expect("the call is accepted")[0]);
    let busy = occupy(engine);
    let long = op.run(&[&batch, &w]).expect("the call is accepted");
    let short = op.run(&[&one, &w]).expect("the call is accepted");
    let (tell, told) = mpsc::channel();
    let waiting = long[0].var().clone();
    engine.on_ready(short[0].var(), move |_| {
        let _ = tell.send(engine.is_ready(&waiting));
    });
    drop(busy);
    assert!(!told.recv().expect("the short call is answered"), "the batch was computed first");
    assert_eq!(values(&long[0])[..256], values(&short[0])[..]);
}

#[test]
fn large_batches_of_small_rows_are_divided_and_keep_their_bits() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let conv = apply(
        "Convolution",
        "conv",
        &[("kernel", "(3, 3)"), ("num_filter", "16"), ("no_bias", "True")],
        &[&var("x"), &var("w")],
    );
    let symbol = apply("Pooling", "pool", &[("global_pool", "True"), ("pool_type", "avg")], &[&conv]);
    let op = compile(engine, &symbol);
    let w: Vec<f32> = (0..16 * 3 * 9).map(|i| (i % 7) as f32 - 3.0).collect();
    let w = array(engine, &[16, 3, 3, 3], &w);
    let types = |rows: usize, side: usize| {
        [TensorType::new(w.tensor_type().dtype, [rows, 3, side, side].as_slice()), w.tensor_type()]
    };
    // Rows that take some microseconds, and rows so small that what a plan costs is more.
    for (side, rows) in [(64, 203), (16, 14_001)] {
        let size = 3 * side * side;
        let pixels: Vec<f32> = (0..rows * size).map(|i| (i % 1013) as f32 / 1013.0).collect();
        let batch = array(engine, &[rows, 3, side, side], &pixels);
        let text = op.plan_text(&types(rows, side)).expect("there is a plan");
        assert!(text.starts_with(&format!("{rows} rows in parts of ")), "{text}");
        let all = values(&op.run(&[&batch, &w]).expect("the call is accepted")[0]);
        for row in [0, 1, rows / 2, rows - 1] {
            let one = array(engine, &[1, 3, side, side], &pixels[row * size..(row + 1) * size]);
            let single = values(&op.run(&[&one, &w]).expect("the call is accepted")[0]);
            assert_eq!(all[row * 16..(row + 1) * 16], single[..], "row {row} of {rows}");
        }
        let text = op.plan_text(&types(8, side)).expect("there is a plan");
        assert!(text.starts_with("plan for"), "a few small rows stay together: {text}");
    }
}

#[test]
fn requests_that_wait_hold_no_arena() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let op = compile(engine, &rows_apart());
    let (x, w) = slow_inputs(engine, 1);
    let before = engine.memory().stats().in_use;
    values(&op.run(&[&x, &w]).expect("the call is accepted")[0]);
    // Packed weights stay, the rest is what one request needs.
    let alone = engine.memory().stats().peak - before;
    let busy = occupy(engine);
    let queued: Vec<_> = (0..200).map(|_| op.run(&[&x, &w]).expect("the call is accepted")).collect();
    drop(busy);
    engine.wait_all().expect("nothing failed");
    let results: usize = queued.iter().map(|out| out[0].nbytes()).sum();
    let together = engine.memory().stats().peak - before;
    assert!(together <= 2 * alone + results, "{together} bytes for 200 requests on two cores, {alone} for one");
}

#[test]
fn a_batch_with_a_failed_parameter_fails_and_the_next_one_does_not() {
    let engine = start(EngineKind::ThreadedPerDevice, 2);
    let (x, w) = slow_inputs(engine, 4);
    let bad = array(engine, &[256, 32, 3, 3], &[0.0; 256 * 32 * 9]);
    spoil(engine, &bad);
    let op = compile(engine, &rows_apart());
    let out = op.run(&[&x, &bad]).expect("the call is accepted");
    assert_eq!(failure(&out[0]).1, "spoilt on purpose");
    let out = op.run(&[&x, &w]).expect("the call is accepted");
    out[0].wait_to_read().expect("the next call is not harmed");
    engine.wait_all().expect("everything was observed");
}
