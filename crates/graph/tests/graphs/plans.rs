//! A plan gives what its operators give one by one, whatever was folded, fused and laid out
//! differently.

use crate::common::Calls as _;
use crate::common::compare::{array, check, check_with, conv, engine, inputs, norm, relu, values};
use crate::common::{apply, fixture, load, var};
use mxrt_graph::{BuildOptions, PassChoice};
use mxrt_graph::{CachedOp, CachedOpFlags, Symbol, passes};
use mxrt_ops::KernelOptions;
use mxrt_tensor::{NDArray, Shape, TensorType};

#[test]
fn a_residual_block_becomes_two_steps_between_conversions() {
    let x = var("data");
    let inner = relu("r1", &norm("n1", &conv("c1", &x, "32", &[("no_bias", "True")])));
    let outer = norm("n2", &conv("c2", &inner, "32", &[]));
    for add in ["elemwise_add", "broadcast_add"] {
        let out = relu("r2", &apply(add, "sum", &[], &[&outer, &x]));
        let text = check(&out, &[2, 32, 9, 11]);
        assert_eq!(text.matches("_blocked_convolution").count(), 2, "{text}");
        assert_eq!(text.matches("_to_blocked").count(), 1, "{text}");
        assert_eq!(text.matches("_from_blocked").count(), 1, "{text}");
        assert!(text.contains("\n4 steps"), "{text}");
    }
}

#[test]
fn networks_of_lines_stay_blocked_like_those_of_images() {
    let lines = |name: &str, x: &Symbol, filters, more: &[(&'static str, &'static str)]| {
        let mut attrs = vec![("num_filter", filters), ("kernel", "(3,)"), ("pad", "(1,)")];
        attrs.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        apply("Convolution", name, &[&attrs, more].concat(), &[x])
    };
    let x = var("data");
    let first = relu("r1", &norm("n1", &lines("c1", &x, "32", &[("stride", "(2,)")])));
    let pooled = apply("Pooling", "p1", &[("kernel", "(3,)"), ("stride", "(2,)"), ("pad", "(1,)")], &[&first]);
    let inner = relu("r2", &norm("n2", &lines("c2", &pooled, "32", &[("dilate", "(2,)"), ("pad", "(2,)")])));
    let sum = relu("r3", &apply("elemwise_add", "sum", &[], &[&lines("c3", &inner, "32", &[]), &pooled]));
    let gate = apply("elemwise_mul", "gated", &[], &[&sum, &apply("sigmoid", "gate", &[], &[&sum])]);
    let thin = lines("c4", &gate, "20", &[("kernel", "(1,)"), ("pad", "(0,)"), ("stride", "(2,)")]);
    let wide = lines("c5", &thin, "20", &[("num_group", "20")]);
    let joined = relu("r4", &norm("n4", &concat("joined", &[&thin, &wide])));
    let mean =
        apply("Pooling", "mean", &[("global_pool", "True"), ("pool_type", "avg"), ("kernel", "(1,)")], &[&joined]);
    for shape in [[1, 3, 50], [2, 3, 50], [1, 20, 33]] {
        let text = check(&apply("FullyConnected", "d", &[("num_hidden", "7")], &[&mean]), &shape);
        assert_eq!(text.matches("_to_blocked").count() + text.matches("_from_blocked").count(), 2, "{text}");
        let kinds = ["Convolution", "_fused_convolution", "Pooling", "Concat", "elemwise_add"];
        assert!(
            !text.lines().any(|line| line.split_whitespace().nth(1).is_some_and(|op| kinds.contains(&op))),
            "{text}"
        );
    }
    check(&Symbol::group(&[joined, pooled]), &[2, 3, 50]);
}

