//! Arrays made of nothing, or of the shape of another.

pub mod arange;
pub mod eye;
pub mod full_like;
pub mod indices;
pub mod logspace;
pub mod windows;
pub mod zeros;

use super::CTX;
use crate::prelude::*;

const DTYPES: AttrKind =
    AttrKind::OptDType(&["bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]);
const DTYPE: AttrDef = AttrDef::new("dtype", DTYPES, "float32", "dtype of the result; float32 if None.");
const SHAPE: AttrDef = AttrDef::new("shape", AttrKind::Shape, "()", "Shape of the result; () is a scalar.");

/// An array without inputs.
const MADE: OpDef = OpDef {
    inputs: Inputs::Fixed(&[]),
    attrs: &[SHAPE, CTX, DTYPE],
    infer_shape: crate::create::np_shape_from_attr,
    infer_dtype: crate::create::dtype_from_attr,
    ..OpDef::BASE
};

/// A kernel that computes every element from its place.
fn bind_places(signature: &Signature<'_>, value: impl Fn(usize) -> f64 + Send + Sync + 'static) -> BoundKernel {
    let value: Box<dyn Fn(usize) -> f64 + Send + Sync> = Box::new(value);
    if signature.outputs[0].dtype == DType::Bool {
        return Err(unsupported_dtype(DType::Bool, "numbers"));
    }
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        for (i, out) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().enumerate() {
            *out = T::from_f64(value(i));
        }
        Ok(())
    })))
}
