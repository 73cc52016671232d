//! Sums, products, extremes and questions over axes, with NumPy's shapes: all axes leave a scalar,
//! an empty list of axes leaves every element.

pub mod any_all;
pub mod argmax;
pub mod fold;

use crate::math::reduce::Reduced;
use crate::prelude::*;

pub(super) const AXIS: AttrDef =
    AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to reduce; all if not given, none if empty.");
pub(super) const KEEPDIMS: AttrDef =
    AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep reduced axes with size 1.");
pub(super) const DTYPE: AttrDef = AttrDef::new(
    "dtype",
    AttrKind::OptDType(&["bool", "float16", "float32", "float64", "int32", "int64", "int8"]),
    "None",
    "dtype of the result.",
);

/// Whether each axis is reduced, by position. A scalar has the axes 0 and -1 for this.
pub(super) fn marked(axes: Option<&[i64]>, rank: usize) -> Result<Reduced, OpError> {
    let Some(axes) = axes else { return Ok(smallvec::smallvec![true; rank]) };
    if rank == 0 && matches!(axes, [] | [0] | [-1]) {
        return Ok(Reduced::new());
    }
    let mut reduced: Reduced = smallvec::smallvec![false; rank];
    resolve_axes(axes, rank)?.into_iter().for_each(|axis| reduced[axis] = true);
    Ok(reduced)
}

pub(super) fn reduced_axes(attrs: &Attrs, rank: usize) -> Result<Reduced, OpError> {
    marked(attrs.opt_ints("axis"), rank)
}

/// The shape that is left.
pub(super) fn left_shape(dims: &[Option<usize>], reduced: &[bool], keepdims: bool) -> PartialShape {
    let axes = dims.iter().zip(reduced);
    match keepdims {
        true => PartialShape::from_dims(axes.map(|(d, r)| if *r { Some(1) } else { *d })),
        false => PartialShape::from_dims(axes.filter(|(_, r)| !**r).map(|(d, _)| *d)),
    }
}

pub(super) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if shapes.attrs.declares("initial") && shapes.attrs.opt_float("initial").is_some() {
        return Err(not_implemented("initial is not supported, as in MXNet; combine it with the result"));
    }
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let reduced = reduced_axes(shapes.attrs, dims.len())?;
    shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
}