#[test]
fn layers_of_volumes_have_fast_kernels_with_what_follows_fused() {
    let x = var("data");
    let volumes = |name: &str, x: &Symbol, kernel, pad| {
        apply("Convolution", name, &[("num_filter", "20"), ("kernel", kernel), ("pad", pad)], &[x])
    };
    let inner = relu("r1", &norm("n1", &volumes("c1", &x, "(3, 3, 3)", "(1, 1, 1)")));
    let outer = norm("n2", &volumes("c2", &inner, "(3, 1, 1)", "(1, 0, 0)"));
    let text = check(&relu("r2", &apply("elemwise_add", "sum", &[], &[&outer, &x])), &[2, 20, 5, 9, 11]);
    assert_eq!(text.matches(", 3 slices at once").count(), 2, "{text}");
    assert!(text.contains("\n2 steps"), "{text}");
}

/// A graph in which every pass finds something to do.
fn for_every_pass() -> Symbol {
    let x = var("data");
    let inner = relu("r1", &norm("n1", &conv("c1", &x, "16", &[])));
    let twice = apply("elemwise_add", "twice", &[], &[&relu("a", &inner), &relu("b", &inner)]);
    let outer = norm("n2", &conv("c2", &apply("Dropout", "d", &[], &[&twice]), "16", &[]));
    let normal = relu("r2", &norm("n3", &apply("elemwise_add", "sum", &[], &[&outer, &inner])));
    let plus = apply("_plus_scalar", "plus", &[("scalar", "2")], &[&apply("tanh", "t", &[], &[&normal])]);
    let pixels = |name: &str, x: &Symbol, stride: &'static str| {
        apply("Convolution", name, &[("num_filter", "16"), ("kernel", "(1, 1)"), ("stride", stride)], &[x])
    };
    let last = pixels("c4", &pixels("c3", &plus, "(1, 1)"), "(2, 2)");
    let last = apply("_mul_scalar", "scaled", &[("scalar", "0.5")], &[&last]);
    let shift = apply("_full", "shift", &[("shape", "(1, 16, 1, 1)"), ("value", "0.5")], &[]);
    apply("broadcast_add", "out", &[], &[&last, &shift])
}

#[test]
fn chains_of_element_wise_operators_agree_plain_and_between_convolutions() {
    let swish = |name: &str, x: &Symbol| {
        let gate = apply("sigmoid", &format!("{name}_gate"), &[], &[x]);
        apply("elemwise_mul", name, &[], &[x, &gate])
    };
    let x = var("data");
    let plain = apply("_rminus_scalar", "out", &[("scalar", "2")], &[&swish("s", &apply("tanh", "t", &[], &[&x]))]);
    let text = check(&plain, &[3, 1001]);
    assert!(text.contains("\n1 steps"), "{text}");
    let inner = swish("s1", &conv("c1", &x, "20", &[]));
    let strided = conv("c2", &inner, "18", &[("stride", "(2, 2)")]);
    let elu = apply("LeakyReLU", "l", &[("act_type", "elu")], &[&strided]);
    let text = check(&conv("c3", &elu, "3", &[]), &[2, 5, 9, 12]);
    assert_eq!(text.matches("_blocked_elementwise").count(), 2, "{text}");
    assert_eq!(text.matches("_from_blocked").count(), 1, "{text}");
}

#[test]
fn a_leaky_rectifier_is_applied_where_layers_store() {
    let leaky = |name: &str, slope: &'static str, x: &Symbol| apply("LeakyReLU", name, &[("slope", slope)], &[x]);
    let x = var("data");
    // Direct, depthwise, Winograd with stride 1 and 2, by planes, with a residual, dense.
    let planes = leaky("l1", "0.1", &norm("n1", &conv("c1", &x, "32", &[])));
    let each = leaky("l2", "0.25", &conv("c2", &planes, "32", &[("num_group", "32")]));
    let inner = leaky("l3", "0.1", &norm("n3", &conv("c3", &each, "32", &[])));
    let sum = leaky("l4", "0.9", &apply("elemwise_add", "sum", &[], &[&conv("c4", &inner, "32", &[]), &planes]));
    let strided = leaky("l5", "0.1", &conv("c5", &sum, "20", &[("stride", "(2, 2)")]));
    let dense = apply("FullyConnected", "d", &[("num_hidden", "7")], &[&strided]);
    for (shape, layers) in [([1, 3, 14, 14], 5), ([2, 3, 14, 14], 5)] {
        let text = check(&leaky("l6", "0.1", &dense), &shape);
        assert_eq!(text.matches("_blocked_convolution").count(), layers, "{text}");
        assert!(!text.contains("LeakyReLU") && !text.contains("_blocked_elementwise"), "{text}");
    }
    // Not the larger of a value and its part: a step of its own.
    let other = leaky("l7", "-0.5", &conv("c7", &x, "16", &[]));
    assert!(check(&other, &[1, 3, 6, 6]).contains("_blocked_elementwise"));
    assert!(check(&leaky("l8", "0", &conv("c8", &x, "16", &[])), &[1, 3, 6, 6]).contains("_blocked_elementwise"));
}

