//! `_contrib_quantized_concat`: arrays of integers joined along an axis.

use super::{Range, WITH_RANGE, bytes_of, dispatch_bytes, infer_float_ranges, scale, store_range};
use crate::blocked::quantized_concat::concat_form;
use crate::prelude::*;
use crate::shape::concat::infer_joined;
use mxrt_kernels::int8::scale_numbers;
use mxrt_kernels::par::{chunk_rows, par_chunks_mut};
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantized_concat",
    doc: "Joins arrays of integers along an axis: first the arrays, then least and largest number of each. The output \
        has the range that holds all, and is int8 if one of the arrays is.",
    inputs: Inputs::Ranged { count: "num_args", prefix: "arg" },
    attrs: &ATTRS,
    outputs: WITH_RANGE,
    infer_shape,
    infer_dtype,
    bind,
    rewrites: &Rewrites { blocked_form: concat_form, ..Rewrites::NONE },
    ..OpDef::BASE
}];

pub(crate) const ATTRS: [AttrDef; 2] = [
    AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of arrays, a third of the inputs."),
    AttrDef::new("dim", AttrKind::Int, "1", "Axis along which to join."),
];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let arrays = shapes.inputs.len() / 3;
    infer_joined(shapes, arrays)?;
    let one = PartialShape::from_dims([Some(1)]);
    for i in arrays..shapes.inputs.len() {
        shapes.set_input(i, "a range", one.clone())?;
    }
    shapes.set_output(1, one.clone())?;
    shapes.set_output(2, one)
}

pub(crate) fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let arrays = dtypes.inputs.len() / 3;
    let mut out = Some(DType::U8);
    for i in 0..arrays {
        match bytes_of(dtypes, i, "an input")? {
            Some(DType::I8) => {
                out = Some(DType::I8);
                break;
            }
            Some(_) => {}
            None => out = None,
        }
    }
    if let Some(out) = out {
        dtypes.set_output(0, out)?;
    }
    infer_float_ranges(dtypes, arrays, &[])
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let out = &signature.outputs[0];
    let axis = resolve_axis(attrs.int("dim"), out.shape.len())?;
    let [outer, _, inner] = split_around(axis, &out.shape);
    let (dtype, arrays) = (out.dtype, signature.inputs.len() / 3);
    dispatch_bytes!(dtype, T => Ok(costed_kernel_fn("concat", elementwise_ns(signature, 500), move |call| {
        let (ranges, all) = ranges(call.inputs, arrays)?;
        let to = elements_mut::<T>(&mut call.outputs[0])?;
        let row = (to.len() / outer.max(1)).max(1);
        let rows = chunk_rows::<T>(row);
        let mut start = 0;
        for (array, range) in call.inputs[..arrays].iter().zip(ranges) {
            let len = array.shape[axis] * inner;
            let factor = scale(dtype, all) / scale(array.dtype, range);
            dispatch_bytes!(array.dtype, S => {
                let from = elements::<S>(array)?;
                par_chunks_mut(call.par, to, rows * row, |chunk, to| {
                    for (to, from) in to.chunks_exact_mut(row).zip(from[chunk * rows * len..].chunks_exact(len.max(1))) {
                        scale_numbers(from, factor, &mut to[start..start + len]);
                    }
                });
                Ok(())
            })?;
            start += len;
        }
        store_range(all, call.outputs)
    })))
}

/// The range of each array, and the one that holds all.
pub(crate) fn ranges(inputs: &[TensorRef<'_>], arrays: usize) -> Result<(Vec<Range>, Range), OpError> {
    let ranges = (0..arrays).map(|i| Range::read("an input", inputs, arrays + 2 * i));
    let ranges = ranges.collect::<Result<Vec<Range>, OpError>>()?;
    let all = ranges
        .iter()
        .fold(Range { min: 0.0, max: 0.0 }, |all, r| Range { min: all.min.min(r.min), max: all.max.max(r.max) });
    Ok((ranges, all))
}
