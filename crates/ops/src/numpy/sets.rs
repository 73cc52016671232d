//! Different elements, counts, differences and polynomials.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{Binary, binary};
use mxrt_kernels::{Element, Par};
use mxrt_tensor::{DType, PartialShape, Shape};
use std::cmp::Ordering;

/// Rows of the table.
pub static OPS: &[OpDef] = &[UNIQUE, BINCOUNT, DIFF, EDIFF1D, POLYVAL];

const UNIQUE: OpDef = OpDef {
    name: "_npi_unique",
    doc: "The different elements in ascending order, or the different parts along an axis; on request \
          also where each is first, which of them each element is, and how often each occurs, in int64.",
    attrs: &[
        AttrDef::new("return_index", AttrKind::Bool, "False", "Whether to return where each is first."),
        AttrDef::new("return_inverse", AttrKind::Bool, "False", "Whether to return which one each element is."),
        AttrDef::new("return_counts", AttrKind::Bool, "False", "Whether to return how often each occurs."),
        AttrDef::new("axis", AttrKind::OptInt, "None", "The axis; the flattened array if not given."),
    ],
    outputs: Outputs::Count(|attrs| 1 + asked(attrs).iter().filter(|asked| **asked).count()),
    infer_shape: |shapes| {
        let (Some(rank), axis) = (shapes.rank(0), shapes.attrs.opt_int("axis")) else { return Ok(()) };
        let mut dims: Vec<Option<usize>> = vec![None];
        if let (Some(axis), true) = (axis, rank > 0) {
            let axis = resolve_axis(axis, rank)?;
            if shapes.input(0).is_none_or(|shape| shape.size() > 0) {
                dims = shapes.dims(0).map(|dims| dims.to_vec()).unwrap_or_default();
                dims[axis] = None;
            }
        } else if let Some(axis) = axis {
            super::reduce::marked(Some(&[axis]), 0)?;
        }
        shapes.set_output(0, PartialShape::from_dims(dims))?;
        (1..shapes.outputs.len()).try_for_each(|i| shapes.set_output(i, PartialShape::of_rank(1)))
    },
    infer_dtype: |dtypes| {
        if let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) {
            dtypes.set_input(0, "data", dtype)?;
            dtypes.set_output(0, dtype)?;
        }
        (1..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, DType::I64))
    },
    bind: |attrs, signature| {
        let attrs = attrs.clone();
        dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let found = Found::new(call.par, &attrs, call.inputs[0].shape, x)?;
            let shapes = shapes(&attrs, call.inputs[0].shape, found.groups.len())?;
            if call.outputs.iter().zip(shapes).any(|(out, shape)| *out.shape != shape) {
                return Err(value_error("the input has another number of different elements than come out"));
            }
            let [outer, n, inner] = found.split;
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            let groups: &[(usize, usize)] = &found.groups;
            for (i, (place, _)) in groups.iter().enumerate() {
                for block in 0..outer {
                    let to = (block * groups.len() + i) * inner;
                    out[to..to + inner].copy_from_slice(&x[(block * n + place) * inner..][..inner]);
                }
            }
            let [index, inverse, counts] = asked(&attrs);
            let mut others = call.outputs[1..].iter_mut();
            let mut store = |asked: bool, values: &mut dyn Iterator<Item = usize>| {
                let out = if asked { others.next() } else { None };
                out.map_or(Ok(()), |out| {
                    elements_mut::<i64>(out)?.iter_mut().zip(values).for_each(|(out, value)| *out = value as i64);
                    Ok(())
                })
            };
            store(index, &mut groups.iter().map(|(place, _)| *place))?;
            store(inverse, &mut found.inverse.iter().copied())?;
            store(counts, &mut groups.iter().map(|(_, count)| *count))
        })))
    },
    rewrites: &Rewrites {
        late_shapes: Some(|par, attrs, inputs| {
            let [x] = inputs else { return Err(wrong_arity()) };
            let number = dispatch!(x.dtype, all, T => different(par, attrs, x.shape, elements::<T>(x)?))?;
            shapes(attrs, x.shape, number)
        }),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
};

