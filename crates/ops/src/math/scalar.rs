//! Arithmetic, comparison and logic of an array and a number.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::elementwise::{self, Binary};
use mxrt_tensor::DType;

/// Which operand the number is.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

const ATTRS: &[AttrDef] = &[
    AttrDef::new("scalar", AttrKind::Float, "1", "The number."),
    AttrDef::new("is_int", AttrKind::Bool, "True", "Whether the number is whole; if not, whole arrays become float64."),
];

macro_rules! scalar_op {
    ($name:literal, $aliases:expr, $function:expr, $side:expr, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: $doc,
            attrs: ATTRS,
            infer_dtype,
            bind: |attrs, signature| bind($function, $side, attrs, signature),
            rewrites: &Rewrites {
                elementwise: |attrs| {
                    let number = attrs.float("scalar") as f32;
                    Some(match $side {
                        Side::Left => Elementwise::OfScalar($function, number),
                        Side::Right => Elementwise::WithScalar($function, number),
                    })
                },
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    scalar_op!("_plus_scalar", &["_PlusScalar"], Binary::Add, Side::Right, "Of an array and a number, the sum."),
    scalar_op!(
        "_minus_scalar",
        &["_MinusScalar"],
        Binary::Sub,
        Side::Right,
        "Of an array and a number, the difference."
    ),
    scalar_op!("_mul_scalar", &["_MulScalar"], Binary::Mul, Side::Right, "Of an array and a number, the product."),
    scalar_op!(
        "_div_scalar",
        &["_DivScalar"],
        Binary::Div,
        Side::Right,
        "Of an array and a number, the quotient; integers are divided as integers."
    ),
    scalar_op!(
        "_mod_scalar",
        &["_ModScalar"],
        Binary::Mod,
        Side::Right,
        "Of an array and a number, the remainder, with the sign of the divisor."
    ),
    scalar_op!(
        "_power_scalar",
        &["_PowerScalar"],
        Binary::Power,
        Side::Right,
        "Of an array and a number, the array to the power of the number."
    ),
    scalar_op!(
        "_maximum_scalar",
        &["_MaximumScalar", "_npi_maximum_scalar"],
        Binary::Maximum,
        Side::Right,
        "Of an array and a number, the larger."
    ),
    scalar_op!(
        "_minimum_scalar",
        &["_MinimumScalar", "_npi_minimum_scalar"],
        Binary::Minimum,
        Side::Right,
        "Of an array and a number, the smaller."
    ),
    scalar_op!(
        "_hypot_scalar",
        &["_HypotScalar", "_npi_hypot_scalar"],
        Binary::Hypot,
        Side::Right,
        "Of an array and a number, the length of the hypotenuse."
    ),
    scalar_op!(
        "_equal_scalar",
        &["_EqualScalar"],
        Binary::Equal,
        Side::Right,
        "Of an array and a number, 1 where equal, else 0."
    ),
    scalar_op!(
        "_not_equal_scalar",
        &["_NotEqualScalar"],
        Binary::NotEqual,
        Side::Right,
        "Of an array and a number, 1 where not equal, else 0."
    ),
    scalar_op!(
        "_greater_scalar",
        &["_GreaterScalar"],
        Binary::Greater,
        Side::Right,
        "Of an array and a number, 1 where the first is greater, else 0."
    ),
    scalar_op!(
        "_greater_equal_scalar",
        &["_GreaterEqualScalar"],
        Binary::GreaterEqual,
        Side::Right,
        "Of an array and a number, 1 where the first is not less, else 0."
    ),
    scalar_op!(
        "_lesser_scalar",
        &["_LesserScalar"],
        Binary::Lesser,
        Side::Right,
        "Of an array and a number, 1 where the first is less, else 0."
    ),
    scalar_op!(
        "_lesser_equal_scalar",
        &["_LesserEqualScalar"],
        Binary::LesserEqual,
        Side::Right,
        "Of an array and a number, 1 where the first is not greater, else 0."
    ),
    scalar_op!(
        "_logical_and_scalar",
        &["_LogicalAndScalar"],
        Binary::LogicalAnd,
        Side::Right,
        "Of an array and a number, 1 where both are not 0, else 0."
    ),
    scalar_op!(
        "_logical_or_scalar",
        &["_LogicalOrScalar"],
        Binary::LogicalOr,
        Side::Right,
        "Of an array and a number, 1 where one is not 0, else 0."
    ),
    scalar_op!(
        "_logical_xor_scalar",
        &["_LogicalXorScalar"],
        Binary::LogicalXor,
        Side::Right,
        "Of an array and a number, 1 where exactly one is not 0, else 0."
    ),
    scalar_op!(
        "_rminus_scalar",
        &["_RMinusScalar"],
        Binary::Sub,
        Side::Left,
        "Of a number and an array, the difference: the number is the left operand."
    ),
    scalar_op!(
        "_rdiv_scalar",
        &["_RDivScalar"],
        Binary::FloatDiv,
        Side::Left,
        "Of a number and an array, the quotient: the number is the left operand."
    ),
    scalar_op!(
        "_rmod_scalar",
        &["_RModScalar"],
        Binary::Mod,
        Side::Left,
        "Of a number and an array, the remainder: the number is the left operand."
    ),
    scalar_op!(
        "_rpower_scalar",
        &["_RPowerScalar"],
        Binary::Power,
        Side::Left,
        "Of a number and an array, the power: the number is the left operand."
    ),
];

/// The number takes the type of the array first, as in MXNet: 2.7 is 2 beside integers.
fn bind(function: Binary, side: Side, attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let number = attrs.float("scalar");
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from != to {
        return bind_converted(function, side, number, signature);
    }
    let cost = elementwise_ns(signature, binary_picoseconds(function, signature));
    dispatch!(from, all, T => {
        let number = T::from_f64(number);
        Ok(costed_kernel_fn("plain", cost, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let out = elements_mut(&mut call.outputs[0])?;
            match side {
                Side::Left => elementwise::scalar_binary(call.par, function, number, x, out),
                Side::Right => elementwise::binary_scalar(call.par, function, x, number, out),
            }
            Ok(())
        }))
    })
}

/// A fractional number makes doubles of whole arrays; booleans never stay booleans.
fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let whole = dtypes.attrs.bool("is_int");
    match dtypes.inputs[0] {
        Some(DType::Bool) => dtypes.set_output(0, if whole { DType::I64 } else { DType::F64 }),
        Some(dtype) if !dtype.is_float() && !whole => dtypes.set_output(0, DType::F64),
        _ => dtypes.all_same(),
    }
}

