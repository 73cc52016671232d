//! Arithmetic, comparison and logic of two arrays of one shape: a row each in the table of
//! functions of two numbers (`binary.rs` of the kernels).

use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Binary};

macro_rules! same_shape_op {
    ($name:literal, $aliases:expr, $function:expr, $what:literal) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: concat!("Of two arrays of one shape, ", $what, "."),
            inputs: Inputs::Fixed(&["lhs", "rhs"]),
            ignores_unknown_attrs: true,
            infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
            bind: |_, signature| bind_binary($function, signature),
            rewrites: &Rewrites {
                elementwise: |_| Some(Elementwise::Binary($function)),
                blocked_form: |_, signature| blocked_form($function, signature),
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        }
    };
}

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
        pub static OPS: &[OpDef] = &[
            same_shape_op!("_grad_add", &[], Binary::Add, "the sum"),
            $($(same_shape_op!($same_shape, &[$($same_shape_alias),*], Binary::$function, $what),)?)*
        ];
    };
}
mxrt_kernels::binary_functions!(operators);

/// Additions work on blocked operands.
fn blocked_form(function: Binary, signature: &Signature<'_>) -> Option<BlockedForm> {
    if function == Binary::Add { blocked::pointwise::form("_blocked_add", signature, 2) } else { None }
}

/// A kernel over two arrays of one shape.
pub(crate) fn bind_binary(function: Binary, signature: &Signature<'_>) -> BoundKernel {
    let cost = elementwise_ns(signature, binary_picoseconds(function, signature));
    dispatch!(signature.inputs[0].dtype, all, T => Ok(costed_kernel_fn("plain", cost, move |call| {
        let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        elementwise::binary(call.par, function, a, b, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

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
