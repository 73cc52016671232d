//! `_split_v2`: an array cut at given places, or into parts as equal as possible.

use super::slice_channel::{bind_parts, parts_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_split_v2",
    aliases: &["_npi_split"],
    doc: "Cuts an array along an axis: into sections parts, or at the given indices, the first of \
        which must be 0.",
    outputs: Outputs::Count(|attrs| match attrs.count("sections") {
        0 => attrs.ints("indices").len(),
        sections => sections,
    }),
    attrs: &[
        AttrDef::required("indices", AttrKind::Shape, "Where each part begins."),
        AttrDef::new("axis", AttrKind::Int, "1", "Axis along which to cut."),
        AttrDef::new(
            "squeeze_axis",
            AttrKind::Bool,
            "False",
            "Remove the axis from the parts, which must be one thick.",
        ),
        AttrDef::new("sections", AttrKind::IntFrom(0), "0", "Number of parts; 0 to cut at indices."),
    ],
    infer_shape,
    bind: |attrs, signature| {
        let (axis, sizes) = parts(attrs, signature)?;
        bind_parts(axis, &sizes, signature)
    },
    form: |attrs, signature| {
        let (axis, sizes) = parts(attrs, signature)?;
        parts_form(axis, &sizes, signature)
    },
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            is_within_rows(attrs.int("axis"), signature) && rows_of_data(attrs, signature, divided)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// Sizes of the parts along an axis with `n` elements.
fn sizes(attrs: &Attrs, n: usize) -> Result<Vec<usize>, OpError> {
    let sections = attrs.count("sections");
    if sections > 0 {
        // The first parts are larger by one where it does not come out even.
        return Ok((0..sections).map(|i| n / sections + usize::from(i < n % sections)).collect());
    }
    let starts = extents("indices", attrs.ints("indices"))?;
    if n == 0 && !starts.is_empty() {
        // Of nothing every part is nothing, as in MXNet.
        return Ok(vec![0; starts.len()]);
    }
    if starts.is_empty() {
        return Err(value_error("split into no parts: expected sections of at least 1, or indices"));
    }
    if starts[0] != 0 {
        return Err(value_error(format!("indices must begin with 0, got {}", starts[0])));
    }
    let ends = starts.iter().skip(1).copied().chain([n]);
    let bad = || value_error(format!("indices must ascend and not exceed the {n} elements of the axis"));
    starts.iter().zip(ends).map(|(start, end)| end.checked_sub(*start).filter(|_| end <= n).ok_or_else(bad)).collect()
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("axis"), dims.len())?;
    let Some(n) = dims[axis] else { return Ok(()) };
    for (i, size) in sizes(shapes.attrs, n)?.into_iter().enumerate() {
        let mut part = dims.clone();
        part[axis] = Some(size);
        if shapes.attrs.bool("squeeze_axis") {
            if size != 1 {
                return Err(shape_error(format!("squeeze_axis needs parts of size 1, but part {i} has size {size}")));
            }
            part.remove(axis);
        }
        shapes.set_output(i, PartialShape::from_dims(part))?;
    }
    Ok(())
}

/// The axis, and the extents of the parts along it.
fn parts(attrs: &Attrs, signature: &Signature<'_>) -> Result<(usize, Vec<usize>), OpError> {
    let shape = &signature.inputs[0].shape;
    let axis = resolve_axis(attrs.int("axis"), shape.len())?;
    Ok((axis, sizes(attrs, shape[axis])?.to_vec()))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn errors_say_whether_there_are_indices() {
        let error = |indices: &str| {
            let test = OpTest::new("_split_v2").attr("axis", "0").attr("indices", indices).f32([4], &[0.0; 4]);
            test.error().message.clone()
        };
        assert_eq!(error("()"), "split into no parts: expected sections of at least 1, or indices");
        assert_eq!(error("(1, 2)"), "indices must begin with 0, got 1");
    }
}
