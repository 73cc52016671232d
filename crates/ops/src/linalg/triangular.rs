//! `_linalg_trmm`, `_linalg_trsm`: products with triangular matrices, and solutions of them.

use super::{cost_ns, matrices, square_matrices};
use crate::execution::in_single;
use crate::prelude::*;
use mxrt_kernels::linalg::{TriangularKind, TriangularProduct};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_trmm",
        aliases: &["linalg_trmm"],
        doc: "alpha * op(A) B, or alpha * B op(A) with rightside, A being triangular.",
        inputs: Inputs::Fixed(&["A", "B"]),
        attrs: ATTRS,
        infer_shape,
        bind: |attrs, signature| bind(attrs, signature, TriangularKind::Matrix),
        form: |attrs, signature| form(attrs, signature, TriangularKind::Matrix),
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_trsm",
        aliases: &["linalg_trsm"],
        doc: "The solution X of op(A) X = alpha * B, or of X op(A) = alpha * B with rightside, A \
              being triangular.",
        inputs: Inputs::Fixed(&["A", "B"]),
        attrs: ATTRS,
        infer_shape,
        bind: |attrs, signature| bind(attrs, signature, TriangularKind::Inverse),
        form: |attrs, signature| form(attrs, signature, TriangularKind::Inverse),
        ..OpDef::BASE
    },
];

const ATTRS: &[AttrDef] = &[
    AttrDef::new("transpose", AttrKind::Bool, "False", "Whether the triangular matrix is transposed."),
    AttrDef::new("rightside", AttrKind::Bool, "False", "Whether the triangular matrix is on the right."),
    AttrDef::new("lower", AttrKind::Bool, "True", "Which triangle of A is read: the lower one, else the upper."),
    AttrDef::new("alpha", AttrKind::Float, "1", "Scale of the result.").wide(),
];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let output = shapes.outputs[0].clone();
    shapes.set_input(1, "B", output)?;
    let right = shapes.attrs.bool("rightside");
    let (a, b) = (square_matrices(shapes, 0, "A")?, matrices(shapes, 1, "B")?);
    if let Some((mut dims, rows, columns)) = b {
        let order = if right { columns } else { rows };
        dims.extend([order, order]);
        shapes.set_input(0, "A", PartialShape::from_dims(dims))?;
    } else if let Some((mut dims, order)) = a {
        dims.extend(if right { [None, order] } else { [order, None] });
        shapes.set_input(1, "B", PartialShape::from_dims(dims))?;
    }
    // Each of the two tells the axes of the other.
    if let Some((mut dims, order)) = square_matrices(shapes, 0, "A")? {
        dims.extend(if right { [None, order] } else { [order, None] });
        shapes.set_input(1, "B", PartialShape::from_dims(dims))?;
    }
    let b = shapes.inputs[1].clone();
    shapes.set_output(0, b)
}

pub(super) fn product(
    attrs: &Attrs,
    signature: &Signature<'_>,
    kind: TriangularKind,
) -> Result<TriangularProduct, OpError> {
    let [.., rows, columns] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    let rightside = attrs.bool("rightside");
    let (n, other) = if rightside { (columns, rows) } else { (rows, columns) };
    Ok(TriangularProduct {
        kind,
        n,
        other,
        rightside,
        lower: attrs.bool("lower"),
        transpose: attrs.bool("transpose"),
        alpha: attrs.float("alpha"),
    })
}

pub(super) fn form(attrs: &Attrs, signature: &Signature<'_>, kind: TriangularKind) -> MaybeForm {
    let product = product(attrs, signature, kind)?;
    for_floats(signature.inputs[0].dtype, KernelForm::Matrices(MatrixForm::Triangular(product)))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, kind: TriangularKind) -> BoundKernel {
    let product = product(attrs, signature, kind)?;
    let cost = cost_ns(signature.inputs[1].shape.size().saturating_mul(product.n));
    in_single(signature, |signature| {
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost, move |call| {
            let ([a, b], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            product.run::<T>(call.par, elements(a)?, elements(b)?, elements_mut(out)?);
            Ok(())
        })))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    fn run(name: &str, attrs: &[(&str, &str)]) -> Vec<f32> {
        let test = OpTest::new(name).attrs(attrs);
        f32s(&test.f32([2, 2], &[2.0, 5.0, 3.0, 4.0]).f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).run(), [2, 2])
    }

    #[test]
    fn one_triangle_takes_part() {
        assert_close(&run("linalg_trmm", &[]), &[2.0, 4.0, 15.0, 22.0]);
        assert_close(&run("linalg_trmm", &[("lower", "False"), ("rightside", "True")]), &[2.0, 13.0, 6.0, 31.0]);
        assert_close(&run("linalg_trmm", &[("transpose", "True"), ("alpha", "2")]), &[22.0, 32.0, 24.0, 32.0]);
        assert_close(&run("linalg_trsm", &[("transpose", "True"), ("alpha", "2")]), &[-1.25, -1.0, 1.5, 2.0]);
        assert_close(&run("linalg_trsm", &[("rightside", "True")]), &[-0.25, 0.5, 0.0, 1.0]);
    }

    #[test]
    fn shapes_must_fit() {
        let error = |right: &str| {
            let test = OpTest::new("linalg_trsm").attr("rightside", right).f32([2, 2], &[1.0; 4]);
            test.f32([1, 3], &[1.0; 3]).error().message.clone()
        };
        assert!(error("False").starts_with("A has shape (2, 2)"), "{}", error("False"));
        assert!(error("True").starts_with("A has shape (2, 2)"), "{}", error("True"));
    }

    #[test]
    fn half_precision_has_products_too() {
        let product = OpTest::new("linalg_trmm").f16([2, 2], &[2.0, 9.0, 3.0, 4.0]).f16([2, 1], &[1.0, 2.0]);
        assert_eq!(f16s(&product.run(), [2, 1]), [2.0, 11.0]);
    }
}
