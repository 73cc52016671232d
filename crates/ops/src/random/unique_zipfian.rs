//! `_sample_unique_zipfian`: different numbers, small ones more probably than large ones.

use super::key;
use crate::prelude::*;
use mxrt_kernels::par::par_chunks_mut2;
use mxrt_kernels::random::{Stream, unique_log_uniform};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_sample_unique_zipfian",
    doc: "Different numbers from 0 to range_max - 1, drawn with probabilities that fall like their \
          inverse.\n\nshape is (rows, numbers). The outputs are the numbers, different within each \
          row, and how many draws each row took, in int64.",
    inputs: Inputs::Fixed(&[]),
    outputs: Outputs::Count(|_| 2),
    attrs: &[
        AttrDef::required("range_max", AttrKind::IntFrom(1), "How many numbers there are."),
        AttrDef::new("shape", AttrKind::Shape, "None", "Rows, and numbers in each of them."),
    ],
    infer_shape,
    infer_dtype: |dtypes| {
        dtypes.set_output(0, DType::I64)?;
        dtypes.set_output(1, DType::I64)
    },
    bind,
    random: true,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if let Some(shape) = shapes.attrs.opt_ints("shape").filter(|shape| !shape.is_empty()) {
        shapes.set_output(0, PartialShape::from_dims(extents("shape", shape)?.into_iter().map(Some)))?;
    }
    let output = shapes.outputs[0].clone();
    match output.dims() {
        None => Ok(()),
        Some([rows, _]) => shapes.set_output(1, PartialShape::from_dims([*rows])),
        Some(_) => Err(shape_error(format!("shape={output} must be (rows, numbers)"))),
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (limit, numbers) = (attrs.count("range_max"), signature.outputs[0].shape[1]);
    if numbers > limit {
        return Err(value_error(format!("there are no {numbers} different numbers below range_max={limit}")));
    }
    Ok(kernel_fn(signature, move |call| {
        let RandomKey { seed, position } = key(call)?;
        let [samples, draws] = &mut *call.outputs else { return Err(wrong_arity()) };
        let (samples, draws) = (elements_mut::<i64>(samples)?, elements_mut::<i64>(draws)?);
        if samples.is_empty() {
            draws.fill(0);
            return Ok(());
        }
        par_chunks_mut2(call.par, samples, numbers, draws, 1, |row, samples, draws| {
            draws[0] = unique_log_uniform(&mut Stream::new(seed, position, row as u64), limit, samples);
        });
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    fn sample(limit: &str, shape: &str) -> OpTest {
        OpTest::new("_sample_unique_zipfian").attr("range_max", limit).attr("shape", shape)
    }

    #[test]
    fn rows_have_different_numbers_and_small_ones_are_frequent() {
        let out = sample("10", "(2, 10)").run_all();
        let (numbers, draws) = (out[0].values::<i64>(), out[1].values::<i64>());
        for row in numbers.chunks(10) {
            let mut row = row.to_vec();
            row.sort_unstable();
            assert_eq!(row, (0..10).collect::<Vec<i64>>());
        }
        assert!(draws.iter().all(|n| *n >= 10), "{draws:?}");
        let first = sample("1000", "(3000, 1)").run().values::<i64>();
        // ln(1.5) / ln(1000) of them.
        let zeros = first.iter().filter(|v| **v == 0).count();
        assert!((120..235).contains(&zeros), "{zeros}");
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert!(sample("5", "(2, 10)").error().message.contains("no 10 different numbers"));
        assert!(sample("5", "(2,)").error().message.contains("(rows, numbers)"));
    }
}
