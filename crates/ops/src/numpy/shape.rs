//! Other shapes and places for the same elements.

use crate::prelude::*;
use crate::shape::stretches::{Stretch, form_of_stretches};
use crate::shape::{PartialDims, Strided, bind_copy, bind_strided, strided_form};
use mxrt_engine::OpError;
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::{PartialShape, Shape};

const IDENTITY: OpDef = OpDef {
    inputs: Inputs::Fixed(&["a"]),
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
};

const ORDER: AttrDef = AttrDef::new("order", AttrKind::Str, "C", "Order of the elements; only C is possible.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef { name: "_np_copy", doc: "A copy of the input.", ignores_unknown_attrs: true, ..IDENTITY },
    OpDef {
        name: "_np_reshape",
        doc: "The same elements in another shape, in which one extent may be -1.",
        attrs: &[AttrDef::required("newshape", AttrKind::Shape, "The new shape."), ORDER],
        infer_shape: infer_reshape,
        ..IDENTITY
    },
    OpDef {
        name: "_npx_reshape",
        aliases: &["_npi_reshape"],
        doc: "The same elements in another shape: -1 stands for what is left, -2 copies an axis, -3 \
              drops an axis of size 1, -4 copies all that follow, -5 joins two, -6 cuts one into the \
              two that follow.",
        attrs: &[
            AttrDef::required("newshape", AttrKind::Shape, "The new shape."),
            AttrDef::new("reverse", AttrKind::Bool, "False", "Match the axes from the last one."),
            ORDER,
        ],
        infer_shape: infer_extended_reshape,
        ..IDENTITY
    },
    OpDef {
        name: "_np_squeeze",
        doc: "Without axes of size 1: those given, or all.",
        attrs: &[AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to remove.")],
        infer_shape: infer_squeeze,
        ..IDENTITY
    },
    OpDef {
        name: "_np_transpose",
        doc: "Axes in another order; without axes they are reversed.",
        attrs: &[AttrDef::new("axes", AttrKind::Shape, "None", "Axis of the input that each axis of the result is.")],
        infer_shape: |shapes| infer_order(shapes, transposed),
        bind: |attrs, signature| bind_order(transposed, attrs, signature),
        form: |attrs, signature| strided_form(&ordered(transposed, attrs, signature)?),
        ..MOVED
    },
    OpDef {
        name: "_np_moveaxis",
        doc: "Some axes at other positions; the others keep their order.",
        attrs: &[
            AttrDef::required("source", AttrKind::Shape, "Axes to move."),
            AttrDef::required("destination", AttrKind::Shape, "Position of each of them in the result."),
        ],
        infer_shape: |shapes| infer_order(shapes, moved),
        bind: |attrs, signature| bind_order(moved, attrs, signature),
        form: |attrs, signature| strided_form(&ordered(moved, attrs, signature)?),
        ..MOVED
    },
    OpDef {
        name: "_npi_rot90",
        doc: "Turned by 90 degrees, k times, in the plane of two axes.",
        inputs: Inputs::Fixed(&["data"]),
        attrs: &[
            AttrDef::new("k", AttrKind::Int, "1", "Number of turns, from the first axis towards the second."),
            AttrDef::new("axes", AttrKind::OptShape, "None", "The two axes."),
        ],
        infer_shape: |shapes| {
            let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
            let (a, b) = plane(shapes.attrs, dims.len())?;
            if shapes.attrs.int("k").rem_euclid(2) == 1 {
                dims.swap(a, b);
            }
            shapes.set_output(0, PartialShape::from_dims(dims))
        },
        bind: |attrs, signature| bind_strided(turned(attrs, &signature.inputs[0].shape)?, signature),
        form: |attrs, signature| strided_form(&turned(attrs, &signature.inputs[0].shape)?),
        ..MOVED
    },
    OpDef {
        name: "_npi_flip",
        doc: "Elements in opposite order along the given axes, or along all.",
        inputs: Inputs::Fixed(&["data"]),
        attrs: &[AttrDef::required("axis", AttrKind::OptShape, "Axes to reverse; all with None.")],
        bind: |attrs, signature| bind_strided(flipped(attrs, &signature.inputs[0].shape)?, signature),
        form: |attrs, signature| strided_form(&flipped(attrs, &signature.inputs[0].shape)?),
        ..MOVED
    },
    OpDef {
        name: "_npi_broadcast_to",
        doc: "Repeated along axes of size 1, and along new ones, to a shape; -2 keeps an extent.",
        inputs: Inputs::Fixed(&["array"]),
        attrs: &[AttrDef::new("shape", AttrKind::Shape, "()", "The new shape.")],
        infer_shape: infer_broadcast,
        bind: |_, signature| bind_strided(broadcast(signature), signature),
        form: |_, signature| strided_form(&broadcast(signature)),
        ..MOVED
    },
    OpDef {
        name: "_np_roll",
        doc: "Elements shifted along axes, those that leave at one end entering at the other; without \
              axes along the flattened array.",
        inputs: Inputs::Fixed(&["data"]),
        attrs: &[
            AttrDef::new("shift", AttrKind::OptShape, "None", "Places to shift by: one number, or one for each axis."),
            AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to shift along."),
        ],
        infer_shape: |shapes| {
            if let Some(rank) = shapes.rank(0) {
                shifts(shapes.attrs, rank)?;
            }
            shapes.same_as_first()
        },
        bind: bind_roll,
        form: roll_form,
        ..OpDef::BASE
    },
];

const MOVED: OpDef = OpDef { inputs: Inputs::Fixed(&["a"]), ..OpDef::BASE };

fn check_order(attrs: &Attrs) -> Result<(), OpError> {
    match attrs.str("order") {
        "C" => Ok(()),
        other => Err(value_error(format!("order={other} is not supported, only C"))),
    }
}

fn misfit(data: &Shape, newshape: &[i64]) -> OpError {
    let list: Vec<String> = newshape.iter().map(i64::to_string).collect();
    shape_error(format!("cannot reshape array of shape {data} into shape ({})", list.join(", ")))
}

fn infer_reshape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    check_order(shapes.attrs)?;
    let newshape = shapes.attrs.ints("newshape");
    let negative: Vec<i64> = newshape.iter().copied().filter(|n| *n < 0).collect();
    if negative.len() > 1 || negative.iter().any(|n| *n != -1) {
        return Err(value_error("newshape can have one unknown extent, which is -1"));
    }
    let dims = newshape.iter().map(|n| usize::try_from(*n).ok());
    let Some(data) = shapes.input(0) else { return shapes.set_output(0, PartialShape::from_dims(dims)) };
    let known = checked_product(&dims.clone().flatten().collect::<Dims>())?;
    let size = data.size();
    let rest = match negative.is_empty() {
        true if known == size => 0,
        false if known > 0 && size % known == 0 => size / known,
        _ => return Err(misfit(&data, newshape)),
    };
    shapes.set_output(0, dims.map(|d| d.unwrap_or(rest)).collect::<Shape>())
}

