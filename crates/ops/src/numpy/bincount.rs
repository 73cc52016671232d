//! `_npi_bincount`: how often every number occurs.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
        shapes_of_contents: Some(|par, attrs, inputs| {
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
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn numbers_are_counted_or_their_weights_summed() {
        assert_eq!(OpTest::new("_npi_bincount").i32([4], &[1, 3, 1, 0]).run().values::<i32>(), [1, 2, 0, 1]);
        let weighed = OpTest::new("_npi_bincount").attr("has_weights", "True").attr("minlength", "3");
        assert_eq!(f32s(&weighed.i32([2], &[1, 1]).f32([2], &[0.5, 1.0]).run(), [3]), [0.0, 1.5, 0.0]);
        assert!(OpTest::new("_npi_bincount").i32([1], &[-1]).error().message.contains("-1"));
    }
}
