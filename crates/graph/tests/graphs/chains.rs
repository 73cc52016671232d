//! Chains of element-wise operators with operands that repeat over images: the bits of the
//! operators one by one, plain and in blocks.

use crate::common::Calls as _;
use crate::common::compare::{array_of, check, check_on, conv, engine, inputs_for, norm, op_by_op, relu, values};
use crate::common::{apply, var};
use mxrt_engine::{Config, Engine};
use mxrt_graph::{BuildOptions, PassChoice};
use mxrt_graph::{CachedOp, CachedOpFlags, Symbol};
use mxrt_tensor::{NDArray, TensorType};

/// Every kind of operand with x.
fn chain(x: &Symbol) -> Symbol {
    let scaled = apply("broadcast_mul", "scaled", &[], &[x, &var("plane")]);
    let shifted = apply("broadcast_sub", "shifted", &[], &[&var("channel"), &scaled]);
    let slopes = apply("LeakyReLU", "slopes", &[("act_type", "prelu")], &[&shifted]);
    let summed = apply("broadcast_add", "summed", &[], &[&slopes, &var("image")]);
    apply("broadcast_div", "quotient", &[], &[&summed, &var("single")])
}

/// Inputs of a symbol around [`chain`] for images of this shape.
fn inputs_of(symbol: &Symbol, data: &[usize], image: &[usize]) -> Vec<NDArray> {
    let repeated = |n: usize, channels: usize| [&[n, channels][..], &vec![1; image.len() - 2]].concat();
    let (n, channels) = (image[0], image[1]);
    let (plane, channel, each, single) = (repeated(n, channels), repeated(1, channels), repeated(n, 1), repeated(1, 1));
    let known = [("data", data), ("plane", &plane), ("channel", &channel), ("image", &each), ("single", &single[1..])];
    inputs_for(symbol, &known)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn compile(engine: &'static Engine, symbol: &Symbol) -> CachedOp {
    CachedOp::new(engine, symbol, &CachedOpFlags::default()).expect("the symbol compiles")
}

fn plan_text(symbol: &Symbol, inputs: &[NDArray]) -> String {
    let types: Vec<TensorType> = inputs.iter().map(NDArray::tensor_type).collect();
    compile(engine(), symbol).plan_text(&types).expect("there is a plan")
}

#[test]
fn what_repeats_over_images_joins_the_loop_and_keeps_its_bits_for_any_number_of_cores() {
    let engines = [1, 2, 4].map(|cores| {
        let config = Config { cores: Some(cores), ..Config::default() };
        Engine::start(config).expect("the engine starts")
    });
    // With something before and after, so that the loop also overwrites what it reads.
    let between = apply("softmax", "before", &[("axis", "1")], &[&var("data")]);
    let between = apply("softmax", "behind", &[("axis", "1")], &[&chain(&between)]);
    for shape in [
        &[1, 20, 50, 47][..],
        &[3, 20, 33, 41],
        &[3, 20, 9],
        &[1, 5, 3],
        &[2, 7, 3, 5, 6],
        &[2, 20, 1, 1],
        &[1, 20, 1, 1],
    ] {
        for (symbol, steps) in [(chain(&var("data")), 1), (between.clone(), 3)] {
            let inputs = inputs_of(&symbol, shape, shape);
            let text = plan_text(&symbol, &inputs);
            assert!(text.contains(&format!("\n{steps} steps")) && text.contains("_fused_elementwise"), "{text}");
            let want = bits(&op_by_op(&symbol, &inputs)[0]);
            for engine in engines {
                let own: Vec<NDArray> =
                    inputs.iter().map(|a| array_of(engine, &a.tensor_type().shape, values(a).into_iter())).collect();
                let got = compile(engine, &symbol).run(&own.iter().collect::<Vec<_>>()).expect("the call is accepted");
                assert!(bits(&values(&got[0])) == want, "{shape:?}: {text}");
            }
        }
    }
}

/// A layer of 20 channels with kernel 3 along every axis.
fn layer(name: &str, x: &Symbol, axes: usize) -> Symbol {
    let all = |v: &str| format!("({},)", vec![v; axes].join(","));
    apply("Convolution", name, &[("num_filter", "20"), ("kernel", &all("3")), ("pad", &all("1"))], &[x])
}

#[test]
fn chains_in_blocks_have_the_bits_of_plain_ones() {
    for data in [&[1, 5, 9, 11][..], &[3, 5, 9, 11], &[1, 5, 23], &[3, 5, 23]] {
        let first = layer("c", &var("data"), data.len() - 2);
        let both = Symbol::group(&[first.clone(), chain(&first)]);
        let image = [&[data[0], 20], &data[2..]].concat();
        let inputs = inputs_of(&both, data, &image);
        let text = plan_text(&both, &inputs);
        assert_eq!(text.matches("_blocked_elementwise").count(), 1, "{text}");
        assert_eq!(text.matches("_to_blocked").count(), 1, "{text}");
        let got = compile(engine(), &both).run(&inputs.iter().collect::<Vec<_>>()).expect("the call is accepted");
        // The same operators one by one, on what the layer made.
        let alone = chain(&var("data"));
        let names = both.list_inputs();
        let given = |name: &String| match &**name {
            "data" => got[0].clone(),
            _ => inputs[names.iter().position(|n| n == name).expect("both read it")].clone(),
        };
        let given: Vec<NDArray> = alone.list_inputs().iter().map(given).collect();
        assert!(bits(&values(&got[1])) == bits(&op_by_op(&alone, &given)[0]), "{data:?}: {text}");
        // Nothing beyond the last channel reaches the next layer, whatever the chain makes of it
        // there.
        let inner = apply("relu", "r", &[], &[&layer("d", &chain(&first), data.len() - 2)]);
        let text = check_on(&inner, &inputs_of(&inner, data, &image), BuildOptions::default());
        assert_eq!(text.matches("_from_blocked").count(), 1, "{text}");
    }
}

/// The end of a block of a network that weighs its channels, with what the weights are computed
/// from.
fn weighed(x: &Symbol, dense: bool) -> Symbol {
    let inner = relu("r1", &norm("n1", &conv("c1", x, "20", &[])));
    let outer = norm("n2", &conv("c2", &inner, "20", &[]));
    let pool = [("global_pool", "True"), ("pool_type", "avg"), ("kernel", "(1, 1)")];
    let mean = apply("Pooling", "mean", &pool, &[&outer]);
    let small = |name: &str, x: &Symbol, outputs| match dense {
        true => apply("FullyConnected", name, &[("num_hidden", outputs)], &[x]),
        false => conv(name, x, outputs, &[("kernel", "(1, 1)"), ("pad", "(0, 0)")]),
    };
    let gate = apply("sigmoid", "gate", &[], &[&small("up", &relu("r2", &small("down", &mean, "6")), "20")]);
    let gate = if dense { apply("Reshape", "image", &[("shape", "(0, 0, 1, 1)")], &[&gate]) } else { gate };
    let scaled = apply("broadcast_mul", "scaled", &[], &[&outer, &gate]);
    relu("out", &apply("broadcast_add", "sum", &[], &[&scaled, x]))
}

#[test]
fn channels_are_weighed_in_blocks_in_one_loop_with_residual_and_activation() {
    for dense in [false, true] {
        for shape in [[1, 20, 9, 12], [3, 20, 9, 12]] {
            let first = conv("c0", &var("data"), "20", &[]);
            let symbol = conv("c3", &weighed(&first, dense), "7", &[]);
            let text = check(&symbol, &shape);
            assert!(text.contains("3 in one loop"), "{text}");
            assert_eq!(text.matches("_to_blocked").count(), 1, "{text}");
            // The result and what is small.
            assert_eq!(text.matches("_from_blocked").count(), 2, "{text}");
        }
    }
}

#[test]
fn lone_operators_with_something_that_repeats_stay_blocked() {
    let x = conv("c1", &var("data"), "20", &[]);
    let slopes = apply("LeakyReLU", "p", &[("act_type", "prelu")], &[&x]);
    let scale = apply("_full", "scale", &[("shape", "(20, 1, 1)"), ("value", "0.3")], &[]);
    let scaled = apply("broadcast_mul", "s", &[], &[&scale, &x]);
    for middle in [slopes, scaled] {
        let symbol = conv("c2", &middle, "5", &[]);
        let text = check(&symbol, &[2, 3, 7, 9]);
        assert!(text.contains("_blocked_elementwise"), "{text}");
        assert_eq!(text.matches("_to_blocked").count() + text.matches("_from_blocked").count(), 2, "{text}");
        let passes = PassChoice::parse("-fuse_elementwise").expect("the pass is known");
        let inputs = inputs_for(&symbol, &[("data", &[2, 3, 7, 9])]);
        let text = check_on(&symbol, &inputs, BuildOptions { passes, ..BuildOptions::default() });
        assert_eq!(text.matches("_to_blocked").count() + text.matches("_from_blocked").count(), 4, "{text}");
    }
}

#[test]
fn what_repeats_is_not_overwritten_even_where_it_is_as_large_as_the_result() {
    let x = var("data");
    let small = apply("Reshape", "row", &[("shape", "(20, 1, 1)")], &[&x]);
    let small = apply("softmax", "small", &[("axis", "0")], &[&small]);
    let text =
        check(&apply("softmax", "out", &[], &[&apply("broadcast_mul", "m", &[], &[&x, &small])]), &[1, 20, 1, 1]);
    assert!(text.contains("_fused_elementwise"), "{text}");
}

#[test]
fn slopes_of_one_image_are_not_taken_for_an_image() {
    for shape in [&[1, 4][..], &[1, 1], &[1, 4, 1], &[1, 4, 1, 1]] {
        let slopes = apply("LeakyReLU", "p", &[("act_type", "prelu")], &[&var("data")]);
        check(&slopes, shape);
        check(&apply("tanh", "t", &[], &[&slopes]), shape);
    }
}
