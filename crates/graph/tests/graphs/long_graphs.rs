//! Plans of long graphs, in threads with little stack, and builds that are interrupted.

use crate::common::Calls as _;
use crate::common::compare::{array_of, engine, values};
use crate::common::{apply, attrs as attrs_of, op, var};
use mxrt_engine::FailureKind;
use mxrt_graph::{BoundOp, CachedOp, CachedOpFlags, CallOptions, Interrupter, LoadOptions, Symbol};
use mxrt_tensor::{NDArray, Shape};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A chain of layers that change nothing but the sign, and of dense ones that change nothing.
fn chain(length: usize) -> Symbol {
    let mut x = var("data");
    for i in 0..length {
        let name = format!("n{i}");
        x = match i % 4 {
            0 => apply("FullyConnected", &name, &[("num_hidden", "2"), ("no_bias", "True")], &[&x, &var("w")]),
            1 => apply("negative", &name, &[], &[&x]),
            2 => apply("elemwise_add", &name, &[], &[&x, &x]),
            _ => apply("_mul_scalar", &name, &[("scalar", "0.5")], &[&x]),
        };
    }
    x
}

/// One `w` for all layers.
fn with_one_weight(symbol: &Symbol) -> (Symbol, Vec<NDArray>) {
    let unit = array_of(engine(), &Shape::new(&[2, 2]), [1.0, 0.0, 0.0, 1.0].into_iter());
    let data = array_of(engine(), &Shape::new(&[1, 2]), [3.0, -5.0].into_iter());
    let inputs = symbol.list_inputs();
    (symbol.clone(), inputs.iter().map(|name| if name == "data" { data.clone() } else { unit.clone() }).collect())
}

fn bound(symbol: &Symbol) -> BoundOp {
    let op = CachedOp::new(engine(), symbol, &CachedOpFlags::default()).expect("the symbol compiles");
    BoundOp::unbound(Arc::new(op))
}

#[test]
fn twenty_thousand_layers_compute() {
    let (symbol, inputs) = with_one_weight(&chain(20_000));
    let out = bound(&symbol).run_with(&inputs.iter().collect::<Vec<_>>(), None, &CallOptions::default());
    let out = out.expect("the call is accepted");
    assert_eq!(values(&out[0]), [3.0, -5.0], "5,000 changes of the sign");
}

#[test]
fn building_asks_now_and_then_and_gives_up_when_it_is_told_to() {
    let (symbol, inputs) = with_one_weight(&chain(40_000));
    let (op, data) = (bound(&symbol), inputs.iter().collect::<Vec<_>>());
    let asked = AtomicUsize::new(0);
    let mut stop = || asked.fetch_add(1, Ordering::Relaxed) < 1;
    let error = op
        .run_unless(&data, None, &CallOptions::default(), &mut Interrupter::by(&mut stop))
        .expect_err("it is given up");
    assert_eq!((error.kind, asked.load(Ordering::Relaxed)), (FailureKind::Cancelled, 2));
    assert_eq!(op.op().stats().built, 0);
    let out = op.run_with(&data, None, &CallOptions::default()).expect("the next call builds it");
    assert_eq!(values(&out[0]), [3.0, -5.0]);
    // With a plan nothing is asked.
    let mut never = || panic!("there is nothing to give up");
    op.run_unless(&data, None, &CallOptions::default(), &mut Interrupter::by(&mut never)).expect("it has a plan");
}

#[test]
fn the_hook_may_call_the_op_that_is_being_built() {
    let (symbol, inputs) = with_one_weight(&chain(40_000));
    let (op, data) = (bound(&symbol), inputs.iter().collect::<Vec<_>>());
    let mut inner = Vec::new();
    let mut hook = || {
        if inner.is_empty() {
            let out = op.run_with(&data, None, &CallOptions::default()).expect("the call is accepted");
            inner = values(&out[0]);
        }
        true
    };
    let out = op.run_unless(&data, None, &CallOptions::default(), &mut Interrupter::by(&mut hook));
    assert_eq!(values(&out.expect("the call is accepted")[0]), [3.0, -5.0]);
    assert_eq!(inner, [3.0, -5.0]);
}

/// `length` sines of `x`.
fn sines(x: &Symbol, length: usize) -> Symbol {
    (0..length).fold(x.clone(), |x, i| apply("sin", &format!("s{i}"), &[], &[&x]))
}

/// A loop over the rows of `data`; the body reads `captured` and has `length` sines.
fn loop_over(captured: &Symbol, length: usize) -> Symbol {
    let sum = apply("elemwise_add", "sum", &[], &[&var("row"), &var("c")]);
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[]"),
        ("remain_locs", "[1]"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
    ];
    let inputs = vec![(None, var("data")), (None, captured.clone())];
    let body = vec![sines(&sum, length)];
    Symbol::create_with_subgraphs(op("_foreach"), "loop".to_owned(), attrs_of(&attrs), inputs, body)
        .unwrap_or_else(|e| panic!("{}", e.message))
}

/// Runs in a thread whose stack a recursion of a few thousand calls would overflow.
fn with_little_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).expect("a thread").join().expect("it returns");
}

fn sine_of(x: f64, times: usize) -> f32 {
    (0..times).fold(x, |x, _| x.sin()) as f32
}

