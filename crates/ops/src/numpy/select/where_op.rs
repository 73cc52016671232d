//! `_npi_where` and its forms with numbers: elements of one operand or another.

use super::{common_shape, spread};
use crate::index::where_op::{check_truths, truths};
use crate::prelude::*;
use mxrt_kernels::index::select;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_where",
        doc: "Elements of x where condition is not 0, else of y; all three are broadcast.",
        inputs: Inputs::Fixed(&["condition", "x", "y"]),
        ignores_unknown_attrs: true,
        infer_shape: infer_broadcast,
        infer_dtype: |dtypes| {
            let Some(dtype) = dtypes.inputs[1].or(dtypes.inputs[2]).or(dtypes.outputs[0]) else { return Ok(()) };
            dtypes.set_input(1, "x", dtype)?;
            dtypes.set_input(2, "y", dtype)?;
            dtypes.set_output(0, dtype)
        },
        bind: |_, signature| bind_where([None, None], signature),
        form: |_, signature| where_form([None, None], signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_where_lscalar",
        doc: "A number where condition is not 0, else elements of the array.",
        inputs: Inputs::Fixed(&["condition", "x"]),
        bind: |attrs, signature| bind_where([Some(attrs.float("scalar")), None], signature),
        form: |attrs, signature| where_form([Some(attrs.float("scalar")), None], signature),
        ..WITH_NUMBER
    },
    OpDef {
        name: "_npi_where_rscalar",
        doc: "Elements of the array where condition is not 0, else a number.",
        inputs: Inputs::Fixed(&["condition", "y"]),
        bind: |attrs, signature| bind_where([None, Some(attrs.float("scalar"))], signature),
        form: |attrs, signature| where_form([None, Some(attrs.float("scalar"))], signature),
        ..WITH_NUMBER
    },
    OpDef {
        name: "_npi_where_scalar2",
        doc: "One number where condition is not 0, else another, in float32.",
        inputs: Inputs::Fixed(&["condition"]),
        attrs: &[
            AttrDef::new("x", AttrKind::Float, "0", "Where condition is not 0.").wide(),
            AttrDef::new("y", AttrKind::Float, "0", "Elsewhere.").wide(),
        ],
        infer_dtype: |dtypes| dtypes.set_output(0, DType::F32),
        bind: |attrs, signature| bind_where([Some(attrs.float("x")), Some(attrs.float("y"))], signature),
        form: |attrs, signature| where_form([Some(attrs.float("x")), Some(attrs.float("y"))], signature),
        ..OpDef::BASE
    },
];

const WITH_NUMBER: OpDef = OpDef {
    attrs: &[AttrDef::new("scalar", AttrKind::Float, "0", "The number.").wide()],
    infer_shape: infer_broadcast,
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[1].or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(1, "the array", dtype)?;
        dtypes.set_output(0, dtype)
    },
    ..OpDef::BASE
};

/// The shape that all inputs broadcast to.
fn infer_broadcast(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let all = shapes.inputs.iter().map(PartialShape::complete).collect::<Option<Vec<Shape>>>();
    let Some(all) = all else { return Ok(()) };
    shapes.set_output(0, common_shape(&all)?)
}

/// The form holds numbers as the type of the result has them.
fn where_form(numbers: [Option<f64>; 2], signature: &Signature<'_>) -> MaybeForm {
    check_truths(signature.inputs[0].dtype)?;
    dispatch!(signature.outputs[0].dtype, all, T => {
        let numbers = numbers.map(|number| number.map(|number| T::from_f64(number).to_f64()));
        Ok(Some(KernelForm::Choose { numbers }))
    })
}

/// `numbers` take the places of x and y.
fn bind_where(numbers: [Option<f64>; 2], signature: &Signature<'_>) -> BoundKernel {
    check_truths(signature.inputs[0].dtype)?;
    let shape = signature.outputs[0].shape.clone();
    dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let truths = truths(call.par, &call.inputs[0])?;
        let condition = spread(call.par, &truths, call.inputs[0].shape, &shape)?;
        let mut arrays = call.inputs[1..].iter();
        let mut operand = |number: Option<f64>| match (number, arrays.as_slice().first()) {
            (Some(number), _) => Ok(ReadElements::Made(Scratch::filled(call.par, condition.len(), T::from_f64(number)))),
            (None, Some(array)) => {
                arrays.next();
                spread(call.par, elements::<T>(array)?, array.shape, &shape)
            }
            (None, None) => Err(wrong_arity()),
        };
        let (x, y) = (operand(numbers[0])?, operand(numbers[1])?);
        select(call.par, &condition, &x, &y, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

    #[test]
    fn all_three_are_broadcast() {
        let y = OpTest::new("_npi_where").i32([2, 1], &[1, 0]).f32([2], &[1.0, 2.0]).f32([], &[9.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 9.0, 9.0]);
        let y = OpTest::new("_npi_where_lscalar").attr("scalar", "7").i32([2], &[1, 0]).f32([2], &X[..2]).run();
        assert_eq!(f32s(&y, [2]), [7.0, 2.0]);
        let y = OpTest::new("_npi_where_scalar2").attr("x", "1").attr("y", "2").i32([], &[0]).run();
        assert_eq!(f32s(&y, []), [2.0]);
        assert!(
            OpTest::new("_npi_where")
                .i32([3], &[1; 3])
                .f32([2], &X[..2])
                .f32([2], &X[..2])
                .error()
                .message
                .contains("(3,) (2,) (2,)")
        );
    }
}
