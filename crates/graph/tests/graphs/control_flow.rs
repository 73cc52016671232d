//! Loops and branches: graphs inside nodes, compiled into plans inside plans.

use crate::common::Calls as _;
use crate::common::compare::{array, engine, values};
use crate::common::*;
use mxrt_engine::{FailureKind, OpError, WaitError};
use mxrt_graph::passes::PassChoice;
use mxrt_graph::{BuildOptions, CachedOp, CachedOpFlags, GraphError, Symbol};
use mxrt_ops::RandomState;
use mxrt_tensor::{NDArray, PartialShape, Shape};
use std::sync::Arc;

fn floats(shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> NDArray {
    array(&Shape::new(shape), numbers.into_iter())
}

fn counted(shape: &[usize]) -> NDArray {
    floats(shape, (0..).map(|n| (n % 7) as f32 * 0.25 - 0.5))
}

/// A node that runs graphs; `inputs` are its arrays.
fn node(op_name: &str, name: &str, pairs: &[(&str, &str)], inputs: &[&Symbol], graphs: &[Symbol]) -> Symbol {
    try_node(op_name, name, pairs, inputs, graphs).unwrap_or_else(|e| panic!("{}", e.message))
}

fn try_node(
    op_name: &str,
    name: &str,
    pairs: &[(&str, &str)],
    inputs: &[&Symbol],
    graphs: &[Symbol],
) -> Result<Symbol, OpError> {
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Symbol::create_with_subgraphs(op(op_name), name.to_owned(), attrs(pairs), inputs, graphs.to_vec())
}

/// `state = state + row * w`, which is also the output.
fn sums() -> Symbol {
    let product = apply("broadcast_mul", "product", &[], &[&var("row"), &var("w")]);
    let sum = apply("elemwise_add", "sum", &[], &[&product, &var("state")]);
    let body = Symbol::group(&[sum.clone(), apply("_copy", "last", &[], &[&sum])]);
    // The body's inputs are row, w, state.
    let places = [("in_data_locs", "[0]"), ("in_state_locs", "[2]"), ("remain_locs", "[1]")];
    let counts = [("num_outputs", "2"), ("num_out_data", "1")];
    node("_foreach", "loop", &[&places[..], &counts[..]].concat(), &[&var("data"), &var("init"), &var("w")], &[body])
}

/// A recurrent step with dense weights: `state = tanh(row W' + b + state)`.
fn recurrent(count: &str) -> Symbol {
    let dense =
        apply("FullyConnected", "fc", &[("num_hidden", count)], &[&var("row"), &var("fc_weight"), &var("fc_bias")]);
    let sum = apply("elemwise_add", "sum", &[], &[&dense, &var("state")]);
    let state = apply("tanh", "state_out", &[], &[&sum]);
    let body = Symbol::group(&[state.clone(), apply("_copy", "last", &[], &[&state])]);
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[3]"),
        ("remain_locs", "[1, 2]"),
        ("num_outputs", "2"),
        ("num_out_data", "1"),
    ];
    let inputs = [&var("data"), &var("init"), &var("fc_weight"), &var("fc_bias")];
    node("_foreach", "recurrent", &attrs, &inputs, &[body])
}

fn compile(symbol: &Symbol) -> CachedOp {
    CachedOp::new(engine(), symbol, &CachedOpFlags::default()).unwrap_or_else(|e| panic!("{}", e.message))
}

fn call(op: &CachedOp, inputs: &[&NDArray]) -> Vec<Vec<f32>> {
    op.run(inputs).unwrap_or_else(|e| panic!("{}", e.message)).iter().map(values).collect()
}

fn running_sums(rows: &[f32], width: usize, w: f32) -> Vec<f32> {
    let mut state = vec![0.0; width];
    let mut all = Vec::new();
    for row in rows.chunks(width) {
        state.iter_mut().zip(row).for_each(|(s, x)| *s += x * w);
        all.extend(&state);
    }
    all
}

