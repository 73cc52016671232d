//! Arithmetic, comparison and logic of two arrays whose shapes broadcast.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{self, Binary};
use mxrt_tensor::PartialShape;

macro_rules! broadcast_op {
    ($name:literal, $aliases:expr, $function:expr, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: $doc,
            inputs: Inputs::Fixed(&["lhs", "rhs"]),
            ignores_unknown_attrs: true,
            infer_shape: broadcast_shapes,
            infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
            bind: |_, signature| bind($function, signature),
            rewrites: &Rewrites { elementwise: |_| Some(Elementwise::Binary($function)), ..Rewrites::NONE },
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    broadcast_op!(
        "broadcast_add",
        &["_sparse_broadcast_add", "_sparse_broadcast_plus", "broadcast_plus"],
        Binary::Add,
        "Of two arrays, the sum; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_sub",
        &["_sparse_broadcast_minus", "_sparse_broadcast_sub", "broadcast_minus"],
        Binary::Sub,
        "Of two arrays, the difference; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_mul",
        &["_sparse_broadcast_mul"],
        Binary::Mul,
        "Of two arrays, the product; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_div",
        &["_sparse_broadcast_div"],
        Binary::Div,
        "Of two arrays, the quotient; integers are divided as integers; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_mod",
        &[],
        Binary::Mod,
        "Of two arrays, the remainder, with the sign of the divisor; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_power",
        &[],
        Binary::Power,
        "Of two arrays, the first to the power of the second; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_maximum",
        &["_npi_maximum"],
        Binary::Maximum,
        "Of two arrays, the larger; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_minimum",
        &["_npi_minimum"],
        Binary::Minimum,
        "Of two arrays, the smaller; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_hypot",
        &[],
        Binary::Hypot,
        "Of two arrays, the length of the hypotenuse; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_equal",
        &[],
        Binary::Equal,
        "Of two arrays, 1 where equal, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_not_equal",
        &[],
        Binary::NotEqual,
        "Of two arrays, 1 where not equal, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_greater",
        &[],
        Binary::Greater,
        "Of two arrays, 1 where the first is greater, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_greater_equal",
        &[],
        Binary::GreaterEqual,
        "Of two arrays, 1 where the first is not less, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_lesser",
        &[],
        Binary::Lesser,
        "Of two arrays, 1 where the first is less, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_lesser_equal",
        &[],
        Binary::LesserEqual,
        "Of two arrays, 1 where the first is not greater, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_logical_and",
        &[],
        Binary::LogicalAnd,
        "Of two arrays, 1 where both are not 0, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_logical_or",
        &[],
        Binary::LogicalOr,
        "Of two arrays, 1 where one is not 0, else 0; axes of size 1 are repeated as needed."
    ),
    broadcast_op!(
        "broadcast_logical_xor",
        &[],
        Binary::LogicalXor,
        "Of two arrays, 1 where exactly one is not 0, else 0; axes of size 1 are repeated as needed."
    ),
];

/// The shape both operands broadcast to: axes are matched from the right, where extents must agree or be 1.
pub(crate) fn broadcast_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let rank = a.len().max(b.len());
    // Axis i of the result, as an operand sees it; axes that it lacks count as 1.
    let at = |dims: &[Option<usize>], i: usize| (i + dims.len()).checked_sub(rank).map_or(Some(1), |i| dims[i]);
    let mut result = Vec::with_capacity(rank);
    for i in 0..rank {
        result.push(match (at(&a, i), at(&b, i)) {
            (Some(1), other) | (other, Some(1)) => other,
            (Some(a), Some(b)) if a == b => Some(a),
            (Some(_), Some(_)) => {
                let (lhs, rhs) = (&shapes.inputs[0], &shapes.inputs[1]);
                return Err(shape_error(format!(
                    "operands could not be broadcast together with shapes {lhs} {rhs}: extents must be equal or 1, counted from the last axis"
                )));
            }
            (known, None) | (None, known) => known,
        });
    }
    shapes.set_output(0, PartialShape::from_dims(result))
}

fn bind(function: Binary, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    if signature.inputs[0].shape == signature.inputs[1].shape {
        return super::bind_binary(function, signature);
    }
    let cost = elementwise_ns(signature, binary_picoseconds(function, signature));
    dispatch!(signature.inputs[0].dtype, all, T => Ok(costed_kernel_fn("plain", cost, move |call| {
        let ([lhs, rhs], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (a, b) = (elements::<T>(lhs)?, elements::<T>(rhs)?);
        let shape = out.shape;
        elementwise::binary_broadcast(call.par, function, a, lhs.shape, b, rhs.shape, elements_mut(out)?, shape);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn axes_of_size_one_repeat_on_both_sides() {
        let y = OpTest::new("broadcast_add").f32([2, 1], &[1.0, 2.0]).f32([1, 3], &[10.0, 20.0, 30.0]).run();
        assert_eq!(f32s(&y, [2, 3]), [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]);
        let y = OpTest::new("broadcast_sub").f32([2], &[1.0, 2.0]).f32([2, 2], &[0.0, 0.0, 1.0, 1.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 0.0, 1.0]);
    }

    #[test]
    fn shapes_that_do_not_broadcast_are_named() {
        let error = OpTest::new("broadcast_mul").f32([2, 3], &[0.0; 6]).f32([4, 3], &[0.0; 12]).error();
        assert!(error.message.contains("(2, 3) (4, 3)"), "{}", error.message);
    }
}
