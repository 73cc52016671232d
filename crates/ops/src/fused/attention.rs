//! `_sg_mkldnn_selfatt_qk` and `_sg_mkldnn_selfatt_valatt`: products of attention.

use super::{NESTED, NESTED_ATTR, NestedGraph};
use crate::prelude::*;
use crate::quantized::layer::rows;
use crate::quantized::{CALIBRATION, Range, calibration, infer_float_ranges, product_range, scale, store_range};
use mxrt_engine::OpError;
use mxrt_kernels::int8::{EachSum, Int8Gemm, Int8Result, Level, Rows};
use mxrt_kernels::par::{Serial, par_chunks_mut};
use mxrt_tensor::{DType, PartialShape};

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

/// Time, batch, heads and the dimension of a head.
#[derive(Clone, Copy)]
struct Heads {
    time: usize,
    batch: usize,
    heads: usize,
    dim: usize,
}

impl Heads {
    fn of(attrs: &Attrs, signature: &Signature<'_>) -> Result<Heads, OpError> {
        let ([time, batch, width], heads) = (&signature.inputs[0].shape[..], attrs.count("heads")) else {
            return Err(wrong_arity());
        };
        if heads == 0 || width % (3 * heads) != 0 {
            return Err(shape_error(format!("heads={heads} does not divide a third of {width}")));
        }
        Ok(Heads { time: *time, batch: *batch, heads, dim: width / 3 / heads })
    }

    /// The rows of a projection of a head, or its columns.
    fn copy(self, qkv: &[u8], head: usize, part: usize, transposed: bool) -> Vec<u8> {
        let Heads { time, batch, heads, dim } = self;
        let (n, h) = (head / heads, head % heads);
        let start = |t: usize| ((t * batch + n) * heads + h) * 3 * dim + part * dim;
        if transposed {
            return (0..dim).flat_map(|d| (0..time).map(move |t| (t, d))).map(|(t, d)| qkv[start(t) + d]).collect();
        }
        (0..time).flat_map(|t| qkv[start(t)..][..dim].iter().copied()).collect()
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, product: AttentionProduct) -> Result<Box<dyn Kernel>, OpError> {
    if !attrs.bool("quantized") {
        return Err(not_implemented("a float32 node with a nested graph is unfolded where the graph is built"));
    }
    let (sizes, level) = (Heads::of(attrs, signature)?, signature.options.byte_level());
    let (calibrated, float) = (calibration(attrs)?, attrs.bool("enable_float_output"));
    let arrays = if product == AttentionProduct::Scores { 1 } else { 2 };
    let products = sizes.batch.saturating_mul(sizes.heads).saturating_mul(sizes.time).saturating_mul(sizes.time);
    let cost = 1_000 + products.saturating_mul(sizes.dim) as u64 / 20;
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
            DType::F32 => multiply::<f32>(call, sizes, product, level, factor)?,
            DType::I8 => multiply::<i8>(call, sizes, product, level, factor)?,
            _ => multiply::<i32>(call, sizes, product, level, factor)?,
        }
        match (float, calibrated) {
            (true, _) => Ok(()),
            (false, Some(range)) => store_range(range, call.outputs),
            (false, None) => store_range(product_range(data, other, product == AttentionProduct::Values), call.outputs),
        }
    }))
}

/// Multiplies the matrices of each head.
fn multiply<T: Int8Result>(
    call: &mut KernelCall<'_, '_>,
    sizes: Heads,
    product: AttentionProduct,
    level: Level,
    factor: f32,
) -> Result<(), OpError> {
    let Heads { time, batch, heads, dim } = sizes;
    let qkv = rows(&call.inputs[0]);
    let matrix = |left: Rows<'_>, weights: &[u8], n: usize, k: usize, out: &mut [T]| {
        let gemm = Int8Gemm::new(n, k, level);
        let mut packed = vec![0; gemm.packed_len().unwrap_or(0)];
        gemm.pack(bytemuck::cast_slice(weights), &mut packed);
        gemm.run(&Serial, left, &packed, &EachSum(|_, sum| T::round_to(sum as f32 * factor)), out);
    };
    if product == AttentionProduct::Scores {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        par_chunks_mut(call.par, out, (time * time).max(1), |head, out| {
            let (queries, keys) = (sizes.copy(qkv.bytes, head, 0, false), sizes.copy(qkv.bytes, head, 1, false));
            matrix(Rows { bytes: &queries, signed: true }, &keys, time, dim, out);
        });
        return Ok(());
    }
    let attention = rows(&call.inputs[1]);
    let width = time * time;
    let mut all = vec![T::round_to(0.0); batch * heads * time * dim];
    par_chunks_mut(call.par, &mut all, (time * dim).max(1), |head, out| {
        let values = sizes.copy(qkv.bytes, head, 2, true);
        let weights = Rows { bytes: &attention.bytes[head * width..][..width], signed: attention.signed };
        matrix(weights, &values, dim, time, out);
    });
    let out = elements_mut::<T>(&mut call.outputs[0])?;
    for (i, to) in out.chunks_exact_mut(dim.max(1)).enumerate() {
        let (t, head) = (i / (batch * heads), i % (batch * heads));
        to.copy_from_slice(&all[(head * time + t) * dim..][..dim]);
    }
    Ok(())
}