#[test]
fn few_channels_stay_blocked_between_convolutions_that_add_pool_and_join_them() {
    let x = var("data");
    for few in ["1", "4", "6", "7"] {
        let first = relu("r1", &norm("n1", &conv("c1", &x, few, &[])));
        let each = conv("c2", &first, few, &[("num_group", few)]);
        let inner = conv("c3", &relu("r2", &each), "24", &[("kernel", "(1, 1)"), ("pad", "(0, 0)")]);
        let sum = apply("elemwise_add", "sum", &[], &[&conv("c4", &inner, few, &[]), &first]);
        let pooled = apply("Pooling", "p", &[("kernel", "(2, 2)"), ("stride", "(2, 2)")], &[&sum]);
        let wide = conv("c5", &pooled, "20", &[("kernel", "(5, 5)"), ("pad", "(2, 2)")]);
        let joined = concat("joined", &[&pooled, &wide, &conv("c6", &pooled, few, &[])]);
        let out = conv("c7", &joined, few, &[]);
        for shape in [[1, 16, 12, 14], [3, 16, 12, 14], [1, 3, 12, 14]] {
            let text = check(&out, &shape);
            assert_eq!(text.matches("_to_blocked").count() + text.matches("_from_blocked").count(), 2, "{text}");
        }
    }
    // The transform for first layers has no other form than planes.
    let phases = [("kernel", "(7, 7)"), ("pad", "(3, 3)"), ("stride", "(2, 2)")];
    check(&conv("c2", &conv("c1", &x, "4", &[]), "16", &phases), &[1, 16, 20, 22]);
}

/// A block of densely connected layers: each reads what all before it made.
fn dense_block(x: &Symbol, layers: usize, first: &'static str, growth: &'static str) -> Symbol {
    let mut joined = conv("c", x, first, &[]);
    for i in 0..layers {
        let kernel = if i % 2 == 0 { "(3, 3)" } else { "(5, 5)" };
        let pad = if i % 2 == 0 { "(1, 1)" } else { "(2, 2)" };
        let active = relu(&format!("r{i}"), &norm(&format!("n{i}"), &joined));
        let new = conv(&format!("c{i}"), &active, growth, &[("kernel", kernel), ("pad", pad)]);
        joined = apply("Concat", &format!("join{i}"), &[("num_args", "2"), ("dim", "1")], &[&joined, &new]);
    }
    apply("Pooling", "pool", &[("global_pool", "True"), ("pool_type", "avg"), ("kernel", "(1, 1)")], &[&joined])
}

#[test]
fn densely_connected_layers_are_joined_without_copying() {
    let symbol = dense_block(&var("data"), 4, "32", "16");
    let text = check(&symbol, &[1, 8, 9, 10]);
    assert!(!text.contains("_blocked_concat") && !text.contains("_copy"), "{text}");
    let off = PassChoice::parse("-concat_in_place").expect("it is known");
    let text = check_with(&symbol, &[1, 8, 9, 10], BuildOptions { passes: off, ..BuildOptions::default() });
    assert_eq!(text.matches("_blocked_concat").count(), 4, "{text}");
    let text = check(&symbol, &[3, 8, 9, 10]);
    assert_eq!(text.matches("_blocked_concat").count(), 4, "several images lie interleaved: {text}");
}

