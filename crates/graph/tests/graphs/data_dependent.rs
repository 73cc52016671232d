//! Graphs with boolean masks: shapes that are known when a part of the graph has run.

use crate::common::Calls as _;
use mxrt_engine::{Access, Config, Engine, FailureKind, OpError, OpSpec};
use mxrt_graph::{BuildOptions, CacheLimit, CachedOp, CachedOpFlags, CallOptions, Interrupter, Symbol};
use mxrt_ops::registry;
use mxrt_tensor::{Context, DType, NDArray, ResultArray, TensorType};
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
    let tensor = TensorType::new(DType::F32, shape);
    NDArray::from_bytes(engine(), Context::cpu(0), tensor, bytemuck::cast_slice(values)).expect("the array is made")
}

fn values(array: &NDArray) -> Vec<f32> {
    let bytes = array.to_bytes().expect("the array has a value");
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// The results of a call whose shapes follow from contents.
fn deferred(op: &CachedOp, inputs: &[&NDArray]) -> Vec<ResultArray> {
    let started = op.call(inputs, None, &CallOptions::default(), &mut Interrupter::never());
    started.expect("it is accepted").into_iter().collect()
}

fn compile(symbol: &Symbol, flags: &[(&str, &str)]) -> CachedOp {
    let flags = CachedOpFlags::parse(flags.iter().copied()).expect("the flags parse");
    CachedOp::new(engine(), symbol, &flags).expect("the symbol compiles")
}

/// The rows of relu(x) that a mask picks, times transposed weights: inputs x, mask, w.
fn masked_layer() -> Symbol {
    let (x, mask, w) = (var("x"), var("mask"), var("w"));
    let relu = apply("Activation", "relu", &[("act_type", "relu")], &[&x]);
    let rows = apply("_contrib_boolean_mask", "rows", &[], &[&relu, &mask]);
    let turned = apply("transpose", "turned", &[], &[&w]);
    let options = [("num_hidden", "2"), ("no_bias", "True")];
    apply("FullyConnected", "fc", &options, &[&rows, &turned])
}

const X: [f32; 6] = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0];

#[test]
fn a_mask_in_the_middle_gives_results_of_every_size() {
    let op = compile(&masked_layer(), &[("param_indices", "[2]"), ("data_indices", "[0, 1]")]);
    assert!(op.is_data_dependent() && op.num_outputs() == 1);
    // Transposed: the layer computes (a + 10 b, 2 a).
    let (x, w) = (array(&[3, 2], &X), array(&[2, 2], &[1.0, 2.0, 10.0, 0.0]));
    let run = |mask: [f32; 3]| {
        let results = deferred(&op, &[&x, &array(&[3], &mask), &w]);
        let made = results[0].wait(None).expect("it runs").clone();
        (made.shape().to_vec(), values(&made))
    };
    assert_eq!(run([1.0, 0.0, 1.0]), (vec![2, 2], vec![1.0, 2.0, 60.0, 0.0]));
    assert_eq!(run([0.0, 7.0, 0.0]), (vec![1, 2], vec![43.0, 6.0]));
    assert_eq!(run([1.0, 1.0, 1.0]), (vec![3, 2], vec![1.0, 2.0, 43.0, 6.0, 60.0, 0.0]));
    assert_eq!(run([0.0, 0.0, 0.0]), (vec![0, 2], vec![]));
    let built = op.stats().built;
    assert_eq!(run([0.0, 1.0, 1.0]), (vec![2, 2], vec![43.0, 6.0, 60.0, 0.0]));
    assert_eq!(op.stats().built, built, "two rows came before");
    // The call that returns plain arrays waits for them.
    let plain = op.run(&[&x, &array(&[3], &[0.0, 0.0, 1.0]), &w]).expect("it is accepted");
    assert_eq!((plain[0].shape().to_vec(), values(&plain[0])), (vec![1, 2], vec![60.0, 0.0]));
    let text = op.plan_text(&[x.tensor_type(), TensorType::new(DType::F32, &[3][..]), w.tensor_type()]);
    assert!(text.expect("there is a plan").contains("more segments are planned"));
}

#[test]
fn the_call_returns_before_the_mask_is_there() {
    let op = compile(&masked_layer(), &[]);
    let (x, mask, w) = (array(&[3, 2], &X), array(&[3], &[1.0, 0.0, 0.0]), array(&[2, 2], &[1.0, 2.0, 10.0, 0.0]));
    let (open, wait) = std::sync::mpsc::channel::<()>();
    engine().push(OpSpec::new("slow", &[(mask.var(), Access::Update)]), move |_| {
        wait.recv().expect("the test says when");
        Ok(())
    });
    let results = deferred(&op, &[&x, &mask, &w]);
    assert!(results[0].get().is_none(), "the mask is still being computed");
    open.send(()).expect("the op waits");
    assert_eq!(results[0].wait(None).expect("it runs").shape().to_vec(), [1, 2]);
}

