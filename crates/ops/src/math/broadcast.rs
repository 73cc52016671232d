//! Arithmetic, comparison and logic of two arrays whose shapes broadcast: a row each in the table
//! of functions of two numbers (`binary.rs` of the kernels).

use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Binary};

macro_rules! operators {
    (
        $(
            $function:ident $what:literal
            $(same_shape [$same_shape:literal $($same_shape_alias:literal)*])?
            $(broadcast [$broadcast:literal $($broadcast_alias:literal)*])?
            $(scalar [$scalar:literal $($scalar_alias:literal)*])?
            $(scalar_left [$scalar_left:literal $($scalar_left_alias:literal)*])?
            { $($code:tt)* }
        )*
    ) => {
        /// Rows of the table.
        pub static OPS: &[OpDef] = &[$($(OpDef {
            name: $broadcast,
            aliases: &[$($broadcast_alias),*],
            doc: concat!("Of two arrays, ", $what, "; axes of size 1 are repeated as needed."),
            inputs: Inputs::Fixed(&["lhs", "rhs"]),
            ignores_unknown_attrs: true,
            infer_shape: broadcast_shapes,
            infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
            bind: |_, signature| bind(Binary::$function, signature),
            rewrites: &Rewrites {
                elementwise: |_| Some(Elementwise::Binary(Binary::$function)),
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        },)?)*];
    };
}
mxrt_kernels::binary_functions!(operators);

/// The shape both operands broadcast to: axes are matched from the right, where extents must agree
/// or be 1.
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
                    "operands could not be broadcast together with shapes {lhs} {rhs}: extents \
                     must be equal or 1, counted from the last axis"
                )));
            }
            (known, None) | (None, known) => known,
        });
    }
    shapes.set_output(0, PartialShape::from_dims(result))
}

pub(crate) fn bind(function: Binary, signature: &Signature<'_>) -> BoundKernel {
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