/// Whether a call asks for index, inverse and counts.
fn asked(attrs: &Attrs) -> [bool; 3] {
    ["return_index", "return_inverse", "return_counts"].map(|name| attrs.bool(name))
}

/// The axis, if the parts are those along one.
fn axis_of(attrs: &Attrs, shape: &Shape) -> Option<i64> {
    attrs.opt_int("axis").filter(|_| !shape.is_empty())
}

/// The order of elements: NaN is the last.
fn compare<T: Element>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.nan().cmp(&b.nan()))
}

/// The number of different parts. Single elements are sorted without their places, which the kernel
/// alone needs.
fn different<T: Element>(par: &dyn Par, attrs: &Attrs, shape: &Shape, x: &[T]) -> Result<usize, OpError> {
    if !matches!(split_or_all(axis_of(attrs, shape), shape)?, [1, _, 1]) {
        return Ok(Found::new(par, attrs, shape, x)?.groups.len());
    }
    let mut sorted = Scratch::collect(par, x.len(), x.iter().copied());
    sorted.sort_unstable_by(|a, b| compare(*a, *b));
    let steps = sorted.windows(2).filter(|pair| compare(pair[0], pair[1]).is_ne()).count();
    Ok(steps + usize::from(!x.is_empty()))
}

/// The shapes of the outputs for that many different parts of an array.
fn shapes(attrs: &Attrs, shape: &Shape, different: usize) -> Result<Vec<Shape>, OpError> {
    let axis = axis_of(attrs, shape);
    let mut first = Shape::new(&[different]);
    let mut parts = 0;
    if shape.size() > 0 {
        [_, parts, _] = split_or_all(axis, shape)?;
        if let Some(axis) = axis {
            first = shape.clone();
            first.dims_mut()[resolve_axis(axis, shape.len())?] = different;
        }
    }
    let [index, inverse, counts] = asked(attrs);
    let others = [(index, different), (inverse, parts), (counts, different)];
    let others = others.into_iter().filter(|(asked, _)| *asked).map(|(_, number)| Shape::new(&[number]));
    Ok(std::iter::once(first).chain(others).collect())
}

/// The different parts along an axis.
struct Found {
    split: [usize; 3],
    /// the first place and the number of equal parts, in ascending order of the parts
    groups: Scratch<(usize, usize)>,
    /// the group of every part
    inverse: Scratch<usize>,
}

impl Found {
    fn new<T: Element>(par: &dyn Par, attrs: &Attrs, shape: &Shape, x: &[T]) -> Result<Found, OpError> {
        let split = split_or_all(axis_of(attrs, shape), shape)?;
        let [outer, n, inner] = split;
        let part = |place: usize| (0..outer).flat_map(move |block| &x[(block * n + place) * inner..][..inner]);
        let order = |a: usize, b: usize| match (outer, inner) {
            (1, 1) => compare(x[a], x[b]),
            _ => part(a).zip(part(b)).map(|(a, b)| compare(*a, *b)).fold(Ordering::Equal, Ordering::then),
        };
        let count = if x.is_empty() { 0 } else { n };
        let mut places = Scratch::collect(par, count, 0..count);
        places.sort_unstable_by(|a, b| order(*a, *b).then(a.cmp(b)));
        let starts = |i: usize| i == 0 || order(places[i - 1], places[i]).is_ne();
        let different = (0..count).filter(|i| starts(*i)).count();
        let mut groups = Scratch::filled(par, different, (0, 0));
        let mut inverse = Scratch::<usize>::new(par, count);
        let mut group = 0;
        for (i, place) in places.iter().enumerate() {
            if starts(i) {
                group += usize::from(i > 0);
                groups[group].0 = *place;
            }
            groups[group].1 += 1;
            inverse[*place] = group;
        }
        Ok(Found { split, groups, inverse })
    }
}