#[test]
fn a_loop_over_rows_stacks_outputs_and_returns_the_last_state() {
    let op = compile(&sums());
    for rows in [1, 2, 3, 1000] {
        let data = counted(&[rows, 2]);
        let out = call(&op, &[&data, &floats(&[2], [0.0; 2]), &floats(&[1], [2.0])]);
        let want = running_sums(&values(&data), 2, 2.0);
        assert_eq!(out[0], want, "{rows} rows");
        assert_eq!(out[1], want[want.len() - 2..], "{rows} rows");
    }
    let none = call(&op, &[&floats(&[0, 2], []), &floats(&[2], [3.0, 4.0]), &floats(&[1], [2.0])]);
    assert_eq!(none, [vec![], vec![3.0, 4.0]], "without rows the states stay");
}

#[test]
fn a_row_of_a_list_of_numbers_has_one_element() {
    let op = compile(&sums());
    let out = op.run(&[&floats(&[3], [1.0, 2.0, 3.0]), &floats(&[1], [0.0]), &floats(&[1], [1.0])]);
    let out = out.unwrap_or_else(|e| panic!("{}", e.message));
    assert_eq!(out[0].shape(), &Shape::new(&[3, 1]));
    assert_eq!(values(&out[0]), [1.0, 3.0, 6.0]);
}

#[test]
fn memory_of_a_loop_does_not_grow_with_its_length() {
    let op = compile(&recurrent("8"));
    let arena = |rows: usize| {
        let arrays = [counted(&[rows, 4, 8]), counted(&[4, 8]), counted(&[8, 8]), counted(&[8])];
        let types: Vec<_> = arrays.iter().map(|a| a.tensor_type()).collect();
        op.plan(&types).unwrap_or_else(|e| panic!("{}", e.message)).arena_bytes
    };
    assert_eq!(arena(2), arena(2000));
    assert!(arena(2) > 0);
}

#[test]
fn weights_of_a_loop_are_packed_once_for_all_lengths_and_follow_their_versions() {
    let op = compile(&recurrent("32"));
    let weight = counted(&[32, 32]);
    let arrays = |rows: usize| [counted(&[rows, 4, 32]), counted(&[4, 32])];
    let bias = counted(&[32]);
    let run = |rows: usize, weight: &NDArray| {
        let [data, init] = arrays(rows);
        call(&op, &[&data, &init, weight, &bias])
    };
    let short = run(3, &weight);
    let packed = op.stats().constant_bytes;
    assert!(packed > 0, "the weights are constants");
    let long = run(50, &weight);
    assert_eq!(op.stats().constant_bytes, packed, "another length packs nothing");
    assert_eq!(long[0][..short[0].len()], short[0]);
    let [data, init] = arrays(3);
    let types: Vec<_> = [&data, &init, &weight, &bias].iter().map(|a| a.tensor_type()).collect();
    let text = op.plan_text(&types).unwrap_or_else(|e| panic!("{}", e.message));
    assert!(text.contains("3 rows of 2 steps, 1 constants"), "{text}");
    assert!(text.contains("1 steps, 1 constants") && !text.contains("packed 0"), "{text}");
    let zero = floats(&[32, 32], [0.0; 1024]);
    let other = run(3, &zero);
    assert_ne!(other, short);
    assert_eq!(run(3, &weight), short);
}

/// `i = i + 1, s = s + i` while `i < limit`; the output is `2 s`.
fn counting(max_iterations: &str) -> Symbol {
    let condition = apply("_lesser_scalar", "below", &[("scalar", "5")], &[&var("i")]);
    let doubled = apply("_mul_scalar", "doubled", &[("scalar", "2")], &[&var("s")]);
    let next = apply("_plus_scalar", "next", &[("scalar", "1")], &[&var("i")]);
    let sum = apply("elemwise_add", "sum", &[], &[&var("s"), &var("i")]);
    // Two variables of one name would be two inputs.
    let (i, s) = (var("i"), var("s"));
    let step = Symbol::group(&[doubled, next, sum])
        .compose(None, vec![(Some("i".to_owned()), i), (Some("s".to_owned()), s)])
        .unwrap_or_else(|e| panic!("{e}"));
    let attrs = [
        ("max_iterations", max_iterations),
        ("cond_input_locs", "[0]"),
        ("func_input_locs", "[1, 0]"),
        ("func_var_locs", "[1, 0]"),
        ("num_out_data", "1"),
        ("num_outputs", "3"),
    ];
    node("_while_loop", "count", &attrs, &[&var("i"), &var("s")], &[condition, step])
}