#[test]
fn channels_that_do_not_fill_blocks_are_written_behind_those_before_them() {
    for (first, growth) in [("20", "12"), ("24", "24"), ("9", "3"), ("16", "40")] {
        let symbol = dense_block(&var("data"), 5, first, growth);
        let text = check(&symbol, &[1, 8, 9, 10]);
        assert!(!text.contains("_blocked_concat"), "{text}");
        assert_eq!(text.matches("_to_blocked").count() + text.matches("_from_blocked").count(), 2, "{text}");
        let text = check(&symbol, &[3, 8, 9, 10]);
        assert_eq!(text.matches("_blocked_concat").count(), 5, "{text}");
    }
    let text = check(&dense_block(&var("data"), 5, "20", "12"), &[1, 8, 9, 10]);
    let lanes: Vec<&str> = text.split("from lane ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
    assert_eq!(lanes, ["4", "12", "8", "4"], "20, 32, 44, 56 and 68 channels are joined with 12: {text}");
}

#[test]
fn branches_of_several_kinds_are_joined_in_place_and_copied_where_they_must() {
    let x = var("data");
    let start = relu("r", &conv("c0", &x, "32", &[]));
    let a = relu("ra", &conv("ca", &start, "16", &[("kernel", "(1, 1)"), ("pad", "(0, 0)")]));
    let b = relu("rb", &conv("cb", &a, "48", &[]));
    let pool = apply("Pooling", "pool", &[("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("pool_type", "max")], &[&start]);
    let join = |name: &str, parts: &[&Symbol]| {
        apply("Concat", name, &[("num_args", &parts.len().to_string()), ("dim", "1")], parts)
    };
    let first = join("first", &[&a, &b, &pool]);
    // `a` is joined twice and read together with what it lies in; `first` is a result as well.
    let second = join("second", &[&conv("c1", &first, "16", &[]), &a, &a, &conv("c2", &start, "5", &[])]);
    let text = check(&conv("out", &second, "4", &[]), &[1, 6, 8, 11]);
    assert!(!text.contains("_blocked_concat"), "{text}");
    assert_eq!(text.matches("_copy").count(), 2, "{text}");
    check(&Symbol::group(&[conv("out", &second, "4", &[]), first.clone(), a]), &[1, 6, 8, 11]);
    check(&Symbol::group(&[join("third", &[&first, &first]), second]), &[1, 6, 8, 11]);
}

fn concat(name: &str, parts: &[&Symbol]) -> Symbol {
    apply("Concat", name, &[("num_args", &parts.len().to_string()), ("dim", "1")], parts)
}

#[test]
fn a_joined_value_and_a_part_of_it_are_joined_again() {
    let x = var("data");
    let [a, b, e] = ["a", "b", "e"].map(|name| conv(name, &x, "16", &[]));
    let inner = concat("inner", &[&a, &b]);
    // Steps of their own: one is a result, all parts of the other have a place.
    check(&concat("result", &[&inner, &a]), &[1, 16, 8, 8]);
    let around = conv("o1", &concat("around", &[&inner, &e]), "16", &[]);
    let again = conv("o2", &concat("again", &[&inner, &a]), "16", &[]);
    check(&Symbol::group(&[around, again]), &[1, 16, 8, 8]);
}

#[test]
fn values_that_are_joined_again_and_again_agree() {
    let mut state = 7u64;
    let mut below = move |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for graph in 0..300 {
        let mut values = vec![relu("first", &var("data"))];
        for v in 0..3 + below(8) {
            let name = format!("v{v}");
            let any = |below: &mut dyn FnMut(usize) -> usize| values[below(values.len())].clone();
            let new = match below(3) {
                0 => relu(&name, &any(&mut below)),
                1 => conv(&name, &any(&mut below), ["16", "32", "12", "5", "20"][below(5)], &[]),
                _ => {
                    let parts: Vec<Symbol> = (0..2 + below(2)).map(|_| any(&mut below)).collect();
                    concat(&name, &parts.iter().collect::<Vec<_>>())
                }
            };
            values.push(new);
        }
        let results: Vec<Symbol> = (0..1 + below(3)).map(|_| values[values.len() - 1 - below(3)].clone()).collect();
        check(&Symbol::group(&results), &[1 + graph % 2, 16, 4, 4]);
    }
}

#[test]
fn plain_arrays_are_joined_in_place_along_their_first_extent() {
    let x = var("data");
    let part = |name: &str| apply("softmax", name, &[("axis", if name == "a" { "1" } else { "0" })], &[&x]);
    let both = apply("Concat", "both", &[("num_args", "3"), ("dim", "0")], &[&part("a"), &part("b"), &x]);
    let text = check(&apply("sum", "s", &[("axis", "0")], &[&both]), &[4, 8]);
    assert!(!text.contains("Concat") && text.matches("_copy").count() == 1, "{text}");
}

#[test]
fn results_are_the_same_whichever_pass_is_switched_off() {
    let symbol = for_every_pass();
    let all = check(&symbol, &[2, 16, 6, 7]);
    // The effect of some is not seen in this plan, or had by others as well; `passes` looks at
    // each alone.
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    for name in passes::names().chain(["all"]) {
        let passes = PassChoice::parse(&format!("-{name}")).expect("the pass is known");
        let text = check_with(&symbol, &[2, 16, 6, 7], BuildOptions { passes, ..BuildOptions::default() });
        if text == all { unseen.push(name) } else { seen.push(name) }
    }
    assert!(seen.len() > unseen.len(), "seen {seen:?}, not seen {unseen:?}");
}

/// The end of a stage and the beginning of the next one, with a stride in layers of one pixel. What
/// is added in between is `residual` or the input of the stage.
fn stages(spatial: usize, stride: usize, residual: Option<Symbol>) -> Symbol {
    let tuple = |v: usize| format!("({})", vec![v.to_string(); spatial].join(", ") + ",");
    let layer = |name: &str, x: &Symbol, size: usize, stride: usize| {
        let (kernel, stride, pad) = (tuple(size), tuple(stride), tuple(size / 2));
        apply(
            "Convolution",
            name,
            &[("num_filter", "24"), ("kernel", &kernel), ("stride", &stride), ("pad", &pad)],
            &[x],
        )
    };
    let x = relu("r0", &layer("c0", &var("data"), 1, 1));
    let inner = relu("r1", &layer("c1", &x, 3, 1));
    let end = relu("r2", &apply("elemwise_add", "sum", &[], &[&layer("c2", &inner, 1, 1), &residual.unwrap_or(x)]));
    let next = relu("r3", &layer("c3", &end, 1, stride));
    apply("elemwise_add", "out", &[], &[&layer("c4", &end, 1, stride), &layer("c5", &next, 3, 1)])
}

#[test]
fn pixels_that_the_next_stage_steps_over_are_not_computed() {
    for (stride, data) in [
        (2, &[1, 20, 14, 15][..]),
        (2, &[2, 20, 9, 8]),
        (3, &[1, 20, 16, 15]),
        (2, &[2, 20, 31]),
        (2, &[1, 20, 5, 6, 7]),
    ] {
        let symbol = stages(data.len() - 2, stride, None);
        let without = PassChoice::parse("-pull_strides").expect("the pass is known");
        let all = check_with(&symbol, data, BuildOptions { passes: without, ..BuildOptions::default() });
        let text = check(&symbol, data);
        assert!(text.matches("ooling").count() == 1 + all.matches("ooling").count(), "{text}");
    }
}

#[test]
fn strides_that_would_grow_beyond_what_a_layer_takes_stay_where_they_are() {
    // Each of them is allowed; two of them multiplied are not, and four are no 64-bit number.
    let pixels = |name: &str, x: &Symbol| {
        let attrs = [("num_filter", "4"), ("kernel", "(1, 1)"), ("stride", "(2000000000, 2000000000)")];
        apply("Convolution", name, &attrs, &[x])
    };
    let layers = ["c0", "c1", "c2", "c3"].iter().fold(var("data"), |x, name| pixels(name, &x));
    check(&layers, &[1, 3, 5, 5]);
}

#[test]
fn infinities_and_nan_reach_the_same_pixels_whoever_steps_over_them() {
    let symbol = stages(2, 2, Some(var("side")));
    let mut inputs = inputs(&symbol, &[1, 20, 12, 12]);
    let at = symbol.list_inputs().iter().position(|name| name == "side").expect("there is something to add");
    let mut side = values(&inputs[at]);
    (side[0], side[6 * 12 + 6], side[9 * 12 + 3]) = (f32::INFINITY, f32::NAN, f32::INFINITY);
    inputs[at] = array(&Shape::new(&[1, 24, 12, 12]), side.into_iter());
    let answers = ["-pull_strides", "+pull_strides"].map(|passes| {
        let kernel = KernelOptions { winograd: 0, ..KernelOptions::default() };
        let passes = PassChoice::parse(passes).expect("the passes are known");
        let options = BuildOptions { kernel, passes, ..BuildOptions::default() };
        let op = CachedOp::compile(engine(), &symbol, &CachedOpFlags::default(), options).expect("the symbol compiles");
        values(&op.run(&inputs.iter().collect::<Vec<_>>()).expect("the call is accepted")[0])
    });
    let bad = answers.each_ref().map(|answer| answer.iter().map(|v| v.is_nan()).collect::<Vec<_>>());
    assert!(bad[0] == bad[1] && bad[0].contains(&true) && bad[0].contains(&false));
}

#[test]
fn pooling_behind_a_large_layer_is_no_step_of_its_own() {
    let window = |kernel: &'static str, more: &[(&'static str, &'static str)]| {
        let mut attrs = vec![("kernel", kernel), ("stride", "(2, 2)")];
        attrs.extend(more);
        attrs
    };
    let stem = |name: &str| {
        let attrs = [("num_filter", "64"), ("kernel", "(7, 7)"), ("stride", "(2, 2)"), ("pad", "(3, 3)")];
        relu("r", &norm("n", &apply("Convolution", name, &attrs, &[&var("data")])))
    };
    let first = relu("r", &conv("c", &var("data"), "40", &[]));
    let second = conv("d", &apply("Pooling", "p", &window("(2, 2)", &[]), &[&first]), "24", &[]);
    let overlapping = window("(3, 3)", &[("pad", "(1, 1)")]);
    let full = window("(3, 3)", &[("pooling_convention", "full")]);
    let mean = window("(2, 2)", &[("pool_type", "avg")]);
    for (symbol, data) in [
        (apply("Pooling", "p", &overlapping, &[&stem("c")]), [2, 3, 150, 141]),
        (apply("Pooling", "p", &full, &[&stem("c")]), [1, 3, 151, 141]),
        (second, [1, 3, 90, 93]),
        (apply("Pooling", "p", &mean, &[&first]), [1, 3, 91, 92]),
    ] {
        let text = check(&symbol, &data);
        assert!(text.contains("in bands of") && !text.contains("_blocked_pooling"), "{text}");
        let passes = PassChoice::parse("-fuse_pooling").expect("the pass is known");
        let apart = check_with(&symbol, &data, BuildOptions { passes, ..BuildOptions::default() });
        assert!(apart.contains("_blocked_pooling"), "{apart}");
    }
}

#[test]
fn axes_counted_from_behind_are_those_of_the_array_and_not_of_an_image() {
    let line = |name: &str| {
        let attrs = [("num_filter", "16"), ("kernel", "(3,)"), ("pad", "(1,)")];
        apply("Convolution", name, &attrs, &[&var("data")])
    };
    let both = apply("Concat", "both", &[("num_args", "2"), ("dim", "-3")], &[&line("a"), &line("b")]);
    check(&both, &[16, 3, 9]);
    check(&relu("r", &apply("BatchNorm", "n", &[("axis", "-3")], &[&relu("r", &line("a"))])), &[16, 3, 9]);
}

#[test]
fn what_no_input_changes_is_no_step() {
    let x = var("data");
    let range = apply("_arange", "range", &[("start", "6")], &[]);
    let table = apply("_mul_scalar", "scaled", &[("scalar", "0.5")], &[&range]);
    let weighted = apply("broadcast_mul", "weighted", &[], &[&table, &var("gamma")]);
    let symbol = apply("broadcast_add", "sum", &[], &[&x, &weighted]);
    let mut inputs =
        [array(&Shape::new(&[4, 6]), (0..24).map(|i| i as f32)), array(&Shape::new(&[1]), [3.0].into_iter())];
    let op = |passes: &str| {
        let passes = PassChoice::parse(passes).expect("the pass is known");
        let options = BuildOptions { passes, ..BuildOptions::default() };
        let flags = CachedOpFlags::parse([("data_indices", "(0,)"), ("param_indices", "(1,)")]).expect("they parse");
        CachedOp::compile(engine(), &load(&symbol.to_json()), &flags, options).expect("the symbol compiles")
    };
    assert_eq!(symbol.list_inputs(), ["data", "gamma"]);
    let (once, each) = (op(""), op("-fold_creation"));
    for factor in [3.0, -2.0] {
        inputs[1] = array(&Shape::new(&[1]), [factor].into_iter());
        let given: Vec<&NDArray> = inputs.iter().collect();
        let expected: Vec<f32> = (0..24).map(|i| i as f32 + (i % 6) as f32 * 0.5 * factor).collect();
        for op in [&once, &each] {
            assert_eq!(values(&op.run(&given).expect("the call is accepted")[0]), expected);
        }
    }
    let types: Vec<TensorType> = inputs.iter().map(NDArray::tensor_type).collect();
    let steps = |op: &CachedOp| op.plan_text(&types).expect("there is a plan");
    assert!(steps(&once).contains("1 steps") && !steps(&once).contains("_arange"), "{}", steps(&once));
    assert!(steps(&each).contains("_arange"), "{}", steps(&each));
}

#[test]
fn what_follows_the_batch_or_chance_is_made_for_every_call() {
    let x = var("data");
    let start = apply("_zeros", "start", &[("shape", "(0, 3)")], &[]);
    let noise = apply("_random_uniform", "noise", &[("shape", "(3,)")], &[]);
    let state =
        apply("elemwise_add", "state", &[], &[&x, &apply("_plus_scalar", "one", &[("scalar", "1")], &[&start])]);
    let symbol = Symbol::group(&[state, apply("_plus_scalar", "moved", &[("scalar", "2")], &[&noise])]);
    let op = CachedOp::new(engine(), &symbol, &CachedOpFlags::default()).expect("the symbol compiles");
    let mut drawn = Vec::new();
    for rows in [2, 5, 2] {
        let out = op.run(&[&array(&Shape::new(&[rows, 3]), std::iter::repeat(4.0))]).expect("the call is accepted");
        assert_eq!(values(&out[0]), vec![5.0; rows * 3]);
        drawn.push(values(&out[1]));
    }
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2], "{drawn:?}");
}

#[test]
fn element_wise_steps_overwrite_what_nobody_reads_afterwards() {
    let x = var("data");
    let dense = |name: &str, x: &Symbol| apply("FullyConnected", name, &[("num_hidden", "512")], &[x]);
    let first = dense("a", &x);
    // A single operator, and a chain whose second operand dies as well.
    let single = apply("sigmoid", "s", &[], &[&first]);
    let (b, c) = (dense("b", &single), dense("c", &single));
    let chain = apply("exp", "e", &[], &[&apply("elemwise_mul", "m", &[], &[&b, &apply("tanh", "t", &[], &[&c])])]);
    let read_later = apply("sigmoid", "kept", &[], &[&dense("d", &chain)]);
    let symbol = apply("elemwise_sub", "out", &[], &[&dense("f", &read_later), &read_later]);
    // The functions stay steps of their own.
    let plan = |passes| {
        let passes = PassChoice::parse(passes).expect("they are known");
        check_with(&symbol, &[4, 512], BuildOptions { passes, ..BuildOptions::default() })
    };
    let [without, with] = ["-fuse_dense,-overwrite", "-fuse_dense"].map(plan);
    // What a step works on in the arena: with one operand it is that alone, with two it is both.
    for (op, overwriting, apart) in
        [("sigmoid", "arena 8192 B", "arena 16.4 KB"), ("_fused", "arena 16.4 KB", "arena 24.6 KB")]
    {
        let of_op = |text: &str, size: &str| text.lines().filter(|l| l.contains(op) && l.contains(size)).count();
        assert!(of_op(&with, overwriting) > 0 && of_op(&with, apart) == 0, "{op}: {with}");
        assert!(of_op(&without, apart) > 0 && of_op(&without, overwriting) == 0, "{op}: {without}");
    }
}

#[test]
fn exact_precision_means_no_winograd() {
    let symbol = conv("c", &var("data"), "64", &[]);
    let types: Vec<TensorType> = inputs(&symbol, &[1, 64, 28, 28]).iter().map(|a| a.tensor_type()).collect();
    let text = |flags: &[(&str, &str)]| {
        let flags = CachedOpFlags::parse(flags.iter().copied()).expect("the flags parse");
        CachedOp::new(engine(), &symbol, &flags).and_then(|op| op.plan_text(&types)).expect("there is a plan")
    };
    assert!(text(&[]).contains("winograd"), "{}", text(&[]));
    assert!(!text(&[("precision", "exact")]).contains("winograd"), "{}", text(&[("precision", "exact")]));
    assert!(CachedOpFlags::parse([("precision", "rough")]).is_err_and(|e| e.message.contains("exact")));
}

#[test]
fn odd_channels_strides_groups_and_dilation_agree() {
    for (i, (channels, more)) in [
        ("5", vec![("stride", "(2, 1)")]),
        ("18", vec![("dilate", "(2, 2)"), ("pad", "(2, 2)")]),
        ("6", vec![("num_group", "3")]),
        ("12", vec![("num_group", "6"), ("no_bias", "True")]),
    ]
    .into_iter()
    .enumerate()
    {
        let c1 = conv("c1", &var("data"), channels, &more);
        let c2 = conv("c2", &relu("r", &c1), "7", &[]);
        check(&c2, &[1 + i, 6, 10, 13]);
    }
}

#[test]
fn values_that_several_read_stay_right() {
    let x = var("data");
    let a = relu("a", &conv("c1", &x, "16", &[]));
    let b = apply("clip", "b", &[("a_min", "0"), ("a_max", "6")], &[&conv("c2", &a, "16", &[])]);
    let sum = apply("elemwise_add", "sum", &[], &[&a, &b]);
    let pooled = apply("Pooling", "pool", &[("kernel", "(2, 2)"), ("stride", "(2, 2)"), ("pool_type", "max")], &[&sum]);
    let joined = apply("Concat", "join", &[("dim", "1"), ("num_args", "2")], &[&a, &b]);
    check(&Symbol::group(&[pooled, joined, a, sum]), &[3, 4, 8, 8]);
}

#[test]
fn the_trained_digits_network_agrees_at_several_batch_sizes() {
    let symbol = load(&fixture("digits_cnn"));
    for batch in [1, 2, 5] {
        check(&symbol, &[batch, 1, 8, 8]);
    }
}

#[test]
fn dense_networks_agree() {
    let symbol = load(&fixture("module_mlp"));
    check(&symbol, &[3, 64]);
}