fn infer_extended_reshape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    check_order(shapes.attrs)?;
    let Some(data) = shapes.input(0) else { return Ok(()) };
    let newshape = shapes.attrs.ints("newshape");
    let reverse = shapes.attrs.bool("reverse");
    let (mut source, mut target) = (data.to_vec(), newshape.to_vec());
    if reverse {
        source.reverse();
        target.reverse();
    }
    let mut made = extended_shape(&source, &target).ok_or_else(|| misfit(&data, newshape))?;
    if reverse {
        made.reverse();
    }
    shapes.set_output(0, Shape::from(made))
}

/// The shape that the codes of `_npx_reshape` make; `None` if they do not fit.
fn extended_shape(source: &[usize], target: &[i64]) -> Option<Vec<usize>> {
    let mut rest = source;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let mut made: Vec<Option<usize>> = Vec::with_capacity(target.len());
    let mut codes = target.iter();
    while let Some(code) = codes.next() {
        match code {
            // What is left may be more axes than one, so there need not be one to leave out.
            -1 => {
                take(1);
                made.push(None);
            }
            -2 => made.push(Some(take(1)?[0])),
            -3 => {
                (take(1)?[0] == 1).then_some(())?;
            }
            -4 => {
                while let Some(taken) = take(1) {
                    made.push(Some(taken[0]));
                }
            }
            -5 => made.push(Some(take(2)?.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?)),
            -6 => {
                let whole = take(1)?[0];
                made.extend(halves(whole, *codes.next()?, *codes.next()?)?.map(Some));
            }
            extent => {
                take(1);
                made.push(Some(usize::try_from(*extent).ok()?));
            }
        }
    }
    filled(made, source.iter().product())
}

