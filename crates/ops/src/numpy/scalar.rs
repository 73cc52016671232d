//! Arithmetic, comparison and bits of an array and a number: a row each.

use crate::execution::in_dtypes;
use crate::math::scalar::{self, ATTRS, ScalarSide};
use crate::math::{bind_unary, unary_form};
use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, Comparison, Unary};

/// The element type of the result.
#[derive(Clone, Copy)]
enum ScalarTypes {
    /// Type of the array; a fraction makes float64 of whole numbers, a number int64 of bool
    Like,
    /// Type of the result of `Like`, computed in double precision unless it is float32
    Scaled,
    /// Type of the array if it is a float, else float32
    Quotient,
    /// Type of the array, which must be of whole numbers or bool
    Whole,
    /// bool
    Compared,
}

macro_rules! operators {
    ($($name:literal $function:ident $side:ident $types:ident $what:literal)*) => {
        /// Rows of the table.
        pub static OPS: &[OpDef] = &[$(OpDef {
            name: $name,
            doc: concat!("Of an array and a number, ", $what, "."),
            attrs: ATTRS,
            infer_dtype: |dtypes| infer_dtype(ScalarTypes::$types, dtypes),
            bind: |attrs, signature| bind(Binary::$function, ScalarSide::$side, ScalarTypes::$types, attrs, signature),
            form: |attrs, signature| form(Binary::$function, ScalarSide::$side, ScalarTypes::$types, attrs, signature),
            rewrites: &Rewrites {
                elementwise: |attrs| match (ScalarTypes::$types, ScalarSide::$side) {
                    (ScalarTypes::Compared | ScalarTypes::Whole, _) => None,
                    (_, ScalarSide::Left) => Some(Elementwise::OfScalar(Binary::$function, attrs.float("scalar") as f32)),
                    (_, ScalarSide::Right) => {
                        Some(Elementwise::WithScalar(Binary::$function, attrs.float("scalar") as f32))
                    }
                },
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        }),*];
    };
}
operators! {
    "_npi_add_scalar" Add Right Like "the sum"
    "_npi_subtract_scalar" Sub Right Like "the difference"
    "_npi_rsubtract_scalar" Sub Left Like "the number less the array"
    "_npi_multiply_scalar" Mul Right Like "the product"
    "_npi_true_divide_scalar" Div Right Quotient "the quotient; that of whole numbers is float32"
    "_npi_rtrue_divide_scalar" Div Left Quotient "the number divided by the array"
    "_npi_mod_scalar" Mod Right Like "the remainder with the sign of the divisor, 0 where that is 0"
    "_npi_rmod_scalar" Mod Left Like "the remainder of the number, with the sign of the divisor"
    "_npi_power_scalar" Power Right Like "the array to the power of the number"
    "_npi_rpower_scalar" Power Left Like "the number to the power of the array"
    "_npi_copysign_scalar" Copysign Right Like "the magnitude of the array with the sign of the number"
    "_npi_rcopysign_scalar" Copysign Left Like "the magnitude of the number with the sign of the array"
    "_npi_arctan2_scalar" Arctan2 Right Like "the angle of the point (number, array)"
    "_npi_rarctan2_scalar" Arctan2 Left Like "the angle of the point (array, number)"
    "_npi_ldexp_scalar" Ldexp Right Scaled "the array times 2 to the power of the number"
    "_npi_rldexp_scalar" Ldexp Left Scaled "the number times 2 to the power of the array"
    "_npi_lcm_scalar" Lcm Right Whole "the least common multiple"
    "_npi_bitwise_and_scalar" BitAnd Right Whole "the bits in both"
    "_npi_bitwise_or_scalar" BitOr Right Whole "the bits in either"
    "_npi_bitwise_xor_scalar" BitXor Right Whole "the bits in exactly one"
    "_npi_equal_scalar" Equal Right Compared "True where equal"
    "_npi_not_equal_scalar" NotEqual Right Compared "True where not equal"
    "_npi_greater_scalar" Greater Right Compared "True where the array is greater"
    "_npi_greater_equal_scalar" GreaterEqual Right Compared "True where the array is not less"
    "_npi_less_scalar" Lesser Right Compared "True where the array is less"
    "_npi_less_equal_scalar" LesserEqual Right Compared "True where the array is not greater"
}

fn infer_dtype(types: ScalarTypes, dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    match (types, dtypes.inputs[0]) {
        (ScalarTypes::Like | ScalarTypes::Scaled, _) => scalar::infer_dtype(dtypes),
        (ScalarTypes::Compared, _) => dtypes.set_output(0, DType::Bool),
        (ScalarTypes::Quotient, Some(dtype)) if !dtype.is_float() => dtypes.set_output(0, DType::F32),
        (ScalarTypes::Whole, Some(dtype)) if dtype.is_float() => {
            Err(unsupported_dtype(dtype, "whole numbers and bool"))
        }
        (ScalarTypes::Quotient | ScalarTypes::Whole, _) => dtypes.all_same(),
    }
}

/// The number, which has the type of the result where the operator computes in a wider one.
fn number_of(types: ScalarTypes, attrs: &Attrs, to: DType) -> Result<f64, OpError> {
    let number = attrs.float("scalar");
    match types {
        ScalarTypes::Scaled => dispatch!(to, all, T => Ok(T::from_f64(number).to_f64())),
        _ => Ok(number),
    }
}

/// Whether the operator squares floats.
fn squares(function: Binary, side: ScalarSide, attrs: &Attrs, signature: &Signature<'_>) -> bool {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    let is_square = function == Binary::Power && matches!(side, ScalarSide::Right) && attrs.float("scalar") == 2.0;
    is_square && from.is_float() && from == to
}

/// The type that operators of these types compute in; `None` for arithmetic whose result is like
/// the array.
fn within(types: ScalarTypes, attrs: &Attrs, from: DType, to: DType) -> Option<DType> {
    match types {
        ScalarTypes::Like => None,
        ScalarTypes::Scaled if to == DType::F32 => None,
        ScalarTypes::Scaled => Some(DType::F64),
        ScalarTypes::Whole | ScalarTypes::Quotient => Some(to),
        ScalarTypes::Compared if !from.is_float() && from != DType::Bool && !attrs.bool("is_int") => Some(DType::F64),
        ScalarTypes::Compared => Some(from),
    }
}

fn form(function: Binary, side: ScalarSide, types: ScalarTypes, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    if squares(function, side, attrs, signature) {
        return unary_form(Unary::Square, signature);
    }
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    let Some(within) = within(types, attrs, from, to) else { return scalar::form(function, side, attrs, signature) };
    let number = number_of(types, attrs, to)?;
    let number: Result<f64, OpError> = dispatch!(within, all, T => Ok(T::from_f64(number).to_f64()));
    let form = KernelForm::WithNumber { function, number: number?, first: matches!(side, ScalarSide::Left) };
    Ok(Some(if from == within && to == within { form } else { form.within(within) }))
}

fn bind(
    function: Binary,
    side: ScalarSide,
    types: ScalarTypes,
    attrs: &Attrs,
    signature: &Signature<'_>,
) -> BoundKernel {
    if squares(function, side, attrs, signature) {
        return bind_unary(Unary::Square, signature);
    }
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if let (ScalarTypes::Compared, Some(comparison), true) = (types, Comparison::of(function), from.is_float()) {
        return super::compare::bind_number(comparison, attrs.float("scalar"), signature);
    }
    let number = number_of(types, attrs, to)?;
    let Some(within) = within(types, attrs, from, to) else { return scalar::bind(function, side, number, signature) };
    in_dtypes(signature, |_| within, |_| within, |signature| scalar::bind(function, side, number, signature))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_tensor::DType;

    #[test]
    fn a_fraction_meets_whole_numbers_in_floating_point() {
        let test = |op: &str| OpTest::new(op).attr("scalar", "2.5").attr("is_int", "False").i32([2], &[2, 3]);
        assert_eq!(test("_npi_multiply_scalar").run().values::<f64>(), [5.0, 7.5]);
        let less = test("_npi_less_scalar").run();
        assert_eq!((less.tensor.dtype, less.values::<u8>()), (DType::Bool, vec![1, 0]));
        assert_eq!(f32s(&test("_npi_rtrue_divide_scalar").run(), [2]), [1.25, 2.5 / 3.0]);
        let whole = OpTest::new("_npi_bitwise_and_scalar").attr("scalar", "6").i32([], &[3]).run();
        assert_eq!(whole.values::<i32>(), [2]);
        let scaled = |op: &str, scalar: &str| OpTest::new(op).attr("scalar", scalar);
        // The power of 2 is larger than float32 and float16 hold.
        assert_eq!(scaled("_npi_ldexp_scalar", "300").i32([2], &[3, 0]).run().values::<i32>(), [i32::MIN, 0]);
        assert_eq!(scaled("_npi_ldexp_scalar", "300").bools(&[2], &[true, false]).run().values::<i64>(), [i64::MIN, 0]);
        assert_eq!(scaled("_npi_ldexp_scalar", "1").i32([1], &[16_777_217]).run().values::<i32>(), [33_554_434]);
        assert!(scaled("_npi_ldexp_scalar", "300").f32([1], &[0.0]).run().values::<f32>()[0].is_nan());
        assert_eq!(scaled("_npi_rldexp_scalar", "0").i32([2], &[300, 0]).run().values::<i32>(), [0, 0]);
        assert_eq!(scaled("_npi_rldexp_scalar", "3").i8([2], &[2, -1]).run().values::<i8>(), [12, 1]);
        assert!(OpTest::new("_npi_lcm_scalar").f32([1], &[1.0]).error().message.contains("whole numbers"));
    }
}