const BINCOUNT: OpDef = OpDef {
    name: "_npi_bincount",
    doc: "How often each whole number from 0 occurs, in the dtype of the data; with weights, their sum.",
    inputs: Inputs::ByAttrs(|attrs| if attrs.bool("has_weights") { &["data", "weights"] } else { &["data"] }),
    attrs: &[
        AttrDef::new("minlength", AttrKind::IntFrom(0), "0", "The least number of counts."),
        AttrDef::new("has_weights", AttrKind::Bool, "False", "Whether there are weights."),
    ],
    infer_shape: |shapes| {
        if shapes.inputs.len() == 2 {
            let [data, weights] = shapes.inputs else { return Err(wrong_arity()) };
            PartialShape::unify(data, weights).map_err(|e| shape_error(format!("weights do not fit: {e}")))?;
        }
        match shapes.rank(0) {
            Some(1) | None => shapes.set_output(0, PartialShape::of_rank(1)),
            Some(_) => Err(shape_error(format!("the data has shape {}; expected one axis", shapes.inputs[0]))),
        }
    },
    infer_dtype: |dtypes| {
        if dtypes.inputs[0].is_some_and(|dtype| dtype.is_float() || dtype == DType::Bool) {
            return Err(type_error("the data must be whole numbers; convert it with astype"));
        }
        // The last input has the weights, if there are any.
        dtypes.inputs[dtypes.inputs.len() - 1].map_or(Ok(()), |dtype| dtypes.set_output(0, dtype))
    },
    bind: |_, signature| {
        check_numeric(signature.outputs[0].dtype)?;
        Ok(kernel_fn(signature, |call| {
            let numbers = integers(call.par, &call.inputs[0])?;
            let places = numbers.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX));
            let count = call.outputs[0].len();
            let missing = || value_error("the data has numbers beyond those that are counted");
            match call.inputs.get(1) {
                None => {
                    let mut counts = Scratch::filled(call.par, count, 0i64);
                    for place in places {
                        *counts.get_mut(place).ok_or_else(missing)? += 1;
                    }
                    store_integers(&counts, &mut call.outputs[0])
                }
                Some(weights) => {
                    let mut sums = Scratch::filled(call.par, count, 0.0);
                    for (place, weight) in places.zip(floats(call.par, weights)?.iter()) {
                        *sums.get_mut(place).ok_or_else(missing)? += weight;
                    }
                    store_floats(&sums, &mut call.outputs[0])
                }
            }
        }))
    },
    rewrites: &Rewrites {
        late_shapes: Some(|par, attrs, inputs| {
            let Some(data) = inputs.first() else { return Err(wrong_arity()) };
            let numbers = integers(par, data)?;
            if let Some(negative) = numbers.iter().find(|n| **n < 0) {
                return Err(value_error(format!("the data has the negative number {negative}")));
            }
            let most = numbers.iter().max().map_or(0, |n| n.saturating_add(1));
            let bins = most.max(attrs.int("minlength"));
            match usize::try_from(bins).ok().filter(|bins| *bins < 1 << 40) {
                Some(bins) => Ok(vec![Shape::new(&[bins])]),
                None => Err(value_error(format!("the data has a number that needs {bins} counts"))),
            }
        }),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
};

