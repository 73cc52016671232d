//! Every pass, as text before and after.

use mxrt_graph::{Graph, Symbol, passes};
use mxrt_ops::registry;
use std::collections::BTreeMap;

fn var(name: &str) -> Symbol {
    Symbol::variable(name, BTreeMap::new())
}

fn apply(op: &str, name: &str, attrs: &[(&str, &str)], inputs: &[&Symbol]) -> Symbol {
    let op = registry().get(op).expect("the operator is registered");
    let attrs = attrs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Symbol::create(op, name.to_owned(), attrs, inputs).expect("the symbol composes")
}

/// The graph of a symbol, its parameters found by the slots they feed.
fn graph(symbol: &Symbol) -> Graph {
    let mut graph = Graph::from_symbol(symbol).expect("the symbol is a graph");
    graph.guess_constants();
    graph
}

fn run_graph(pass: &str, graph: Graph) -> Graph {
    let pass = passes::PASSES.iter().find(|p| p.name == pass).expect("there is such a pass");
    (pass.run)(graph).expect("the pass succeeds")
}

fn run(pass: &str, graph: Graph) -> String {
    run_graph(pass, graph).to_string()
}

fn conv(name: &str, x: &Symbol) -> Symbol {
    apply("Convolution", name, &[("kernel", "(3, 3)"), ("no_bias", "True"), ("num_filter", "8")], &[x])
}

fn relu(name: &str, x: &Symbol) -> Symbol {
    apply("Activation", name, &[("act_type", "relu")], &[x])
}

#[test]
fn drop_identities_removes_dropout() {
    let out = relu("r", &apply("Dropout", "d", &[("p", "0.5")], &[&var("x")]));
    let before = graph(&out);
    assert_eq!(before.to_string(), "%0 = Dropout(x) {p=0.5} 'd'\n%1 = Activation(%0) {act_type=relu} 'r'\nreturn %1\n");
    assert_eq!(run("drop_identities", before), "%0 = Activation(x) {act_type=relu} 'r'\nreturn %0\n");
}

#[test]
fn merge_equal_computes_the_same_thing_once() {
    let x = var("x");
    let out = apply("elemwise_add", "sum", &[], &[&relu("a", &x), &relu("b", &x)]);
    assert_eq!(
        run("merge_equal", graph(&out)),
        "%0 = Activation(x) {act_type=relu} 'a'\n%1 = elemwise_add(%0, %0) 'sum'\nreturn %1\n"
    );
}

#[test]
fn drop_dead_removes_what_nobody_reads() {
    let mut before = graph(&relu("a", &relu("b", &var("x"))));
    before.outputs = vec![before.nodes[1].inputs[0]];
    assert_eq!(run("drop_dead", before), "%0 = Activation(x) {act_type=relu} 'b'\nreturn %0\n");
}

#[test]
fn fold_batch_norm_makes_constant_weights() {
    let out = apply("BatchNorm", "bn", &[("eps", "0.1"), ("fix_gamma", "False")], &[&conv("c", &var("x"))]);
    assert_eq!(
        run("drop_dead", run_graph("fold_batch_norm", graph(&out))),
        "%0 = _fold_batch_norm(c_weight, bn_gamma, bn_beta, bn_moving_mean, bn_moving_var) \
         {eps=0.1, fix_gamma=False, with_bias=False} 'bn'\n\
         %1 = Convolution(x, %0, %0.1) {kernel=(3, 3), num_filter=8, no_bias=False} 'c'\nreturn %1\n"
    );
}

#[test]
fn fold_batch_norm_leaves_a_convolution_that_others_read() {
    let c = conv("c", &var("x"));
    let out = Symbol::group(&[apply("BatchNorm", "bn", &[], &[&c]), c]);
    let before = graph(&out);
    let text = before.to_string();
    assert_eq!(run("fold_batch_norm", before), text);
}

#[test]
fn fuse_convolution_takes_residual_and_activation() {
    let x = var("x");
    let left = conv("left", &x);
    let right = conv("right", &x);
    let out = relu("r", &apply("elemwise_add", "sum", &[], &[&left, &right]));
    assert_eq!(
        run("fuse_convolution", graph(&out)),
        "%0 = Convolution(x, left_weight) {kernel=(3, 3), no_bias=True, num_filter=8} 'left'\n\
         %1 = _fused_convolution(x, right_weight, %0) \
         {kernel=(3, 3), no_bias=True, num_filter=8, with_residual=True, act_type=relu} 'right'\nreturn %1\n"
    );
}

#[test]
fn fuse_convolution_takes_relu6_and_stops_at_values_others_read() {
    let c = conv("c", &var("x"));
    let clipped = apply("clip", "relu6", &[("a_max", "6"), ("a_min", "0")], &[&c]);
    assert_eq!(
        run("fuse_convolution", graph(&clipped)),
        "%0 = _fused_convolution(x, c_weight) {kernel=(3, 3), no_bias=True, num_filter=8, with_residual=False, \
         act_type=clip, act_min=0, act_max=6} 'c'\nreturn %0\n"
    );
    let shared = Symbol::group(&[relu("r", &c), c]);
    let before = graph(&shared);
    let text = before.to_string();
    assert_eq!(run("fuse_convolution", before), text);
}
