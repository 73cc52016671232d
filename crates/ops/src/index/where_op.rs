//! `where`: elements of one array or another.

use crate::prelude::*;
use mxrt_kernels::index::{select, select_rows};
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "where",
    aliases: &["_sparse_where"],
    doc: "Elements of x where condition is not 0, else of y. A condition with one axis picks rows.",
    inputs: Inputs::Fixed(&["condition", "x", "y"]),
    ignores_unknown_attrs: true,
    infer_shape,
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[1].or(dtypes.inputs[2]).or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(1, "x", dtype)?;
        dtypes.set_input(2, "y", dtype)?;
        dtypes.set_output(0, dtype)
    },
    bind,
    form: |_, signature| Ok(Some(KernelForm::Select { row: row(signature)?.unwrap_or(1) })),
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let mut common = PartialShape::UNKNOWN;
    for shape in shapes.inputs[1..].iter().chain(shapes.outputs.iter()) {
        common.merge(shape).map_err(|_| {
            shape_error(format!("x {} and y {} must have one shape", shapes.inputs[1], shapes.inputs[2]))
        })?;
    }
    shapes.set_input(1, "x", common.clone())?;
    shapes.set_input(2, "y", common.clone())?;
    shapes.set_output(0, common.clone())?;
    let condition = shapes.inputs[0].clone();
    let (Some(rank), Some(dims)) = (condition.rank(), common.dims()) else { return Ok(()) };
    let want = if rank == 1 && dims.len() > 1 { PartialShape::from_dims([dims[0]]) } else { common.clone() };
    shapes.set_input(0, "condition", want).map_err(|_| {
        shape_error(format!(
            "condition has shape {condition} but x {common} needs its shape, or one value for each \
             row"
        ))
    })
}

/// Elements of a row, where a condition picks rows.
fn row(signature: &Signature<'_>) -> Result<Option<usize>, OpError> {
    let [condition, x, _] = signature.inputs else { return Err(wrong_arity()) };
    check_truths(condition.dtype)?;
    Ok((condition.shape != x.shape).then(|| x.shape[1..].iter().product()))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let row = row(signature)?;
    dispatch_size!(signature.inputs[1].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([condition, x, y], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let condition = truths(call.par, condition)?;
        let (x, y, out) = (elements::<T>(x)?, elements::<T>(y)?, elements_mut::<T>(out)?);
        match row {
            None => select(call.par, &condition, x, y, out),
            Some(row) => select_rows(call.par, &condition, x, y, row, out),
        }
        Ok(())
    })))
}

/// Checks the types that `truths` accepts, before anything runs.
pub(crate) fn check_truths(dtype: DType) -> Result<(), OpError> {
    dispatch!(dtype, all, C => {
        let _ = C::ZERO;
        Ok(())
    })
}

/// The elements that are not 0, as bytes: the kernel is compiled for these alone.
pub(crate) fn truths<'a>(par: &dyn Par, array: &TensorRef<'a>) -> Result<ReadElements<'a, u8>, OpError> {
    if matches!(array.dtype, DType::U8 | DType::Bool) {
        return Ok(ReadElements::Borrowed(array.bytes()));
    }
    dispatch!(array.dtype, all, C => {
        Ok(ReadElements::Made(Scratch::map(par, elements::<C>(array)?, |c| u8::from(c != C::ZERO))))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_condition_picks_elements_or_rows() {
        let (x, y) = ([1.0f32, 2.0, 3.0, 4.0], [0.0f32; 4]);
        let of = |t: OpTest| f32s(&t.f32([2, 2], &x).f32([2, 2], &y).run(), [2, 2]);
        assert_eq!(of(OpTest::new("where").f32([2, 2], &[1.0, 0.0, 0.0, 1.0])), [1.0, 0.0, 0.0, 4.0]);
        assert_eq!(of(OpTest::new("where").i32([2], &[0, 5])), [0.0, 0.0, 3.0, 4.0]);
        OpTest::new("where").i32([3], &[0, 5, 1]).f32([2, 2], &x).f32([2, 2], &y).error();
    }
}
