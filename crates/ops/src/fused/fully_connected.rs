//! `_sg_mkldnn_fully_connected`: a dense layer with a function of its results.

use super::layer::{FusedLayer, Results, Weights};
use super::weights::WeightSource;
use super::{NESTED, NESTED_ATTR, NestedGraph};
use crate::prelude::*;
use crate::quantized::layer::Int8Layer;
use crate::quantized::{CALIBRATION, bytes_of, calibration, infer_float_ranges};
use mxrt_kernels::int8::Function;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_sg_mkldnn_fully_connected",
    doc: "A dense layer that MXNet fused with the function that follows it; the nested graph says which. Quantized, \
        it returns integers and their range, or float32 (enable_float_output).",
    inputs: Inputs::ByAttrs(inputs),
    attrs: &[
        AttrDef::new("quantized", AttrKind::Bool, "False", "Whether data are integers."),
        AttrDef::new("enable_float_output", AttrKind::Bool, "False", "Return float32 numbers alone."),
        AttrDef::new("with_eltwise", AttrKind::Bool, "False", "Whether a function follows."),
        AttrDef::new("with_relu", AttrKind::Bool, "False", "An older name of with_eltwise."),
        CALIBRATION[0],
        CALIBRATION[1],
        AttrDef::new("channel_wise_quantize", AttrKind::OptBool, "None", "Whether weights are float32."),
        NESTED_ATTR,
    ],
    outputs: Outputs::Named(|attrs| {
        if attrs.bool("quantized") && !attrs.bool("enable_float_output") {
            &["output", "min_output", "max_output"]
        } else {
            &["output"]
        }
    }),
    infer_shape,
    infer_dtype,
    bind,
    ..OpDef::BASE
}];

fn graph(attrs: &Attrs) -> &NestedGraph {
    attrs.object(NESTED)
}

fn bias(attrs: &Attrs) -> bool {
    graph(attrs).only("FullyConnected").is_some_and(|dense| !dense.attrs.bool("no_bias"))
}

/// Whether each output has steps of its own.
fn by_channel(attrs: &Attrs) -> bool {
    attrs.opt_bool("channel_wise_quantize").unwrap_or(false)
}

fn inputs(attrs: &Attrs) -> &'static [&'static str] {
    match (bias(attrs), attrs.bool("quantized"), by_channel(attrs)) {
        (false, false, _) => &["data", "weight"],
        (true, false, _) => &["data", "weight", "bias"],
        (false, true, true) => &["data", "weight", "min_data", "max_data"],
        (true, true, true) => &["data", "weight", "bias", "min_data", "max_data"],
        (false, true, false) => &["data", "weight", "min_data", "max_data", "min_weight", "max_weight"],
        (true, true, false) => {
            &["data", "weight", "bias", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"]
        }
    }
}

/// The function after the sums; an error where the nested graph is none that MXNet makes.
fn function(attrs: &Attrs) -> Result<Option<Function>, OpError> {
    let mut function = None;
    let mut layers = 0;
    let wrong = |what: String| {
        Err(value_error(format!(
            "the nested graph does not fit the attributes of the node: {what}; save the model again"
        )))
    };
    for node in &graph(attrs).nodes {
        match (node.op.name, node.function()) {
            ("FullyConnected", _) => layers += 1,
            (_, Some(found)) if function.is_none() => function = Some(found),
            (name, _) => return wrong(format!("it has a node {name}, which no integers go through")),
        }
    }
    let said = attrs.bool("with_eltwise") || attrs.bool("with_relu");
    match (layers, said == function.is_some()) {
        (1, true) => Ok(function),
        (1, false) => wrong(format!("with_eltwise is {said}")),
        _ => wrong(format!("it has {layers} dense layers")),
    }
}

/// Whether integers of the output are unsigned, as MXNet decides it.
fn unsigned(function: Option<Function>) -> bool {
    let signed = |f| matches!(f, Function::Tanh | Function::Gelu | Function::Softsign | Function::Elu(_));
    function.is_some_and(|function| !signed(function))
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let arrays = 2 + usize::from(bias(shapes.attrs));
    if shapes.attrs.bool("quantized") {
        function(shapes.attrs)?;
    }
    graph(shapes.attrs).infer_shape(&mut shapes.inputs[..arrays], shapes.outputs)?;
    let one = PartialShape::from_dims([Some(1)]);
    for i in arrays..shapes.inputs.len() {
        shapes.set_input(i, "a range", one.clone())?;
    }
    (1..shapes.outputs.len()).try_for_each(|i| shapes.set_output(i, one.clone()))
}

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let attrs = dtypes.attrs;
    if !attrs.bool("quantized") {
        return graph(attrs).infer_dtype(dtypes.inputs, dtypes.outputs);
    }
    bytes_of(dtypes, 0, "data")?;
    let arrays = 2 + usize::from(bias(attrs));
    let parameters = if by_channel(attrs) { DType::F32 } else { DType::I8 };
    for i in 1..arrays {
        dtypes.set_input(i, if i == 1 { "weight" } else { "bias" }, parameters)?;
    }
    let out = match (attrs.bool("enable_float_output"), calibration(attrs)?) {
        (true, _) => DType::F32,
        (false, None) => DType::I32,
        (false, Some(_)) if unsigned(function(attrs)?) => DType::U8,
        (false, Some(_)) => DType::I8,
    };
    dtypes.set_output(0, out)?;
    infer_float_ranges(dtypes, arrays, &[])
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    if !attrs.bool("quantized") {
        return Err(not_implemented("a float32 node with a nested graph is unfolded where the graph is built"));
    }
    let (function, bias) = (function(attrs)?, bias(attrs));
    let results = match (attrs.bool("enable_float_output"), calibration(attrs)?) {
        (_, Some(range)) if !attrs.bool("enable_float_output") => Results::Bytes(range),
        (true, _) => Results::Numbers,
        _ => Results::Sums,
    };
    let by_channel = by_channel(attrs);
    if by_channel && matches!(results, Results::Sums) {
        return Err(value_error(
            "channel_wise_quantize needs a calibrated range or enable_float_output: int32 sums have one range",
        ));
    }
    let arrays = 2 + usize::from(bias);
    let weights = if by_channel {
        Weights::Floats(WeightSource { bias, norm: None, by_filter: true })
    } else {
        Weights::Integers { weight: arrays + 2, bias: bias.then_some(arrays + 4) }
    };
    let layer = FusedLayer {
        layer: Int8Layer::dense(&signature.inputs[1].shape, &signature.outputs[0].shape, &signature.options)?,
        weights,
        packed_inputs: if by_channel { (1..arrays).collect() } else { vec![1] },
        data_range: arrays,
        addend: None,
        functions: [function, None],
        results,
        packed_len: 0,
    };
    Ok(Box::new(layer.counted()?))
}
