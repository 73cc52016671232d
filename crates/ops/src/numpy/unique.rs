//! `_npi_unique`: the different elements, in order.

use crate::prelude::*;
use mxrt_tensor::{TensorMut, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
        check_known(signature.inputs[0].dtype)?;
        Ok(kernel_fn(signature, move |call| {
            let found = Found::new(call.par, &attrs, &call.inputs[0])?;
            let shapes = shapes(&attrs, call.inputs[0].shape, found.groups.len())?;
            if call.outputs.iter().zip(shapes).any(|(out, shape)| *out.shape != shape) {
                return Err(value_error("the input has another number of different elements than come out"));
            }
            found.store_parts(&call.inputs[0], &mut call.outputs[0])?;
            let [index, inverse, counts] = asked(&attrs);
            let mut others = call.outputs[1..].iter_mut();
            let mut store = |asked: bool, values: &mut dyn Iterator<Item = usize>| {
                let out = if asked { others.next() } else { None };
                out.map_or(Ok(()), |out| {
                    elements_mut::<i64>(out)?.iter_mut().zip(values).for_each(|(out, value)| *out = value as i64);
                    Ok(())
                })
            };
            store(index, &mut found.groups.iter().map(|(place, _)| *place))?;
            store(inverse, &mut found.inverse.iter().copied())?;
            store(counts, &mut found.groups.iter().map(|(_, count)| *count))
        }))
    },
    rewrites: &Rewrites {
        shapes_of_contents: Some(|par, attrs, inputs| {
            let [x] = inputs else { return Err(wrong_arity()) };
            shapes(attrs, x.shape, different(par, attrs, x)?)
        }),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// Whether a call asks for index, inverse and counts.
fn asked(attrs: &Attrs) -> [bool; 3] {
    ["return_index", "return_inverse", "return_counts"].map(|name| attrs.bool(name))
}

/// The axis, if the parts are those along one.
fn axis_of(attrs: &Attrs, shape: &Shape) -> Option<i64> {
    attrs.opt_int("axis").filter(|_| !shape.is_empty())
}

/// Numbers in the order of the elements, by which those of all types are sorted by the same code. NaN
/// is the last, and no number of its types has that rank.
fn ranks(par: &dyn Par, x: &TensorRef<'_>) -> Result<Scratch<u64>, OpError> {
    dispatch!(x.dtype, all, T => {
        Ok(Scratch::map(par, elements::<T>(x)?, |v: T| if v.nan() { u64::MAX } else { v.rank() }))
    })
}

/// The number of different parts. Single elements are sorted without their places, which the kernel
/// alone needs.
fn different(par: &dyn Par, attrs: &Attrs, x: &TensorRef<'_>) -> Result<usize, OpError> {
    if !matches!(split_or_all(axis_of(attrs, x.shape), x.shape)?, [1, _, 1]) {
        return Ok(Found::new(par, attrs, x)?.groups.len());
    }
    let mut sorted = ranks(par, x)?;
    sorted.sort_unstable();
    let steps = sorted.windows(2).filter(|pair| pair[0] != pair[1]).count();
    Ok(steps + usize::from(!sorted.is_empty()))
}

/// The shapes of the outputs for that many different parts of an array.
pub(super) fn shapes(attrs: &Attrs, shape: &Shape, different: usize) -> Result<Vec<Shape>, OpError> {
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
    fn new(par: &dyn Par, attrs: &Attrs, x: &TensorRef<'_>) -> Result<Found, OpError> {
        let split = split_or_all(axis_of(attrs, x.shape), x.shape)?;
        let [outer, n, inner] = split;
        let ranks = &ranks(par, x)?[..];
        let part = |place: usize| (0..outer).flat_map(move |block| &ranks[(block * n + place) * inner..][..inner]);
        let order = |a: usize, b: usize| match (outer, inner) {
            (1, 1) => ranks[a].cmp(&ranks[b]),
            _ => part(a).cmp(part(b)),
        };
        let count = if ranks.is_empty() { 0 } else { n };
        let mut places = Scratch::collect(par, count, 0..count);
        if outer * inner == 1 {
            // Pairs are sorted without a look at the ranks for each comparison.
            let mut pairs = Scratch::collect(par, count, ranks.iter().copied().zip(0..count));
            pairs.sort_unstable();
            places.iter_mut().zip(&*pairs).for_each(|(place, (_, of_pair))| *place = *of_pair);
        } else {
            places.sort_unstable_by(|a, b| order(*a, *b).then(a.cmp(b)));
        }
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

    /// Copies the first part of each group.
    fn store_parts(&self, x: &TensorRef<'_>, out: &mut TensorMut<'_>) -> Result<(), OpError> {
        let [outer, n, inner] = self.split;
        dispatch_size!(x.dtype, T => {
            let (x, out) = (elements::<T>(x)?, elements_mut::<T>(out)?);
            for (i, (place, _)) in self.groups.iter().enumerate() {
                for block in 0..outer {
                    let to = (block * self.groups.len() + i) * inner;
                    out[to..to + inner].copy_from_slice(&x[(block * n + place) * inner..][..inner]);
                }
            }
            Ok(())
        })
    }
}

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
}
