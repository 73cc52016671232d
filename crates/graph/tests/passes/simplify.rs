//! Passes that remove, merge and fold nodes.

use super::*;

#[test]
fn drop_identities_keeps_dropout_that_drops_at_inference() {
    let out = apply("Dropout", "d", &[("p", "0.5"), ("mode", "always")], &[&var("x")]);
    let before = graph(&out).to_string();
    assert_eq!(run("drop_identities", graph(&out)), before);
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
fn merge_equal_leaves_nodes_with_other_attributes() {
    let x = var("x");
    let (half, third) = (scalar("_mul_scalar", "0.5", &x), scalar("_mul_scalar", "0.3", &x));
    let before = graph(&apply("elemwise_add", "sum", &[], &[&half, &third]));
    let (text, nodes) = (before.to_string(), before.nodes.len());
    assert_eq!((run_graph("merge_equal", before).nodes.len(), nodes), (3, 3), "{text}");
}

#[test]
fn merge_equal_leaves_nodes_that_draw() {
    let draw = |name: &str| apply("_random_uniform", name, &[("shape", "(2,)")], &[]);
    let before = graph(&apply("elemwise_sub", "difference", &[], &[&draw("a"), &draw("b")]));
    assert_eq!(run_graph("merge_equal", before).nodes.len(), 3);
}

#[test]
fn drop_dead_removes_what_nobody_reads() {
    let mut before = graph(&relu("a", &relu("b", &var("x"))));
    before.outputs = vec![before.nodes[1].inputs[0]];
    assert_eq!(run("drop_dead", before), "%0 = Activation(x) {act_type=relu} 'b'\nreturn %0\n");
}

#[test]
fn fold_creation_marks_what_attributes_alone_say_completely() {
    let makes = |op: &str, attrs: &[(&str, &str)]| {
        let text = run("fold_creation", graph(&apply(op, "made", attrs, &[])));
        assert_eq!(text.matches("'made'").count(), 1);
        text.contains("'made' once")
    };
    assert!(makes("_zeros", &[("shape", "(2, 3)")]) && makes("_ones", &[("shape", "(2, 3)"), ("dtype", "int32")]));
    assert!(makes("_full", &[("shape", "(2, 3)"), ("value", "7")]) && makes("_eye", &[("N", "3")]));
    assert!(makes("_arange", &[("start", "5")]) && makes("_linspace", &[("start", "0"), ("stop", "1"), ("num", "5")]));
    assert!(!makes("_zeros", &[("shape", "(0, 3)")]), "the rows of a batch");
    assert!(!makes("_full", &[("value", "7")]), "the shape of what it is added to");
    assert!(!makes("_arange", &[("start", "5"), ("infer_range", "True")]), "as long as its readers want");
    assert!(!makes("_ones", &[("shape", "(1000, 1000)")]), "too large to be worth keeping");
    assert!(!makes("_random_uniform", &[("shape", "(2, 3)")]), "other numbers for every call");
    let sum = apply("_plus_scalar", "sum", &[("scalar", "1")], &[&apply("_ones", "ones", &[("shape", "(2,)")], &[])]);
    assert_eq!(graph(&sum).constant_nodes(), [false, false]);
    assert_eq!(run_graph("fold_creation", graph(&sum)).constant_nodes(), [true, true], "and what depends on it alone");
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

fn scalar(op: &str, number: &str, x: &Symbol) -> Symbol {
    apply(op, op.trim_start_matches('_'), &[("scalar", number), ("is_int", "False")], &[x])
}

fn fold_scalar(graph: Graph) -> String {
    run("drop_dead", run_graph("fold_scalar", graph))
}

#[test]
fn fold_scalar_makes_constant_weights_and_biases() {
    assert_eq!(
        fold_scalar(graph(&scalar("_mul_scalar", "0.17", &conv("c", &var("x"))))),
        "%0 = _mul_scalar(c_weight) {scalar=0.17} 'mul_scalar'\n\
         %1 = Convolution(x, %0) {kernel=(3, 3), no_bias=True, num_filter=8} 'c'\nreturn %1\n"
    );
    let chain = scalar("_plus_scalar", "3", &scalar("_div_scalar", "-2.5", &dense(&var("x"))));
    assert_eq!(
        fold_scalar(graph(&scalar("_minus_scalar", "1e-3", &chain))),
        "%0 = _div_scalar(d_weight) {scalar=-2.5} 'div_scalar'\n\
         %1 = _div_scalar(d_bias) {scalar=-2.5} 'div_scalar'\n\
         %2 = _plus_scalar(%1) {scalar=3} 'plus_scalar'\n\
         %3 = _minus_scalar(%2) {scalar=1e-3} 'minus_scalar'\n\
         %4 = FullyConnected(x, %0, %3) {num_hidden=4} 'd'\nreturn %4\n"
    );
}

#[test]
fn fold_scalar_gives_the_factor_to_a_batch_norm_that_was_folded() {
    let norm = apply("BatchNorm", "bn", &[("eps", "0.1")], &[&conv("c", &var("x"))]);
    let scaled = scalar("_div_scalar", "4", &scalar("_mul_scalar", "-3", &norm));
    assert_eq!(
        fold_scalar(run_graph("fold_batch_norm", graph(&scaled))),
        "%0 = _fold_batch_norm(c_weight, bn_gamma, bn_beta, bn_moving_mean, bn_moving_var) \
         {eps=0.1, with_bias=False, factor=-0.75} 'bn'\n\
         %1 = Convolution(x, %0, %0.1) {kernel=(3, 3), num_filter=8, no_bias=False} 'c'\nreturn %1\n"
    );
    let shifted = scalar("_mul_scalar", "2", &scalar("_plus_scalar", "1", &norm));
    let text = fold_scalar(run_graph("fold_batch_norm", graph(&shifted)));
    assert_eq!(operators(&text), ["_fold_batch_norm", "_plus_scalar", "_mul_scalar", "_mul_scalar", "Convolution"]);
    assert!(text.contains("%1 = _plus_scalar(%0.1)") && text.contains("Convolution(x, %2, %3)"), "{text}");
}

#[test]
fn fold_scalar_leaves_alone_what_would_make_other_sums() {
    let x = var("x");
    let read_twice = dense(&x);
    let own_weight = apply("FullyConnected", "d", &[("num_hidden", "4"), ("no_bias", "True")], &[&x, &x]);
    for (why, symbol) in [
        ("zero", scalar("_mul_scalar", "0", &dense(&x))),
        ("zero in single precision", scalar("_div_scalar", "1e-50", &dense(&x))),
        ("infinite", scalar("_plus_scalar", "1e50", &dense(&x))),
        ("no bias", scalar("_plus_scalar", "1", &conv("c", &x))),
        ("weights that are data", scalar("_mul_scalar", "2", &own_weight)),
        ("another operator", scalar("_mul_scalar", "2", &relu("r", &dense(&x)))),
        ("the number first", scalar("_rdiv_scalar", "2", &dense(&x))),
        ("read twice", Symbol::group(&[scalar("_mul_scalar", "2", &read_twice), read_twice])),
    ] {
        let text = graph(&symbol).to_string();
        assert_eq!(fold_scalar(graph(&symbol)), text, "{why}");
    }
}

#[test]
fn fold_scalar_makes_no_long_chains_of_constants() {
    let chain = (0..20).fold(dense(&var("x")), |y, _| scalar("_plus_scalar", "1", &y));
    let text = fold_scalar(graph(&chain));
    let wanted = [vec!["_plus_scalar"; 8], vec!["FullyConnected"], vec!["_plus_scalar"; 12]].concat();
    assert_eq!(operators(&text), wanted, "{text}");
}
