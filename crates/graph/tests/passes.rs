//! Every pass, as text before and after.

use mxrt_graph::infer;
use mxrt_graph::{Graph, Symbol, passes};
use mxrt_ops::{KernelOptions, Precision, registry};
use mxrt_tensor::{DType, PartialShape, Shape, TensorType};
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

/// The graph of a symbol. Its parameters are found by the slots that they feed.
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
fn every_pass_has_a_case_on_a_text_graph() {
    let source = include_str!("passes.rs");
    let names = passes::PASSES.iter().map(|p| p.name).chain(passes::TYPED_PASSES.iter().map(|p| p.name));
    let missing: Vec<&str> = names.filter(|name| !source.contains(&format!("#[test]\nfn {name}_"))).collect();
    assert!(missing.is_empty(), "tests/passes.rs has no test `fn <pass>_...` for {missing:?}");
}

/// The two tables of `PLANS.md`, made from the lists. `make generate` writes them.
#[test]
fn the_documented_tables_are_those_of_the_lists() {
    let table = |rows: Vec<(&str, &str)>| {
        let rows = rows.iter().map(|(name, effect)| format!("| `{name}` | {effect} |\n"));
        format!("| pass | effect |\n| --- | --- |\n{}", rows.collect::<String>())
    };
    let tables = [
        table(passes::PASSES.iter().map(|p| (p.name, p.effect)).collect()),
        table(passes::TYPED_PASSES.iter().map(|p| (p.name, p.effect)).collect()),
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/PLANS.md");
    let page = std::fs::read_to_string(path).expect("the page is readable");
    let mut wanted = String::new();
    let mut tables = tables.iter();
    let mut inside = false;
    for line in page.split_inclusive('\n') {
        if line == "| pass | effect |\n" {
            inside = true;
            wanted += tables.next().expect("the page has two tables of passes");
        }
        inside &= line.starts_with('|');
        if !inside {
            wanted += line;
        }
    }
    assert!(tables.next().is_none(), "PLANS.md lacks a table that begins with `| pass | effect |`");
    if std::env::var_os("MXRT_WRITE").is_some() {
        std::fs::write(path, &wanted).expect("the page is writable");
    } else {
        assert!(page == wanted, "PLANS.md is not up to date; `make generate` writes it. It must read:\n{wanted}");
    }
}

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

fn dense(x: &Symbol) -> Symbol {
    apply("FullyConnected", "d", &[("num_hidden", "4")], &[x])
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

/// Runs a pass that needs types, on float32 inputs of one shape.
fn run_typed(pass: &str, graph: Graph, shape: &[usize]) -> String {
    let inputs = vec![TensorType::new(DType::F32, shape); graph.inputs.len()];
    run_typed_on(&[pass], graph, &inputs)
}

/// Runs a pass on a symbol with parameters, whose shapes follow from that of the data.
fn run_typed_net(pass: &str, symbol: &Symbol, data: &[usize]) -> String {
    run_typed_all(&[pass], symbol, data)
}

/// Runs several passes, one after the other.
fn run_typed_all(passes: &[&str], symbol: &Symbol, data: &[usize]) -> String {
    run_typed_with(KernelOptions::default(), passes, symbol, data)
}

/// Runs several passes with options of kernels.
fn run_typed_with(options: KernelOptions, passes: &[&str], symbol: &Symbol, data: &[usize]) -> String {
    let known = [("data".to_owned(), PartialShape::from(Shape::new(data)))];
    let shapes = symbol.infer_shape(&known, false).expect("all shapes follow from the data's");
    let names = symbol.list_arguments().into_iter().chain(symbol.list_auxiliary_states());
    let by_name: BTreeMap<String, Shape> =
        names.zip(shapes.args.iter().chain(&shapes.aux)).filter_map(|(n, s)| Some((n, s.complete()?))).collect();
    let inputs: Vec<TensorType> =
        symbol.list_inputs().iter().map(|n| TensorType::new(DType::F32, by_name[n].clone())).collect();
    run_passes(options, passes, graph(symbol), &inputs)
}

fn run_typed_on(names: &[&str], graph: Graph, inputs: &[TensorType]) -> String {
    run_passes(KernelOptions::default(), names, graph, inputs)
}

fn run_passes(options: KernelOptions, names: &[&str], mut graph: Graph, inputs: &[TensorType]) -> String {
    for name in names {
        let types = infer(&graph, inputs).expect("the types follow");
        let pass = passes::TYPED_PASSES.iter().find(|p| p.name == *name).expect("there is such a pass");
        graph = (pass.run)(graph, &types, options).expect("the pass succeeds");
    }
    graph.to_string()
}

/// The operators of a graph's text.
fn operators(text: &str) -> Vec<&str> {
    text.lines().filter_map(|l| l.split(" = ").nth(1)).filter_map(|l| l.split('(').next()).collect()
}

#[test]
fn fuse_attention_joins_products_around_a_softmax() {
    let scores = apply("batch_dot", "scores", &[("transpose_b", "True")], &[&var("q"), &var("k")]);
    let masked = apply("broadcast_add", "masked", &[], &[&scores, &var("mask")]);
    let weights = apply("softmax", "weights", &[("axis", "-1")], &[&masked]);
    let net = apply("batch_dot", "out", &[], &[&weights, &var("v")]);
    let shapes = [[6, 9, 5], [6, 11, 5], [1, 9, 11], [6, 11, 7]].map(|shape| TensorType::new(DType::F32, shape));
    assert_eq!(
        run_typed_on(&["fuse_attention"], graph(&net), &shapes),
        "%0 = _fused_attention(q, k, v, mask) {batch=(1, 6,), size=(9, 11, 5, 7,), scale=1, \
         queries=(0, 0, 270, 45, 5, 1,), keys=(1, 0, 330, 55, 5, 1,), values=(2, 0, 462, 77, 7, 1,), \
         mask=(3, 0, 0, 0, 11, 1,), result=(0, 0, 378, 63, 7, 1,), shape=(6, 9, 7,), num_args=4} 'out'\nreturn %0\n"
    );
    let double = shapes.map(|t| TensorType::new(DType::F64, t.shape));
    let text = graph(&net).to_string();
    assert_eq!(run_typed_on(&["fuse_attention"], graph(&net), &double), text);
}

#[test]
fn fuse_conv_takes_residual_and_activation() {
    let x = var("data");
    for add in ["elemwise_add", "broadcast_add"] {
        let sum = apply(add, "sum", &[], &[&conv("left", &x), &conv("right", &x)]);
        assert_eq!(
            run_typed_net("fuse_conv", &relu("r", &sum), &[1, 4, 5, 5]),
            "%0 = Convolution(data, left_weight) {kernel=(3, 3), no_bias=True, num_filter=8} 'left'\n\
             %1 = _fused_convolution(data, right_weight, %0) \
             {kernel=(3, 3), no_bias=True, num_filter=8, with_residual=True, act_type=relu} 'right'\nreturn %1\n",
            "{add}"
        );
    }
}

#[test]
fn fuse_conv_leaves_alone_what_is_repeated_to_be_added() {
    let sum = apply("broadcast_add", "sum", &[], &[&conv("c", &var("x")), &var("shift")]);
    let other_way = apply("broadcast_add", "sum", &[], &[&var("image"), &conv("c", &var("x"))]);
    for (symbol, shapes) in
        [(sum, [[1, 4, 5, 5], [8, 4, 3, 3], [1, 8, 1, 1]]), (other_way, [[2, 8, 5, 5], [1, 4, 3, 3], [8, 4, 3, 3]])]
    {
        let before = graph(&symbol);
        let text = before.to_string();
        let types = shapes.map(|shape| TensorType::new(DType::F32, shape));
        assert_eq!(run_typed_on(&["fuse_conv"], before, &types), text);
    }
}

#[test]
fn fuse_conv_takes_relu6_and_stops_at_values_others_read() {
    let c = conv("c", &var("data"));
    let clipped = apply("clip", "relu6", &[("a_max", "6"), ("a_min", "0")], &[&c]);
    assert_eq!(
        run_typed_net("fuse_conv", &clipped, &[1, 4, 5, 5]),
        "%0 = _fused_convolution(data, c_weight) {kernel=(3, 3), no_bias=True, num_filter=8, with_residual=False, \
         act_type=clip, act_min=0, act_max=6} 'c'\nreturn %0\n"
    );
    let shared = Symbol::group(&[relu("r", &c), c]);
    let text = graph(&shared).to_string();
    assert_eq!(run_typed_net("fuse_conv", &shared, &[1, 4, 5, 5]), text);
}

fn hard_swish(x: &Symbol) -> Symbol {
    let shifted = apply("_plus_scalar", "shifted", &[("scalar", "3")], &[x]);
    let gate = apply("clip", "gate", &[("a_min", "0"), ("a_max", "6")], &[&shifted]);
    apply("_div_scalar", "out", &[("scalar", "6")], &[&apply("elemwise_mul", "product", &[], &[x, &gate])])
}

#[test]
fn fuse_elementwise_joins_what_nobody_else_reads() {
    let text = run_typed("fuse_elementwise", graph(&hard_swish(&var("x"))), &[2, 3]);
    let program = "_plus_scalar(in0){scalar=3};clip(0){a_max=6|a_min=0};elemwise_mul(in0,1);_div_scalar(2){scalar=6}";
    assert_eq!(text, format!("%0 = _fused_elementwise(x) {{num_args=1, program={program}}} 'out'\nreturn %0\n"));
}

/// GELU as models write it that were exported before `LeakyReLU` had it.
fn gelu_of_erf(x: &Symbol) -> Symbol {
    let erf = apply("erf", "erf", &[], &[&apply("_div_scalar", "d", &[("scalar", "1.4142135")], &[x])]);
    let gate = apply("_plus_scalar", "gate", &[("scalar", "1.0")], &[&erf]);
    apply("elemwise_mul", "gelu", &[], &[&apply("_mul_scalar", "half", &[("scalar", "0.5")], &[x]), &gate])
}

#[test]
fn fuse_layer_norm_takes_the_sum_that_no_layer_took() {
    let norm = |x: &Symbol| apply("LayerNorm", "n", &[("eps", "0.01")], &[x]);
    let sum = apply("elemwise_add", "sum", &[], &[&var("a"), &var("b")]);
    let types = [&[4, 3][..], &[4, 3], &[3], &[3]].map(|shape| TensorType::new(DType::F32, shape));
    assert_eq!(
        run_typed_on(&["fuse_layer_norm"], graph(&norm(&sum)), &types),
        "%0 = _layer_norm_of_sum(a, b, n_gamma, n_beta) {eps=0.01} 'n'\nreturn %0\n"
    );
    for symbol in [
        Symbol::group(&[norm(&sum), sum.clone()]),
        apply("LayerNorm", "n", &[("axis", "0")], &[&sum]),
        norm(&apply("elemwise_mul", "product", &[], &[&var("a"), &var("b")])),
    ] {
        let before = graph(&symbol);
        let text = before.to_string();
        let mut types = types.clone();
        if text.contains("axis=0") {
            types[2..].fill(TensorType::new(DType::F32, [4]));
        }
        assert_eq!(run_typed_on(&["fuse_layer_norm"], before, &types), text);
    }
}

#[test]
fn fuse_dense_takes_functions_and_chains_of_the_result() {
    let layer = apply("FullyConnected", "fc", &[("num_hidden", "8")], &[&var("data")]);
    let gelu = apply("LeakyReLU", "gelu", &[("act_type", "gelu")], &[&layer]);
    let attrs = "{num_hidden=8, program=";
    for (symbol, program) in [
        (gelu, "LeakyReLU(in0){act_type=gelu}"),
        (apply("sigmoid", "s", &[], &[&layer]), "sigmoid(in0)"),
        (apply("Activation", "t", &[("act_type", "tanh")], &[&layer]), "Activation(in0){act_type=tanh}"),
        (apply("elemwise_mul", "square", &[], &[&layer, &layer]), "elemwise_mul(in0,in0)"),
        (
            hard_swish(&layer),
            "_plus_scalar(in0){scalar=3};clip(0){a_max=6|a_min=0};elemwise_mul(in0,1);_div_scalar(2){scalar=6}",
        ),
        (
            gelu_of_erf(&layer),
            "_mul_scalar(in0){scalar=0.5};_div_scalar(in0){scalar=1.4142135};erf(1);_plus_scalar(2){scalar=1.0};\
             elemwise_mul(0,3)",
        ),
    ] {
        assert_eq!(
            run_typed_all(&["fuse_elementwise", "fuse_dense"], &symbol, &[4, 3]),
            format!("%0 = _fused_fully_connected(data, fc_weight, fc_bias) {attrs}{program}}} 'fc'\nreturn %0\n"),
        );
    }
}

#[test]
fn fuse_dense_applies_functions_after_a_residual() {
    let layer = apply("FullyConnected", "fc", &[("num_hidden", "3"), ("no_bias", "True")], &[&var("data")]);
    let sum = apply("elemwise_add", "sum", &[], &[&layer, &var("data")]);
    assert_eq!(
        run_typed_all(&["fuse_conv", "fuse_dense"], &apply("tanh", "t", &[], &[&sum]), &[4, 3]),
        "%0 = _fused_fully_connected(data, fc_weight, data) \
         {no_bias=True, num_hidden=3, with_residual=True, program=tanh(in0)} 'fc'\nreturn %0\n"
    );
}

#[test]
fn fuse_dense_leaves_alone_what_others_read_and_other_types() {
    let layer = apply("FullyConnected", "fc", &[("num_hidden", "8")], &[&var("data")]);
    let shared = Symbol::group(&[apply("tanh", "t", &[], &[&layer]), layer.clone()]);
    let text = graph(&shared).to_string();
    assert_eq!(run_typed_net("fuse_dense", &shared, &[4, 3]), text);
    let tanh = graph(&apply("tanh", "t", &[], &[&layer]));
    let text = tanh.to_string();
    let double = [&[4, 3][..], &[8, 3], &[8]].map(|shape| TensorType::new(DType::F64, shape));
    assert_eq!(run_typed_on(&["fuse_dense"], tanh, &double), text);
}

#[test]
fn keep_lines_writes_rows_of_layers_on_tiles_in_lines_once() {
    let dense = |name: &str, hidden: &str, x: &Symbol| {
        apply("FullyConnected", name, &[("num_hidden", hidden), ("flatten", "False")], &[x])
    };
    let x = var("data");
    let second = dense("f2", "96", &dense("f1", "64", &x));
    let symbol = Symbol::group(&[second.clone(), dense("q", "32", &x)]);
    let text = run_typed_net("keep_lines", &symbol, &[2, 64, 128]);
    if !KernelOptions::default().has_tiles() {
        return assert_eq!(text, graph(&symbol).to_string());
    }
    let layer = "_lines_fully_connected";
    assert_eq!(operators(&text), ["_to_lines", layer, layer, layer], "{text}");
    assert_eq!(text.matches("to_lines=True").count(), 1, "only the result of f1 is left in lines: {text}");
    // Here one layer reads the data, and a result that is asked for stays in rows.
    let symbol = Symbol::group(&[second.clone(), dense("f3", "32", &second)]);
    let text = run_typed_net("keep_lines", &symbol, &[2, 64, 128]);
    assert_eq!(operators(&text), [layer, layer, "FullyConnected"], "{text}");
    // Few rows run without tiles in float32.
    assert_eq!(run_typed_net("keep_lines", &symbol, &[1, 4, 128]), graph(&symbol).to_string());
}

#[test]
fn fuse_elementwise_leaves_alone_what_others_read_or_what_changes_shape() {
    let x = var("x");
    let (a, b) = (apply("exp", "a", &[], &[&x]), apply("sum", "b", &[("axis", "1"), ("keepdims", "True")], &[&x]));
    let c = apply("broadcast_mul", "c", &[], &[&apply("sqrt", "s", &[], &[&a]), &b]);
    let before = graph(&Symbol::group(&[a, c]));
    let text = before.to_string();
    assert_eq!(run_typed("fuse_elementwise", before, &[2, 3]), text);
}

#[test]
fn fuse_elementwise_takes_a_value_that_the_chain_reads_twice() {
    let x = var("x");
    let y = apply("elemwise_add", "y", &[], &[&x, &var("z")]);
    let swish = apply("elemwise_mul", "swish", &[], &[&y, &apply("sigmoid", "gate", &[], &[&y])]);
    let text = run_typed("fuse_elementwise", graph(&swish), &[4]);
    assert!(text.contains("(x, z) {num_args=2, program=elemwise_add(in0,in1);sigmoid(0);elemwise_mul(0,1)}"), "{text}");
}

/// Runs `fuse_elementwise` on inputs of these shapes.
fn fuse_elementwise_on(symbol: &Symbol, shapes: &[&[usize]]) -> String {
    let types: Vec<TensorType> = shapes.iter().map(|shape| TensorType::new(DType::F32, *shape)).collect();
    run_typed_on(&["fuse_elementwise"], graph(symbol), &types)
}

#[test]
fn fuse_elementwise_takes_what_repeats_over_images() {
    let scaled = apply("broadcast_mul", "scaled", &[], &[&var("gate"), &var("x")]);
    let sum = relu("r", &apply("broadcast_add", "sum", &[], &[&scaled, &var("y")]));
    let whole: &[usize] = &[2, 8, 5, 5];
    for gate in [&[2, 8, 1, 1][..], &[1, 8, 1, 1], &[2, 1, 1, 1], &[1, 1, 1, 1], &[8, 1, 1], &[1]] {
        assert_eq!(
            fuse_elementwise_on(&sum, &[gate, whole, whole]),
            "%0 = _fused_elementwise(x, y, gate) {num_args=3, \
             program=broadcast_mul(in2,in0);broadcast_add(0,in1);Activation(1){act_type=relu}, repeated=1} 'r'\n\
             return %0\n",
            "{gate:?}"
        );
    }
    let slopes = apply("LeakyReLU", "p", &[("act_type", "prelu")], &[&apply("tanh", "t", &[], &[&var("x")])]);
    assert_eq!(
        fuse_elementwise_on(&slopes, &[&[1, 8, 6], &[8]]),
        "%0 = _fused_elementwise(x, p_gamma) \
         {num_args=2, program=tanh(in0);LeakyReLU(0,in1){act_type=prelu}, repeated=1} 'p'\nreturn %0\n"
    );
}

#[test]
fn fuse_elementwise_leaves_alone_what_repeats_in_other_ways() {
    let scaled = apply("broadcast_mul", "scaled", &[], &[&var("gate"), &apply("tanh", "t", &[], &[&var("x")])]);
    let out = relu("r", &scaled);
    let text = graph(&out).to_string();
    for [gate, x] in [
        [&[5][..], &[2, 8, 4, 5, 5][..]],
        [&[8], &[2, 8, 4, 5, 8]],
        [&[2, 8, 4, 5, 1], &[2, 8, 4, 5, 5]],
        [&[1, 8], &[2, 8]],
        [&[2, 1, 1, 1, 1], &[1, 8, 1, 1, 1]],
    ] {
        assert_eq!(fuse_elementwise_on(&out, &[gate, x]), text, "{gate:?} {x:?}");
    }
}

#[test]
fn fuse_elementwise_computes_what_repeats_apart() {
    let gate = apply("sigmoid", "gate", &[], &[&apply("exp", "e", &[], &[&var("small")])]);
    let scaled = apply("broadcast_mul", "scaled", &[], &[&apply("tanh", "t", &[], &[&var("x")]), &gate]);
    let text = fuse_elementwise_on(&scaled, &[&[2, 8, 3, 3], &[2, 8, 1, 1]]);
    let programs: Vec<&str> = text.split("program=").skip(1).filter_map(|rest| rest.split(['}', ' ']).next()).collect();
    assert_eq!(programs, ["exp(in0);sigmoid(0)", "tanh(in0);broadcast_mul(0,in1),"], "{text}");
}

#[test]
fn scale_shift_makes_batch_norm_and_relu_one_step() {
    let norm = apply("BatchNorm", "bn", &[("eps", "0.1"), ("fix_gamma", "False")], &[&var("data")]);
    assert_eq!(
        run_typed_net("scale_shift", &relu("r", &norm), &[1, 4, 3, 3]),
        "%0 = ones_like(bn_gamma) 'bn'\n\
         %1 = _fold_batch_norm(%0, bn_gamma, bn_beta, bn_moving_mean, bn_moving_var) {eps=0.1, fix_gamma=False} 'bn'\n\
         %2 = _scale_shift(data, %1, %1.1) {act_type=relu} 'bn'\nreturn %2\n"
    );
}

#[test]
fn assign_layouts_converts_at_the_borders_only() {
    let c1 = conv("c1", &var("data"));
    let out = conv("c2", &relu("r", &c1));
    let text = run_typed_net("assign_layouts", &out, &[1, 16, 9, 9]);
    let wanted =
        ["_to_blocked", "_blocked_convolution", "_blocked_activation", "_blocked_convolution", "_from_blocked"];
    assert_eq!(operators(&text), wanted, "{text}");
    assert_eq!(graph(&out).nodes.len(), 3, "before: two convolutions and a relu");
}

#[test]
fn assign_layouts_makes_planes_of_few_channels_only_where_they_are_plain() {
    let operators_of = |channels: usize, between: fn(&Symbol) -> Symbol| {
        let first = layer("c1", &var("data"), 3, 1, 6);
        let text = run_typed_net("assign_layouts", &layer("c2", &between(&first), 3, 1, 24), &[1, channels, 9, 9]);
        let planes = text.matches("layouts=(2,1,").count();
        (operators(&text).join(" "), planes, text)
    };
    let both = "_to_blocked _blocked_convolution _blocked_convolution _from_blocked";
    let (operators, planes, text) = operators_of(16, Symbol::clone);
    assert_eq!((&*operators, planes), (both, 0), "{text}");
    let (operators, planes, text) = operators_of(6, Symbol::clone);
    assert_eq!((&*operators, planes), (both, 1), "those of the data: {text}");
    let plain = |x: &Symbol| apply("softmax", "s", &[("axis", "1")], &[x]);
    let (operators, planes, text) = operators_of(16, plain);
    let apart = "_to_blocked _blocked_convolution _from_blocked softmax _to_blocked _blocked_convolution _from_blocked";
    assert_eq!((&*operators, planes), (apart, 1), "{text}");
}

#[test]
fn fuse_pooling_makes_a_large_convolution_and_what_pools_it_one_step() {
    let layer = |name: &str| {
        let attrs = [("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("num_filter", "64"), ("no_bias", "True")];
        apply("Convolution", name, &attrs, &[&var("data")])
    };
    let pool = |x: &Symbol| apply("Pooling", "p", &[("kernel", "(2, 2)"), ("stride", "(2, 2)")], &[x]);
    let fused = |symbol: &Symbol, data: &[usize]| {
        let text = run_typed_all(&["assign_layouts", "fuse_pooling"], symbol, data);
        (operators(&text).join(" "), text)
    };
    let both = "_to_blocked _blocked_convolution _blocked_pooling _from_blocked";
    let (operators, text) = fused(&pool(&layer("c")), &[1, 3, 112, 112]);
    assert_eq!(operators, "_to_blocked _blocked_convolution _from_blocked", "{text}");
    // Kind 0 is the largest, then kernel, stride and padding; the output is the pooled one.
    assert!(text.contains("pooling=(0,2,2,2,2,0,0)") && text.contains("out_layout=(2,16,64,56,56,0,0,0,0)"), "{text}");
    assert_eq!(fused(&pool(&layer("c")), &[1, 3, 28, 28]).0, both, "a small one stays as it is");
    let read_twice = layer("c");
    let (operators, text) = fused(&Symbol::group(&[pool(&read_twice), read_twice]), &[1, 3, 112, 112]);
    assert_eq!(operators, format!("{both} _from_blocked"), "{text}");
}

/// A convolution of one pixel, or of 3x3 with padding.
fn layer(name: &str, x: &Symbol, kernel: usize, stride: usize, filters: usize) -> Symbol {
    let (both, pad) = (|v: usize| format!("({v}, {v})"), kernel / 2);
    let (kernel, stride, pad, filters) = (both(kernel), both(stride), both(pad), filters.to_string());
    let attrs =
        [("kernel", &*kernel), ("stride", &*stride), ("pad", &*pad), ("num_filter", &*filters), ("no_bias", "True")];
    apply("Convolution", name, &attrs, &[x])
}

#[test]
fn pull_strides_computes_only_the_pixels_that_the_next_stage_reads() {
    // The end of a stage of resnet50_v1: 3x3, 1x1 with a residual, then two layers of one pixel
    // that step over every other one.
    let x = var("data");
    let narrow = layer("narrow", &x, 3, 1, 4);
    let wide = relu("r", &apply("elemwise_add", "sum", &[], &[&layer("wide", &narrow, 1, 1, 8), &x]));
    let out = apply("elemwise_add", "out", &[], &[&layer("left", &wide, 1, 2, 8), &layer("right", &wide, 1, 2, 8)]);
    let shapes: [&[usize]; 5] = [&[1, 8, 9, 9], &[4, 8, 3, 3], &[8, 4, 1, 1], &[8, 8, 1, 1], &[8, 8, 1, 1]];
    let types = shapes.map(|shape| TensorType::new(DType::F32, shape));
    let strides = |text: &str| -> Vec<String> {
        let of = |line: &str| line.split("stride=").nth(1).and_then(|s| s.split(')').next()).map(str::to_owned);
        text.lines().map(|line| of(line).unwrap_or_default()).filter(|s| !s.is_empty()).collect()
    };
    let fused = run_typed_on(&["fuse_conv"], graph(&out), &types);
    assert_eq!(strides(&fused), ["(1, 1", "(1, 1", "(2, 2", "(2, 2"]);
    let text = run_typed_on(&["fuse_conv", "pull_strides"], graph(&out), &types);
    assert_eq!(operators(&text), ["Convolution", "Pooling", "_fused_convolution", "Convolution", "_fused_convolution"]);
    assert_eq!(strides(&text), ["(2, 2,", "(2, 2,", "(1, 1,", "(1, 1,", "(1, 1,"], "{text}");
    assert!(text.contains("%1 = Pooling(data) {kernel=(1, 1,), stride=(2, 2,), pool_type=sum} 'wide'"), "{text}");
}

#[test]
fn pull_strides_leaves_alone_what_somebody_reads_in_full() {
    let wide = |x: &Symbol| layer("wide", x, 1, 1, 8);
    let inputs = |n: usize| {
        let shapes: [&[usize]; 4] = [&[1, 8, 8, 8], &[8, 8, 1, 1], &[8, 8, 1, 1], &[8, 8, 1, 1]];
        shapes[..n].iter().map(|shape| TensorType::new(DType::F32, *shape)).collect::<Vec<_>>()
    };
    let x = var("data");
    let other_stride = wide(&x);
    let as_residual = wide(&x);
    let as_result = wide(&x);
    let windows = wide(&x);
    let strided = |name: &str, x: &Symbol| layer(name, x, 1, 2, 8);
    let three = TensorType::new(DType::F32, &[8usize, 8, 3, 3][..]);
    let padded = apply(
        "Convolution",
        "padded",
        &[("kernel", "(1, 1)"), ("stride", "(2, 2)"), ("pad", "(1, 1)"), ("num_filter", "8"), ("no_bias", "True")],
        &[&as_result],
    );
    for (why, symbol, types) in [
        (
            "another stride",
            Symbol::group(&[strided("a", &other_stride), layer("b", &other_stride, 1, 1, 8)]),
            inputs(4),
        ),
        ("an addition", Symbol::group(&[strided("a", &as_residual), relu("r", &as_residual)]), inputs(3)),
        ("a result", Symbol::group(&[strided("a", &as_result), as_result.clone()]), inputs(3)),
        ("windows", layer("a", &windows, 3, 2, 8), [inputs(2), vec![three]].concat()),
        ("padding", padded, inputs(3)),
    ] {
        let before = graph(&symbol);
        let text = before.to_string();
        assert_eq!(run_typed_on(&["pull_strides"], before, &types), text, "{why}");
    }
}

#[test]
fn use_lines_keeps_what_convolutions_on_tiles_read_in_lines_of_bf16() {
    let passes = ["fuse_conv", "assign_layouts", "use_lines"];
    let options = KernelOptions { precision: Precision::Bf16, ..KernelOptions::default() };
    let has_tiles = KernelOptions::default().with_chosen_precision().precision == Precision::Bf16;
    let lined = |symbol: &Symbol| {
        let text = run_typed_with(options, &passes, symbol, &[1, 64, 14, 14]);
        let made = text.lines().filter(|line| line.contains("out_layout=(2,32,"));
        (made.filter_map(|line| line.split('\'').nth(1)).collect::<Vec<_>>().join(" "), text.clone())
    };
    let first = layer("first", &var("data"), 1, 1, 64);
    let sum = apply("elemwise_add", "sum", &[], &[&layer("second", &first, 3, 1, 64), &first]);
    // The last value is read by nobody who gains.
    let net = layer("last", &sum, 1, 1, 64);
    let expected = |names: &'static str| if has_tiles { names } else { "" };
    let (names, text) = lined(&net);
    assert_eq!(names, expected("first second"), "{text}");
    assert_eq!(text.contains("layouts=(2,32,64,14,14,"), has_tiles, "{text}");
    // Pooling writes them for a convolution, and does not gain by reading them.
    let pooled = apply("Pooling", "pool", &[("kernel", "(2, 2)"), ("pool_type", "max")], &[&first]);
    assert_eq!(lined(&layer("last", &pooled, 1, 1, 64)).0, expected("pool"));
    // Joined values are alike.
    let joined = |filters| {
        let parts = [layer("left", &first, 1, 1, 32), layer("right", &first, 1, 1, filters)];
        let both = apply("Concat", "both", &[("num_args", "2")], &[&parts[0], &parts[1]]);
        layer("last", &both, 1, 1, 64)
    };
    let (names, text) = lined(&joined(96));
    assert_eq!(names, expected("first left right both"), "{text}");
    assert_eq!(lined(&joined(48)).0, expected("first"), "channels that do not fill lines stay in blocks");
    // What a reader without lines reads stays in blocks, and so does a result.
    let read =
        apply("Convolution", "grouped", &[("kernel", "(3, 3)"), ("num_filter", "64"), ("num_group", "2")], &[&first]);
    let (names, text) = lined(&Symbol::group(&[layer("last", &first, 1, 1, 64), read]));
    assert_eq!(names, "", "{text}");
    let both = Symbol::group(&[layer("last", &first, 1, 1, 64), first.clone()]);
    assert_eq!(lined(&both).0, expected("first"), "a conversion reads lines");
    let single = run_typed_all(&passes, &net, &[1, 64, 14, 14]);
    assert!(!single.contains("(2,32,64"), "float32 stays in float32: {single}");
}
