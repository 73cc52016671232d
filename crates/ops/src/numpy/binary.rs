//! Arithmetic, comparison and bits of two arrays that are broadcast: a row each.

use super::{mixed, promoted};
use crate::execution::in_dtypes;
use crate::math::broadcast::{self, broadcast_shapes};
use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, Comparison};

/// The element types that an operator takes together, and that of its result.
#[derive(Clone, Copy)]
enum BinaryTypes {
    /// any two; the wider one is that of the result
    Promoted,
    /// any two but bool alone; the wider one is that of the result
    Numbers,
    /// a float with numbers that are no floats, or two of one type; whole numbers give float32
    Quotient,
    /// two of one type
    Same,
    /// two of one type; computed in double precision unless it is float32
    Scaled,
    /// two of one floating-point type
    Float,
    /// two of one type of whole numbers or bool
    Whole,
    /// two of one type; the result is bool
    Compared,
}

impl BinaryTypes {
    /// The type that the operator computes in, and that of its result.
    fn of(self, a: DType, b: DType) -> Result<(DType, DType), OpError> {
        let only = |good: bool, known: &str| match good {
            _ if a != b => Err(mixed(a, b)),
            true => Ok((a, a)),
            false => Err(unsupported_dtype(a, known)),
        };
        let (float, number) = (a.is_float() || b.is_float(), a != DType::Bool);
        match self {
            BinaryTypes::Promoted => promoted(a, b).map(|dtype| (dtype, dtype)).ok_or_else(|| mixed(a, b)),
            BinaryTypes::Numbers if a != b => BinaryTypes::Promoted.of(a, b),
            BinaryTypes::Numbers | BinaryTypes::Same => only(number, "numbers"),
            BinaryTypes::Scaled if a == DType::F32 => BinaryTypes::Same.of(a, b),
            BinaryTypes::Scaled => BinaryTypes::Same.of(a, b).map(|(_, result)| (DType::F64, result)),
            BinaryTypes::Quotient if a != b && (a.is_float() == b.is_float()) => Err(mixed(a, b)),
            BinaryTypes::Quotient if float => BinaryTypes::Promoted.of(a, b),
            BinaryTypes::Quotient => Ok((DType::F32, DType::F32)),
            BinaryTypes::Float => only(a.is_float(), "floating-point numbers"),
            BinaryTypes::Whole => only(!a.is_float(), "whole numbers and bool"),
            BinaryTypes::Compared => only(true, "").map(|_| (a, DType::Bool)),
        }
    }
}

