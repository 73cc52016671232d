//! `_fused_attention`: products of queries and keys, softmax, and sums of values, as one step.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::attention::{Attention, AttentionOperands};
use mxrt_kernels::conv::Precision;
use mxrt_kernels::gemm::{Matrices, MatricesMut, Places};
use mxrt_tensor::{DType, Shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fused_attention",
    doc: "softmax(scale * queries keys^T + mask) values of each matrix of a batch, in float32. \
        Matrices are given by their array, first element, and steps between outer and inner \
        batches, rows and columns.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs."),
        AttrDef::required("batch", AttrKind::Shape, "Outer and inner batches."),
        AttrDef::required("size", AttrKind::Shape, "Queries, keys, their depth, width of values."),
        AttrDef::required("scale", AttrKind::Float, "Factor of the products.").wide(),
        AttrDef::required("queries", AttrKind::Shape, "Matrices of queries."),
        AttrDef::required("keys", AttrKind::Shape, "Matrices of keys."),
        AttrDef::required("values", AttrKind::Shape, "Matrices of values."),
        AttrDef::new("mask", AttrKind::OptShape, "None", "Matrices that are added to the products."),
        AttrDef::required("result", AttrKind::Shape, "Matrices of the result."),
        AttrDef::new("lengths", AttrKind::OptInt, "None", "Array of the number of keys of each query."),
        AttrDef::required("shape", AttrKind::Shape, "Shape of the result."),
    ],
    infer_shape: |shapes| {
        let shape = numbers(shapes.attrs.ints("shape"))?;
        shapes.set_output(0, Shape::new(&shape))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::F32),
    bind,
    internal: true,
    ..OpDef::BASE
}];

fn numbers(given: &[i64]) -> Result<Vec<usize>, OpError> {
    let number = |n: &i64| usize::try_from(*n).map_err(|_| value_error(format!("{n} is no extent or step")));
    given.iter().map(number).collect()
}

fn some<const N: usize>(given: &[i64]) -> Result<[usize; N], OpError> {
    let found = numbers(given)?;
    let count = found.len();
    found.try_into().map_err(|_| value_error(format!("{N} numbers are needed, not {count}")))
}

/// Number of the array of matrices, and their places.
fn matrices(given: &[i64]) -> Result<(usize, Places), OpError> {
    let [array, first, outer, inner, row, column] = some(given)?;
    Ok((array, Places { first, batch: [outer, inner], row, column }))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let [queries, keys, depth, width] = some(attrs.ints("size"))?;
    let batch: [usize; 2] = some(attrs.ints("batch"))?;
    let (scale, isa) = (attrs.float("scale") as f32, signature.options.isa);
    let tiles = signature.options.has_tiles() && signature.options.precision == Precision::Bf16;
    let attention = Attention { batch, queries, keys, depth, width, scale, isa, tiles };
    let (q, k, v) = (matrices(attrs.ints("queries"))?, matrices(attrs.ints("keys"))?, matrices(attrs.ints("values"))?);
    let mask = attrs.opt_ints("mask").map(matrices).transpose()?;
    let (_, result) = matrices(attrs.ints("result"))?;
    let lengths = attrs.opt_int("lengths").map(|array| some::<1>(&[array])).transpose()?.map(|[array]| array);
    let is_single = |(array, _): &(usize, Places)| signature.inputs.get(*array).is_some_and(|t| t.dtype == DType::F32);
    if ![q, k, v].iter().chain(&mask).all(is_single) {
        return Err(type_error("attention is fused in float32 only"));
    }
    if let Some(array) = lengths {
        let lengths = signature.inputs.get(array).ok_or_else(wrong_arity)?;
        check_integers("length", lengths.dtype)?;
    }
    let work = [batch[0], batch[1], queries, keys, depth + width].iter().fold(1u64, |n, s| n.saturating_mul(*s as u64));
    let on_tiles = tiles && attention.suits_tiles([q.1, k.1, v.1]);
    let (name, rate) = if on_tiles { ("bf16 amx", 200) } else { (isa.name(), 50) };
    Ok(costed_kernel_fn(format!("attention {name}"), 1_000 + work / rate, move |call| {
        let array = |(array, at): (usize, Places)| {
            let data = elements(call.inputs.get(array).ok_or_else(wrong_arity)?)?;
            Ok::<_, OpError>(Matrices { data, at })
        };
        let lengths = lengths.map(|array| integers(call.par, &call.inputs[array])).transpose()?;
        let operands = AttentionOperands {
            queries: array(q)?,
            keys: array(k)?,
            values: array(v)?,
            mask: mask.map(array).transpose()?,
            lengths: lengths.as_deref(),
        };
        let [out] = &mut *call.outputs else { return Err(wrong_arity()) };
        attention.run(call.par, operands, MatricesMut { data: elements_mut(out)?, at: result });
        Ok(())
    }))
}