#[test]
fn a_while_loop_ends_when_its_condition_or_its_limit_says_so() {
    let run = |limit: &str, i: f32| call(&compile(&counting(limit)), &[&floats(&[1], [i]), &floats(&[1], [1.0])]);
    // i, s: 0 1, 1 1, 2 2, 3 4, 4 7, 5 11
    assert_eq!(run("6", 0.0), [vec![2.0, 2.0, 4.0, 8.0, 14.0, 0.0], vec![5.0], vec![11.0]]);
    assert_eq!(run("3", 0.0), [vec![2.0, 2.0, 4.0], vec![3.0], vec![4.0]]);
    assert_eq!(run("6", 1.0), [vec![2.0, 4.0, 8.0, 14.0, 0.0, 0.0], vec![5.0], vec![11.0]]);
    assert_eq!(run("2", 9.0), [vec![0.0, 0.0], vec![9.0], vec![1.0]], "not a single step");
}

/// `x + y` if the first value of `p` is not zero, else `x * 3`.
fn branch() -> Symbol {
    let condition = apply("_copy", "p_out", &[], &[&var("p")]);
    let left = apply("elemwise_add", "plus", &[], &[&var("x"), &var("y")]);
    let right = apply("_mul_scalar", "times", &[("scalar", "3")], &[&var("x")]);
    let attrs =
        [("cond_input_locs", "[0]"), ("then_input_locs", "[1, 2]"), ("else_input_locs", "[1]"), ("num_outputs", "1")];
    node("_cond", "branch", &attrs, &[&var("p"), &var("x"), &var("y")], &[condition, left, right])
}

#[test]
fn a_branch_is_chosen_by_the_value() {
    let op = compile(&branch());
    let (x, y) = (floats(&[2], [1.0, 2.0]), floats(&[2], [10.0, 20.0]));
    let run = |p: f32| call(&op, &[&floats(&[1], [p]), &x, &y]);
    for p in [1.0, -0.5, f32::NAN, f32::MIN_POSITIVE / 4.0] {
        assert_eq!(run(p), [[11.0, 22.0]], "{p}");
    }
    for p in [0.0, -0.0] {
        assert_eq!(run(p), [[3.0, 6.0]], "{p}");
    }
}

/// A loop in a loop: it computes, for every row of `data`, the sum of `sums` over the row's rows.
fn nested() -> Symbol {
    let inner = sums();
    let (inner, w) = (inner.output(1).unwrap_or_else(|| panic!("two outputs")), var("w"));
    let arguments = [("data", var("matrix")), ("init", var("total")), ("w", w)];
    let arguments = arguments.map(|(name, symbol)| (Some(name.to_owned()), symbol)).to_vec();
    let total = inner.compose(None, arguments).unwrap_or_else(|e| panic!("{e}"));
    let body = Symbol::group(&[total.clone(), apply("_copy", "kept", &[], &[&total])]);
    assert_eq!(body.list_inputs(), ["matrix", "total", "w"]);
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[1]"),
        ("remain_locs", "[2]"),
        ("num_outputs", "2"),
        ("num_out_data", "1"),
    ];
    node("_foreach", "outer", &attrs, &[&var("data"), &var("init"), &var("w")], &[body])
}

