//! `_histogram`: how many elements fall into each of some bins.

use crate::prelude::*;
use mxrt_kernels::histogram;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_histogram",
    aliases: &["_npi_histogram"],
    doc: "How many elements fall into each bin, in int64, and the edges of the bins, in the dtype \
          of data.\n\nEither bin_cnt and range tell evenly wide bins, or bins has ascending edges. \
          The last bin has its upper edge too; elements outside of all bins are not counted.",
    inputs: Inputs::ByAttrs(|attrs| if attrs.opt_int("bin_cnt").is_some() { &["data"] } else { &["data", "bins"] }),
    outputs: Outputs::Count(|_| 2),
    attrs: &[
        AttrDef::new("bin_cnt", AttrKind::OptInt, "None", "Number of bins."),
        AttrDef::new("range", AttrKind::OptFloats, "None", "Lower edge of the first bin and upper edge of the last.")
            .wide(),
    ],
    infer_shape,
    infer_dtype: |dtypes| {
        if let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[1]) {
            for i in 0..dtypes.inputs.len() {
                dtypes.set_input(i, ["data", "bins"][i], dtype)?;
            }
            dtypes.set_output(1, dtype)?;
        }
        dtypes.set_output(0, DType::I64)
    },
    bind,
    form: |attrs, signature| {
        let range = even_bins(attrs)?.map(|(_, range)| range);
        for_numeric(signature.inputs[0].dtype, KernelForm::Histogram(range))
    },
    ..OpDef::BASE
}];

/// Number of bins and their range, if they are evenly wide.
fn even_bins(attrs: &Attrs) -> Result<Option<(usize, [f64; 2])>, OpError> {
    match (attrs.opt_int("bin_cnt"), attrs.opt_floats("range")) {
        (None, None) => Ok(None),
        (Some(count), Some(&[low, high])) if low <= high => {
            let count =
                usize::try_from(count).map_err(|_| value_error(format!("bin_cnt={count} must not be negative")))?;
            Ok(Some((count, if low == high { [low - 0.5, high + 0.5] } else { [low, high] })))
        }
        (Some(_), Some(&[low, high])) => Err(value_error(format!("range=({low}, {high}) must not descend"))),
        (Some(_), Some(_)) => Err(value_error("range must be two numbers")),
        _ => Err(value_error("bin_cnt and range must both be given, or neither of them")),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let edges = match even_bins(shapes.attrs)? {
        Some((count, _)) if count >= 0x7fff_ffff => return Err(value_error(format!("bin_cnt={count} is too large"))),
        Some((count, _)) => Some(count + 1),
        None => match shapes.dims(1).as_deref() {
            None => None,
            Some([edges]) if edges.is_none_or(|n| n >= 2) => *edges,
            Some(_) => {
                return Err(shape_error(format!("bins has shape {}; expected 2 edges or more", shapes.inputs[1])));
            }
        },
    };
    shapes.set_output(0, PartialShape::from_dims([edges.map(|n| n - 1)]))?;
    shapes.set_output(1, PartialShape::from_dims([edges]))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let even = even_bins(attrs)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let ([data, bins @ ..], [counts, edges]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (data, edges) = (elements::<T>(data)?, elements_mut::<T>(edges)?);
        let counts = elements_mut::<i64>(counts)?;
        let last = counts.len();
        match (even, bins.first()) {
            (Some((_, [low, high])), _) => {
                for (i, edge) in edges.iter_mut().enumerate() {
                    *edge = T::from_f64((high * i as f64 + (last - i) as f64 * low) / last as f64);
                }
                histogram::even(call.par, data, [low, high], edges, counts);
            }
            (None, Some(bins)) => {
                edges.copy_from_slice(elements(bins)?);
                histogram::uneven(call.par, data, edges, counts);
            }
            (None, None) => return Err(wrong_arity()),
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn histogram(attrs: &[(&str, &str)]) -> OpTest {
        let test = OpTest::new("_histogram").attrs(attrs);
        test.f32([6], &[1.0, 2.0, 3.0, 4.0, 5.0, f32::NAN])
    }

    #[test]
    fn elements_are_counted_by_bin() {
        let out = histogram(&[("bin_cnt", "2"), ("range", "(1, 5)")]).run_all();
        assert_eq!(out[0].values::<i64>(), [2, 3]);
        assert_close(&f32s(&out[1], [3]), &[1.0, 3.0, 5.0]);
        let out = histogram(&[("bin_cnt", "3"), ("range", "(2.0, 5.0)")]).run_all();
        assert_eq!(out[0].values::<i64>(), [1, 1, 2]);
        let out = histogram(&[]).f32([3], &[0.0, 2.0, 5.0]).run_all();
        assert_eq!(out[0].values::<i64>(), [1, 4]);
        assert_close(&f32s(&out[1], [3]), &[0.0, 2.0, 5.0]);
        assert!(histogram(&[("bin_cnt", "0"), ("range", "(1, 5)")]).run().values::<i64>().is_empty());
    }

    #[test]
    fn bins_that_contradict_themselves_are_refused() {
        assert!(histogram(&[("bin_cnt", "2")]).error().message.contains("both be given"));
        assert!(histogram(&[("bin_cnt", "2"), ("range", "(5, 1)")]).error().message.contains("must not descend"));
        assert!(histogram(&[("bin_cnt", "-2"), ("range", "(1, 5)")]).error().message.contains("must not be negative"));
        assert!(histogram(&[]).f32([1], &[0.0]).error().message.contains("2 edges or more"));
    }
}
