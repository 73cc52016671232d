//! `_npi_insert_scalar`, `_npi_insert_slice`, `_npi_insert_tensor`: values inserted along an axis.

use super::{AXIS, INT_IND, START, STEP, STOP, attribute_places, has_places, like_first, place};
use crate::execution::in_dtypes;
use crate::prelude::*;
use bytemuck::Pod;
use mxrt_kernels::Par;
use mxrt_kernels::shape::{Part, copy_strided, join};
use mxrt_kernels::strides::contiguous;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
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

const VAL: AttrDef =
    AttrDef::new("val", AttrKind::OptFloat, "None", "A number to insert, in the place of values.").wide();

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

    /// Writes the array `x` with the parts of `values` at these places.
    fn store<T: Pod + Send + Sync>(&self, par: &dyn Par, places: &[usize], x: &[T], values: &[T], out: &mut [T]) {
        let [outer, n, inner] = split_around(self.axis, &self.whole);
        let mut order = match places {
            [one] => Scratch::collect(par, self.count, (0..self.count).map(|value| (*one, value))),
            _ => Scratch::collect(par, places.len(), places.iter().copied().zip(0..)),
        };
        order.sort_unstable();
        // Each value comes after what is before its place, and the rest after the last value.
        let ends = order.iter().map(|(place, _)| *place).chain([n]);
        let begins = std::iter::once(0).chain(order.iter().map(|(place, _)| *place));
        let kept = begins.zip(ends).map(|(start, end)| Part { array: x, n, start, count: end - start });
        let inserted =
            order.iter().map(|(_, value)| Some(Part { array: values, n: self.count, start: *value, count: 1 }));
        let parts = kept.zip(inserted.chain([None])).flat_map(|(kept, value)| std::iter::once(kept).chain(value));
        let parts = Scratch::collect(par, 2 * order.len() + 1, parts.filter(|part| part.count > 0));
        join(par, &parts, outer, inner, out);
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