#[test]
fn loops_nest_and_their_text_says_the_same() {
    let symbol = nested();
    let again = load(&symbol.to_json());
    assert_eq!(again.to_json(), symbol.to_json());
    let data = counted(&[3, 4, 2]);
    let want = running_sums(&values(&data), 2, 0.5);
    for symbol in [symbol, again] {
        let out = call(&compile(&symbol), &[&data, &floats(&[2], [0.0; 2]), &floats(&[1], [0.5])]);
        let ends: Vec<f32> = want.chunks(8).flat_map(|block| block[6..].to_vec()).collect();
        assert_eq!(out, [ends, want[22..].to_vec()]);
    }
}

#[test]
fn types_go_through_graphs_in_both_directions() {
    let known = |pairs: &[(&str, &[usize])]| -> Vec<(String, PartialShape)> {
        pairs.iter().map(|(n, s)| ((*n).to_owned(), PartialShape::from_zero_unknown(s))).collect()
    };
    let of = |dims: &[usize]| PartialShape::from_zero_unknown(dims);
    let found = recurrent("6").infer_shape(&known(&[("data", &[5, 2, 3])]), false).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.args, [of(&[5, 2, 3]), of(&[2, 6]), of(&[6, 3]), of(&[6])]);
    assert_eq!(found.outs, [of(&[5, 2, 6]), of(&[2, 6])]);
    let nested =
        nested().infer_shape(&known(&[("data", &[5, 0, 3]), ("w", &[1])]), true).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(nested.outs, [of(&[5, 3]), of(&[3])]);
    let types = counting("4").infer_type(&[("s".to_owned(), mxrt_tensor::DType::F64)], false);
    let types = types.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(types.args, [Some(mxrt_tensor::DType::F64); 2]);
    let shapes = counting("4").infer_shape(&known(&[("i", &[1])]), false).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(shapes.outs, [of(&[4, 1]), of(&[1]), of(&[1])]);
}

#[test]
fn what_does_not_fit_is_an_error_that_names_the_node() {
    let message = |error: GraphError| OpError::from(error).message.clone();
    let known = [("data", &[5, 2][..]), ("init", &[3]), ("w", &[1])];
    let known = known.map(|(name, dims)| (name.to_owned(), Shape::new(dims).into()));
    let text = message(sums().infer_shape(&known, false).expect_err("the state has another shape"));
    assert!(text.contains("Error in operator loop") && text.contains("(3,)"), "{text}");
    let known = [("p".to_owned(), Shape::new(&[2]).into())];
    let text = message(branch().infer_shape(&known, true).expect_err("two numbers are no condition"));
    assert!(text.contains("the condition must be a single number"), "{text}");
    let body = apply("_copy", "copy", &[], &[&var("row")]);
    let mut attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[]"),
        ("remain_locs", "[]"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
    ];
    attrs[0].1 = "[7]";
    let error = try_node("_foreach", "wrong", &attrs, &[&var("data")], &[body]).expect_err("there is no input 7");
    assert!(error.message.contains("in_data_locs names input 7, but there are 1"), "{}", error.message);
    assert_eq!(error.node.as_deref(), Some("wrong"));
    attrs[0].1 = "[0]";
    let error = try_node("_foreach", "empty", &attrs, &[&var("data")], &[]).expect_err("there is no graph");
    assert!(error.message.contains("runs 1 graphs (body), but the node has 0"), "{}", error.message);
}

#[test]
fn graphs_inside_graphs_end_somewhere() {
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[]"),
        ("remain_locs", "[]"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
    ];
    let mut body = apply("_copy", "copy", &[], &[&var("row")]);
    for depth in 0..20 {
        match try_node("_foreach", &format!("depth{depth}"), &attrs, &[&var("row")], &[body.clone()]) {
            Ok(deeper) => body = deeper,
            Err(error) => {
                assert!(depth == 8 && error.message.contains("deeper than 8"), "{depth}: {}", error.message);
                return;
            }
        }
    }
    panic!("twenty graphs inside each other were accepted");
}

