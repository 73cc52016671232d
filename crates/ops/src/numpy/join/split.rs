//! `_npi_hsplit`, `_npi_dsplit`: arrays split along an axis that the name says.

use crate::prelude::*;
use crate::shape::slice_channel::{bind_parts, parts_form};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_hsplit",
        doc: "Cuts an array along the second axis, a vector along its only one: into parts as equal as \
              can be, or at the indices, the first of which is 0.",
        infer_shape: |shapes| infer_parts(shapes, |rank| usize::from(rank > 1)),
        bind: |attrs, signature| {
            let axis = usize::from(signature.inputs[0].shape.len() > 1);
            bind_parts(axis, &sizes(attrs, signature.inputs[0].shape[axis])?, signature)
        },
        form: |attrs, signature| {
            let axis = usize::from(signature.inputs[0].shape.len() > 1);
            parts_form(axis, &sizes(attrs, signature.inputs[0].shape[axis])?, signature)
        },
        ..PARTS
    },
    OpDef {
        name: "_npi_dsplit",
        doc: "Cuts an array along the third axis: into parts as equal as can be, or at the indices, \
              the first of which is 0.",
        infer_shape: |shapes| infer_parts(shapes, |_| 2),
        bind: |attrs, signature| bind_parts(2, &sizes(attrs, signature.inputs[0].shape[2])?, signature),
        form: |attrs, signature| parts_form(2, &sizes(attrs, signature.inputs[0].shape[2])?, signature),
        ..PARTS
    },
];

const PARTS: OpDef = OpDef {
    outputs: Outputs::Count(|attrs| match attrs.count("sections") {
        0 => attrs.ints("indices").len(),
        sections => sections,
    }),
    attrs: &[
        AttrDef::required("indices", AttrKind::Shape, "Where each part begins."),
        AttrDef::new("axis", AttrKind::Int, "1", "For MXNet; the name of the operator says the axis."),
        AttrDef::new("squeeze_axis", AttrKind::Bool, "False", "For MXNet; only False is possible."),
        AttrDef::new("sections", AttrKind::IntFrom(0), "0", "Number of parts; 0 to cut at indices."),
    ],
    ..OpDef::BASE
};

/// Sizes of the parts along an axis with `n` elements. Of sections that are not equal, the first have an
/// element more. Indices beyond the end, or before the one
/// before them, leave parts without elements, as in NumPy.
fn sizes(attrs: &Attrs, n: usize) -> Result<Vec<usize>, OpError> {
    let sections = attrs.count("sections");
    if sections > 0 {
        let longer = n % sections;
        return Ok((0..sections).map(|part| n / sections + usize::from(part < longer)).collect());
    }
    let starts: Vec<usize> = extents("indices", attrs.ints("indices"))?.into_iter().map(|start| start.min(n)).collect();
    if starts.is_empty() {
        return Err(value_error("split into no parts: expected sections of at least 1, or indices"));
    }
    if starts[0] != 0 {
        return Err(value_error(format!("indices must begin with 0, got {}", starts[0])));
    }
    let ends = starts.iter().skip(1).copied().chain([n]);
    let parts = starts.iter().zip(ends).map(|(start, end)| end.checked_sub(*start));
    parts.collect::<Option<_>>().ok_or_else(|| value_error("indices must ascend"))
}

fn infer_parts(shapes: &mut Shapes<'_>, axis: fn(usize) -> usize) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    if shapes.attrs.bool("squeeze_axis") {
        return Err(value_error("squeeze_axis=True is not supported; use squeeze on the parts"));
    }
    let axis = axis(dims.len());
    let Some(Some(n)) = dims.get(axis).copied() else {
        return match axis < dims.len() {
            true => Ok(()),
            false => Err(shape_error(format!("the array has shape {}, but needs {} axes", shapes.inputs[0], axis + 1))),
        };
    };
    for (i, size) in sizes(shapes.attrs, n)?.into_iter().enumerate() {
        let mut part = dims.clone();
        part[axis] = Some(size);
        shapes.set_output(i, PartialShape::from_dims(part))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_vector_is_split_along_its_only_axis() {
        let parts = OpTest::new("_npi_hsplit").attr("indices", "(0, 2, 9)").f32([3], &[1.0, 2.0, 3.0]).run_all();
        assert_eq!(
            (f32s(&parts[0], [2]), f32s(&parts[1], [1]), f32s(&parts[2], [0])),
            (vec![1.0, 2.0], vec![3.0], vec![])
        );
        let parts = OpTest::new("_npi_hsplit").attr("indices", "()").attr("sections", "2");
        let parts = parts.f32([3], &[1.0, 2.0, 3.0]).run_all();
        assert_eq!((f32s(&parts[0], [2]), f32s(&parts[1], [1])), (vec![1.0, 2.0], vec![3.0]));
        let error = OpTest::new("_npi_dsplit").attr("indices", "(0,)").f32([3], &[1.0, 2.0, 3.0]).error();
        assert!(error.message.contains("needs 3 axes"), "{}", error.message);
    }
}
