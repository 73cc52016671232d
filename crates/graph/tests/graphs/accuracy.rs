//! Distance of a whole network's answers from float64, by precision, and remarks of plans on
//! precision and measured tables.

use crate::common::Calls as _;
use crate::common::{apply, var};
use mxrt_engine::{Config, Engine};
use mxrt_graph::BuildOptions;
use mxrt_graph::{CachedOp, CachedOpFlags, PassChoice, Symbol};
use mxrt_ops::{ConvTable, Isa, KernelOptions, Method};
use mxrt_tensor::{Context, DType, NDArray, PartialShape, Shape, TensorType};
use std::collections::HashMap;
use std::sync::OnceLock;

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config::default()).expect("the engine starts"))
}

fn conv(name: &str, x: &Symbol, filters: usize, kernel: usize, stride: usize) -> Symbol {
    let text = |n: usize| format!("({n}, {n})");
    let (filters, kernel, stride, pad) = (filters.to_string(), text(kernel), text(stride), text(kernel / 2));
    let attrs =
        [("num_filter", &*filters), ("kernel", &*kernel), ("stride", &*stride), ("pad", &*pad), ("no_bias", "True")];
    let sums = apply("Convolution", name, &attrs, &[x]);
    apply("BatchNorm", &format!("{name}_norm"), &[("fix_gamma", "False")], &[&sums])
}

fn relu(name: &str, x: &Symbol) -> Symbol {
    apply("Activation", name, &[("act_type", "relu")], &[x])
}

/// resnet-18 with all its layers; its image may be small.
fn resnet18() -> Symbol {
    let stem = relu("stem_relu", &conv("stem", &var("data"), 64, 7, 2));
    let window = [("kernel", "(3, 3)"), ("stride", "(2, 2)"), ("pad", "(1, 1)"), ("pool_type", "max")];
    let mut x = apply("Pooling", "pool", &window, &[&stem]);
    for (stage, filters) in [64, 128, 256, 512].into_iter().enumerate() {
        for block in 0..2 {
            let name = |what: &str| format!("s{stage}b{block}_{what}");
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let inner = relu(&name("relu"), &conv(&name("a"), &x, filters, 3, stride));
            let outer = conv(&name("b"), &inner, filters, 3, 1);
            let kept = if stride == 2 { conv(&name("down"), &x, filters, 1, 2) } else { x };
            x = relu(&name("out"), &apply("elemwise_add", &name("sum"), &[], &[&outer, &kept]));
        }
    }
    let mean = apply("Pooling", "mean", &[("global_pool", "True"), ("pool_type", "avg"), ("kernel", "(1, 1)")], &[&x]);
    apply("FullyConnected", "dense", &[("num_hidden", "100")], &[&mean])
}

/// Inputs of both dtypes with the same values: numbers as f32 has them.
fn inputs(symbol: &Symbol, data: &[usize], dtype: DType) -> Vec<NDArray> {
    let known = [("data".to_owned(), PartialShape::from(Shape::new(data)))];
    let shapes = symbol.infer_shape(&known, false).expect("all shapes follow from the data's");
    let names = symbol.list_arguments().into_iter().chain(symbol.list_auxiliary_states());
    let by_name: HashMap<String, Shape> = names
        .zip(shapes.args.iter().chain(&shapes.aux))
        .map(|(name, shape)| (name, shape.complete().expect("every shape is known")))
        .collect();
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let make = |name: String| {
        let shape = by_name[&name].clone();
        let fan_in: usize = shape.iter().skip(1).product();
        let scale = if name.ends_with("weight") { (3.0 / fan_in as f32).sqrt() } else { 1.0 };
        let positive = name.ends_with("var") || name.ends_with("gamma");
        let numbers = (0..shape.size()).map(|_| if positive { 1.0 + 0.5 * random() } else { scale * random() });
        let bytes: Vec<u8> = match dtype {
            DType::F64 => numbers.flat_map(|v| f64::from(v).to_le_bytes()).collect(),
            _ => numbers.flat_map(f32::to_le_bytes).collect(),
        };
        NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(dtype, shape), &bytes).expect("it is made")
    };
    symbol.list_inputs().into_iter().map(make).collect()
}

fn compile(symbol: &Symbol, precision: &str, kernel: KernelOptions) -> CachedOp {
    let flags = CachedOpFlags::parse([("precision", precision)]).expect("a precision");
    let options = BuildOptions { kernel, ..BuildOptions::default() };
    CachedOp::compile(engine(), symbol, &flags, options).expect("the symbol compiles")
}

fn answer(op: &CachedOp, inputs: &[NDArray]) -> Vec<f64> {
    let results = op.run(&inputs.iter().collect::<Vec<_>>()).expect("the call is accepted");
    let bytes = results[0].to_bytes().expect("there is an answer");
    match results[0].tensor_type().dtype {
        DType::F64 => bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))).collect(),
        _ => bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes")).into()).collect(),
    }
}

fn text(op: &CachedOp, inputs: &[NDArray]) -> String {
    op.plan_text(&inputs.iter().map(|a| a.tensor_type()).collect::<Vec<_>>()).expect("there is a plan")
}

