//! `_npi_concatenate`, `_npi_stack` and related operators: arrays joined along an axis.

use super::{NUM_ARGS, widened};
use crate::prelude::*;
use crate::shape::joined;
use mxrt_kernels::shape;
use smallvec::SmallVec;

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
];

const ARRAYS: Inputs = Inputs::Variadic { count: "num_args", prefix: "data", named: |_| None };
const DIM: AttrDef = AttrDef::new("dim", AttrKind::Int, "1", "For MXNet; the name of the operator says the axis.");

/// The shape in which an array is joined, and the axis.
type JoinPlace = fn(&Attrs, &Shape) -> Result<(Shape, usize), OpError>;

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
}