const DIFF: OpDef = OpDef {
    name: "_npi_diff",
    doc: "Differences of neighbours along an axis, n times.",
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[
        AttrDef::new("n", AttrKind::IntFrom(0), "1", "How often differences are taken."),
        AttrDef::new("axis", AttrKind::Int, "-1", "The axis."),
    ],
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        let axis = resolve_axis(shapes.attrs.int("axis"), dims.len())?;
        dims[axis] = dims[axis].map(|n| n.saturating_sub(shapes.attrs.count("n")));
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    bind: |attrs, signature| {
        let [outer, whole, inner] = split_at(attrs.int("axis"), &signature.inputs[0].shape)?;
        let times = attrs.count("n").min(whole);
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let mut x = ReadElements::Borrowed(elements::<T>(&call.inputs[0])?);
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            if times == 0 {
                out.copy_from_slice(&x);
                return Ok(());
            }
            let less = |x: &[T], n: usize, out: &mut [T]| {
                let kept = (n - 1) * inner;
                for (block, out) in x.chunks((n * inner).max(1)).take(outer).zip(out.chunks_mut(kept.max(1))) {
                    binary(call.par, Binary::Sub, &block[block.len() - kept..], &block[..kept], out);
                }
            };
            for done in 0..times - 1 {
                let mut made = Scratch::<T>::new(call.par, outer * (whole - done - 1) * inner);
                less(&x, whole - done, &mut made);
                x = ReadElements::Made(made);
            }
            less(&x, whole + 1 - times, out);
            Ok(())
        })))
    },
    ..OpDef::BASE
};

const EDIFF1D: OpDef = OpDef {
    name: "_npi_ediff1d",
    doc: "Differences of neighbours of the flattened array, with elements before and after them.",
    inputs: Inputs::ByAttrs(|attrs| {
        match u8::from(attrs.bool("to_begin_arr_given")) + u8::from(attrs.bool("to_end_arr_given")) {
            0 => &["input1"],
            1 => &["input1", "input2"],
            _ => &["input1", "input2", "input3"],
        }
    }),
    attrs: &[
        AttrDef::new("to_begin_arr_given", AttrKind::Bool, "False", "Whether an array comes before."),
        AttrDef::new("to_end_arr_given", AttrKind::Bool, "False", "Whether an array comes after."),
        AttrDef::new("to_begin_scalar", AttrKind::OptFloat, "None", "A number that comes before.").wide(),
        AttrDef::new("to_end_scalar", AttrKind::OptFloat, "None", "A number that comes after.").wide(),
    ],
    infer_shape: |shapes| {
        let attrs = shapes.attrs;
        let Some(data) = shapes.input(0) else { return Ok(()) };
        let mut total = data.size().saturating_sub(1);
        for i in 1..shapes.inputs.len() {
            let Some(array) = shapes.input(i) else { return Ok(()) };
            total = total.saturating_add(array.size());
        }
        let numbers = [("to_begin_arr_given", "to_begin_scalar"), ("to_end_arr_given", "to_end_scalar")];
        let used = numbers.iter().filter(|(array, number)| !attrs.bool(array) && attrs.opt_float(number).is_some());
        shapes.set_output(0, Shape::new(&[total.saturating_add(used.count())]))
    },
    infer_dtype: |dtypes| dtypes.uniform(&["input1", "input2", "input3"]),
    bind: |attrs, signature| {
        let given = [attrs.bool("to_begin_arr_given"), attrs.bool("to_end_arr_given")];
        let numbers = [attrs.opt_float("to_begin_scalar"), attrs.opt_float("to_end_scalar")];
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let mut arrays = call.inputs[1..].iter();
            let numbers = numbers.map(|number| number.map(T::from_f64));
            let mut end = |i: usize| match (given[i], &numbers[i]) {
                (true, _) => arrays.next().ok_or_else(wrong_arity).and_then(elements::<T>),
                (false, Some(number)) => Ok(std::slice::from_ref(number)),
                (false, None) => Ok(&[][..]),
            };
            let (before, after) = (end(0)?, end(1)?);
            let differences = x.windows(2).map(|pair| pair[1].minus(pair[0]));
            let all = before.iter().copied().chain(differences).chain(after.iter().copied());
            elements_mut::<T>(&mut call.outputs[0])?.iter_mut().zip(all).for_each(|(out, v)| *out = v);
            Ok(())
        })))
    },
    ..OpDef::BASE
};