fn fail(array: &NDArray, message: &'static str) {
    engine().push(OpSpec::new("fails", &[(array.var(), Access::Write)]), move |_| {
        Err(OpError::new(FailureKind::Value, message))
    });
}

#[test]
fn failures_reach_the_shape_and_another_branch_goes_on() {
    let (x, a, b) = (var("x"), var("a"), var("b"));
    let one = apply("_contrib_boolean_mask", "one", &[], &[&x, &a]);
    let two = apply("_contrib_boolean_mask", "two", &[], &[&x, &b]);
    let plus = |s: &Symbol, name| apply("_plus_scalar", name, &[("scalar", "1")], &[s]);
    let joined = apply("Concat", "joined", &[("num_args", "2"), ("dim", "0")], &[&one, &two]);
    let op = compile(&Symbol::group(&[plus(&one, "p1"), plus(&two, "p2"), joined, plus(&x, "p3")]), &[]);
    let (x, a, b) = (array(&[3, 1], &[1.0, 2.0, 3.0]), array(&[3], &[0.0; 3]), array(&[3], &[0.0, 1.0, 1.0]));
    fail(&a, "no mask came");
    let results = deferred(&op, &[&x, &a, &b]);
    let message = |i: usize| results[i].wait(None).expect_err("it fails").to_string();
    assert_eq!((message(0), message(2)), ("no mask came".to_owned(), "no mask came".to_owned()));
    let made = results[1].wait(None).expect("it depends on the other mask");
    assert_eq!((made.shape().to_vec(), values(made)), (vec![2, 1], vec![3.0, 4.0]));
    assert_eq!(values(results[3].wait(None).expect("it depends on no mask")), [2.0, 3.0, 4.0]);
}

#[test]
fn wrong_shapes_are_errors_of_the_call_and_those_of_contents_failures() {
    let op = compile(&masked_layer(), &[]);
    let (x, w) = (array(&[3, 2], &X), array(&[2, 2], &[0.0; 4]));
    let error = op.run(&[&x, &array(&[4], &[0.0; 4]), &w]).expect_err("the mask is too long");
    assert_eq!((error.kind, error.node.as_deref()), (FailureKind::Shape, Some("rows")));
    // Two rows fit, whatever the mask is three do not.
    let (x, mask) = (var("x"), var("mask"));
    let rows = apply("_contrib_boolean_mask", "rows", &[], &[&x, &mask]);
    let op = compile(&apply("Reshape", "pair", &[("shape", "(2, 2)")], &[&rows]), &[]);
    let x = array(&[3, 2], &X);
    assert_eq!(values(&op.run(&[&x, &array(&[3], &[1.0, 1.0, 0.0])]).expect("it fits")[0]), [1.0, -2.0, 3.0, 4.0]);
    let error = op.run(&[&x, &array(&[3], &[1.0, 1.0, 1.0])]).expect_err("it does not fit");
    assert_eq!((error.kind, error.node.as_deref()), (FailureKind::Shape, Some("pair")));
}

#[test]
fn masks_of_masks_and_results_in_arrays_of_the_caller() {
    let (x, a, b) = (var("x"), var("a"), var("b"));
    let one = apply("_contrib_boolean_mask", "one", &[], &[&x, &a]);
    let flags = apply("_contrib_boolean_mask", "flags", &[], &[&b, &a]);
    let two = apply("_contrib_boolean_mask", "two", &[], &[&one, &flags]);
    let op = compile(&Symbol::group(&[two.clone(), two, one]), &[]);
    let (x, a) = (array(&[3, 1], &[1.0, 2.0, 3.0]), array(&[3], &[1.0, 0.0, 1.0]));
    let b = array(&[3], &[0.0, 1.0, 1.0]);
    let made = op.run(&[&x, &a, &b]).expect("it is accepted");
    assert_eq!(made.iter().map(values).collect::<Vec<_>>(), [vec![3.0], vec![3.0], vec![1.0, 3.0]]);
    let out = [array(&[1, 1], &[0.0]), array(&[1, 1], &[0.0]), array(&[2, 1], &[0.0; 2])];
    op.run_into(&[&x, &a, &b], &out.each_ref()).expect("they fit");
    assert_eq!(out.each_ref().map(values).concat(), [3.0, 3.0, 1.0, 3.0]);
    let error = op.run_into(&[&x, &b, &b], &out.each_ref()).expect_err("two rows come out of both");
    assert_eq!(error.kind, FailureKind::Shape);
}

