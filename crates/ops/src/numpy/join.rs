//! Arrays joined along an axis, and cut into parts.

use crate::prelude::*;
use crate::shape::joined;
use crate::shape::slice_channel::{bind_parts, parts_form};
use mxrt_engine::OpError;
use mxrt_kernels::shape;
use mxrt_tensor::{PartialShape, Shape};
use smallvec::SmallVec;

const ARRAYS: Inputs = Inputs::Variadic { count: "num_args", prefix: "data", named: |_| None };
const NUM_ARGS: AttrDef = AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of arrays.");
const DIM: AttrDef = AttrDef::new("dim", AttrKind::Int, "1", "For MXNet; the name of the operator says the axis.");

macro_rules! stack {
    ($name:literal, $attrs:expr, $place:expr, $doc:literal) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: ARRAYS,
            attrs: $attrs,
            infer_shape: |shapes| infer_joined(shapes, $place),
            infer_dtype: |dtypes| dtypes.all_same(),
            bind: |attrs, signature| bind_joined(signature, attrs, $place),
            form: |attrs, signature| form_joined(signature, attrs, $place),
            ..OpDef::BASE
        }
    };
}

macro_rules! at_least {
    ($name:literal, $axes:literal, $doc:literal) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: Inputs::Variadic { count: "num_args", prefix: "ary", named: |_| None },
            attrs: &[NUM_ARGS],
            outputs: Outputs::Count(|attrs| attrs.count("num_args")),
            infer_shape: |shapes| {
                for i in 0..shapes.inputs.len() {
                    if let Some(shape) = shapes.input(i) {
                        shapes.set_output(i, widened(&shape, $axes))?;
                    }
                }
                Ok(())
            },
            infer_dtype: |dtypes| {
                for i in 0..dtypes.inputs.len() {
                    if let Some(dtype) = dtypes.inputs[i] {
                        dtypes.set_output(i, dtype)?;
                    }
                }
                Ok(())
            },
            bind: |_, signature| {
                Ok(kernel_fn(signature, |call| {
                    let pairs = call.outputs.iter_mut().zip(call.inputs);
                    pairs.for_each(|(out, x)| out.bytes_mut().copy_from_slice(x.bytes()));
                    Ok(())
                }))
            },
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        outputs: Outputs::OneNamed("out"),
        ..stack!(
            "_npi_concatenate",
            &[
                NUM_ARGS,
                AttrDef::new("axis", AttrKind::OptInt, "0", "Axis along which to join; None joins flattened arrays.")
            ],
            |attrs, shape| match attrs.opt_int("axis") {
                None => Ok((Shape::new(&[shape.size()]), 0)),
                Some(axis) => Ok((shape.clone(), resolve_axis(axis, shape.len())?)),
            },
            "Joins arrays along an axis they have; all other extents must agree."
        )
    },
    stack!(
        "_npi_stack",
        &[AttrDef::new("axis", AttrKind::Int, "0", "Where the new axis is in the result."), NUM_ARGS],
        |attrs, shape| {
            let axis = resolve_new_axis(attrs.int("axis"), shape.len())?;
            let mut dims: SmallVec<[usize; 6]> = shape.iter().copied().collect();
            dims.insert(axis, 1);
            Ok((Shape::new(&dims), axis))
        },
        "Joins arrays of one shape along a new axis."
    ),
    OpDef {
        outputs: Outputs::OneNamed("out"),
        ..stack!(
            "_npi_hstack",
            &[NUM_ARGS, DIM],
            |_, shape| {
                let shape = if shape.is_empty() { Shape::new(&[1]) } else { shape.clone() };
                let axis = usize::from(shape.len() > 1);
                Ok((shape, axis))
            },
            "Joins arrays along the second axis, vectors along their only one."
        )
    },
    stack!(
        "_npi_vstack",
        &[NUM_ARGS],
        |_, shape| Ok((widened(shape, 2), 0)),
        "Joins arrays along the first axis; vectors are rows."
    ),
    OpDef {
        outputs: Outputs::OneNamed("out"),
        ..stack!(
            "_npi_dstack",
            &[NUM_ARGS, DIM],
            |_, shape| Ok((widened(shape, 3), 2)),
            "Joins arrays along the third axis, which matrices and vectors get."
        )
    },
    stack!(
        "_npi_column_stack",
        &[NUM_ARGS],
        |_, shape| match shape.len() {
            0 | 1 => Ok((Shape::new(&[shape.size(), 1]), 1)),
            _ => Ok((shape.clone(), 1)),
        },
        "Joins arrays along the second axis; vectors are columns."
    ),
    at_least!("_np_atleast_1d", 1, "The arrays; scalars get an axis."),
    at_least!("_np_atleast_2d", 2, "The arrays with two axes at least; new ones come first."),
    at_least!(
        "_np_atleast_3d",
        3,
        "The arrays with three axes at least; vectors become (1, n, 1), matrices (m, n, 1)."
    ),
    OpDef {
        name: "_npi_hsplit",
        doc: "Cuts an array along the second axis, a vector along its only one: into sections equal \
              parts, or at the indices, the first of which is 0.",
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
        doc: "Cuts an array along the third axis: into sections equal parts, or at the indices, the \
              first of which is 0.",
        infer_shape: |shapes| infer_parts(shapes, |_| 2),
        bind: |attrs, signature| bind_parts(2, &sizes(attrs, signature.inputs[0].shape[2])?, signature),
        form: |attrs, signature| parts_form(2, &sizes(attrs, signature.inputs[0].shape[2])?, signature),
        ..PARTS
    },
];

/// The shape in which an array is joined, and the axis.
type JoinPlace = fn(&Attrs, &Shape) -> Result<(Shape, usize), OpError>;

