//! Numbers that are folded into layers: plans give what their operators give one by one.

use crate::common::Calls as _;
use crate::common::compare::{array, check, check_with, conv, engine, inputs, norm, relu};
use crate::common::{apply, var};
use mxrt_graph::{BuildOptions, PassChoice};
use mxrt_graph::{CachedOp, CachedOpFlags, Symbol};
use mxrt_tensor::{DType, NDArray, Shape, TensorType};

fn scalar(op: &str, name: &str, number: &str, x: &Symbol) -> Symbol {
    apply(op, name, &[("scalar", number), ("is_int", "False")], &[x])
}

#[test]
fn a_scaled_branch_its_residual_and_activation_are_one_layer() {
    let x = var("data");
    let branch = |with_norm: bool| {
        let layer = conv("c", &x, "20", &[("kernel", "(1, 1)"), ("pad", "(0, 0)")]);
        if with_norm { norm("n", &layer) } else { layer }
    };
    for with_norm in [false, true] {
        let scaled = scalar("_mul_scalar", "m", "0.17", &branch(with_norm));
        let out = relu("r", &apply("broadcast_add", "sum", &[], &[&scaled, &x]));
        for shape in [[1, 20, 9, 7], [3, 20, 9, 7]] {
            let text = check(&out, &shape);
            assert!(text.contains("\n3 steps") && text.contains("_blocked_convolution"), "{text}");
            let passes = PassChoice::parse("-fold_scalar").expect("the pass is known");
            let apart = check_with(&out, &shape, BuildOptions { passes, ..BuildOptions::default() });
            assert!(apart.contains("\n4 steps"), "{apart}");
        }
    }
}

#[test]
fn numbers_behind_dense_layers_are_no_steps() {
    let dense = apply("FullyConnected", "d", &[("num_hidden", "7")], &[&var("data")]);
    let shifted = scalar("_minus_scalar", "s", "0.3", &scalar("_div_scalar", "q", "-2.5", &dense));
    let text = check(&scalar("_plus_scalar", "p", "1", &shifted), &[3, 11]);
    assert!(text.contains("\n1 steps"), "{text}");
    // Between the layer and its BatchNorm, which is no part of the layer then.
    let text = check(&norm("n", &scalar("_mul_scalar", "m", "2", &dense)), &[3, 11]);
    assert!(text.contains("\n2 steps"), "{text}");
}

/// The text of the error that a call gives, or waiting for its result.
fn error(symbol: &Symbol, inputs: &[NDArray]) -> String {
    let op = CachedOp::new(engine(), symbol, &CachedOpFlags::default()).expect("the symbol compiles");
    match op.run(&inputs.iter().collect::<Vec<_>>()) {
        Err(error) => format!("{error}"),
        Ok(results) => format!("{:?}", results[0].wait_to_read().expect_err("there is an error")),
    }
}

#[test]
fn errors_are_those_of_the_layer_and_its_parameters() {
    let dense = apply("FullyConnected", "d", &[("num_hidden", "2")], &[&var("data")]);
    let symbol = scalar("_mul_scalar", "m", "0.5", &dense);
    let whole = |shape: &[usize]| {
        let tensor = TensorType::new(DType::I32, Shape::new(shape));
        let bytes = vec![0; tensor.bytes()];
        NDArray::from_bytes(engine(), mxrt_tensor::Context::cpu(0), tensor, &bytes).expect("the array is made")
    };
    let message = error(&symbol, &[whole(&[1, 3]), whole(&[2, 3]), whole(&[2])]);
    assert!(message.contains("int32 is not supported by dense layers"), "{message}");
    let mut given = inputs(&symbol, &[1, 3]);
    given[1] = array(&Shape::new(&[2, 4]), std::iter::repeat(0.0));
    let message = error(&symbol, &given);
    assert!(message.contains("weight has shape (2, 4)") && message.contains("(2, 3)"), "{message}");
}