#[test]
fn chains_of_any_kind_need_no_stack() {
    const LENGTH: usize = 20_000;
    let one = || apply("_ones", "one", &[("shape", "(2,)")], &[]);
    let add = |x: &Symbol| apply("elemwise_add", "last", &[], &[x, &var("data")]);
    type Make = Box<dyn FnOnce() -> Symbol + Send>;
    let cases: [(&str, Make, f32); 4] = [
        ("plain", Box::new(|| sines(&var("data"), LENGTH)), sine_of(0.0, 0)),
        ("constant", Box::new(move || add(&sines(&one(), LENGTH))), sine_of(1.0, LENGTH)),
        ("captured by a loop", Box::new(move || loop_over(&sines(&one(), LENGTH), 0)), sine_of(1.0, LENGTH)),
        ("inside a loop", Box::new(move || loop_over(&one(), LENGTH)), sine_of(1.0, LENGTH)),
    ];
    for (name, make, want) in cases {
        with_little_stack(move || {
            // As a file says it: reading, compiling, running and dropping.
            let symbol = Symbol::load_json(&make().to_json()).expect("it can be read again").symbol;
            let rows = array_of(
                engine(),
                &Shape::new(if name.contains("loop") { &[3, 2] } else { &[2] }),
                [0.0; 6].into_iter(),
            );
            let out = bound(&symbol).run_with(&[&rows], None, &CallOptions::default());
            let got = values(&out.unwrap_or_else(|e| panic!("{name}: {}", e.message))[0]);
            assert!(got.iter().all(|x| (x - want).abs() < 1e-5), "{name}: {got:?}, not {want}");
        });
    }
}

#[test]
fn each_of_many_results_costs_the_same() {
    const RESULTS: usize = 5_000;
    let x = var("data");
    // Some are made by one step, some are the same value, and one is the argument.
    let layers: Vec<Symbol> = (0..RESULTS)
        .map(|i| apply("_mul_scalar", &format!("m{}", i / 2), &[("scalar", &format!("{}", i / 2))], &[&x]))
        .chain([x.clone()])
        .collect();
    let data = array_of(engine(), &Shape::new(&[1]), [3.0].into_iter());
    let out = bound(&Symbol::group(&layers)).run_with(&[&data], None, &CallOptions::default());
    let out = out.expect("the call is accepted");
    let want = (0..RESULTS).map(|i| 3.0 * (i / 2) as f32).chain([3.0]);
    assert!(out.iter().zip(want).all(|(got, want)| values(got) == [want]));
    assert_eq!(out.len(), RESULTS + 1);
}

/// Counts how often the build of the first plan asks whether to continue.
fn asked(symbol: &Symbol, shape: &[usize]) -> usize {
    let op = bound(symbol);
    let rows = array_of(engine(), &Shape::new(shape), [0.0; 6].into_iter());
    let mut asked = 0;
    let mut count = || {
        asked += 1;
        true
    };
    op.run_unless(&[&rows], None, &CallOptions::default(), &mut Interrupter::every(Duration::ZERO, &mut count))
        .expect("it is built");
    asked
}

#[test]
fn building_the_graph_inside_a_loop_is_given_up_too() {
    let one = apply("_ones", "one", &[("shape", "(2,)")], &[]);
    let inside = loop_over(&one, 10_000);
    let (alone, in_loop) = (asked(&sines(&var("data"), 10_000), &[2]), asked(&inside, &[3, 2]));
    assert!(3 * in_loop >= alone, "{in_loop} times inside of a loop, {alone} times outside");
    let op = bound(&inside);
    let rows = array_of(engine(), &Shape::new(&[3, 2]), [0.0; 6].into_iter());
    let mut stop = || false;
    let error = op
        .run_unless(&[&rows], None, &CallOptions::default(), &mut Interrupter::by(&mut stop))
        .expect_err("it is given up");
    assert_eq!((error.kind, op.op().stats().built), (FailureKind::Cancelled, 0));
    assert!(op.run_with(&[&rows], None, &CallOptions::default()).is_ok(), "the next call builds it");
}

#[test]
fn a_bound_on_nodes_names_both_numbers_and_counts_inner_graphs() {
    let text = chain(8).to_json();
    let load = |max_nodes| Symbol::load_json_with(&text, LoadOptions { max_nodes, ..LoadOptions::default() });
    let nodes = text.matches("\"op\"").count();
    assert!(load(None).is_ok() && load(Some(nodes)).is_ok());
    let error = load(Some(nodes - 1)).expect_err("it is too large").to_string();
    assert!(error.contains(&format!("has {nodes} nodes and the limit is {}", nodes - 1)), "{error}");
    // Nodes of inner graphs count: the loop has three of its own, and its body six.
    let one = apply("_ones", "one", &[("shape", "(2,)")], &[]);
    let text = loop_over(&one, 3).to_json();
    let load = |max_nodes| Symbol::load_json_with(&text, LoadOptions { max_nodes, ..LoadOptions::default() });
    assert!(load(Some(9)).is_ok());
    let error = load(Some(8)).expect_err("it is too large").to_string();
    assert!(error.contains("has 9 nodes and the limit is 8"), "{error}");
}
