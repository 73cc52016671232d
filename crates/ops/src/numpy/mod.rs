//! The operators of MXNet's numpy interface: `_np_*`, `_npi_*` and `_npx_*`.
//!
//! Their shapes are NumPy's whatever the switch `np_shape` says: `()` is a scalar, and an axis may
//! have no elements. Most are rows over kernels of the other families, bound to the element types
//! that NumPy's rules give ([`in_dtypes`](crate::execution::in_dtypes)).

use crate::prelude::*;

pub mod around;
pub mod binary;
pub mod bincount;
pub mod bitwise_not;
pub mod choice;
mod compare;
mod contract;
pub mod create;
pub mod diagonals;
pub mod diff;
pub mod ediff1d;
pub mod edit;
pub mod eig;
pub mod eigh;
pub mod join;
pub mod linalg;
pub mod multinomial;
pub mod nan_to_num;
pub mod pad;
pub mod polyval;
pub mod product;
pub mod pseudo_inverse;
pub mod questions;
pub mod random;
pub mod reduce;
pub mod scalar;
pub mod select;
pub mod shape;
pub mod statistics;
pub mod unary;
pub mod unique;

/// The context of an array without inputs.
const CTX: AttrDef = AttrDef::new("ctx", AttrKind::Str, "", "Where the array is made.");

/// The wider of two element types, as MXNet's numpy operators promote: floats over integers, wider
/// ones over narrower ones, and every number over bool. `None` where no type holds both.
fn promoted(a: DType, b: DType) -> Option<DType> {
    let rank = |dtype: DType| match dtype {
        DType::Bool => Some(0),
        DType::U8 | DType::I8 => Some(1),
        DType::I32 => Some(2),
        DType::I64 => Some(3),
        DType::F16 => Some(4),
        DType::F32 => Some(5),
        DType::F64 => Some(6),
        _ => None,
    };
    if a == b {
        return Some(a);
    }
    match (rank(a)?, rank(b)?) {
        (x, y) if x == y => None,
        (x, y) => Some(if x > y { a } else { b }),
    }
}

/// The error of two element types that an operator does not take together.
fn mixed(a: DType, b: DType) -> OpError {
    type_error(format!("arrays of {a} and {b} cannot be combined here; convert one with astype"))
}
