//! `_sg_mkldnn_conv`: a convolution with BatchNorm, activation and sum.

use super::layer::{FusedLayer, Results, Weights};
use super::weights::{Norm, WeightSource};
use super::{NESTED, NESTED_ATTR, NestedGraph};
use crate::blocked::quantized_convolution::conv_form;
use crate::definition::StatePositions;
use crate::nn::convolution::ConvGeometry;
use crate::prelude::*;
use crate::quantized::layer::Int8Layer;
use crate::quantized::{CALIBRATION, bytes_of, calibration, infer_float_ranges, infer_scalars};
use mxrt_kernels::int8::{Function, PixelForm};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_sg_mkldnn_conv",
    doc: "A convolution that MXNet fused with what follows it: BatchNorm, activation, sum, activation. The nested \
        graph says with which. Quantized, it returns integers and their range.",
    inputs: Inputs::ByAttrs(inputs),
    aux_by_attrs: Some(states),
    attrs: &ATTRS,
    outputs: Outputs::Named(outputs),
    infer_shape,
    infer_dtype,
    bind,
    rewrites: &Rewrites { blocked_form: conv_form, ..Rewrites::NONE },
    ..OpDef::BASE
}];

pub(crate) const ATTRS: [AttrDef; 10] = [
    flag("with_bn", "Whether a BatchNorm follows."),
    flag("with_act", "Whether an activation follows."),
    flag("with_relu", "An older name of with_act."),
    flag("with_sum", "Whether an array is added."),
    flag("with_postsum_act", "Whether an activation follows the sum."),
    flag("with_postsum_relu", "An older name of with_postsum_act."),
    flag("quantized", "Whether data are integers."),
    CALIBRATION[0],
    CALIBRATION[1],
    NESTED_ATTR,
];

pub(crate) fn states(attrs: &Attrs) -> StatePositions {
    graph(attrs).states().collect()
}

pub(crate) fn outputs(attrs: &Attrs) -> &'static [&'static str] {
    if attrs.bool("quantized") { &["output", "output_min", "output_max"] } else { &["output"] }
}

const fn flag(name: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Bool, "False", doc)
}

fn graph(attrs: &Attrs) -> &NestedGraph {
    attrs.object(NESTED)
}

/// Parts of the node.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    bias: bool,
    norm: bool,
    sum: bool,
    pub quantized: bool,
}

impl Parts {
    pub fn of(attrs: &Attrs) -> Parts {
        let graph = graph(attrs);
        Parts {
            bias: graph.only("Convolution").is_some_and(|conv| !conv.attrs.bool("no_bias")),
            norm: graph.only("BatchNorm").is_some(),
            sum: graph.nodes.iter().any(|node| is_sum(node.op)),
            quantized: attrs.bool("quantized"),
        }
    }

    /// Inputs before the ranges.
    pub fn arrays(self) -> usize {
        2 + usize::from(self.bias) + 4 * usize::from(self.norm) + usize::from(self.sum)
    }

    /// The input that is added.
    pub fn addend(self) -> Option<usize> {
        self.sum.then(|| self.arrays() - 1)
    }
}

fn is_sum(op: &OpDef) -> bool {
    matches!(op.name, "elemwise_add" | "broadcast_add")
}

/// Names in MXNet's order; float32 nodes have no ranges.
pub(crate) fn inputs(attrs: &Attrs) -> &'static [&'static str] {
    let Parts { bias, norm, sum, quantized } = Parts::of(attrs);
    macro_rules! names {
        ($($name:expr),*) => {
            match (sum, quantized) {
                (false, false) => &[$($name),*],
                (true, false) => &[$($name),*, "sum"],
                (false, true) => &[$($name),*, "data_min", "data_max"],
                (true, true) => &[$($name),*, "sum", "data_min", "data_max", "sum_min", "sum_max"],
            }
        };
    }
    match (bias, norm) {
        (false, false) => names!("data", "weight"),
        (true, false) => names!("data", "weight", "bias"),
        (false, true) => names!("data", "weight", "gamma", "beta", "mean", "var"),
        (true, true) => names!("data", "weight", "bias", "gamma", "beta", "mean", "var"),
    }
}