/// Two extents that an extent is split into; one of them may be -1.
fn halves(whole: usize, first: i64, second: i64) -> Option<[usize; 2]> {
    let given = |n: i64| usize::try_from(n).ok();
    let (a, b) = match (given(first), given(second)) {
        (Some(a), Some(b)) => (a, b),
        (None, Some(b)) if first == -1 && b > 0 => (whole / b, b),
        (Some(a), None) if second == -1 && a > 0 => (a, whole / a),
        _ => return None,
    };
    (a.checked_mul(b) == Some(whole)).then_some([a, b])
}

/// Extents for `size` elements, of which one may follow from the others.
fn filled(made: Vec<Option<usize>>, size: usize) -> Option<Vec<usize>> {
    let known = made.iter().flatten().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    let missing = match made.iter().filter(|d| d.is_none()).count() {
        0 => (known == size).then_some(0)?,
        1 => (known > 0 && size.is_multiple_of(known)).then(|| size / known)?,
        _ => return None,
    };
    Some(made.into_iter().map(|d| d.unwrap_or(missing)).collect())
}

fn infer_squeeze(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(data) = shapes.input(0) else { return Ok(()) };
    let removed = match shapes.attrs.opt_ints("axis") {
        None => data.iter().map(|n| *n == 1).collect(),
        Some(_) => super::reduce::reduced_axes(shapes.attrs, data.len())?,
    };
    if let Some(axis) = (0..data.len()).find(|axis| removed[*axis] && data[*axis] != 1) {
        return Err(shape_error(format!(
            "cannot select an axis to squeeze out which has size not equal to one: axis {axis} of {data}"
        )));
    }
    shapes.set_output(0, data.iter().zip(&removed).filter(|(_, r)| !**r).map(|(n, _)| *n).collect::<Shape>())
}

/// The axis of the input for every axis of the output.
type Order = fn(&Attrs, usize) -> Result<Dims, OpError>;

/// Axes that must all be different, in the order given.
fn different(name: &str, axes: &[i64], rank: usize) -> Result<Dims, OpError> {
    let resolved = axes.iter().map(|axis| resolve_axis(*axis, rank)).collect::<Result<Dims, OpError>>()?;
    match (1..resolved.len()).find(|i| resolved[..*i].contains(&resolved[*i])) {
        Some(i) => Err(value_error(format!("repeated axis {} in {name}", axes[i]))),
        None => Ok(resolved),
    }
}

fn transposed(attrs: &Attrs, rank: usize) -> Result<Dims, OpError> {
    let Some(axes) = attrs.opt_ints("axes") else { return Ok((0..rank).rev().collect()) };
    if axes.len() != rank {
        return Err(value_error(format!("axes names {} axes, but the array has {rank}", axes.len())));
    }
    different("axes", axes, rank)
}

fn moved(attrs: &Attrs, rank: usize) -> Result<Dims, OpError> {
    let (from, to) = (attrs.ints("source"), attrs.ints("destination"));
    if from.len() != to.len() {
        return Err(value_error("source and destination must name as many axes"));
    }
    let (from, to) = (different("source", from, rank)?, different("destination", to, rank)?);
    let mut others = (0..rank).filter(|axis| !from.contains(axis));
    let place = |i: usize| to.iter().position(|t| *t == i).map(|k| from[k]);
    Ok((0..rank).filter_map(|i| place(i).or_else(|| others.next())).collect())
}

fn infer_order(shapes: &mut Shapes<'_>, order: Order) -> Result<(), OpError> {
    if let Some(dims) = shapes.dims(0) {
        let order = order(shapes.attrs, dims.len())?;
        shapes.set_output(0, PartialShape::from_dims(order.iter().map(|axis| dims[*axis])))?;
    }
    let known = shapes.outputs[0].dims().map(PartialDims::from_slice);
    let Some(dims) = known else { return Ok(()) };
    let order = order(shapes.attrs, dims.len())?;
    let mut data: PartialDims = smallvec::smallvec![None; dims.len()];
    order.iter().zip(dims).for_each(|(axis, n)| data[*axis] = n);
    shapes.set_input(0, "a", PartialShape::from_dims(data))
}

