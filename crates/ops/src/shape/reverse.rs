//! `reverse`: elements in opposite order along some axes.

use super::{Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "reverse",
    aliases: &["flip"],
    doc: "Reverses the order of elements along the given axes.",
    attrs: &[AttrDef::required("axis", AttrKind::Shape, "Axes to reverse.")],
    bind: |attrs, signature| bind_strided(view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&view(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            rows_of_data(attrs, signature, divided) && attrs.ints("axis").iter().all(|a| is_within_rows(*a, signature))
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// The elements of the output.
fn view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    let shape = &signature.inputs[0].shape;
    let mut strides = contiguous(shape);
    let mut offset = 0;
    let mut axes =
        attrs.ints("axis").iter().map(|axis| resolve_axis(*axis, shape.len())).collect::<Result<Dims, _>>()?;
    axes.sort_unstable();
    // An axis that is given twice is reversed twice.
    for axis in axes.chunk_by(|a, b| a == b).filter(|same| !same.len().is_multiple_of(2)).map(|same| same[0]) {
        offset += shape[axis].saturating_sub(1) * strides[axis] as usize;
        strides[axis] = -strides[axis];
    }
    Ok(Strided { offset, strides, shape: shape.to_vec() })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn an_axis_that_is_given_twice_stays_as_it_is() {
        let of = |axis: &str| {
            let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
            f32s(&OpTest::new("flip").attr("axis", axis).f32([2, 3], &x).run(), [2, 3])
        };
        assert_eq!(of("(0, 0)"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(of("(0, 0, 0)"), [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
        assert_eq!(of("(0, 1)"), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
    }
}
