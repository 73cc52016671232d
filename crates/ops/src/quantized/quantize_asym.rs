//! `_contrib_quantize_asym`: bytes with a scale and a shift.

use super::{CALIBRATION, Range, calibration, infer_float_ranges, infer_same, infer_scalars, store_range};
use crate::prelude::*;
use mxrt_kernels::int8::RoundTo;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_quantize_asym",
    doc: "Quantizes float32 to uint8 with a shift: number * scale + shift. Returns the integers, scale and shift.",
    attrs: &CALIBRATION,
    outputs: Outputs::Named(|_| &["output", "scale", "shift"]),
    infer_shape: |shapes| {
        infer_same(shapes)?;
        infer_scalars(shapes, 1, &[])
    },
    infer_dtype: |dtypes| {
        if let Some(other) = dtypes.inputs[0]
            && !matches!(other, DType::F32 | DType::I8 | DType::U8)
        {
            return Err(unsupported_dtype(other, "float32, int8 and uint8"));
        }
        dtypes.set_output(0, DType::U8)?;
        infer_float_ranges(dtypes, 1, &[])
    },
    bind: bind_asym,
    ..OpDef::BASE
}];

fn bind_asym(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let calibrated = calibration(attrs)?;
    if let Some(range) = calibrated
        && range.min == range.max
    {
        return Err(value_error(format!("the calibrated range is empty: both ends are {}", range.min)));
    }
    let dtype = signature.inputs[0].dtype;
    Ok(costed_kernel_fn("quantize", elementwise_ns(signature, 0), move |call| {
        let (scale, shift) = match dtype {
            DType::F32 => {
                let data = elements::<f32>(&call.inputs[0])?;
                let range = match calibrated {
                    Some(range) => range,
                    None => Range::of("data", data)?,
                };
                let extent = range.max - range.min;
                let scale = if extent == 0.0 { 0.0 } else { 255.0 / extent };
                let shift = 255.0 - range.max * scale;
                let out = elements_mut::<u8>(&mut call.outputs[0])?;
                out.iter_mut().zip(data).for_each(|(out, v)| *out = u8::round_to(v * scale + shift));
                (scale, shift)
            }
            DType::I8 => {
                let out = call.outputs[0].bytes_mut();
                out.iter_mut().zip(call.inputs[0].bytes()).for_each(|(out, v)| *out = v ^ 0x80);
                (1.0, 128.0)
            }
            _ => {
                copy_first(call)?;
                (1.0, 0.0)
            }
        };
        store_range(Range { min: scale, max: shift }, call.outputs)
    }))
}
