//! `_npi_identity`, `_npi_eye`: ones on a diagonal.

use super::{DTYPE, MADE};
use crate::numpy::CTX;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_identity",
        doc: "A square matrix with ones on its diagonal.",
        bind: |_, signature| bind_diagonal(0, signature),
        form: |_, signature| for_all(signature.outputs[0].dtype, KernelForm::Diagonal { right: 0 }),
        ..MADE
    },
    OpDef {
        name: "_npi_eye",
        doc: "A matrix of N rows and M columns (N if not given) with ones on its k-th diagonal.",
        attrs: &[
            AttrDef::required("N", AttrKind::IntFrom(0), "Number of rows.").wide(),
            AttrDef::new("M", AttrKind::OptInt, "None", "Number of columns; N if not given."),
            AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive.").wide(),
            CTX,
            DTYPE,
        ],
        infer_shape: |shapes| {
            let rows = shapes.attrs.int("N");
            let columns = shapes.attrs.opt_int("M").unwrap_or(rows);
            shapes.set_output(0, Shape::new(&extents("M", &[rows, columns])?))
        },
        bind: |attrs, signature| bind_diagonal(attrs.int("k"), signature),
        form: |attrs, signature| for_all(signature.outputs[0].dtype, KernelForm::Diagonal { right: attrs.int("k") }),
        ..MADE
    },
];

fn bind_diagonal(k: i64, signature: &Signature<'_>) -> BoundKernel {
    let [_, columns] = signature.outputs[0].shape[..] else {
        return Err(shape_error(format!("shape must have two axes, got {}", signature.outputs[0].shape)));
    };
    dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        out.fill(T::ZERO);
        for (row, out) in out.chunks_mut(columns.max(1)).enumerate() {
            let column = (row as i64).checked_add(k).and_then(|c| usize::try_from(c).ok());
            if let Some(out) = column.and_then(|c| out.get_mut(c)) {
                *out = T::ONE;
            }
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_diagonal_may_be_another_one() {
        let y = OpTest::new("_npi_eye").attr("N", "2").attr("M", "3").attr("k", "1").run();
        assert_eq!(f32s(&y, [2, 3]), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
