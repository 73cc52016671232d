//! Arrays joined along an axis, and cut into parts.

pub mod atleast;
pub mod split;
pub mod stacks;

use crate::prelude::*;

const NUM_ARGS: AttrDef = AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of arrays.");

/// A shape with this many axes at least, as `atleast_2d` and `atleast_3d` place them.
fn widened(shape: &Shape, axes: usize) -> Shape {
    match (&shape[..], axes) {
        ([], _) => Shape::from(vec![1; axes]),
        ([n], 2) => Shape::new(&[1, *n]),
        ([n], 3) => Shape::new(&[1, *n, 1]),
        ([m, n], 3) => Shape::new(&[*m, *n, 1]),
        _ => shape.clone(),
    }
}