/// `w[row]` for every row; an index that `w` does not have is an error of the operator.
fn picks() -> Symbol {
    let picked = apply("gather_nd", "fetch", &[], &[&var("w"), &var("row")]);
    let attrs = [
        ("in_data_locs", "[1]"),
        ("in_state_locs", "[]"),
        ("remain_locs", "[0]"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
    ];
    node("_foreach", "picking", &attrs, &[&var("data"), &var("w")], &[picked])
}

#[test]
fn a_failure_names_the_inner_node_and_the_iteration() {
    let op = compile(&picks());
    let w = floats(&[4], [1.0, 2.0, 3.0, 4.0]);
    let good = call(&op, &[&floats(&[3, 1, 1], [0.0, 3.0, 1.0]), &w]);
    assert_eq!(good, [[1.0, 4.0, 2.0]]);
    let bad = op.run(&[&floats(&[3, 1, 1], [0.0, 3.0, 9.0]), &w]).unwrap_or_else(|e| panic!("{}", e.message));
    let Err(WaitError::Failed(failure)) = bad[0].wait_to_read() else { panic!("index 9 does not exist") };
    assert_eq!(failure.node(), Some("fetch"));
    assert!(failure.message().contains("(in iteration 2 of _foreach 'picking')"), "{}", failure.message());
    assert_eq!(failure.kind(), FailureKind::Index);
    assert_eq!(call(&op, &[&floats(&[1, 1, 1], [2.0]), &w]), [[3.0]], "the next call is not concerned");
}

/// `row * relu(w)[0] + relu(w)[at]` for every row, where `w` and `at` are captured.
fn with_captured() -> Symbol {
    let positive = apply("relu", "positive", &[], &[&var("w")]);
    let picked = apply("gather_nd", "fetch", &[], &[&positive, &var("at")]);
    let first = apply("slice", "first", &[("begin", "(0,)"), ("end", "(1,)")], &[&positive]);
    let scaled = apply("broadcast_mul", "scaled", &[], &[&var("row"), &first]);
    let sum = apply("broadcast_add", "sum", &[], &[&scaled, &picked]);
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[]"),
        ("remain_locs", "[1, 2]"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
    ];
    node("_foreach", "scaling", &attrs, &[&var("data"), &var("w"), &var("at")], &[sum])
}

#[test]
fn what_depends_on_captured_values_alone_is_computed_before_the_first_iteration() {
    let arrays = [counted(&[5, 3]), floats(&[4], [2.0, -1.0, 5.0, 0.5]), floats(&[1, 1], [2.0])];
    let inputs: Vec<&NDArray> = arrays.iter().collect();
    let want: Vec<f32> = values(&arrays[0]).iter().map(|x| x * 2.0 + 5.0).collect();
    let op = compile(&with_captured());
    assert_eq!(call(&op, &inputs)[0], want);
    let types: Vec<_> = arrays.iter().map(|a| a.tensor_type()).collect();
    let text = op.plan_text(&types).unwrap_or_else(|e| panic!("{}", e.message));
    assert!(text.contains("5 rows of 2 steps, 0 constants, 3 before them"), "{text}");
    let without = compile_without_hoist(&with_captured());
    assert_eq!(call(&without, &inputs)[0], want);
    let text = without.plan_text(&types).unwrap_or_else(|e| panic!("{}", e.message));
    assert!(!text.contains("before them"), "{text}");
}

/// Compiles a symbol without the pass `hoist`.
fn compile_without_hoist(symbol: &Symbol) -> CachedOp {
    let passes = PassChoice::parse("-hoist").expect("it is known");
    let options = BuildOptions { passes, ..BuildOptions::default() };
    let op = CachedOp::compile(engine(), symbol, &CachedOpFlags::default(), options);
    op.unwrap_or_else(|e| panic!("{}", e.message))
}

#[test]
fn captured_weights_that_are_not_constant_are_packed_before_the_first_iteration() {
    // The weights are a product of data, so that they are an operand of the loop.
    let weight = apply("elemwise_mul", "weight", &[], &[&var("a"), &var("b")]);
    // Two variables of one name would be two inputs.
    let w = var("w");
    let inside = apply("_mul_scalar", "halved", &[("scalar", "0.5")], &[&w]);
    let first = apply("FullyConnected", "first", &[("num_hidden", "48"), ("no_bias", "1")], &[&var("row"), &w]);
    let second = apply("FullyConnected", "second", &[("num_hidden", "48"), ("no_bias", "1")], &[&var("s"), &inside]);
    let sum = apply("elemwise_add", "sum", &[], &[&first, &second]);
    let body = Symbol::group(&[sum.clone(), apply("tanh", "last", &[], &[&sum])]);
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[2]"),
        ("remain_locs", "[1]"),
        ("num_outputs", "2"),
        ("num_out_data", "1"),
    ];
    let net = node("_foreach", "loop", &attrs, &[&var("data"), &var("init"), &weight], &[body]);
    let (op, without) = (compile(&net), compile_without_hoist(&net));
    let (data, init) = (counted(&[5, 1, 48]), counted(&[1, 48]));
    for turn in 0..3 {
        let (a, b) = (counted(&[48, 48]), floats(&[48, 48], (0..).map(|n| ((n + turn) % 5) as f32 * 0.25 - 0.5)));
        let inputs = [&data, &init, &a, &b];
        let types: Vec<_> = inputs.iter().map(|array| array.tensor_type()).collect();
        assert_eq!(call(&op, &inputs), call(&without, &inputs), "other weights, other packings");
        let text = op.plan_text(&types).unwrap_or_else(|e| panic!("{}", e.message));
        assert!(text.contains(", 3 before them"), "one step and two packings: {text}");
    }
    let empty = floats(&[0, 1, 48], []);
    let results = call(&op, &[&empty, &init, &counted(&[48, 48]), &counted(&[48, 48])]);
    assert_eq!(results[1], values(&init), "a loop without iterations packs nothing");
}

