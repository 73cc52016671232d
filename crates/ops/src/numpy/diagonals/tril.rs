//! `_npi_tril`: the lower triangles of matrices.

use super::K;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_tril",
    doc: "Matrices in the last two axes with 0 above the k-th diagonal; of a vector, the square \
          matrix whose rows it is, with 0 there.",
    attrs: &[K],
    infer_shape: |shapes| {
        let Some(data) = shapes.input(0) else { return Ok(()) };
        match data[..] {
            [] => Err(shape_error("the input is a scalar; expected one axis at least")),
            [n] => shapes.set_output(0, Shape::new(&[n, n])),
            _ => shapes.set_output(0, data),
        }
    },
    bind: bind_tril,
    form: |attrs, _| Ok(Some(KernelForm::LeftOf { right: attrs.int("k") })),
    ..OpDef::BASE
}];

fn bind_tril(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [.., rows, columns] = signature.outputs[0].shape[..] else { return Err(wrong_arity()) };
    let (k, vector) = (attrs.int("k"), signature.inputs[0].shape.len() == 1);
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (elements::<T>(&call.inputs[0])?, elements_mut::<T>(&mut call.outputs[0])?);
        for (i, out) in out.chunks_mut(columns.max(1)).enumerate() {
            let from = if vector { 0 } else { i * columns };
            let kept = (((i % rows.max(1)) as i64).saturating_add(k).saturating_add(1)).clamp(0, columns as i64) as usize;
            out[..kept].copy_from_slice(&x[from..from + kept]);
            out[kept..].fill(0);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn what_is_above_the_diagonal_is_0() {
        let y = OpTest::new("_npi_tril").attr("k", "-1").f32([2, 2], &[0.0, 1.0, 2.0, 3.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [0.0, 0.0, 2.0, 0.0]);
    }
}
