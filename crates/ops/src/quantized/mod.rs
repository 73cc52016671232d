//! Operators on 8-bit integers: quantization, layers on integers, and what lies between them.
//!
//! An array of integers comes with two arrays of one number each, its range: `largest / levels` is
//! the size of a step, where `largest` is the larger magnitude of the two. All integers are
//! computed as [`RoundTo`](mxrt_kernels::int8::RoundTo) says, so they are the same on every
//! machine.

pub mod activation;
pub mod batch_norm;
pub mod calibrate;
pub mod concat;
pub mod convolution;
pub mod dequantize;
pub mod elemwise_add;
pub mod elemwise_mul;
pub mod embedding;
pub mod flatten;
pub mod fully_connected;
pub mod intgemm;
pub mod pooling;
pub mod quantize;
pub mod quantize_asym;
pub mod quantize_v2;
pub mod requantize;
pub mod rnn;

pub(crate) mod layer;
mod range;
mod sums;
mod workspace;

pub(crate) use range::{Range, calibration, store_range};
pub use range::{infinity_error, range_error};

use crate::prelude::*;

/// Operators that MXNet's quantization may replace by those of this module.
const QUANTIZABLE: &[&str] = &[
    "Activation",
    "BatchNorm",
    "Concat",
    "Convolution",
    "Embedding",
    "Flatten",
    "FullyConnected",
    "Pooling",
    "RNN",
    "elemwise_add",
    "elemwise_mul",
];

/// Returns whether MXNet has a form of the operator on 8-bit integers, at least for some of its
/// attributes.
pub fn is_quantizable(operator: &str) -> bool {
    QUANTIZABLE.contains(&operator) || operator.starts_with("_sg_mkldnn_")
}

/// Integers and their range.
pub(crate) const WITH_RANGE: Outputs = Outputs::Named(|_| &["output", "min_output", "max_output"]);

/// Outputs of operators that change the kind of a number: MXNet numbers theirs.
pub(crate) const NUMBERED_RANGE: Outputs = Outputs::Count(|_| 3);

/// Attributes of a calibrated range.
pub(crate) const CALIBRATION: [AttrDef; 2] = [
    AttrDef::new("min_calib_range", AttrKind::OptFloat, "None", "The least number, from calibration."),
    AttrDef::new("max_calib_range", AttrKind::OptFloat, "None", "The largest number, from calibration."),
];

/// Steps from zero to the end of a range in MXNet's operators of oneDNN.
pub(crate) fn levels(dtype: DType) -> f32 {
    if dtype == DType::U8 { 255.5 } else { 127.5 }
}

/// Integers for one unit of a number; MXNet's choice for an empty range.
pub(crate) fn scale(dtype: DType, range: Range) -> f32 {
    let largest = range.largest();
    if largest == 0.0 { i32::MAX as f32 } else { levels(dtype) / largest }
}

/// The range of sums of products, by the ranges of the factors. With `unsigned` data MXNet takes
/// the 255 levels of the other factor.
pub(crate) fn product_range(data: Range, weight: Range, unsigned: bool) -> Range {
    let step = (data.largest() / 127.0) * (weight.largest() / if unsigned { 255.0 } else { 127.0 });
    let largest = step * i32::MAX as f32;
    Range { min: -largest, max: largest }
}

/// The inputs from `first` on, and the outputs after the first, are one number each.
pub(crate) fn infer_scalars(shapes: &mut Shapes<'_>, first: usize, names: &[&str]) -> Result<(), OpError> {
    let one = PartialShape::from_dims([Some(1)]);
    for i in first..shapes.inputs.len() {
        shapes.set_input(i, names.get(i).copied().unwrap_or("a range"), one.clone())?;
    }
    (1..shapes.outputs.len()).try_for_each(|i| shapes.set_output(i, one.clone()))
}

/// The inputs from `first` on, and the outputs after the first, are float32.
pub(crate) fn infer_float_ranges(dtypes: &mut DTypes<'_>, first: usize, names: &[&str]) -> Result<(), OpError> {
    for i in first..dtypes.inputs.len() {
        dtypes.set_input(i, names.get(i).copied().unwrap_or("a range"), DType::F32)?;
    }
    (1..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, DType::F32))
}

/// The type of an input of bytes, if known; an error if it holds none.
pub(crate) fn bytes_of(dtypes: &DTypes<'_>, index: usize, name: &str) -> Result<Option<DType>, OpError> {
    match dtypes.inputs.get(index).copied().flatten() {
        Some(other) if !matches!(other, DType::I8 | DType::U8) => Err(type_error(format!(
            "{name} has dtype {other}; only int8 and uint8 are possible, which _contrib_quantize_v2 makes of float32"
        ))),
        known => Ok(known),
    }
}

/// Input and output 0 have one shape, which may be known from the output only.
pub(crate) fn infer_same(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()
}

/// The form of a computation whose first result are these integers.
pub(crate) fn int8_form(form: Int8Form) -> MaybeForm {
    Ok(Some(KernelForm::Int8(form)))
}

/// Runs the expression with `$t` standing for the type of bytes.
macro_rules! dispatch_bytes {
    ($dtype:expr, $t:ident => $body:expr) => {
        $crate::prelude::dispatch!(@ $dtype, "int8 and uint8", $t => $body, I8 i8, U8 u8)
    };
}
pub(crate) use dispatch_bytes;
