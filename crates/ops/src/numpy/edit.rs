//! Parts removed along an axis, and inserted.

use crate::execution::in_dtypes;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_kernels::{Element, Par};
use mxrt_tensor::{DType, PartialShape, Shape, TensorRef};

const START: AttrDef = AttrDef::new("start", AttrKind::OptInt, "None", "Start of a slice of indices.");
const STOP: AttrDef = AttrDef::new("stop", AttrKind::OptInt, "None", "End of a slice of indices.");
const STEP: AttrDef = AttrDef::new("step", AttrKind::OptInt, "None", "Step of a slice of indices.");
const INT_IND: AttrDef = AttrDef::new("int_ind", AttrKind::OptInt, "None", "One index.");
const AXIS: AttrDef = AttrDef::new("axis", AttrKind::OptInt, "None", "The axis; the flattened array if not given.");
const VAL: AttrDef =
    AttrDef::new("val", AttrKind::OptFloat, "None", "A number to insert, in the place of values.").wide();

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_delete",
        doc: "Without the parts along an axis that an index, a slice or an array of indices names.",
        inputs: Inputs::ByAttrs(|attrs| if has_places(attrs) { &["arr"] } else { &["arr", "obj"] }),
        attrs: &[START, STOP, STEP, INT_IND, AXIS],
        infer_shape: |shapes| {
            let Some(dims) = shapes.dims(0) else { return Ok(()) };
            let mut left: Vec<Option<usize>> = match shapes.attrs.opt_int("axis") {
                None => vec![None],
                Some(_) => dims.to_vec(),
            };
            if let (Some(axis), false) = (shapes.attrs.opt_int("axis"), left.is_empty()) {
                let axis = resolve_axis(axis, left.len())?;
                left[axis] = None;
            }
            // One index that is out of range is an error of the call.
            let extent = match shapes.attrs.opt_int("axis") {
                None => shapes.input(0).map(|shape| shape.size()),
                Some(_) if dims.is_empty() => None,
                Some(axis) => dims[resolve_axis(axis, dims.len())?],
            };
            if let (Some(index), Some(n)) = (shapes.attrs.opt_int("int_ind"), extent) {
                existing(index, n)?;
            }
            shapes.set_output(0, PartialShape::from_dims(left))
        },
        infer_dtype: like_first,
        bind: |attrs, signature| {
            let attrs = attrs.clone();
            dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
                let ([outer, n, inner], kept) = kept_places(call.par, &attrs, call.inputs)?;
                let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
                if out.len() != outer * kept.len() * inner {
                    return Err(value_error("the indices remove another number of parts than are left out"));
                }
                let parts = (0..outer).flat_map(|block| kept.iter().map(move |place| block * n + place));
                for (i, part) in parts.enumerate() {
                    out[i * inner..(i + 1) * inner].copy_from_slice(&x[part * inner..(part + 1) * inner]);
                }
                Ok(())
            })))
        },
        rewrites: &Rewrites {
            late_shapes: Some(|par, attrs, inputs| {
                let Some(array) = inputs.first() else { return Err(wrong_arity()) };
                let (_, kept) = kept_places(par, attrs, inputs)?;
                let Some(axis) = attrs.opt_int("axis") else { return Ok(vec![Shape::new(&[kept.len()])]) };
                let mut shape = array.shape.clone();
                if !shape.is_empty() {
                    let axis = resolve_axis(axis, shape.len())?;
                    shape.dims_mut()[axis] = kept.len();
                }
                Ok(vec![shape])
            }),
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
    OpDef { name: "_npi_insert_scalar", doc: "With values inserted before an index along an axis.", ..INSERT },
    OpDef {
        name: "_npi_insert_slice",
        doc: "With values inserted before the indices of a slice along an axis.",
        ..INSERT
    },
    OpDef {
        name: "_npi_insert_tensor",
        doc: "With values inserted before the indices of an array along an axis.",
        inputs: Inputs::ByAttrs(|attrs| match attrs.opt_float("val") {
            Some(_) => &["arr", "obj"],
            None => &["arr", "values", "obj"],
        }),
        ..INSERT
    },
];

