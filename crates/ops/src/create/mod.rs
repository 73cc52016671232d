//! Arrays made of nothing: constants, ranges.

use crate::prelude::*;
use mxrt_tensor::is_np_shape;

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

/// The result has the shape that the attribute `shape` gives. What it leaves unknown is filled in
/// from elsewhere: -1, and 0 and `()` where shapes are not NumPy's.
pub(crate) fn shape_from_attr(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.attrs.opt_ints("shape") else { return Ok(()) };
    if is_np_shape() {
        return np_shape_from_attr(shapes);
    }
    let dims: Vec<i64> = dims.iter().map(|n| if *n == -1 { 0 } else { *n }).collect();
    shapes.set_output(0, PartialShape::from_zero_unknown(&extents("shape", &dims)?))
}

/// The result has the shape that the attribute `shape` gives in NumPy's way: `()` is a scalar, 0 an
/// empty axis, and -1 unknown.
pub(crate) fn np_shape_from_attr(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.attrs.opt_ints("shape") else { return Ok(()) };
    let extent = |n: &i64| if *n == -1 { Ok(None) } else { extents("shape", &[*n]).map(|dims| dims.first().copied()) };
    let dims = dims.iter().map(extent).collect::<Result<Vec<_>, OpError>>()?;
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The result has the dtype that the attribute `dtype` gives, float32 if none.
pub(crate) fn dtype_from_attr(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let dtype = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::F32);
    dtypes.set_output(0, dtype)
}
