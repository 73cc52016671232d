//! `_npi_tensordot`, `_npi_tensordot_int_axes`: products over given axes.

use super::{PAIR, bind, form, infer_shape, paired, product};
use crate::numpy::contract::{Label, Operand};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    product!(
        "_npi_tensordot",
        PAIR,
        &[
            AttrDef::required("a_axes_summed", AttrKind::Shape, "Axes of a to sum over."),
            AttrDef::required("b_axes_summed", AttrKind::Shape, "Axes of b to sum over."),
        ],
        tensordot,
        "The sum of products over some axes of a and as many of b."
    ),
    product!(
        "_npi_tensordot_int_axes",
        PAIR,
        &[AttrDef::required("axes", AttrKind::IntFrom(0), "Number of axes to sum over.")],
        tensordot_int_axes,
        "The sum of products over the last axes of a and the first of b."
    ),
];

fn tensordot(attrs: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    let axes = |name: &str, rank: usize| {
        let given = attrs.ints(name).iter().map(|axis| resolve_axis(*axis, rank));
        given.collect::<Result<Vec<usize>, OpError>>()
    };
    let (of_a, of_b) = (axes("a_axes_summed", a.len())?, axes("b_axes_summed", b.len())?);
    let repeated = |axes: &[usize]| (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
    if of_a.len() != of_b.len() || repeated(&of_a) || repeated(&of_b) {
        return Err(value_error("a_axes_summed and b_axes_summed must name as many axes, each once"));
    }
    paired(shapes, &of_a.into_iter().zip(of_b).collect::<Vec<_>>())
}

fn tensordot_int_axes(attrs: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    let axes = attrs.count("axes");
    if axes > a.len() || axes > b.len() {
        return Err(value_error(format!("axes={axes}, but the arrays have shapes {a} and {b}")));
    }
    paired(shapes, &(0..axes).map(|i| (a.len() - axes + i, i)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn axes_are_named_or_counted() {
        let y = OpTest::new("_npi_tensordot").attr("a_axes_summed", "(1, 0)").attr("b_axes_summed", "(1, 0)");
        assert_eq!(f32s(&y.f32([2, 3], &X).f32([2, 3], &X).run(), []), [91.0]);
        let y = OpTest::new("_npi_tensordot_int_axes").attr("axes", "0").f32([2], &X[..2]).f32([2], &X[..2]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 2.0, 4.0]);
    }
}
