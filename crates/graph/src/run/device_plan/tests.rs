//! The steps of graphs on a device that has a kernel for every form and runs nothing.

use super::{DeviceConstants, DevicePlan};
use crate::compile::options::BuildOptions;
use crate::ir::Graph;
use crate::passes::{self, PassChoice};
use crate::symbol::Symbol;
use mxrt_engine::device::OpenDevice;
use mxrt_engine::{DeviceCtx, DeviceId, DeviceKind, OpError};
use mxrt_ops::{DeviceKernel, DeviceKernels, DeviceOperands, KernelForm, Signature, registry, set_device_kernels};
use mxrt_tensor::{DType, TensorType};
use std::collections::BTreeMap;

struct Anything;
struct Nothing;

impl DeviceKernels for Anything {
    fn check(&self, _: &OpenDevice) -> Result<(), OpError> {
        Ok(())
    }

    fn bind(&self, _: &KernelForm, _: &Signature<'_>) -> Option<Box<dyn DeviceKernel>> {
        Some(Box::new(Nothing))
    }
}

impl DeviceKernel for Nothing {
    fn enqueue(&self, _: &DeviceCtx<'_>, _: &DeviceOperands<'_>) -> Result<(), OpError> {
        Ok(())
    }
}

fn var(name: &str) -> Symbol {
    Symbol::variable(name, BTreeMap::new())
}

fn apply(op: &str, attrs: &[(&str, &str)], inputs: &[&Symbol]) -> Symbol {
    let op = registry().get(op).expect("the operator is registered");
    let attrs = attrs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Symbol::create(op, "n".to_owned(), attrs, inputs).expect("the symbol composes")
}

fn conv(x: &Symbol, weights: &str, filters: &str) -> Symbol {
    let attrs = [("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("no_bias", "True"), ("num_filter", filters)];
    apply("Convolution", &attrs, &[x, &var(weights)])
}

fn pool(x: &Symbol, global: &str) -> Symbol {
    apply("Pooling", &[("kernel", "(2, 2)"), ("pool_type", "avg"), ("global_pool", global)], &[x])
}

/// Names of the steps, and of those that make constants; `shapes` are those of all inputs.
fn steps(
    symbol: &Symbol,
    shapes: &[&[usize]],
    constant: bool,
    without: &str,
) -> (Vec<&'static str>, Vec<&'static str>) {
    set_device_kernels(vec![(DeviceKind::GPU, &Anything)]);
    let mut graph = Graph::from_symbol(symbol).expect("a graph");
    for input in graph.inputs.iter_mut().filter(|input| input.name.starts_with('w')) {
        input.constant = constant;
    }
    let options = BuildOptions { passes: PassChoice::parse(without).expect("known"), ..BuildOptions::default() };
    let graph = passes::run_all(graph, options.passes).expect("passes");
    let types: Vec<TensorType> = shapes.iter().map(|shape| TensorType::new(DType::F32, *shape)).collect();
    let plan = DevicePlan::build(&graph, &types, &options, &DeviceConstants::default(), GPU).expect("a plan");
    let names = |steps: &[super::step::DeviceStep]| steps.iter().map(|step| step.node.op).collect();
    (names(&plan.lowered.steps), names(&plan.lowered.constant_steps))
}

const GPU: DeviceId = DeviceId::new(DeviceKind::GPU, 0);
const TURN: &str = "transpose";

#[test]
fn images_are_turned_at_the_edges_and_weights_once() {
    let x = var("x");
    let one = apply("relu", &[], &[&conv(&x, "w1", "8")]);
    let two = apply("elemwise_add", &[], &[&conv(&one, "w2", "8"), &one]);
    let both = apply("Concat", &[("num_args", "2"), ("dim", "1")], &[&pool(&two, "False"), &pool(&one, "False")]);
    let ends = pool(&conv(&both, "w3", "4"), "True");
    let dense = apply("FullyConnected", &[("num_hidden", "3"), ("no_bias", "True")], &[&ends, &var("w4")]);
    let shapes: [&[usize]; 5] = [&[2, 3, 8, 8], &[8, 3, 3, 3], &[8, 8, 3, 3], &[4, 16, 3, 3], &[3, 4]];
    let (first, constants) = steps(&dense, &shapes, true, "");
    let convolutions = ["Convolution", "Convolution", "Pooling", "Pooling", "Concat", "Convolution"];
    let found: Vec<&str> = first.iter().copied().filter(|name| *name != TURN).collect();
    assert_eq!(found.iter().filter(|name| convolutions.contains(name)).count(), 7, "{first:?}");
    // The image, and nothing else: one pixel has the same bytes in both orders.
    assert_eq!((first.iter().filter(|name| **name == TURN).count(), first[0]), (1, TURN), "{first:?}");
    assert_eq!(constants, [TURN; 3]);
    let (plain, constants) = steps(&dense, &shapes, true, "-channels_last");
    assert_eq!((plain, constants), (found, vec![]));
}

#[test]
fn weights_of_a_call_and_what_has_no_other_order_stay() {
    let shapes: [&[usize]; 2] = [&[2, 3, 8, 8], &[8, 3, 3, 3]];
    let x = var("x");
    let plain = conv(&x, "w1", "8");
    assert_eq!(steps(&plain, &shapes, false, ""), (vec!["Convolution"], vec![]));
    // A result has its channels first, and a reader that wants them there reads the same bytes.
    let softmax = apply("softmax", &[("axis", "1")], &[&plain]);
    let both = Symbol::group(&[plain.clone(), softmax, apply("relu", &[], &[&x])]);
    let (found, constants) = steps(&both, &shapes, true, "");
    assert_eq!(found.iter().filter(|name| **name == TURN).count(), 2, "{found:?}");
    assert_eq!(constants, [TURN]);
}

#[test]
fn weights_that_are_read_under_two_shapes_are_packed_twice() {
    let (x, w) = (var("x"), var("w1"));
    let attrs = [("kernel", "(3, 3)"), ("no_bias", "True"), ("num_filter", "4")];
    let one = apply("Convolution", &attrs, &[&x, &w]);
    let again = apply("Convolution", &attrs, &[&one, &w]);
    let flat = apply("Reshape", &[("shape", "(4, 36, 1, 1)")], &[&w]);
    let many = apply("Concat", &[("num_args", "9"), ("dim", "1")], &[&again; 9]);
    let attrs = [("kernel", "(1, 1)"), ("no_bias", "True"), ("num_filter", "4")];
    let last = apply("Convolution", &attrs, &[&many, &flat]);
    let shapes: [&[usize]; 2] = [&[1, 4, 8, 8], &[4, 4, 3, 3]];
    let (found, constants) = steps(&last, &shapes, true, "");
    assert_eq!((found.iter().filter(|name| **name == "Convolution").count(), constants), (3, vec![TURN; 2]));
}
