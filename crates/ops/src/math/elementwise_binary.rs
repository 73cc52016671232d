//! Arithmetic, comparison and logic of two arrays of one shape.

use super::bind_binary;
use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::elementwise::Binary;

macro_rules! same_shape_op {
    ($name:literal, $aliases:expr, $function:expr, $doc:literal $(, blocked_form: $blocked:expr)?) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: $doc,
            inputs: Inputs::Fixed(&["lhs", "rhs"]),
            ignores_unknown_attrs: true,
            infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
            bind: |_, signature| bind_binary($function, signature),
            rewrites: &Rewrites { elementwise: |_| Some(Elementwise::Binary($function)), $(blocked_form: $blocked,)? ..Rewrites::NONE },
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    same_shape_op!(
        "elemwise_add",
        &["_Plus", "_add", "_plus", "_sparse_elemwise_add"],
        Binary::Add,
        "Of two arrays of one shape, the sum.",
        blocked_form: |_, signature| blocked::pointwise::form("_blocked_add", signature, 2)
    ),
    same_shape_op!(
        "elemwise_sub",
        &["_Minus", "_minus", "_sparse_elemwise_sub", "_sub"],
        Binary::Sub,
        "Of two arrays of one shape, the difference."
    ),
    same_shape_op!(
        "elemwise_mul",
        &["_Mul", "_mul", "_sparse_elemwise_mul"],
        Binary::Mul,
        "Of two arrays of one shape, the product."
    ),
    same_shape_op!(
        "elemwise_div",
        &["_Div", "_div", "_sparse_elemwise_div"],
        Binary::Div,
        "Of two arrays of one shape, the quotient; integers are divided as integers."
    ),
    same_shape_op!(
        "_mod",
        &["_Mod"],
        Binary::Mod,
        "Of two arrays of one shape, the remainder, with the sign of the divisor."
    ),
    same_shape_op!(
        "_power",
        &["_Power"],
        Binary::Power,
        "Of two arrays of one shape, the first to the power of the second."
    ),
    same_shape_op!("_maximum", &["_Maximum"], Binary::Maximum, "Of two arrays of one shape, the larger."),
    same_shape_op!("_minimum", &["_Minimum"], Binary::Minimum, "Of two arrays of one shape, the smaller."),
    same_shape_op!("_hypot", &["_Hypot"], Binary::Hypot, "Of two arrays of one shape, the length of the hypotenuse."),
    same_shape_op!("_equal", &["_Equal"], Binary::Equal, "Of two arrays of one shape, 1 where equal, else 0."),
    same_shape_op!(
        "_not_equal",
        &["_Not_Equal"],
        Binary::NotEqual,
        "Of two arrays of one shape, 1 where not equal, else 0."
    ),
    same_shape_op!(
        "_greater",
        &["_Greater"],
        Binary::Greater,
        "Of two arrays of one shape, 1 where the first is greater, else 0."
    ),
    same_shape_op!(
        "_greater_equal",
        &["_Greater_Equal"],
        Binary::GreaterEqual,
        "Of two arrays of one shape, 1 where the first is not less, else 0."
    ),
    same_shape_op!(
        "_lesser",
        &["_Lesser"],
        Binary::Lesser,
        "Of two arrays of one shape, 1 where the first is less, else 0."
    ),
    same_shape_op!(
        "_lesser_equal",
        &["_Lesser_Equal"],
        Binary::LesserEqual,
        "Of two arrays of one shape, 1 where the first is not greater, else 0."
    ),
    same_shape_op!(
        "_logical_and",
        &["_Logical_And"],
        Binary::LogicalAnd,
        "Of two arrays of one shape, 1 where both are not 0, else 0."
    ),
    same_shape_op!(
        "_logical_or",
        &["_Logical_Or"],
        Binary::LogicalOr,
        "Of two arrays of one shape, 1 where one is not 0, else 0."
    ),
    same_shape_op!(
        "_logical_xor",
        &["_Logical_Xor"],
        Binary::LogicalXor,
        "Of two arrays of one shape, 1 where exactly one is not 0, else 0."
    ),
    same_shape_op!("_grad_add", &[], Binary::Add, "Of two arrays of one shape, the sum."),
];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn operands_must_have_one_shape_and_one_dtype() {
        let y = OpTest::new("elemwise_mul").f32([3], &[1.0, 2.0, 3.0]).f32([3], &[2.0, 0.5, -1.0]).run();
        assert_eq!(f32s(&y, [3]), [2.0, 1.0, -3.0]);
        let error = OpTest::new("_Plus").f32([2, 3], &[0.0; 6]).f32([3, 2], &[0.0; 6]).error();
        assert!(error.message.contains("(2, 3), (3, 2)"), "{}", error.message);
        let error = OpTest::new("elemwise_add").f32([2], &[0.0; 2]).i32([2], &[1, 2]).error();
        assert!(error.message.contains("int32") && error.message.contains("float32"), "{}", error.message);
    }
}