#[test]
fn a_while_loop_computes_what_depends_on_captured_values_alone_once() {
    // i = i + 1, s = s + relu(w) while i < relu(w): both graphs have something to compute before.
    let limit = apply("relu", "limit", &[], &[&var("w")]);
    let condition = apply("broadcast_lesser", "below", &[], &[&var("i"), &limit]);
    let next = apply("_plus_scalar", "next", &[("scalar", "1")], &[&var("i")]);
    let step = apply("relu", "step", &[], &[&var("w")]);
    let sum = apply("elemwise_add", "sum", &[], &[&var("s"), &step]);
    let (i, s) = (var("i"), var("s"));
    let body = Symbol::group(&[apply("_copy", "seen", &[], &[&sum]), next, sum])
        .compose(None, vec![(Some("i".to_owned()), i), (Some("s".to_owned()), s)])
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(body.list_arguments(), ["s", "w", "i"]);
    let attrs = [
        ("max_iterations", "6"),
        ("cond_input_locs", "[0, 2]"),
        ("func_input_locs", "[1, 2, 0]"),
        ("func_var_locs", "[2, 0]"),
        ("num_out_data", "1"),
        ("num_outputs", "3"),
    ];
    let net = node("_while_loop", "count", &attrs, &[&var("i"), &var("s"), &var("w")], &[condition, body]);
    let (op, without) = (compile(&net), compile_without_hoist(&net));
    for (w, taken) in [(3.0, 3), (0.5, 1), (-2.0, 0), (9.0, 6)] {
        let arrays = [floats(&[1], [0.0]), floats(&[1], [1.0]), floats(&[1], [w])];
        let inputs: Vec<&NDArray> = arrays.iter().collect();
        let want: Vec<f32> = (0..6).map(|t| if t < taken { 1.0 + (t + 1) as f32 * w } else { 0.0 }).collect();
        let results = call(&op, &inputs);
        assert_eq!(results[0], want);
        assert_eq!(results[1..], [vec![taken as f32], vec![1.0 + taken as f32 * f32::max(w, 0.0)]]);
        assert_eq!(call(&without, &inputs), results);
    }
    let types: Vec<_> = (0..3).map(|_| floats(&[1], [0.0]).tensor_type()).collect();
    let text = op.plan_text(&types).unwrap_or_else(|e| panic!("{}", e.message));
    assert!(text.contains(", 1 before them"), "{text}");
}

