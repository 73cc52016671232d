//! Arithmetic, comparison, logic and reduction.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{self, Binary, Unary};

pub mod add_n;
pub mod argmax;
pub mod broadcast;
pub mod cast;
pub mod clip;
pub mod cumsum;
pub mod dot;
pub mod elementwise_binary;
pub mod hard_sigmoid;
pub mod identity;
pub mod linalg_gemm;
pub mod moments;
pub mod norm;
pub mod quadratic;
pub mod reduce;
pub mod scalar;
pub mod smooth_l1;
pub mod trigonometry;
pub mod unary;

/// An operator without attributes that maps every element.
macro_rules! unary_op {
    ($name:literal, $aliases:expr, $function:expr, $doc:literal) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: $doc,
            ignores_unknown_attrs: true,
            bind: |_, signature| $crate::math::bind_unary($function, signature),
            rewrites: &Rewrites {
                elementwise: |_| Some($crate::prelude::Elementwise::Unary($function)),
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        }
    };
}
use unary_op;

/// A kernel that maps every element of input 0.
pub(crate) fn bind_unary(function: Unary, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let in_place = if signature.outputs[..1] == signature.inputs[..1] { vec![0] } else { Vec::new() };
    let cost = elementwise_ns(signature, unary_picoseconds(function, signature));
    dispatch!(signature.inputs[0].dtype, numeric, T => {
        Ok(in_place_kernel_fn("plain", cost, in_place, move |call| {
            let y = elements_mut(&mut call.outputs[0])?;
            match call.shared {
                Some(_) => elementwise::unary_inplace::<T>(call.par, function, y),
                None => elementwise::unary(call.par, function, elements::<T>(&call.inputs[0])?, y),
            }
            Ok(())
        }))
    })
}

/// A kernel over two arrays of one shape.
pub(crate) fn bind_binary(function: Binary, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let cost = elementwise_ns(signature, binary_picoseconds(function, signature));
    dispatch!(signature.inputs[0].dtype, all, T => Ok(costed_kernel_fn("plain", cost, move |call| {
        let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        elementwise::binary(call.par, function, a, b, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}