#[test]
fn many_threads_and_many_sizes_stay_within_the_cache() {
    let flags = CachedOpFlags::parse([("param_indices", "[2]"), ("data_indices", "[0, 1]")]).expect("they parse");
    let limit = CacheLimit { plans: 4, ..CacheLimit::default() };
    let options = BuildOptions { cache: limit, ..BuildOptions::default() };
    let op = CachedOp::compile(engine(), &masked_layer(), &flags, options).expect("it compiles");
    let w = array(&[2, 2], &[1.0, 2.0, 10.0, 0.0]);
    let x: Vec<f32> = (0..40).map(|i| i as f32).collect();
    let x = array(&[20, 2], &x);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (op, x, w) = (&op, &x, &w);
            scope.spawn(move || {
                for round in 0..40 {
                    let rows = (thread * 7 + round) % 21;
                    let mask: Vec<f32> = (0..20).map(|i| f32::from(i < rows)).collect();
                    let made = op.run(&[x, &array(&[20], &mask), w]).expect("it is accepted");
                    let want: Vec<f32> =
                        (0..rows).flat_map(|r| [(2 * r + 10 * (2 * r + 1)) as f32, (4 * r) as f32]).collect();
                    assert_eq!((made[0].shape().to_vec(), values(&made[0])), (vec![rows, 2], want));
                }
            });
        }
    });
    assert!(op.stats().plans <= 8, "{:?}", op.stats());
    assert!(op.stats().evicted > 0, "{:?}", op.stats());
}

/// A loop that runs a graph of `row` and `mask` for each row.
fn each(body: Symbol) -> Symbol {
    let place = |name: &str| body.list_inputs().iter().position(|input| input == name).expect("it is an input");
    let (row, mask) = (format!("[{}]", place("row")), format!("[{}]", place("mask")));
    let attrs = [
        ("num_args", "3"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
        ("in_data_locs", &row),
        ("in_state_locs", "[]"),
        ("remain_locs", &mask),
    ];
    let attrs: BTreeMap<String, String> = attrs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let op = registry().get("_foreach").expect("it is registered");
    let inputs = vec![(None, var("data")), (None, var("mask"))];
    Symbol::create_with_subgraphs(op, "each".to_owned(), attrs, inputs, vec![body]).expect("it composes")
}

#[test]
fn a_mask_in_a_loop_picks_elements_of_each_row() {
    let picked = apply("_contrib_boolean_mask", "inner", &[], &[&var("row"), &var("mask")]);
    let op = compile(&each(apply("_mul_scalar", "twice", &[("scalar", "2")], &[&picked])), &[]);
    let run = |data: &NDArray, mask: &[f32]| {
        let made = deferred(&op, &[data, &array(&[mask.len()], mask)]);
        made[0].wait(None).map(|made| (made.shape().to_vec(), values(made)))
    };
    let data = array(&[2, 3], &X);
    let found = run(&data, &[1.0, 0.0, 1.0]).expect("it runs");
    assert_eq!(found, (vec![2, 2], vec![2.0, 6.0, 8.0, 12.0]));
    assert_eq!(run(&data, &[0.0; 3]).expect("it runs").0, [2, 0]);
    let error = run(&array(&[0, 3], &[]), &[1.0; 3]).expect_err("there is no row to tell the shape");
    assert!(error.to_string().contains("ran no iteration"), "{error}");
}

#[test]
fn rows_of_different_shapes_cannot_be_stacked() {
    let (row, mask) = (var("row"), var("mask"));
    let op = compile(&each(apply("_contrib_boolean_mask", "inner", &[], &[&mask, &row])), &[]);
    let (data, mask) = (array(&[2, 3], &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), array(&[3], &[7.0, 8.0, 9.0]));
    let results = deferred(&op, &[&data, &mask]);
    let error = results[0].wait(None).expect_err("one row has one element, the other two").to_string();
    assert!(error.contains("iteration 1 makes a row of") && error.contains("_foreach 'each'"), "{error}");
}

#[test]
fn a_graph_may_have_any_number_of_masks() {
    let mask = var("mask");
    let mut rows = var("x");
    for i in 0..200 {
        rows = apply("_contrib_boolean_mask", &format!("pick{i}"), &[], &[&rows, &mask]);
        rows = apply("_plus_scalar", &format!("more{i}"), &[("scalar", "1")], &[&rows]);
    }
    let op = compile(&rows, &[]);
    let results = deferred(&op, &[&array(&[3, 1], &[1.0, 2.0, 3.0]), &array(&[3], &[1.0; 3])]);
    assert_eq!(values(results[0].wait(None).expect("it runs")), [201.0, 202.0, 203.0]);
}
