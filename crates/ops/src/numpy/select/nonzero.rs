//! `_npx_nonzero`: the places of elements that are not 0.

use crate::index::where_op::{check_truths, truths};
use crate::prelude::*;
use mxrt_kernels::positions;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npx_nonzero",
    aliases: &["_npi_nonzero"],
    doc: "The indices of the elements that are not 0: a row for each, in int64.",
    inputs: Inputs::Fixed(&["x"]),
    ignores_unknown_attrs: true,
    infer_shape: |shapes| {
        let Some(rank) = shapes.rank(0) else { return Ok(()) };
        shapes.set_output(0, PartialShape::from_dims([None, Some(rank.max(1))]))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
    bind: bind_nonzero,
    rewrites: &Rewrites {
        shapes_of_contents: Some(|par, _, inputs| {
            let [x] = inputs else { return Err(wrong_arity()) };
            let count = positions::count(par, &truths(par, x)?);
            Ok(vec![Shape::new(&[count, x.shape.len().max(1)])])
        }),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn bind_nonzero(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    check_truths(signature.inputs[0].dtype)?;
    Ok(kernel_fn(signature, |call| {
        let x = &call.inputs[0];
        let marks = truths(call.par, x)?;
        let rank = x.shape.len().max(1);
        let out = elements_mut::<i64>(&mut call.outputs[0])?;
        if out.len() != positions::count(call.par, &marks) * rank {
            return Err(value_error("the input has another number of elements that are not 0 than rows come out"));
        }
        positions::nonzero(call.par, &marks, x.shape, out);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn places_of_what_is_not_zero() {
        let y = OpTest::new("_npx_nonzero").f32([2, 2], &[0.0, 1.0, 2.0, 0.0]).run();
        assert_eq!((y.tensor.shape.to_vec(), y.values::<i64>()), (vec![2, 2], vec![0, 1, 1, 0]));
        assert_eq!(OpTest::new("_npx_nonzero").f32([0, 3], &[]).run().tensor.shape.to_vec(), [0, 2]);
    }
}