const POLYVAL: OpDef = OpDef {
    name: "_npi_polyval",
    doc: "A polynomial, given by its coefficients from the highest power down, at every element of x.",
    inputs: Inputs::Fixed(&["p", "x"]),
    ignores_unknown_attrs: true,
    infer_shape: |shapes| {
        if shapes.rank(0).is_some_and(|rank| rank != 1) {
            return Err(shape_error(format!("p has shape {}; expected one axis", shapes.inputs[0])));
        }
        let x = shapes.inputs[1].clone();
        shapes.set_output(0, x)
    },
    infer_dtype: |dtypes| dtypes.uniform(&["p", "x"]),
    bind: |_, signature| {
        dispatch!(signature.inputs[1].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let (p, x) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            for (out, x) in out.iter_mut().zip(x) {
                *out = p.iter().fold(T::ZERO, |sum, p| sum.times(*x).plus(*p));
            }
            Ok(())
        })))
    },
    ..OpDef::BASE
};

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn different_elements_come_in_order_with_their_places() {
        let test = OpTest::new("_npi_unique").attr("return_index", "1").attr("return_inverse", "1");
        let out = test.attr("return_counts", "1").f32([2, 3], &[3.0, 1.0, 3.0, 2.0, 1.0, 3.0]).run_all();
        assert_eq!(f32s(&out[0], [3]), [1.0, 2.0, 3.0]);
        assert_eq!(out[1].values::<i64>(), [1, 3, 0]);
        assert_eq!(out[2].values::<i64>(), [2, 0, 2, 1, 0, 2]);
        assert_eq!(out[3].values::<i64>(), [2, 1, 3]);
        let rows = OpTest::new("_npi_unique").attr("axis", "0").f32([3, 2], &[2.0, 1.0, 1.0, 2.0, 2.0, 1.0]).run();
        assert_eq!(f32s(&rows, [2, 2]), [1.0, 2.0, 2.0, 1.0]);
        assert_eq!(f32s(&OpTest::new("_npi_unique").f32([0, 2], &[]).run(), [0]), [0.0; 0]);
    }

    #[test]
    fn numbers_are_counted_or_their_weights_summed() {
        assert_eq!(OpTest::new("_npi_bincount").i32([4], &[1, 3, 1, 0]).run().values::<i32>(), [1, 2, 0, 1]);
        let weighed = OpTest::new("_npi_bincount").attr("has_weights", "True").attr("minlength", "3");
        assert_eq!(f32s(&weighed.i32([2], &[1, 1]).f32([2], &[0.5, 1.0]).run(), [3]), [0.0, 1.5, 0.0]);
        assert!(OpTest::new("_npi_bincount").i32([1], &[-1]).error().message.contains("-1"));
    }

    #[test]
    fn differences_are_taken_again_and_again() {
        let of = |n: &str, axis: &str| {
            OpTest::new("_npi_diff").attr("n", n).attr("axis", axis).f32([2, 3], &[1.0, 3.0, 8.0, 0.0, 0.0, 1.0]).run()
        };
        assert_eq!(f32s(&of("1", "-1"), [2, 2]), [2.0, 5.0, 0.0, 1.0]);
        assert_eq!(f32s(&of("2", "1"), [2, 1]), [3.0, 1.0]);
        assert_eq!(f32s(&of("5", "0"), [0, 3]), [0.0; 0]);
        let y = OpTest::new("_npi_ediff1d").attr("to_begin_scalar", "9").f32([3], &[1.0, 3.0, 8.0]).run();
        assert_eq!(f32s(&y, [3]), [9.0, 2.0, 5.0]);
        let y = OpTest::new("_npi_polyval").f32([3], &[1.0, 0.0, 2.0]).f32([2], &[2.0, 3.0]).run();
        assert_eq!(f32s(&y, [2]), [6.0, 11.0]);
    }
}
