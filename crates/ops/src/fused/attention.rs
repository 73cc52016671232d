//! `_sg_mkldnn_selfatt_qk` and `_sg_mkldnn_selfatt_valatt`: products of attention.

use super::{NESTED, NESTED_ATTR, NestedGraph};
use crate::prelude::*;
use crate::quantized::layer::{products_cost_ns, rows};
use crate::quantized::{CALIBRATION, Range, calibration, infer_float_ranges, product_range, scale, store_range};
use mxrt_kernels::int8::{HeadProducts, Int8Attention, Int8Result};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_sg_mkldnn_selfatt_qk",
        doc: "Scaled products of queries and keys; the nested graph is _contrib_interleaved_matmul_selfatt_qk. \
            Quantized, it takes int8 and returns integers and their range, or float32.",
        inputs: Inputs::ByAttrs(|attrs| {
            if attrs.bool("quantized") {
                &["queries_keys_values", "min_qkv", "max_qkv"]
            } else {
                &["queries_keys_values"]
            }
        }),
        infer_shape: |shapes| infer_shape(shapes, 1),
        infer_dtype: |dtypes| infer_dtype(dtypes, &[DType::I8]),
        bind: |attrs, signature| bind(attrs, signature, AttentionProduct::Scores),
        ..ATTENTION
    },
    OpDef {
        name: "_sg_mkldnn_selfatt_valatt",
        doc: "Values weighted by attention; the nested graph is _contrib_interleaved_matmul_selfatt_valatt. \
            Quantized, it takes int8 values and uint8 weights and returns integers and their range, or float32.",
        inputs: Inputs::ByAttrs(|attrs| {
            if attrs.bool("quantized") {
                &["queries_keys_values", "attention", "min_qkv", "max_qkv", "min_attention", "max_attention"]
            } else {
                &["queries_keys_values", "attention"]
            }
        }),
        infer_shape: |shapes| infer_shape(shapes, 2),
        infer_dtype: |dtypes| infer_dtype(dtypes, &[DType::I8, DType::U8]),
        bind: |attrs, signature| bind(attrs, signature, AttentionProduct::Values),
        ..ATTENTION
    },
];

const ATTENTION: OpDef = OpDef {
    attrs: &[
        AttrDef::required("heads", AttrKind::IntFrom(1), "Number of heads."),
        AttrDef::new("quantized", AttrKind::Bool, "False", "Whether data are integers."),
        AttrDef::new("enable_float_output", AttrKind::Bool, "False", "Return float32 numbers alone."),
        CALIBRATION[0],
        CALIBRATION[1],
        NESTED_ATTR,
    ],
    outputs: Outputs::Named(|attrs| {
        if attrs.bool("quantized") && !attrs.bool("enable_float_output") {
            &["output", "min_output", "max_output"]
        } else {
            &["output"]
        }
    }),
    ..OpDef::BASE
};

/// One of the two products.
#[derive(Clone, Copy, PartialEq)]
enum AttentionProduct {
    Scores,
    Values,
}

fn infer_shape(shapes: &mut Shapes<'_>, arrays: usize) -> Result<(), OpError> {
    let graph: &NestedGraph = shapes.attrs.object(NESTED);
    graph.infer_shape(&mut shapes.inputs[..arrays], shapes.outputs)?;
    let one = PartialShape::from_dims([Some(1)]);
    for i in arrays..shapes.inputs.len() {
        shapes.set_input(i, "a range", one.clone())?;
    }
    (1..shapes.outputs.len()).try_for_each(|i| shapes.set_output(i, one.clone()))
}

fn infer_dtype(dtypes: &mut DTypes<'_>, arrays: &[DType]) -> Result<(), OpError> {
    let attrs = dtypes.attrs;
    if !attrs.bool("quantized") {
        let graph: &NestedGraph = attrs.object(NESTED);
        return graph.infer_dtype(dtypes.inputs, dtypes.outputs);
    }
    let names = ["queries_keys_values", "attention"];
    for (i, dtype) in arrays.iter().enumerate() {
        dtypes.set_input(i, names[i], *dtype)?;
    }
    let out = match (attrs.bool("enable_float_output"), calibration(attrs)?) {
        (true, _) => DType::F32,
        (false, Some(_)) => DType::I8,
        (false, None) => DType::I32,
    };
    dtypes.set_output(0, out)?;
    infer_float_ranges(dtypes, arrays.len(), &[])
}

/// Sizes of the projections.
fn sizes(attrs: &Attrs, signature: &Signature<'_>) -> Result<Int8Attention, OpError> {
    let ([time, batch, width], heads) = (&signature.inputs[0].shape[..], attrs.count("heads")) else {
        return Err(wrong_arity());
    };
    if heads == 0 || width % (3 * heads) != 0 {
        return Err(shape_error(format!("heads={heads} does not divide a third of {width}")));
    }
    let level = signature.options.byte_level();
    Ok(Int8Attention { time: *time, batch: *batch, heads, dim: width / 3 / heads, level })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, product: AttentionProduct) -> BoundKernel {
    if !attrs.bool("quantized") {
        return Err(not_implemented("a float32 node with a nested graph is unfolded where the graph is built"));
    }
    let sizes = sizes(attrs, signature)?;
    let (calibrated, float) = (calibration(attrs)?, attrs.bool("enable_float_output"));
    let arrays = if product == AttentionProduct::Scores { 1 } else { 2 };
    let factors = [sizes.batch, sizes.heads, sizes.time, sizes.time, sizes.dim];
    let products = factors.iter().fold(1u64, |product, factor| product.saturating_mul(*factor as u64));
    let cost = products_cost_ns(sizes.level, products);
    Ok(costed_kernel_fn("int8 attention", cost, move |call| {
        let data = Range::read("queries_keys_values", call.inputs, arrays)?;
        let other = match product {
            AttentionProduct::Scores => data,
            AttentionProduct::Values => Range::read("attention", call.inputs, arrays + 2)?,
        };
        let other_dtype = call.inputs[arrays - 1].dtype;
        let steps = scale(DType::I8, data) * scale(other_dtype, other);
        let output = call.outputs[0].dtype;
        let unit = match calibrated {
            Some(range) if !float => scale(output, range) / steps,
            _ if float => 1.0 / steps,
            _ => 1.0,
        };
        let factor = if product == AttentionProduct::Scores { unit / (sizes.dim as f32).sqrt() } else { unit };
        match output {
            DType::F32 => multiply::<f32>(call, &sizes, product, factor)?,
            DType::I8 => multiply::<i8>(call, &sizes, product, factor)?,
            _ => multiply::<i32>(call, &sizes, product, factor)?,
        }
        match (float, calibrated) {
            (true, _) => Ok(()),
            (false, Some(range)) => store_range(range, call.outputs),
            (false, None) => store_range(product_range(data, other, product == AttentionProduct::Values), call.outputs),
        }
    }))
}

fn multiply<T: Int8Result>(
    call: &mut KernelCall<'_, '_>,
    sizes: &Int8Attention,
    product: AttentionProduct,
    factor: f32,
) -> Result<(), OpError> {
    let projections = elements::<i8>(&call.inputs[0])?;
    let products = match product {
        AttentionProduct::Scores => HeadProducts::Scores,
        AttentionProduct::Values => HeadProducts::Values(rows(&call.inputs[1])),
    };
    sizes.run(call.par, projections, products, factor, elements_mut::<T>(&mut call.outputs[0])?);
    Ok(())
}