#[test]
fn the_answers_of_resnet18_lie_near_those_of_float64_in_every_precision_on_every_instruction_set() {
    let (symbol, shape) = (resnet18(), [1, 3, 96, 96]);
    let want = answer(&compile(&symbol, "default", KernelOptions::default()), &inputs(&symbol, &shape, DType::F64));
    let largest = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let inputs = inputs(&symbol, &shape, DType::F32);
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for (precision, tolerance) in [("exact", 1e-5), ("default", 1e-5), ("bf16", 2e-2)] {
            let op = compile(&symbol, precision, KernelOptions { isa, ..KernelOptions::default() });
            let got = answer(&op, &inputs);
            let error = got.iter().zip(&want).fold(0.0f64, |m, (g, w)| m.max((g - w).abs())) / largest;
            println!("{isa} {precision}: {error:.1e} of the largest answer");
            assert!(error <= tolerance, "{isa} {precision}: {error} of the largest answer");
            let plan = text(&op, &inputs);
            assert_eq!(plan.contains("winograd"), precision != "exact", "{plan}");
        }
    }
}

#[test]
fn a_plan_says_where_it_multiplies_bf16_or_that_it_cannot() {
    let symbol = resnet18();
    let inputs = inputs(&symbol, &[1, 3, 64, 64], DType::F32);
    let says = |isa, precision: &str| {
        let plan = text(&compile(&symbol, precision, KernelOptions { isa, ..KernelOptions::default() }), &inputs);
        let rounded = |op: &str| plan.lines().any(|line| line.contains(op) && line.contains("bf16"));
        (rounded("_blocked_conv") && rounded("FullyConnected"), plan.contains("there is no AVX512-BF16"))
    };
    for isa in [Isa::Portable, Isa::Avx2].into_iter().filter(|isa| isa.is_available()) {
        assert_eq!(says(isa, "bf16"), (false, true), "{isa}");
    }
    let (used, missing) = says(Isa::detect(), "bf16");
    assert_ne!(used, missing, "{}", text(&compile(&symbol, "bf16", KernelOptions::default()), &inputs));
    assert_eq!(says(Isa::detect(), "default"), (false, false));
}

#[test]
fn lines_of_bf16_change_answers_by_no_more_than_bf16_does_for_one_image_and_for_several() {
    let symbol = resnet18();
    let plan_of = |passes: &str| {
        let flags = CachedOpFlags::parse([("precision", "bf16")]).expect("a precision");
        let passes = PassChoice::parse(passes).expect("known passes");
        let options = BuildOptions { passes, ..BuildOptions::default() };
        CachedOp::compile(engine(), &symbol, &flags, options).expect("the symbol compiles")
    };
    let all = inputs(&symbol, &[3, 3, 64, 64], DType::F32);
    let (lined, plain) = (plan_of(""), plan_of("-use_lines"));
    let (plan, without) = (text(&lined, &all), text(&plain, &all));
    assert_eq!(plan.contains("bf16 amx, bf16 lines"), plan.contains("bf16 amx"), "{plan}");
    assert!(!without.contains("bf16 lines"), "{without}");
    let (got, want) = (answer(&lined, &all), answer(&plain, &all));
    let largest = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let error = got.iter().zip(&want).fold(0.0f64, |m, (g, w)| m.max((g - w).abs())) / largest;
    assert!(error <= 2e-2, "{error} of the largest answer");

    // The rows of a batch are those of calls with one.
    let bytes = all[0].to_bytes().expect("the data");
    let row = bytes.len() / 3;
    for (i, row) in bytes.chunks(row).enumerate() {
        let shape = TensorType::new(DType::F32, Shape::new(&[1, 3, 64, 64]));
        let mut one = all.clone();
        one[0] = NDArray::from_bytes(engine(), Context::cpu(0), shape, row).expect("it is made");
        let alone = answer(&lined, &one);
        let of_batch = &got[i * alone.len()..(i + 1) * alone.len()];
        let error = alone.iter().zip(of_batch).fold(0.0f64, |m, (a, w)| m.max((a - w).abs())) / largest;
        assert!(error <= 2e-2, "row {i}: {error} of the largest answer");
    }
}

#[test]
fn a_table_of_measured_convolutions_goes_before_the_rules_and_the_plan_says_so() {
    let symbol = resnet18();
    let inputs = inputs(&symbol, &[1, 3, 64, 64], DType::F32);
    let types: Vec<TensorType> = inputs.iter().map(|a| a.tensor_type()).collect();
    let rules = compile(&symbol, "default", KernelOptions::default());
    let known = rules.convolutions(&types).expect("there is a plan");
    assert!(known.len() >= 8 && known.is_sorted(), "every layer of its own shape once: {}", known.len());
    assert!(!text(&rules, &inputs).contains("(tuned)"));

    // Direct convolution for every layer.
    let mut table = ConvTable::default();
    let direct: Method = "direct".parse().expect("a method");
    known.iter().for_each(|signature| table.insert(*signature, direct, 1));
    let tuned = Some(&*Box::leak(Box::new(table)));
    let op = compile(&symbol, "default", KernelOptions { tuned, ..KernelOptions::default() });
    let plan = text(&op, &inputs);
    assert!(!plan.contains("winograd"), "{plan}");
    assert_eq!(plan.matches("(tuned)").count(), 20, "twenty convolutions: {plan}");
    let largest = answer(&rules, &inputs).iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (got, want) in answer(&op, &inputs).iter().zip(answer(&rules, &inputs)) {
        assert!((got - want).abs() <= 1e-5 * largest, "{got}, by rule {want}");
    }
}
