//! Arrays made of nothing: constants, ranges.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_tensor::{DType, PartialShape};

pub mod arange;
pub mod arange_like;
pub mod eye;
pub mod full;
pub mod linspace;
pub mod set_value;

const CTX: AttrDef = AttrDef::new("ctx", AttrKind::Str, "", "Where the array is made.");

const DTYPE: AttrDef = AttrDef::new(
    "dtype",
    AttrKind::DType(&["bfloat16", "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
    "float32",
    "dtype of the result.",
);

/// The result has the shape that the attribute `shape` gives; extents of 0 and -1 are filled in from
/// elsewhere.
pub(crate) fn shape_from_attr(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.attrs.opt_ints("shape") else { return Ok(()) };
    let dims: Vec<i64> = dims.iter().map(|n| if *n == -1 { 0 } else { *n }).collect();
    shapes.set_output(0, PartialShape::from_zero_unknown(&extents("shape", &dims)?))
}

/// The result has the dtype that the attribute `dtype` gives, float32 if none.
pub(crate) fn dtype_from_attr(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let dtype = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::F32);
    dtypes.set_output(0, dtype)
}