/// The functions after the sums and after the addend; an error where the nested graph is none that
/// MXNet makes.
fn functions(attrs: &Attrs) -> Result<[Option<Function>; 2], OpError> {
    let graph = graph(attrs);
    let flags = |a: &str, b: &str| attrs.bool(a) || attrs.bool(b);
    let wrong = |what: &str| {
        Err(value_error(format!(
            "the nested graph does not fit the attributes of the node: {what}; save the model again"
        )))
    };
    let mut functions = [None; 2];
    let mut after_sum = 0;
    let (mut convolutions, mut norms) = (0, 0);
    for node in &graph.nodes {
        match node.op.name {
            "Convolution" => convolutions += 1,
            "BatchNorm" => norms += 1,
            _ if is_sum(node.op) => after_sum += 1,
            _ => match node.function() {
                Some(function) if after_sum < 2 && functions[after_sum].is_none() => {
                    functions[after_sum] = Some(function)
                }
                _ => return wrong(&format!("it has a node {}, which no integers go through", node.op.name)),
            },
        }
    }
    if convolutions != 1 || norms > 1 || after_sum > 1 {
        return wrong(&format!("it has {convolutions} convolutions, {norms} BatchNorms and {after_sum} sums"));
    }
    let said = [
        ("with_bn", attrs.bool("with_bn"), norms == 1),
        ("with_sum", attrs.bool("with_sum"), after_sum == 1),
        ("with_act", flags("with_act", "with_relu"), functions[0].is_some()),
        ("with_postsum_act", flags("with_postsum_act", "with_postsum_relu"), functions[1].is_some()),
    ];
    match said.iter().find(|(_, said, found)| said != found) {
        Some((name, said, _)) => wrong(&format!("{name} is {said}")),
        None => Ok(functions),
    }
}

/// Whether integers of the output are unsigned, as MXNet decides it.
fn unsigned(functions: [Option<Function>; 2], sum: bool) -> bool {
    let last = if sum { functions[1] } else { functions[0] };
    matches!(last, Some(Function::Relu | Function::Clip(..) | Function::Sigmoid | Function::Softrelu))
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let parts = Parts::of(shapes.attrs);
    if parts.quantized {
        functions(shapes.attrs)?;
    }
    graph(shapes.attrs).infer_shape(&mut shapes.inputs[..parts.arrays()], shapes.outputs)?;
    if let Some(at) = parts.addend() {
        check_sum(shapes, at)?;
    }
    infer_ranges(shapes)
}

/// Refuses an addend that would have to be broadcast, or that broadcasts the convolution.
fn check_sum(shapes: &Shapes<'_>, at: usize) -> Result<(), OpError> {
    let (Some(data), Some(sum)) = (shapes.inputs[0].complete(), shapes.inputs[at].complete()) else { return Ok(()) };
    let geometry = geometry(shapes.attrs)?;
    let mut out = vec![data[0], geometry.filters];
    for (axis, size) in data[2..].iter().enumerate() {
        out.push(geometry.size(axis, *size)?);
    }
    match sum[..] == out[..] {
        true => Ok(()),
        false => {
            Err(shape_error(format!("sum has shape {sum}; expected that of the convolution, {}", Shape::new(&out))))
        }
    }
}

pub(crate) fn infer_ranges(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    infer_scalars(shapes, Parts::of(shapes.attrs).arrays(), &[])
}

pub(crate) fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let parts = Parts::of(dtypes.attrs);
    if !parts.quantized {
        return graph(dtypes.attrs).infer_dtype(dtypes.inputs, dtypes.outputs);
    }
    bytes_of(dtypes, 0, "data")?;
    let sum = parts.addend();
    for i in (1..dtypes.inputs.len()).filter(|i| Some(*i) != sum) {
        dtypes.set_input(i, "a parameter or range", DType::F32)?;
    }
    if let Some(sum) = sum {
        bytes_of(dtypes, sum, "sum")?;
    }
    let out = match calibration(dtypes.attrs)? {
        None => DType::I32,
        Some(_) if unsigned(functions(dtypes.attrs)?, parts.sum) => DType::U8,
        Some(_) => DType::I8,
    };
    dtypes.set_output(0, out)?;
    infer_float_ranges(dtypes, parts.arrays(), &[])
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shapes = [&signature.inputs[0].shape, &signature.outputs[0].shape];
    Ok(Box::new(layer(attrs, shapes, &signature.options, None)?))
}

/// The geometry of the convolution.
pub(crate) fn geometry(attrs: &Attrs) -> Result<ConvGeometry, OpError> {
    ConvGeometry::new(&graph(attrs).only("Convolution").ok_or_else(wrong_arity)?.attrs)
}

