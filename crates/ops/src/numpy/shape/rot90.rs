//! `_npi_rot90`: turns by 90 degrees.

use super::{MOVED, different, reverse};
use crate::prelude::*;
use crate::shape::{Strided, bind_strided, strided_form};
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_rot90",
    doc: "Turned by 90 degrees, k times, in the plane of two axes.",
    inputs: Inputs::Fixed(&["data"]),
    attrs: &[
        AttrDef::new("k", AttrKind::Int, "1", "Number of turns, from the first axis towards the second."),
        AttrDef::new("axes", AttrKind::OptShape, "None", "The two axes."),
    ],
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        let (a, b) = plane(shapes.attrs, dims.len())?;
        if shapes.attrs.int("k").rem_euclid(2) == 1 {
            dims.swap(a, b);
        }
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    bind: |attrs, signature| bind_strided(turned(attrs, &signature.inputs[0].shape)?, signature),
    form: |attrs, signature| strided_form(&turned(attrs, &signature.inputs[0].shape)?),
    ..MOVED
}];

/// The two axes of a turn.
fn plane(attrs: &Attrs, rank: usize) -> Result<(usize, usize), OpError> {
    match different("axes", attrs.opt_ints("axes").unwrap_or(&[]), rank)?[..] {
        [a, b] => Ok((a, b)),
        _ => Err(value_error("axes must name two axes")),
    }
}

fn turned(attrs: &Attrs, shape: &[usize]) -> Result<Strided, OpError> {
    let (a, b) = plane(attrs, shape.len())?;
    let mut view = Strided { offset: 0, strides: contiguous(shape), shape: shape.to_vec() };
    let turns = attrs.int("k").rem_euclid(4);
    if turns == 1 || turns == 2 {
        reverse(&mut view, b);
    }
    if turns == 2 || turns == 3 {
        reverse(&mut view, a);
    }
    if turns % 2 == 1 {
        view.strides.swap(a, b);
        view.shape.swap(a, b);
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_turn_makes_columns_of_rows() {
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let y = OpTest::new("_npi_rot90").attr("axes", "(0, 1)").f32([2, 3], &x).run();
        assert_eq!(f32s(&y, [3, 2]), [2.0, 5.0, 1.0, 4.0, 0.0, 3.0]);
    }
}
