//! `boolean_mask`: the rows that a mask picks.

use super::where_op::{check_truths, truths};
use crate::prelude::*;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_boolean_mask",
    aliases: &["_npi_boolean_mask"],
    doc: "The rows of data whose element of index is not 0. Their number is known when the operator \
        has run; an array of shape (0, ...) comes out where the mask is all 0.",
    attrs: &[AttrDef::new("axis", AttrKind::Int, "0", "Axis along which to mask; no other than 0 is possible.")],
    inputs: Inputs::Fixed(&["data", "index"]),
    infer_shape,
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(0, "data", dtype)?;
        dtypes.set_output(0, dtype)
    },
    bind,
    rewrites: &Rewrites { shapes_of_contents: Some(shapes_of_contents), ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if shapes.attrs.int("axis") != 0 {
        return Err(value_error(format!("axis={} is not supported, only axis=0", shapes.attrs.int("axis"))));
    }
    let Some(data) = shapes.dims(0) else { return Ok(()) };
    let Some((rows, row)) = data.split_first() else {
        return Err(shape_error("data has no axis to mask"));
    };
    shapes.set_input(1, "index", PartialShape::from_dims([*rows]))?;
    shapes.set_output(0, PartialShape::from_dims([None].into_iter().chain(row.iter().copied())))
}

fn shapes_of_contents(par: &dyn Par, _: &Attrs, inputs: &[TensorRef<'_>]) -> Result<Vec<Shape>, OpError> {
    let [data, index] = inputs else { return Err(wrong_arity()) };
    let mut shape = data.shape.to_vec();
    if let Some(rows) = shape.first_mut() {
        *rows = truths(par, index)?.iter().filter(|t| **t != 0).count();
    }
    Ok(vec![Shape::from(shape)])
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let ([_, index], [out]) = (signature.inputs, signature.outputs) else { return Err(wrong_arity()) };
    check_truths(index.dtype)?;
    let row = out.shape.iter().skip(1).product::<usize>() * out.dtype.size();
    Ok(kernel_fn(signature, move |call| {
        let ([data, index], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let mask = truths(call.par, index)?;
        if out.shape.first().copied() != Some(mask.iter().filter(|t| **t != 0).count()) {
            return Err(value_error("the mask has another number of elements that are not 0 than rows come out"));
        }
        if row > 0 {
            let rows = data.bytes().chunks_exact(row).zip(mask.iter()).filter(|(_, t)| **t != 0);
            out.bytes_mut().chunks_exact_mut(row).zip(rows).for_each(|(to, (from, _))| to.copy_from_slice(from));
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const DATA: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn rows_are_picked_by_a_mask_of_any_dtype() {
        let masked = |t: OpTest| f32s(&t.run(), [2, 2]);
        let data = || OpTest::new("_contrib_boolean_mask").f32([3, 2], &DATA);
        assert_eq!(masked(data().i32([3], &[7, 0, -1])), [1.0, 2.0, 5.0, 6.0]);
        assert_eq!(masked(data().f32([3], &[0.0, 0.5, 1.0])), [3.0, 4.0, 5.0, 6.0]);
        let none = data().i32([3], &[0, 0, 0]).run();
        assert_eq!(none.tensor.shape.to_vec(), [0, 2]);
    }

    #[test]
    fn a_mask_of_another_length_and_other_axes_are_errors() {
        let data = || OpTest::new("_contrib_boolean_mask").f32([3, 2], &DATA);
        assert!(data().i32([2], &[1, 1]).error().message.contains("index has shape (2,)"));
        assert!(data().i32([3], &[1, 1, 1]).attr("axis", "1").error().message.contains("only axis=0"));
    }
}
