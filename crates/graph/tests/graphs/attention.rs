//! Attention as models write it becomes one step with the answers of its operators one by one.

use crate::common::compare::{check_on, engine, inputs_for};
use crate::common::{apply, var};
use mxrt_graph::{BuildOptions, Symbol};
use mxrt_tensor::{Context, DType, NDArray, TensorType};

fn shaped(op: &str, name: &str, key: &str, value: &str, x: &Symbol) -> Symbol {
    apply(op, name, &[(key, value)], &[x])
}

fn dense(name: &str, x: &Symbol, outputs: usize) -> Symbol {
    apply("FullyConnected", name, &[("num_hidden", &outputs.to_string()), ("flatten", "False")], &[x])
}

fn scores(q: &Symbol, k: &Symbol) -> Symbol {
    apply("batch_dot", "scores", &[("transpose_b", "True")], &[q, k])
}

fn softmax(scores: &Symbol) -> Symbol {
    apply("softmax", "weights", &[("axis", "-1")], &[scores])
}

fn values(weights: &Symbol, v: &Symbol) -> Symbol {
    apply("batch_dot", "values", &[], &[weights, v])
}

/// `(batch, time, heads * dim)` as `(batch * heads, time, dim)`.
fn split_heads(name: &str, x: &Symbol, [time, heads, dim]: [usize; 3]) -> Symbol {
    let split = shaped("Reshape", &format!("{name}_s"), "shape", &format!("(-1, {time}, {heads}, {dim})"), x);
    let turned = shaped("transpose", &format!("{name}_t"), "axes", "(0, 2, 1, 3)", &split);
    shaped("Reshape", &format!("{name}_h"), "shape", &format!("(-1, {time}, {dim})"), &turned)
}

fn join_heads(x: &Symbol, [time, heads, dim]: [usize; 3]) -> Symbol {
    let split = shaped("Reshape", "out_s", "shape", &format!("(-1, {heads}, {time}, {dim})"), x);
    let turned = shaped("transpose", "out_t", "axes", "(0, 2, 1, 3)", &split);
    shaped("Reshape", "out", "shape", &format!("(-1, {time}, {})", heads * dim), &turned)
}

/// The operators of a plan's steps, after its answers were compared with those of its operators.
fn steps(symbol: &Symbol, inputs: &[NDArray]) -> Vec<String> {
    let text = check_on(symbol, inputs, BuildOptions::default());
    let names = ["_fused_attention", "batch_dot", "softmax", "transpose", "FullyConnected", "_contrib", "_mul_scalar"];
    let count = |name: &&str| text.matches(&format!(" {name}")).count();
    names.iter().filter(|name| count(name) > 0).map(|name| format!("{name} {}", count(name))).collect()
}

#[test]
fn heads_are_read_and_written_where_layers_store_them() {
    for sizes in [[21, 3, 16], [5, 2, 1], [1, 3, 16], [1, 1, 1]] {
        let [time, heads, dim] = sizes;
        let width = heads * dim;
        let x = var("data");
        let [q, k, v] = ["q", "k", "v"].map(|name| split_heads(name, &dense(name, &x, width), sizes));
        let scaled = apply("_mul_scalar", "scaled", &[("scalar", "0.25")], &[&q]);
        let joined = join_heads(&values(&softmax(&scores(&scaled, &k)), &v), sizes);
        let net = dense("o", &joined, width);
        for batch in [1, 2] {
            let inputs = inputs_for(&net, &[("data", &[batch, time, width])]);
            assert_eq!(steps(&net, &inputs), ["_fused_attention 1", "FullyConnected 4"], "{sizes:?}, batch {batch}");
        }
    }
}

#[test]
fn masks_and_factors_belong_to_it() {
    for mask in [[6, 9, 11], [6, 1, 11], [1, 9, 11], [1, 1, 11]] {
        let product = scores(&var("q"), &var("k"));
        let scaled = apply("_div_scalar", "scaled", &[("scalar", "3")], &[&product]);
        let masked = apply("broadcast_add", "masked", &[], &[&var("mask"), &scaled]);
        let net = values(&softmax(&masked), &var("v"));
        let known: [(&str, &[usize]); 4] = [("q", &[6, 9, 5]), ("k", &[6, 11, 5]), ("v", &[6, 11, 7]), ("mask", &mask)];
        assert_eq!(steps(&net, &inputs_for(&net, &known)), ["_fused_attention 1"], "{mask:?}");
    }
}

