//! Passes that choose layouts, and how much of an image is computed.

use super::*;

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