/// A shape with this many axes at least, as `atleast_2d` and `atleast_3d` place them.
fn widened(shape: &Shape, axes: usize) -> Shape {
    match (&shape[..], axes) {
        ([], _) => Shape::from(vec![1; axes]),
        ([n], 2) => Shape::new(&[1, *n]),
        ([n], 3) => Shape::new(&[1, *n, 1]),
        ([m, n], 3) => Shape::new(&[*m, *n, 1]),
        _ => shape.clone(),
    }
}

fn infer_joined(shapes: &mut Shapes<'_>, place: JoinPlace) -> Result<(), OpError> {
    let mut whole: Option<(Shape, usize)> = None;
    for i in 0..shapes.inputs.len() {
        let Some(shape) = shapes.input(i) else { return Ok(()) };
        let (part, axis) = place(shapes.attrs, &shape)?;
        match &mut whole {
            None => whole = Some((part, axis)),
            Some((all, along)) => {
                let fits =
                    part.len() == all.len() && *along == axis && (0..all.len()).all(|a| a == axis || all[a] == part[a]);
                let total = fits.then(|| all[axis].checked_add(part[axis])).flatten();
                let Some(total) = total else {
                    let first = &shapes.inputs[0];
                    return Err(shape_error(format!(
                        "array {i} has shape {shape}, which does not fit the first, {first}, in all \
                         axes but the one along which they are joined"
                    )));
                };
                all.dims_mut()[axis] = total;
            }
        }
    }
    whole.map_or(Ok(()), |(all, _)| shapes.set_output(0, all))
}

/// Elements before and after the axis, and the extent of each array along it.
fn extents_along(
    signature: &Signature<'_>,
    attrs: &Attrs,
    place: JoinPlace,
) -> Result<(usize, usize, Vec<usize>), OpError> {
    let parts = signature.inputs.iter().map(|t| place(attrs, &t.shape)).collect::<Result<Vec<_>, OpError>>()?;
    let Some((first, axis)) = parts.first() else { return Err(wrong_arity()) };
    let [outer, _, inner] = split_around(*axis, first);
    Ok((outer, inner, parts.iter().map(|(shape, _)| shape[*axis]).collect()))
}

fn form_joined(signature: &Signature<'_>, attrs: &Attrs, place: JoinPlace) -> MaybeForm {
    let (outer, inner, along) = extents_along(signature, attrs, place)?;
    Ok(Some(joined(outer, inner, along.into_iter())))
}

fn bind_joined(signature: &Signature<'_>, attrs: &Attrs, place: JoinPlace) -> BoundKernel {
    let (outer, inner, along) = extents_along(signature, attrs, place)?;
    dispatch_size!(signature.inputs[0].dtype, T => Ok(costed_kernel_fn("plain", elementwise_ns(signature, 0), move |call| {
        let arrays = call.inputs.iter().zip(&along);
        let inputs = arrays.map(|(x, n)| Ok((elements::<T>(x)?, *n))).collect::<Result<Vec<_>, OpError>>()?;
        shape::concat(call.par, &inputs, outer, inner, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

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

/// Sizes of the parts along an axis with `n` elements. Indices beyond the end, or before the one
/// before them, leave parts without elements, as in NumPy.
fn sizes(attrs: &Attrs, n: usize) -> Result<Vec<usize>, OpError> {
    let sections = attrs.count("sections");
    if sections > 0 {
        if !n.is_multiple_of(sections) {
            return Err(value_error(format!("an axis of {n} elements cannot be cut into {sections} equal parts")));
        }
        return Ok(vec![n / sections; sections]);
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
    fn every_stack_places_scalars_and_vectors_in_its_way() {
        let of = |op: &str| OpTest::new(op).attr("num_args", "2");
        let scalars = |op: &str| of(op).f32([], &[1.0]).f32([], &[2.0]).run();
        assert_eq!(f32s(&scalars("_npi_stack"), [2]), [1.0, 2.0]);
        assert_eq!(f32s(&scalars("_npi_hstack"), [2]), [1.0, 2.0]);
        assert_eq!(f32s(&scalars("_npi_vstack"), [2, 1]), [1.0, 2.0]);
        let vectors = |op: &str| of(op).f32([2], &[1.0, 2.0]).f32([2], &[3.0, 4.0]).run();
        assert_eq!(f32s(&vectors("_npi_dstack"), [1, 2, 2]), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(f32s(&vectors("_npi_column_stack"), [2, 2]), [1.0, 3.0, 2.0, 4.0]);
        let flat = of("_npi_concatenate").attr("axis", "None").f32([1, 1], &[1.0]).f32([2], &[2.0, 3.0]).run();
        assert_eq!(f32s(&flat, [3]), [1.0, 2.0, 3.0]);
        assert!(of("_npi_concatenate").f32([], &[1.0]).f32([], &[2.0]).error().message.contains("axis 0"));
        assert!(
            of("_npi_concatenate").f32([1, 2], &[0.0; 2]).f32([1, 3], &[0.0; 3]).error().message.contains("(1, 3)")
        );
    }

    #[test]
    fn a_vector_is_split_along_its_only_axis() {
        let parts = OpTest::new("_npi_hsplit").attr("indices", "(0, 2, 9)").f32([3], &[1.0, 2.0, 3.0]).run_all();
        assert_eq!(
            (f32s(&parts[0], [2]), f32s(&parts[1], [1]), f32s(&parts[2], [0])),
            (vec![1.0, 2.0], vec![3.0], vec![])
        );
        let error = OpTest::new("_npi_dsplit").attr("indices", "(0,)").f32([3], &[1.0, 2.0, 3.0]).error();
        assert!(error.message.contains("needs 3 axes"), "{}", error.message);
    }
}
