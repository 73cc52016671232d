//! `slice_axis`: a part of an array along one axis.

use super::slice::{Range, bind_ranges, ranges_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "slice_axis",
    doc: "The part of the array from begin up to end (not included) along one axis.",
    attrs: &[
        AttrDef::required("axis", AttrKind::Int, "The axis."),
        AttrDef::required("begin", AttrKind::Int, "First index; negative counts from the end."),
        AttrDef::required("end", AttrKind::OptInt, "Index after the last; None for the end."),
    ],
    infer_shape,
    bind: |attrs, signature| bind_ranges(&ranges(attrs, signature)?, signature),
    form: |attrs, signature| ranges_form(&ranges(attrs, signature)?, signature),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            is_within_rows(attrs.int("axis"), signature) && rows_of_data(attrs, signature, divided)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// Unlike `slice` bounds outside of the axis, and empty parts, are errors.
fn range(attrs: &Attrs, size: usize) -> Result<Range, OpError> {
    let n = size as i64;
    let resolve = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
    let (begin, end) = (resolve(attrs.int("begin")), attrs.opt_int("end").map_or(n, resolve));
    if begin < 0 || end > n || begin >= end {
        let end = attrs.opt_int("end").map_or("None".to_owned(), |e| e.to_string());
        return Err(value_error(format!(
            "begin={}, end={end} is not a part of an axis with {size} elements",
            attrs.int("begin")
        )));
    }
    Ok(Range { start: begin as usize, step: 1, len: (end - begin) as usize })
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("axis"), dims.len())?;
    dims[axis] = dims[axis].map(|n| range(shapes.attrs, n)).transpose()?.map(|r| r.len);
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The ranges of the input that the output is.
fn ranges(attrs: &Attrs, signature: &Signature<'_>) -> Result<Vec<Range>, OpError> {
    let shape = &signature.inputs[0].shape;
    let axis = resolve_axis(attrs.int("axis"), shape.len())?;
    let mut ranges: Vec<Range> = shape.iter().map(|n| Range { start: 0, step: 1, len: *n }).collect();
    ranges[axis] = range(attrs, shape[axis])?;
    Ok(ranges)
}