/// The quantized layer for planes of data and output, or pixels of them.
pub(crate) fn layer(
    attrs: &Attrs,
    [data, out]: [&Shape; 2],
    options: &KernelOptions,
    pixels: Option<PixelForm>,
) -> Result<FusedLayer, OpError> {
    let (graph, parts, functions) = (graph(attrs), Parts::of(attrs), functions(attrs)?);
    if !parts.quantized {
        return Err(not_implemented("a float32 node with a nested graph is unfolded where the graph is built"));
    }
    let norm = graph.only("BatchNorm");
    if let Some(n) = norm
        && resolve_axis(n.attrs.int("axis"), data.len())? != 1
    {
        return Err(value_error(format!(
            "the nested BatchNorm normalizes along axis {}, but the filters of a convolution are axis 1; quantize the \
             network again",
            n.attrs.int("axis")
        )));
    }
    let norm = norm.map(|n| Norm { eps: n.attrs.float("eps"), fix_gamma: n.attrs.bool("fix_gamma") });
    let calibrated = calibration(attrs)?;
    let layer = Int8Layer::convolution(&geometry(attrs)?, data, out, options, pixels);
    let arrays = parts.arrays();
    let parameters = arrays - usize::from(parts.sum);
    let source = WeightSource { bias: parts.bias, norm, by_filter: calibrated.is_some() };
    let layer = FusedLayer {
        layer,
        weights: Weights::Floats(source),
        packed_inputs: (1..parameters).collect(),
        data_range: arrays,
        addend: parts.addend().map(|at| (at, arrays + 2)),
        functions,
        results: calibrated.map_or(Results::Sums, Results::Bytes),
        packed_len: 0,
    };
    layer.counted()
}

#[cfg(test)]
mod tests {
    use super::super::{InnerValue, NESTED, NestedWriter};
    use crate::testing::OpTest;

    /// A convolution of single pixels with a bias, then relu, then perhaps a sum and relu again.
    fn nested(sum: bool) -> String {
        let last = if sum { 3 } else { 1 };
        let mut writer = NestedWriter::new(if sum { 4 } else { 3 }, InnerValue::Node(last, 0));
        let inputs = [InnerValue::Input(0), InnerValue::Input(1), InnerValue::Input(2)];
        let attrs = [("kernel", "(1, 1)"), ("num_filter", "2")];
        writer.node("Convolution", &inputs, attrs.into_iter());
        writer.node("Activation", &[InnerValue::Node(0, 0)], [("act_type", "relu")].into_iter());
        if sum {
            writer.node("elemwise_add", &[InnerValue::Node(1, 0), InnerValue::Input(3)], std::iter::empty());
            writer.node("Activation", &[InnerValue::Node(2, 0)], [("act_type", "relu")].into_iter());
        }
        writer.finish()
    }

    /// Numbers are integers here: the ranges make steps of 1.
    fn fused(attrs: &[(&str, &str)], sum: bool) -> OpTest {
        let test = OpTest::new("_sg_mkldnn_conv").attr("quantized", "true").attr("with_act", "true");
        let test = attrs.iter().fold(test, |t, (k, v)| t.attr(k, v)).attr(NESTED, &nested(sum));
        test.i8([1, 1, 1, 2], &[64, -64]).f32([2, 1, 1, 1], &[1.0, -0.5]).f32([2], &[3.0, 0.0])
    }

    #[test]
    fn a_quantized_layer_rounds_its_real_numbers() {
        let test = fused(&[("min_calib_range", "0"), ("max_calib_range", "255.5")], false);
        let y = test.f32([1], &[-127.5]).f32([1], &[127.5]).run_all();
        assert_eq!(y[0].values::<u8>(), [67, 0, 0, 32]);
        assert_eq!((y[1].values::<f32>(), y[2].values::<f32>()), (vec![0.0], vec![255.5]));
    }

    #[test]
    fn sums_without_a_calibration_stand_for_the_real_numbers() {
        let y = fused(&[], false).f32([1], &[-127.5]).f32([1], &[127.5]).run_all();
        let step = y[2].values::<f32>()[0] / i32::MAX as f32;
        let numbers: Vec<f32> = y[0].values::<i32>().iter().map(|sum| *sum as f32 * step).collect();
        assert!(numbers.iter().zip([67.0, 0.0, 0.0, 32.0]).all(|(a, b)| (a - b).abs() < 0.6), "{numbers:?}");
    }