macro_rules! operators {
    ($($name:literal $function:ident $types:ident [$lhs:literal $rhs:literal] $what:literal)*) => {
        /// Rows of the table.
        pub static OPS: &[OpDef] = &[$(OpDef {
            name: $name,
            doc: concat!("Of two arrays that are broadcast, ", $what, "."),
            inputs: Inputs::Fixed(&[$lhs, $rhs]),
            ignores_unknown_attrs: true,
            infer_shape: broadcast_shapes,
            infer_dtype: |dtypes| infer_dtype(BinaryTypes::$types, dtypes),
            bind: |_, signature| bind(Binary::$function, BinaryTypes::$types, signature),
            form: |_, signature| form(Binary::$function, BinaryTypes::$types, signature),
            rewrites: &Rewrites {
                // Chains compute in float32 alone.
                elementwise: |_| match BinaryTypes::$types {
                    BinaryTypes::Compared | BinaryTypes::Whole => None,
                    _ => Some(Elementwise::Binary(Binary::$function)),
                },
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        }),*];
    };
}
operators! {
    "_npi_add" Add Promoted ["lhs" "rhs"] "the sum"
    "_npi_subtract" Sub Numbers ["lhs" "rhs"] "the difference"
    "_npi_multiply" Mul Promoted ["lhs" "rhs"] "the product"
    "_npi_true_divide" Div Quotient ["lhs" "rhs"] "the quotient; that of whole numbers is float32"
    "_npi_mod" Mod Numbers ["lhs" "rhs"] "the remainder with the sign of the divisor, 0 where that is 0"
    "_npi_power" Power Promoted ["lhs" "rhs"] "the left to the power of the right"
    "_npi_copysign" Copysign Same ["lhs" "rhs"] "the magnitude of the left with the sign of the right"
    "_npi_ldexp" Ldexp Scaled ["lhs" "rhs"] "the left times 2 to the power of the right"
    "_npi_hypot" Hypot Float ["x1" "x2"] "the length of the hypotenuse"
    "_npi_arctan2" Arctan2 Float ["x1" "x2"] "the angle of the point (right, left)"
    "_npi_lcm" Lcm Whole ["lhs" "rhs"] "the least common multiple"
    "_npi_bitwise_and" BitAnd Whole ["lhs" "rhs"] "the bits in both"
    "_npi_bitwise_or" BitOr Whole ["lhs" "rhs"] "the bits in either"
    "_npi_bitwise_xor" BitXor Whole ["lhs" "rhs"] "the bits in exactly one"
    "_npi_equal" Equal Compared ["lhs" "rhs"] "True where equal"
    "_npi_not_equal" NotEqual Compared ["lhs" "rhs"] "True where not equal"
    "_npi_greater" Greater Compared ["lhs" "rhs"] "True where the left is greater"
    "_npi_greater_equal" GreaterEqual Compared ["lhs" "rhs"] "True where the left is not less"
    "_npi_less" Lesser Compared ["lhs" "rhs"] "True where the left is less"
    "_npi_less_equal" LesserEqual Compared ["lhs" "rhs"] "True where the left is not greater"
}

fn infer_dtype(types: BinaryTypes, dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let compared = matches!(types, BinaryTypes::Compared);
    let [a, b] = dtypes.inputs else { return Err(wrong_arity()) };
    let known = if compared { None } else { dtypes.outputs[0] };
    // An operand of which nothing is known has the type of the other.
    let Some(first) = a.or(*b).or(known) else {
        return if compared { dtypes.set_output(0, DType::Bool) } else { Ok(()) };
    };
    let (left, right) = (a.unwrap_or(first), b.unwrap_or(first));
    (*a, *b) = (Some(left), Some(right));
    let (_, result) = types.of(left, right)?;
    dtypes.set_output(0, result)
}

fn form(function: Binary, types: BinaryTypes, signature: &Signature<'_>) -> MaybeForm {
    let [a, b] = signature.inputs else { return Err(wrong_arity()) };
    let (within, result) = types.of(a.dtype, b.dtype)?;
    let form = KernelForm::of_function(Elementwise::Binary(function));
    let is_plain = a.dtype == within && b.dtype == within && result == within;
    for_all(within, if is_plain { form } else { form.within(within) })
}

fn bind(function: Binary, types: BinaryTypes, signature: &Signature<'_>) -> BoundKernel {
    let [a, b] = signature.inputs else { return Err(wrong_arity()) };
    let (within, _) = types.of(a.dtype, b.dtype)?;
    if let (BinaryTypes::Compared, Some(comparison), true) = (types, Comparison::of(function), a == b) {
        return super::compare::bind_arrays(comparison, signature);
    }
    in_dtypes(signature, |_| within, |_| within, |signature| broadcast::bind(function, signature))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_tensor::DType;

    #[test]
    fn whole_numbers_divide_to_floats_and_promote_to_the_wider() {
        let y = OpTest::new("_npi_true_divide").i32([2], &[1, 3]).i32([1], &[2]).run();
        assert_eq!(f32s(&y, [2]), [0.5, 1.5]);
        let y = OpTest::new("_npi_add").i8([2], &[1, -3]).i32([], &[1000]).run();
        assert_eq!((y.tensor.dtype, y.values::<i32>()), (DType::I32, vec![1001, 997]));
        let y = OpTest::new("_npi_ldexp").i32([3], &[1, 0, 16_777_217]).i32([3], &[30, 300, 1]).run();
        assert_eq!(y.values::<i32>(), [1 << 30, 0, 33_554_434]);
        let y = OpTest::new("_npi_less").f32([], &[1.0]).f32([0, 2], &[]).run();
        assert_eq!((y.tensor.dtype, y.tensor.shape.to_vec()), (DType::Bool, vec![0, 2]));
    }

    #[test]
    fn types_that_no_type_holds_are_named() {
        let error = OpTest::new("_npi_add").i8([1], &[1]).u8([1], &[1]).error();
        assert!(error.message.contains("int8") && error.message.contains("uint8"), "{}", error.message);
        let error = OpTest::new("_npi_bitwise_or").f32([1], &[1.0]).f32([1], &[1.0]).error();
        assert!(error.message.contains("whole numbers"), "{}", error.message);
    }
}
