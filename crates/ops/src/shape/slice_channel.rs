//! `SliceChannel`: an array cut into equal parts.

use super::{Strided, bind_strided};
use crate::prelude::*;
use mxrt_kernels::shape::copy_strided;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "SliceChannel",
    aliases: &["split"],
    doc: "Cuts an array into num_outputs equal parts along an axis.",
    outputs: Outputs::Numbered(|attrs| attrs.count("num_outputs")),
    attrs: &[
        AttrDef::required("num_outputs", AttrKind::IntFrom(1), "Number of parts."),
        AttrDef::new("axis", AttrKind::Int, "1", "Axis along which to cut."),
        AttrDef::new(
            "squeeze_axis",
            AttrKind::Bool,
            "False",
            "Remove the axis from the parts, which must be one thick.",
        ),
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

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("axis"), dims.len())?;
    let parts = shapes.attrs.count("num_outputs");
    let squeeze = shapes.attrs.bool("squeeze_axis");
    if let Some(n) = dims[axis]
        && (n % parts != 0 || (squeeze && n != parts))
    {
        let need = if squeeze {
            "with squeeze_axis the axis must have num_outputs elements"
        } else {
            "num_outputs must divide it"
        };
        return Err(shape_error(format!(
            "axis {axis} of {} has {n} elements and cannot be split into num_outputs={parts}: \
             {need}",
            shapes.inputs[0]
        )));
    }
    let mut whole = dims.clone();
    dims[axis] = dims[axis].map(|n| n / parts);
    if squeeze {
        dims.remove(axis);
    }
    for i in 0..parts {
        shapes.set_output(i, PartialShape::from_dims(dims.iter().copied()))?;
    }
    // What is known of a part tells the rest of the whole.
    for part in shapes.outputs.iter() {
        let mut part = part.dims().unwrap_or(&[]).to_vec();
        if squeeze {
            part.insert(axis.min(part.len()), Some(1));
        }
        for (a, (mine, theirs)) in whole.iter_mut().zip(part).enumerate() {
            let theirs = if a == axis { theirs.and_then(|n| n.checked_mul(parts)) } else { theirs };
            *mine = mine.or(theirs);
        }
    }
    shapes.set_input(0, "data", PartialShape::from_dims(whole))
}

/// The axis, and the extents of the parts along it.
fn parts(attrs: &Attrs, signature: &Signature<'_>) -> Result<(usize, Vec<usize>), OpError> {
    let shape = &signature.inputs[0].shape;
    let axis = resolve_axis(attrs.int("axis"), shape.len())?;
    let parts = attrs.count("num_outputs");
    Ok((axis, vec![shape[axis] / parts; parts]))
}

/// The parts of input 0 of these sizes along `axis`, the first starting at 0.
fn views(axis: usize, sizes: &[usize], signature: &Signature<'_>) -> Vec<Strided> {
    let shape = &signature.inputs[0].shape;
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let step = (shape[axis] * inner) as isize;
    let mut start = 0;
    let view = |size: &usize| {
        let offset = start * inner;
        start += size;
        Strided { offset, strides: vec![step, 1], shape: vec![outer, size * inner] }
    };
    sizes.iter().map(view).collect()
}

/// The form of [`bind_parts`].
pub(crate) fn parts_form(axis: usize, sizes: &[usize], signature: &Signature<'_>) -> MaybeForm {
    let moves = views(axis, sizes, signature).iter().enumerate().map(|(i, view)| view.moved(i)).collect();
    Ok(Some(KernelForm::Move { fill: None, moves }))
}

/// Cuts input 0 along `axis` into parts of these sizes, the first starting at 0.
pub(crate) fn bind_parts(axis: usize, sizes: &[usize], signature: &Signature<'_>) -> BoundKernel {
    let mut views = views(axis, sizes, signature);
    if let [_] = views[..]
        && let Some(view) = views.pop()
    {
        return bind_strided(view, signature);
    }
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        for (out, view) in call.outputs.iter_mut().zip(&views) {
            let out = elements_mut(out)?;
            copy_strided(call.par, x, view.offset, &view.strides, &view.shape, out).map_err(kernel_error)?;
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OpTest, f32s};

    #[test]
    fn parts_are_equal_and_may_lose_the_axis() {
        let x: Vec<f32> = (0..4).map(|v| v as f32).collect();
        let y = OpTest::new("split").attr("num_outputs", "2").f32([2, 2], &x).run_all();
        assert_eq!([f32s(&y[0], [2, 1]), f32s(&y[1], [2, 1])], [[0.0, 2.0], [1.0, 3.0]]);
        let y = OpTest::new("SliceChannel")
            .attr("num_outputs", "2")
            .attr("axis", "0")
            .attr("squeeze_axis", "1")
            .f32([2, 2], &x)
            .run_all();
        assert_eq!([f32s(&y[0], [2]), f32s(&y[1], [2])], [[0.0, 1.0], [2.0, 3.0]]);
        let attrs = [("num_outputs", "3"), ("axis", "1"), ("squeeze_axis", "False")];
        let def = crate::registry().get("split").expect("it is registered");
        let attrs = def.parse_attrs(attrs).expect("the attributes are good");
        let mut inputs = [PartialShape::from_zero_unknown(&[0, 15, 0])];
        let mut outputs = [0, 1, 2].map(|i| PartialShape::from_zero_unknown(if i == 1 { &[3, 5, 2] } else { &[] }));
        infer_shape(&mut Shapes { attrs: &attrs, inputs: &mut inputs, outputs: &mut outputs }).expect("it fits");
        assert_eq!(inputs[0], PartialShape::from_zero_unknown(&[3, 15, 2]));
        let error = OpTest::new("split").attr("num_outputs", "3").f32([2, 2], &x).error();
        assert!(error.message.contains("num_outputs=3"), "{}", error.message);
    }
}