const INSERT: OpDef = OpDef {
    inputs: Inputs::ByAttrs(|attrs| if attrs.opt_float("val").is_some() { &["arr"] } else { &["arr", "values"] }),
    attrs: &[VAL, START, STOP, STEP, INT_IND, AXIS],
    infer_shape: |shapes| {
        let mut known = Vec::with_capacity(shapes.inputs.len());
        for i in 0..shapes.inputs.len() {
            let Some(shape) = shapes.input(i) else { return Ok(()) };
            known.push(shape);
        }
        let plan = Insertion::new(shapes.attrs, &known)?;
        let mut out = plan.whole.clone();
        out.dims_mut()[plan.axis] += plan.count;
        shapes.set_output(0, out)
    },
    infer_dtype: like_first,
    bind: bind_insert,
    ..OpDef::BASE
};

fn like_first(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
    dtypes.set_input(0, "arr", dtype)?;
    dtypes.set_output(0, dtype)
}

/// Whether the attributes name the places, and not an array.
fn has_places(attrs: &Attrs) -> bool {
    attrs.opt_int("int_ind").is_some() || attrs.opt_int("step").is_some()
}

/// The index counted from the front; `limit` may be the number of elements itself.
fn place(index: i64, n: usize, limit: usize) -> Result<usize, OpError> {
    let front = if index < 0 { index.checked_add(n as i64) } else { Some(index) };
    front.and_then(|i| usize::try_from(i).ok()).filter(|i| *i <= limit).ok_or_else(|| out_of_bounds(index, n))
}

/// The index of an element, counted from the front.
fn existing(index: i64, n: usize) -> Result<usize, OpError> {
    n.checked_sub(1).map_or_else(|| Err(out_of_bounds(index, n)), |last| place(index, n, last))
}

fn out_of_bounds(index: i64, n: usize) -> OpError {
    let message = format!("index {index} is out of bounds for an axis of size {n}");
    OpError::new(mxrt_engine::FailureKind::Index, message)
}

/// The indices that the slice or the one index among the attributes names, as Python counts, and
/// their number.
fn attribute_places(attrs: &Attrs, n: usize, limit: usize) -> Result<(impl Iterator<Item = usize>, usize), OpError> {
    let (start, step, count) = attribute_range(attrs, n, limit)?;
    Ok(((0..count as i64).map(move |i| (start + i * step) as usize), count))
}

/// The first index, the step and the number of these indices.
fn attribute_range(attrs: &Attrs, n: usize, limit: usize) -> Result<(i64, i64, usize), OpError> {
    if let Some(index) = attrs.opt_int("int_ind") {
        return Ok((place(index, n, limit)? as i64, 1, 1));
    }
    let (step, n) = (attrs.opt_int("step").unwrap_or(1), n as i64);
    if step == 0 {
        return Err(value_error("step must not be 0"));
    }
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let bound = |name: &str, default: i64| match attrs.opt_int(name) {
        Some(i) => (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high),
        None => default,
    };
    let (start, stop) =
        if step > 0 { (bound("start", 0), bound("stop", n)) } else { (bound("start", n - 1), bound("stop", -1)) };
    let span = if step > 0 { stop - start } else { start - stop };
    Ok((start, step, (span.max(0) as u64).div_ceil(step.unsigned_abs()) as usize))
}