#[test]
fn slices_of_one_projection_are_read_in_place() {
    let all = dense("qkv", &var("data"), 30);
    let part = |name: &str, begin: usize| {
        let (begin, end) = (begin.to_string(), (begin + 10).to_string());
        apply("slice_axis", name, &[("axis", "2"), ("begin", &begin), ("end", &end)], &[&all])
    };
    let net = values(&softmax(&scores(&part("q", 0), &part("k", 10))), &part("v", 20));
    assert_eq!(steps(&net, &inputs_for(&net, &[("data", &[3, 7, 12])])), ["_fused_attention 1", "FullyConnected 1"]);
}

/// Lengths of rows, some of them without keys.
fn lengths(rows: usize, keys: usize) -> NDArray {
    let bytes: Vec<u8> = (0..rows).flat_map(|row| ((row * 5 % (keys + 1)) as i32).to_le_bytes()).collect();
    NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(DType::I32, [rows / 5, 5]), &bytes)
        .expect("an array")
}

#[test]
fn interleaved_projections_with_lengths_are_one_step() {
    let (qkv, heads) = (var("data"), [("heads", "4")]);
    let products = apply("_contrib_interleaved_matmul_selfatt_qk", "qk", &heads, &[&qkv]);
    let attrs = [("axis", "-1"), ("use_length", "True")];
    let weights = apply("softmax", "weights", &attrs, &[&products, &var("length")]);
    let net = apply("_contrib_interleaved_matmul_selfatt_valatt", "mixed", &heads, &[&qkv, &weights]);
    let mut inputs = inputs_for(&net, &[("data", &[5, 2, 4 * 3 * 6])]);
    inputs[1] = lengths(2 * 4 * 5, 5);
    assert_eq!(steps(&net, &inputs), ["_fused_attention 1"]);

    let (q, kv) = (var("q"), var("kv"));
    let products = apply("_contrib_interleaved_matmul_encdec_qk", "qk", &heads, &[&q, &kv]);
    let net = apply("_contrib_interleaved_matmul_encdec_valatt", "mixed", &heads, &[&kv, &softmax(&products)]);
    let inputs = inputs_for(&net, &[("q", &[5, 2, 4 * 6]), ("kv", &[9, 2, 4 * 2 * 6])]);
    assert_eq!(steps(&net, &inputs), ["_fused_attention 1"]);
}

#[test]
fn products_of_any_rank_are_taken_where_matrices_are_whole() {
    let of = |name: &str, attrs: &[(&str, &str)], a: &Symbol, b: &Symbol| apply("_linalg_gemm2", name, attrs, &[a, b]);
    let products = of("qk", &[("transpose_b", "True"), ("alpha", "0.5")], &var("q"), &var("k"));
    let net = of("mixed", &[], &softmax(&products), &var("v"));
    let known: [(&str, &[usize]); 3] = [("q", &[2, 3, 9, 5]), ("k", &[2, 3, 11, 5]), ("v", &[2, 3, 11, 7])];
    assert_eq!(steps(&net, &inputs_for(&net, &known)), ["_fused_attention 1"]);
}

#[test]
fn what_others_read_or_what_is_something_else_stays() {
    let known: [(&str, &[usize]); 3] = [("q", &[6, 9, 5]), ("k", &[6, 9, 5]), ("v", &[6, 9, 7])];
    let weights = softmax(&scores(&var("q"), &var("k")));
    let both = Symbol::group(&[values(&weights, &var("v")), weights]);
    let cooled = apply("softmax", "w", &[("temperature", "2")], &[&scores(&var("q"), &var("k"))]);
    let other_axis = apply("softmax", "w", &[("axis", "1")], &[&scores(&var("q"), &var("k"))]);
    let turned =
        apply("batch_dot", "o", &[("transpose_a", "True")], &[&softmax(&scores(&var("q"), &var("k"))), &var("v")]);
    for net in [both, values(&cooled, &var("v")), values(&other_axis, &var("v")), turned] {
        assert_eq!(steps(&net, &inputs_for(&net, &known)), ["batch_dot 2", "softmax 1"]);
    }
}
