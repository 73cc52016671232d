//! Plans of long graphs, and building that is given up.

mod common;

use common::compare::{array_of, engine, values};
use common::{apply, var};
use mxrt_engine::FailureKind;
use mxrt_graph::{BoundOp, CachedOp, CachedOpFlags, CallOptions, Interrupter, LoadOptions, Symbol};
use mxrt_tensor::{NDArray, Shape};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let out = bound(&symbol).call_with(&inputs.iter().collect::<Vec<_>>(), None, &CallOptions::default());
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
        .call_unless(&data, None, &CallOptions::default(), &mut Interrupter::by(&mut stop))
        .expect_err("it is given up");
    assert_eq!((error.kind, asked.load(Ordering::Relaxed)), (FailureKind::Cancelled, 2));
    assert_eq!(op.op().stats().built, 0);
    let out = op.call_with(&data, None, &CallOptions::default()).expect("the next call builds it");
    assert_eq!(values(&out[0]), [3.0, -5.0]);
    // With a plan nothing is asked.
    let mut never = || panic!("there is nothing to give up");
    op.call_unless(&data, None, &CallOptions::default(), &mut Interrupter::by(&mut never)).expect("it has a plan");
}

#[test]
fn the_hook_may_call_the_op_that_is_being_built() {
    let (symbol, inputs) = with_one_weight(&chain(40_000));
    let (op, data) = (bound(&symbol), inputs.iter().collect::<Vec<_>>());
    let mut inner = Vec::new();
    let mut hook = || {
        if inner.is_empty() {
            let out = op.call_with(&data, None, &CallOptions::default()).expect("the call is accepted");
            inner = values(&out[0]);
        }
        true
    };
    let out = op.call_unless(&data, None, &CallOptions::default(), &mut Interrupter::by(&mut hook));
    assert_eq!(values(&out.expect("the call is accepted")[0]), [3.0, -5.0]);
    assert_eq!(inner, [3.0, -5.0]);
}

#[test]
fn a_bound_on_nodes_names_both_numbers_and_counts_inner_graphs() {
    let text = chain(8).to_json();
    let load = |max_nodes| Symbol::load_json_with(&text, LoadOptions { max_nodes, ..LoadOptions::default() });
    let nodes = text.matches("\"op\"").count();
    assert!(load(None).is_ok() && load(Some(nodes)).is_ok());
    let error = load(Some(nodes - 1)).expect_err("it is too large").to_string();
    assert!(error.contains(&format!("has {nodes} nodes and the limit is {}", nodes - 1)), "{error}");
}