fn ordered(order: Order, attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let shape = &signature.inputs[0].shape;
    let steps = contiguous(shape);
    let order = order(attrs, shape.len())?;
    Ok(Strided {
        offset: 0,
        strides: order.iter().map(|axis| steps[*axis]).collect(),
        shape: order.iter().map(|axis| shape[*axis]).collect(),
    })
}

fn bind_order(order: Order, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    bind_strided(ordered(order, attrs, signature)?, signature)
}

/// The two axes of a turn.
fn plane(attrs: &Attrs, rank: usize) -> Result<(usize, usize), OpError> {
    match different("axes", attrs.opt_ints("axes").unwrap_or(&[]), rank)?[..] {
        [a, b] => Ok((a, b)),
        _ => Err(value_error("axes must name two axes")),
    }
}

/// Reads an axis from its end.
fn reverse(view: &mut Strided, axis: usize) {
    let last = view.shape[axis].saturating_sub(1) as isize * view.strides[axis];
    view.offset = view.offset.saturating_add_signed(last);
    view.strides[axis] = -view.strides[axis];
}

fn turned(attrs: &Attrs, shape: &[usize]) -> Result<Strided, OpError> {
    let (a, b) = plane(attrs, shape.len())?;
    let mut view = Strided { offset: 0, strides: contiguous(shape), shape: shape.to_vec() };
    let turns = attrs.int("k").rem_euclid(4);
    if turns == 1 || turns == 2 {
        reverse(&mut view, b);
    }
    if turns == 2 || turns == 3 {
        reverse(&mut view, a);
    }
    if turns % 2 == 1 {
        view.strides.swap(a, b);
        view.shape.swap(a, b);
    }
    Ok(view)
}

fn flipped(attrs: &Attrs, shape: &[usize]) -> Result<Strided, OpError> {
    let mut view = Strided { offset: 0, strides: contiguous(shape), shape: shape.to_vec() };
    let axes = match attrs.opt_ints("axis") {
        None => (0..shape.len()).collect(),
        Some(axes) => different("axis", axes, shape.len())?,
    };
    for axis in axes {
        reverse(&mut view, axis);
    }
    Ok(view)
}