/// The axis as three joined ones, and the places along it that stay.
fn kept_places(
    par: &dyn Par,
    attrs: &Attrs,
    inputs: &[TensorRef<'_>],
) -> Result<([usize; 3], Scratch<usize>), OpError> {
    let Some(array) = inputs.first() else { return Err(wrong_arity()) };
    let axis = attrs.opt_int("axis");
    if axis.is_some() && array.shape.is_empty() {
        return Ok(([1, 1, 1], Scratch::filled(par, 1, 0)));
    }
    let split = split_or_all(axis, array.shape)?;
    let n = split[1];
    let mut stays = Scratch::filled(par, n, true);
    match inputs.get(1) {
        None => match attrs.opt_int("int_ind") {
            Some(index) => stays[existing(index, n)?] = false,
            None => attribute_places(attrs, n, n)?.0.for_each(|i| stays[i] = false),
        },
        Some(obj) if obj.dtype == DType::Bool && obj.len() == n => {
            stays.iter_mut().zip(elements::<u8>(obj)?).for_each(|(stays, mark)| *stays = *mark == 0);
        }
        Some(obj) => {
            check_integers("obj", obj.dtype)?;
            for i in integers(par, obj)?.iter() {
                stays[existing(*i, n)?] = false;
            }
        }
    }
    let left = stays.iter().filter(|stays| **stays).count();
    Ok((split, Scratch::collect(par, left, (0..n).filter(|i| stays[*i]))))
}

/// How parts are inserted.
struct Insertion {
    /// the shape of the array, flattened if no axis is given
    whole: Shape,
    axis: usize,
    /// parts that come in
    count: usize,
    /// one index of no axis: the first axis of the values is that of the parts
    first_axis_is_parts: bool,
}

impl Insertion {
    fn new(attrs: &Attrs, shapes: &[Shape]) -> Result<Insertion, OpError> {
        let Some(array) = shapes.first() else { return Err(wrong_arity()) };
        let (whole, axis) = match attrs.opt_int("axis") {
            None => (Shape::new(&[array.size()]), 0),
            Some(axis) => (array.clone(), resolve_axis(axis, array.len())?),
        };
        let obj =
            if has_places(attrs) { None } else { shapes.get(if attrs.opt_float("val").is_some() { 1 } else { 2 }) };
        let (named, scalar) = match obj {
            Some(obj) if obj.len() > 1 => {
                return Err(shape_error(format!("obj has shape {obj}; expected one axis at most")));
            }
            Some(obj) => (obj.size(), obj.is_empty()),
            None => (attribute_places(attrs, whole[axis], whole[axis])?.1, attrs.opt_int("int_ind").is_some()),
        };
        let values = if attrs.opt_float("val").is_some() { None } else { shapes.get(1) };
        let mut plan = Insertion { whole, axis, count: named, first_axis_is_parts: scalar };
        if let (1, Some(values)) = (named, values) {
            plan.count = plan.value_shape(values)?[axis];
        }
        Ok(plan)
    }

    /// The shape of the values with as many axes as the array, and the axis of the parts in its
    /// place.
    fn value_shape(&self, values: &Shape) -> Result<Vec<usize>, OpError> {
        let rank = self.whole.len();
        let Some(missing) = rank.checked_sub(values.len()) else {
            return Err(shape_error(format!(
                "values have shape {values}, with more axes than the {rank} of the array"
            )));
        };
        let mut shape: Vec<usize> = std::iter::repeat_n(1, missing).chain(values.iter().copied()).collect();
        if self.first_axis_is_parts {
            shape[..=self.axis].rotate_left(1);
        }
        Ok(shape)
    }

    /// Steps of the values for the shape of what is inserted.
    fn value_steps(&self, values: &Shape) -> Result<Vec<isize>, OpError> {
        let shape = self.value_shape(values)?;
        let missing = self.whole.len() - values.len();
        let mut steps: Vec<isize> = std::iter::repeat_n(0, missing).chain(contiguous(values)).collect();
        if self.first_axis_is_parts {
            steps[..=self.axis].rotate_left(1);
        }
        for (axis, n) in shape.iter().enumerate() {
            let want = if axis == self.axis { self.count } else { self.whole[axis] };
            if *n == 1 {
                steps[axis] = 0;
            } else if *n != want {
                return Err(shape_error(format!(
                    "values have shape {values}, which cannot be broadcast to the parts that are inserted"
                )));
            }
        }
        Ok(steps)
    }

    /// The parts of the result: each is a part of the array, or of the values.
    fn parts(&self, par: &dyn Par, places: &[usize]) -> Scratch<Result<usize, usize>> {
        let n = self.whole[self.axis];
        let mut order = match places {
            [one] => Scratch::collect(par, self.count, (0..self.count).map(|value| (*one, value))),
            _ => Scratch::collect(par, places.len(), places.iter().copied().zip(0..)),
        };
        order.sort_unstable();
        let mut inserted = order.iter().copied().peekable();
        let mut place = 0;
        let parts = std::iter::from_fn(|| {
            if let Some((_, value)) = inserted.next_if(|(before, _)| *before <= place) {
                return Some(Err(value));
            }
            place += 1;
            (place <= n).then(|| Ok(place - 1))
        });
        Scratch::collect(par, n + self.count, parts)
    }

    /// Writes the array `x` with the parts of `values` at these places.
    fn store<T: Copy>(&self, par: &dyn Par, places: &[usize], x: &[T], values: &[T], out: &mut [T]) {
        let [outer, n, inner] = split_around(self.axis, &self.whole);
        let parts = self.parts(par, places);
        let parts: &[Result<usize, usize>] = &parts;
        for (i, out) in out.chunks_mut(inner.max(1)).enumerate().take(outer * parts.len()) {
            let block = i / parts.len();
            out.copy_from_slice(match parts[i % parts.len()] {
                Ok(part) => &x[(block * n + part) * inner..][..inner],
                Err(part) => &values[(block * self.count + part) * inner..][..inner],
            });
        }
    }
}

/// Reads the places of an insertion, from `obj` or from the attributes.
fn insertion_places(
    par: &dyn Par,
    attrs: &Attrs,
    obj: Option<&TensorRef<'_>>,
    n: usize,
) -> Result<Scratch<usize>, OpError> {
    let Some(obj) = obj else {
        let (places, count) = attribute_places(attrs, n, n)?;
        return Ok(Scratch::collect(par, count, places));
    };
    let indices = integers(par, obj)?;
    Scratch::try_collect(par, indices.len(), indices.iter().map(|i| place(*i, n, n)))
}

fn bind_insert(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let dtype = signature.inputs[0].dtype;
    let number = attrs.opt_float("val");
    if number.is_none() && signature.inputs[1].dtype != dtype {
        return in_dtypes(
            signature,
            |i| if i == 1 { dtype } else { signature.inputs[i].dtype },
            |_| dtype,
            |signature| bind_insert(attrs, signature),
        );
    }
    let shapes: Vec<Shape> = signature.inputs.iter().map(|t| t.shape.clone()).collect();
    let plan = Insertion::new(attrs, &shapes)?;
    let steps = if number.is_none() { plan.value_steps(&shapes[1])? } else { vec![0; plan.whole.len()] };
    let obj = (!has_places(attrs)).then_some(if number.is_some() { 1 } else { 2 }).filter(|i| *i < shapes.len());
    if let Some(obj) = obj {
        check_integers("obj", signature.inputs[obj].dtype)?;
    }
    let attrs = attrs.clone();
    dispatch!(dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let n = plan.whole[plan.axis];
        let places = insertion_places(call.par, &attrs, obj.map(|obj| &call.inputs[obj]), n)?;
        let mut shape = plan.whole.to_vec();
        shape[plan.axis] = plan.count;
        let mut values = Scratch::<T>::new(call.par, shape.iter().product());
        match number {
            Some(number) => values.fill(T::from_f64(number)),
            None => copy_strided(call.par, elements::<T>(&call.inputs[1])?, 0, &steps, &shape, &mut values)
                .map_err(kernel_error)?,
        }
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        plan.store(call.par, &places, elements::<T>(&call.inputs[0])?, &values, out);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn parts_are_removed_by_index_slice_and_array() {
        let x = |t: OpTest| t.f32([2, 3], &X);
        let y = x(OpTest::new("_npi_delete").attr("int_ind", "-1").attr("axis", "1")).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 4.0, 5.0]);
        let y = x(OpTest::new("_npi_delete").attr("step", "2").attr("start", "0")).run();
        assert_eq!(f32s(&y, [3]), [2.0, 4.0, 6.0]);
        let y = x(OpTest::new("_npi_delete").attr("axis", "0")).i32([2], &[0, 0]).run();
        assert_eq!(f32s(&y, [1, 3]), [4.0, 5.0, 6.0]);
        let error = x(OpTest::new("_npi_delete").attr("int_ind", "3").attr("axis", "1")).error();
        assert!(error.message.contains("index 3 is out of bounds"), "{}", error.message);
    }

    #[test]
    fn values_are_inserted_as_numpy_places_them() {
        let y = OpTest::new("_npi_insert_scalar").attr("int_ind", "1").attr("val", "9").f32([3], &X[..3]).run();
        assert_eq!(f32s(&y, [4]), [1.0, 9.0, 2.0, 3.0]);
        let y = OpTest::new("_npi_insert_scalar").attr("int_ind", "1").attr("axis", "1").f32([2, 3], &X);
        assert_eq!(f32s(&y.f32([2], &[8.0, 9.0]).run(), [2, 4]), [1.0, 8.0, 2.0, 3.0, 4.0, 9.0, 5.0, 6.0]);
        let y = OpTest::new("_npi_insert_tensor").attr("axis", "0").f32([3], &X[..3]).f32([2], &[8.0, 9.0]);
        assert_eq!(f32s(&y.i32([2], &[2, 0]).run(), [5]), [9.0, 1.0, 2.0, 8.0, 3.0]);
        let y = OpTest::new("_npi_insert_slice").attr("step", "1").attr("stop", "2").attr("val", "0").f32([3], &X[..3]);
        assert_eq!(f32s(&y.run(), [5]), [0.0, 1.0, 0.0, 2.0, 3.0]);
        let error = OpTest::new("_npi_insert_tensor").attr("val", "1").f32([3], &X[..3]).i32([1], &[5]).error();
        assert!(error.message.contains("index 5"), "{}", error.message);
    }
}