    #[test]
    fn what_is_added_has_steps_and_a_type_of_its_own() {
        let attrs = [
            ("with_sum", "true"),
            ("with_postsum_act", "true"),
            ("min_calib_range", "0"),
            ("max_calib_range", "255.5"),
        ];
        let test = fused(&attrs, true).i8([1, 2, 1, 2], &[-100, 10, 20, -8]);
        let test = test.f32([1], &[-127.5]).f32([1], &[127.5]).f32([1], &[-255.0]).f32([1], &[255.0]);
        // 67 - 200, 0 + 20, 0 + 40, 32 - 16
        assert_eq!(test.run_all()[0].values::<u8>(), [0, 20, 40, 16]);
    }

    #[test]
    fn a_sum_is_rounded_once() {
        let attrs = [
            ("with_sum", "true"),
            ("with_postsum_act", "true"),
            ("min_calib_range", "0"),
            ("max_calib_range", "255.5"),
        ];
        let test = OpTest::new("_sg_mkldnn_conv").attr("quantized", "true").attr("with_act", "true");
        let test = attrs.iter().fold(test, |t, (k, v)| t.attr(k, v)).attr(NESTED, &nested(true));
        let test = test.i8([1, 1, 1, 1], &[109]).f32([2, 1, 1, 1], &[1.0, 0.0]).f32([2], &[3.0, 112.0]);
        let test = test.i8([1, 2, 1, 1], &[-97, -97]).f32([1], &[-127.5]).f32([1], &[127.5]);
        // 112 - 96.500003: the product in float32 is 96.5, and half to even would be 16.
        let test = test.f32([1], &[-126.84279]).f32([1], &[126.84279]);
        assert_eq!(test.run_all()[0].values::<u8>(), [15, 15]);
    }

    #[test]
    fn an_addend_of_another_shape_is_refused() {
        let attrs = ["quantized", "with_act", "with_sum", "with_postsum_act"];
        let broadcast = nested(true).replace("elemwise_add", "broadcast_add");
        for shape in [[1, 2, 1, 1], [2, 2, 1, 2], [1, 2, 3, 2]] {
            let test = attrs.iter().fold(OpTest::new("_sg_mkldnn_conv"), |t, name| t.attr(name, "true"));
            let test = test.attr(NESTED, &broadcast).i8([1, 1, 1, 2], &[1; 2]).f32([2, 1, 1, 1], &[1.0; 2]);
            let test = test.f32([2], &[0.0; 2]).i8(shape, &vec![1; shape.iter().product()]);
            let error = [-1.0, 1.0, -1.0, 1.0].iter().fold(test, |t, v| t.f32([1], &[*v])).error();
            assert!(error.message.contains("sum has shape"), "{shape:?}: {}", error.message);
        }
    }

    /// MXNet 1.9.1 makes such nodes, and takes the values for those of filters.
    #[test]
    fn a_batch_norm_along_another_axis_is_refused() {
        let mut writer = NestedWriter::new(6, InnerValue::Node(1, 0));
        let attrs = [("kernel", "(1, 1)"), ("num_filter", "2"), ("no_bias", "True")];
        writer.node("Convolution", &[InnerValue::Input(0), InnerValue::Input(1)], attrs.into_iter());
        let [gamma, beta, mean, variance] = [2, 3, 4, 5].map(InnerValue::Input);
        writer.node("BatchNorm", &[InnerValue::Node(0, 0), gamma, beta, mean, variance], [("axis", "3")].into_iter());
        let test = OpTest::new("_sg_mkldnn_conv").attr("quantized", "true").attr("with_bn", "true");
        let test = test.attr(NESTED, &writer.finish()).i8([1, 1, 1, 1], &[64]).f32([2, 1, 1, 1], &[1.0, -0.5]);
        let error = [1.0, 1.0, 1.0, 1.0, -1.0, 1.0].iter().fold(test, |t, v| t.f32([1], &[*v])).error();
        assert!(error.message.contains("along axis 3"), "{}", error.message);
    }

    #[test]
    fn a_nested_graph_that_is_none_is_refused() {
        let of = |text: &str| {
            let test = OpTest::new("_sg_mkldnn_conv").attr(NESTED, text).f32([1, 1, 1, 1], &[0.0]);
            test.error().message.clone()
        };
        for text in ["", "9", "1\u{1f}n0.0\u{1e}", "1\u{1f}i5\u{1e}", "1\u{1f}n0.0\u{1e}Nothing\u{1f}i0\u{1e}"] {
            assert!(of(text).contains("the nested graph is damaged"), "{text:?}: {}", of(text));
        }
        assert!(OpTest::new("_sg_mkldnn_conv").f32([1], &[0.0]).error().message.contains("no nested graph"));
    }
}