fn infer_broadcast(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let target = shapes.attrs.ints("shape");
    let Some(missing) = target.len().checked_sub(dims.len()) else {
        return Err(shape_error(format!(
            "an array of shape {} cannot be broadcast to {} axes: it has more",
            shapes.inputs[0],
            target.len()
        )));
    };
    let mut out = PartialDims::new();
    for (i, extent) in target.iter().enumerate() {
        let own = if i < missing { Some(1) } else { dims[i - missing] };
        let want = if *extent == -2 && i >= missing { own } else { Some(extents("shape", &[*extent])?[0]) };
        if let (Some(own), Some(want)) = (own, want)
            && own != want
            && own != 1
        {
            return Err(shape_error(format!(
                "an array of shape {} cannot be broadcast: axis {i} of the new shape is {want}, not {own}",
                shapes.inputs[0]
            )));
        }
        out.push(want);
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn broadcast(signature: &Signature<'_>) -> Strided {
    let out = &signature.outputs[0].shape;
    let strides = mxrt_kernels::strides::broadcast(&signature.inputs[0].shape, out);
    Strided { offset: 0, strides, shape: out.to_vec() }
}

/// Axes and how far each is shifted; no axes for the flattened array.
fn shifts(attrs: &Attrs, rank: usize) -> Result<(Option<Dims>, Vec<i64>), OpError> {
    let Some(shift) = attrs.opt_ints("shift") else { return Err(value_error("roll needs shift")) };
    let Some(axes) = attrs.opt_ints("axis") else {
        return match shift {
            [one] => Ok((None, vec![*one])),
            _ => Err(value_error("shift must be one number where no axis is given")),
        };
    };
    let axes = different("axis", axes, rank)?;
    match shift {
        [one] => Ok((Some(axes.clone()), vec![*one; axes.len()])),
        all if all.len() == axes.len() => Ok((Some(axes), all.to_vec())),
        all => Err(value_error(format!("shift has {} numbers for {} axes", all.len(), axes.len()))),
    }
}

/// The form of shifts: along an axis one stretch moves up, and the rest moves to the beginning.
fn roll_form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shape = &signature.inputs[0].shape;
    let (axes, shift) = shifts(attrs, shape.len())?;
    let extents = if axes.is_some() { shape.to_vec() } else { vec![shape.size()] };
    let mut up = vec![0; extents.len()];
    for (i, by) in shift.into_iter().enumerate() {
        let axis = axes.as_ref().map_or(0, |axes| axes[i]);
        up[axis] = by.rem_euclid(extents[axis].max(1) as i64) as usize;
    }
    let stretches = |(n, up): (&usize, &usize)| {
        let parts = [(*up, n - up, 0, 1), (0, *up, n - up, 1)];
        parts.into_iter().filter(|part| part.1 > 0).collect()
    };
    let stretches: Vec<Vec<Stretch>> = extents.iter().zip(&up).map(stretches).collect();
    form_of_stretches(&signature.inputs[0], &extents, &extents, &stretches, None)
}

fn bind_roll(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let (axes, shift) = shifts(attrs, shape.len())?;
    let rolls: Vec<([usize; 3], i64)> = match axes {
        None => vec![([1, shape.size(), 1], shift[0])],
        Some(axes) => axes.iter().zip(shift).map(|(axis, by)| (split_around(*axis, &shape), by)).collect(),
    };
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        out.copy_from_slice(elements::<T>(&call.inputs[0])?);
        for ([_, n, inner], by) in rolls.iter().filter(|([outer, n, inner], _)| outer * n * inner > 0) {
            let by = by.rem_euclid(*n as i64) as usize;
            out.chunks_mut(n * inner).for_each(|rows| rows.rotate_right(by * inner));
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use super::extended_shape;
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_codes_of_an_extended_shape_stand_for_axes() {
        let of = |target: &[i64]| extended_shape(&[2, 3, 4], target);
        assert_eq!(of(&[-2, -1]), Some(vec![2, 12]));
        assert_eq!(of(&[-5, -4]), Some(vec![6, 4]));
        assert_eq!(of(&[-6, 1, 2, -4]), Some(vec![1, 2, 3, 4]));
        assert_eq!(of(&[-6, -1, 2, -2, -2]), Some(vec![1, 2, 3, 4]));
        assert_eq!(extended_shape(&[1, 3], &[-3, 3]), Some(vec![3]));
        for wrong in [&[-3, 12][..], &[-6, -1, -1, -4], &[5, -1], &[-2, -2, -2, -2], &[-6, 2]] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_scalar_is_an_array_without_axes() {
        let y = OpTest::new("_np_reshape").attr("newshape", "()").f32([1, 1], &[3.0]).run();
        assert_eq!(f32s(&y, []), [3.0]);
        let y = OpTest::new("_np_squeeze").f32([1, 1], &[3.0]).run();
        assert_eq!(f32s(&y, []), [3.0]);
        let y = OpTest::new("_npi_broadcast_to").attr("shape", "(2, 2)").f32([], &[3.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [3.0; 4]);
        assert!(OpTest::new("_np_squeeze").attr("axis", "(0,)").f32([2], &[0.0; 2]).error().message.contains("axis 0"));
    }

    #[test]
    fn turns_shifts_and_moves_put_elements_elsewhere() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let of = |op: &str, attrs: &[(&str, &str)]| attrs.iter().fold(OpTest::new(op), |t, (k, v)| t.attr(k, v));
        let y = of("_npi_rot90", &[("axes", "(0, 1)")]).f32([2, 3], &x).run();
        assert_eq!(f32s(&y, [3, 2]), [2.0, 5.0, 1.0, 4.0, 0.0, 3.0]);
        let y = of("_np_roll", &[("shift", "(1,)"), ("axis", "(1,)")]).f32([2, 3], &x).run();
        assert_eq!(f32s(&y, [2, 3]), [2.0, 0.0, 1.0, 5.0, 3.0, 4.0]);
        let y = of("_np_moveaxis", &[("source", "(0,)"), ("destination", "(-1,)")]).f32([1, 2, 3], &x).run();
        assert_eq!(y.tensor.shape.to_vec(), [2, 3, 1]);
        let error = of("_np_transpose", &[("axes", "(0, 0)")]).f32([2, 3], &x).error();
        assert!(error.message.contains("repeated axis 0"), "{}", error.message);
    }
}
