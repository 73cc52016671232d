//! Passes that make several nodes one step.

use super::*;

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
fn fuse_function_gives_a_layer_one_function_that_devices_apply() {
    let layer = apply("FullyConnected", "fc", &[("num_hidden", "8"), ("no_bias", "True")], &[&var("data")]);
    let fused = |symbol: &Symbol, dtype: DType| {
        let types = [&[4, 3][..], &[8, 3]].map(|shape| TensorType::new(dtype, shape));
        run_typed_on(&["fuse_conv", "fuse_elementwise", "fuse_function"], graph(symbol), &types)
    };
    let gelu = apply("LeakyReLU", "gelu", &[("act_type", "gelu")], &[&layer]);
    for dtype in [DType::F32, DType::F16] {
        assert_eq!(
            fused(&gelu, dtype),
            "%0 = _fused_fully_connected(data, fc_weight) \
             {no_bias=True, num_hidden=8, program=LeakyReLU(in0){act_type=gelu}} 'fc'\nreturn %0\n"
        );
    }
    let tanh = |x: &Symbol| apply("tanh", "t", &[], &[x]);
    let relu = apply("relu", "r", &[], &[&layer]);
    // The second function after the activation, other functions, chains, and other types are no part of it.
    for (symbol, dtype, operators) in [
        (tanh(&relu), DType::F32, ["_fused_fully_connected", "tanh"]),
        (tanh(&gelu), DType::F32, ["FullyConnected", "_fused_elementwise"]),
        (apply("exp", "e", &[], &[&layer]), DType::F32, ["FullyConnected", "exp"]),
        (tanh(&layer), DType::F64, ["FullyConnected", "tanh"]),
    ] {
        assert_eq!(super::operators(&fused(&symbol, dtype)), operators);
    }
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
