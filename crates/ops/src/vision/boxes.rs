//! Formats of boxes, and their axis.

use crate::prelude::*;
use mxrt_kernels::vision::boxes::BoxFormat;

pub(super) const FORMATS: AttrKind = AttrKind::Enum(&["center", "corner"]);

pub(super) fn format(attrs: &Attrs, name: &str) -> BoxFormat {
    if attrs.str(name) == "corner" { BoxFormat::Corner } else { BoxFormat::Center }
}

/// The leading axes of boxes, whose last axis must be 4.
pub(super) fn box_axes(shapes: &Shapes<'_>, index: usize, name: &str) -> Result<Option<Vec<Option<usize>>>, OpError> {
    let Some(dims) = shapes.dims(index) else { return Ok(None) };
    match dims[..] {
        [ref leading @ .., last] if !leading.is_empty() && last.is_none_or(|n| n == 4) => Ok(Some(leading.to_vec())),
        _ => Err(shape_error(format!("{name} has shape {}; expected boxes, (..., n, 4)", shapes.inputs[index]))),
    }
}