#[test]
fn a_loop_without_iterations_computes_nothing_and_else_the_first_one_fails() {
    let op = compile(&with_captured());
    let (w, no_such) = (counted(&[4]), floats(&[1, 1], [9.0]));
    assert_eq!(call(&op, &[&floats(&[0, 3], []), &w, &no_such]), [Vec::<f32>::new()]);
    let bad = op.run(&[&counted(&[2, 3]), &w, &no_such]).unwrap_or_else(|e| panic!("{}", e.message));
    let Err(WaitError::Failed(failure)) = bad[0].wait_to_read() else { panic!("index 9 does not exist") };
    assert_eq!(failure.node(), Some("fetch"));
    assert!(failure.message().contains("(in iteration 0 of _foreach 'scaling')"), "{}", failure.message());
}

/// A loop that adds a random number to each row.
fn noise() -> Symbol {
    let drawn = apply("_random_uniform", "drawn", &[("shape", "(2,)")], &[]);
    let sum = apply("elemwise_add", "sum", &[], &[&drawn, &var("row")]);
    let attrs = [
        ("in_data_locs", "[0]"),
        ("in_state_locs", "[]"),
        ("remain_locs", "[]"),
        ("num_outputs", "1"),
        ("num_out_data", "1"),
    ];
    node("_foreach", "noise", &attrs, &[&var("data")], &[sum])
}

#[test]
fn iterations_draw_other_numbers_and_a_seed_gives_them_again() {
    let data = floats(&[50, 2], [0.0; 100]);
    let run = |seed: u64| {
        let op = compile(&noise()).with_random(Arc::new(RandomState::new(seed)));
        [call(&op, &[&data]).remove(0), call(&op, &[&data]).remove(0)]
    };
    let [first, second] = run(3);
    let mut all: Vec<u32> = first.iter().chain(&second).map(|x| x.to_bits()).collect();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() > 195, "only {} of 200 numbers differ", all.len());
    assert!(first.iter().all(|x| (0.0..1.0).contains(x)));
    assert_eq!(run(3), [first, second.clone()]);
    assert_ne!(run(4)[1], second);
}

#[test]
fn threads_share_a_loop_with_different_lengths() {
    let op = compile(&recurrent("8"));
    let (weight, bias) = (counted(&[8, 8]), counted(&[8]));
    let run = |rows: usize| {
        let (data, init) = (counted(&[rows, 2, 8]), counted(&[2, 8]));
        call(&op, &[&data, &init, &weight, &bias])
    };
    let want: Vec<_> = (1..9).map(run).collect();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (run, want) = (&run, &want);
            scope.spawn(move || {
                for round in 0..8 {
                    let rows = (thread + round) % 8;
                    assert_eq!(run(rows + 1), want[rows], "{} rows", rows + 1);
                }
            });
        }
    });
    assert_eq!(op.stats().plans, 8);
}

#[test]
fn a_cut_names_what_it_reads_from_outside() {
    let inside = |op_name: &str, name: &str, inputs: &[&Symbol]| {
        let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
        let made = Symbol::create(op(op_name), name.to_owned(), attrs(&[("__subgraph_name__", "body")]), inputs);
        made.unwrap_or_else(|e| panic!("{}", e.message))
    };
    let outside = apply("tanh", "outside", &[], &[&var("x")]);
    let product = inside("elemwise_mul", "product", &[&outside, &var("w")]);
    let sum = inside("elemwise_add", "sum", &[&product, &outside]);
    let (body, read) = sum.cut_subgraph("body");
    assert_eq!(body.list_inputs(), ["outside_output", "w"]);
    assert_eq!(read.iter().map(|e| e.node.name.as_str()).collect::<Vec<_>>(), ["outside", "w"]);
    assert_eq!(sum.list_inputs(), ["x", "w"], "the graph itself stays as it is");
    let op = compile(&body);
    assert_eq!(call(&op, &[&floats(&[1], [2.0]), &floats(&[1], [5.0])]), [[12.0]]);
}
