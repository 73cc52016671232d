//! `_eye`: ones on a diagonal.

use super::{CTX, DTYPE, dtype_from_attr};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_eye",
    doc: "A matrix of N rows and M columns (N if 0 or less) with ones on its k-th diagonal.",
    inputs: Inputs::Fixed(&[]),
    attrs: &[
        AttrDef::required("N", AttrKind::IntFrom(0), "Number of rows.").wide(),
        AttrDef::new("M", AttrKind::Int, "0", "Number of columns; N if 0 or less.").wide(),
        AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive.").wide(),
        CTX,
        DTYPE,
    ],
    infer_shape: |shapes| {
        let n = shapes.attrs.count("N");
        let m = usize::try_from(shapes.attrs.int("M")).ok().filter(|m| *m > 0);
        shapes.set_output(0, Shape::new(&[n, m.unwrap_or(n)]))
    },
    infer_dtype: dtype_from_attr,
    bind,
    form: |attrs, signature| for_numeric(signature.outputs[0].dtype, KernelForm::Diagonal { right: attrs.int("k") }),
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let k = attrs.int("k");
    let [_, columns] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
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

    /// Recorded from MXNet 1.9.1.
    #[test]
    fn a_matrix_may_have_no_rows_and_is_square_without_columns() {
        let of = |n: &str, m: &str| OpTest::new("_eye").attr("N", n).attr("M", m);
        assert_eq!(of("0", "0").run().tensor.shape[..], [0, 0]);
        assert_eq!(of("0", "3").run().tensor.shape[..], [0, 3]);
        for m in ["0", "-1", "-2"] {
            assert_eq!(f32s(&of("2", m).run(), [2, 2]), [1.0, 0.0, 0.0, 1.0]);
        }
        of("-1", "0").error();
    }
}