/// The array is converted to the dtype of the result first.
fn bind_converted(
    function: Binary,
    side: Side,
    number: f64,
    signature: &Signature<'_>,
) -> Result<Box<dyn Kernel>, OpError> {
    if signature.outputs[0].dtype == DType::F64 {
        converted::<f64>(function, side, number, signature)
    } else {
        converted::<i64>(function, side, number as i64, signature)
    }
}

fn converted<D: Element>(
    function: Binary,
    side: Side,
    number: D,
    signature: &Signature<'_>,
) -> Result<Box<dyn Kernel>, OpError> {
    dispatch!(signature.inputs[0].dtype, whole, S => Ok(kernel_fn(signature, move |call| {
        let x: Vec<D> = elements::<S>(&call.inputs[0])?.iter().map(|v| D::from_i64(v.to_i64())).collect();
        let out = elements_mut(&mut call.outputs[0])?;
        match side {
            Side::Left => elementwise::scalar_binary(call.par, function, number, &x, out),
            Side::Right => elementwise::binary_scalar(call.par, function, &x, number, out),
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_number_stands_on_the_side_the_name_says() {
        let of = |op: &str| f32s(&OpTest::new(op).attr("scalar", "8").f32([2], &[2.0, 4.0]).run(), [2]);
        assert_eq!(of("_minus_scalar"), [-6.0, -4.0]);
        assert_eq!(of("_rminus_scalar"), [6.0, 4.0]);
        assert_eq!(of("_RDivScalar"), [4.0, 2.0]);
        assert_eq!(of("_greater_scalar"), [0.0, 0.0]);
    }

    #[test]
    fn a_fraction_is_truncated_before_it_meets_integers() {
        let y = OpTest::new("_mul_scalar").attr("scalar", "2.7").i32([2], &[2, -3]).run();
        assert_eq!(y.values::<i32>(), [4, -6]);
        let y = OpTest::new("_mul_scalar").attr("scalar", "2.5").attr("is_int", "0").i32([2], &[2, -3]).run();
        assert_eq!(y.values::<f64>(), [5.0, -7.5]);
    }
}
