//! `_contrib_index_copy`: rows of an array replaced.

use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::index::scatter_set_nd;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_index_copy",
    doc: "old_tensor with the rows that index_vector names replaced by those of new_tensor.",
    inputs: Inputs::Fixed(&["old_tensor", "index_vector", "new_tensor"]),
    ignores_unknown_attrs: true,
    infer_shape: |shapes| shapes.same_as_first(),
    infer_dtype: |dtypes| {
        if let Some(dtype) = dtypes.inputs[0] {
            dtypes.set_input(2, "new_tensor", dtype)?;
        }
        first_decides(dtypes)
    },
    bind,
    form: |_, signature| {
        let RowCopies { rows, inner, count } = row_copies(signature)?;
        let sizes = vec![rows];
        Ok(Some(KernelForm::ScatterRows { onto_first: true, values: 2, indices: 1, sizes, inner, count }))
    },
    ..OpDef::BASE
}];

/// Rows that are replaced.
struct RowCopies {
    /// rows of the array
    rows: usize,
    /// elements of a row
    inner: usize,
    /// rows of the other array
    count: usize,
}

fn row_copies(signature: &Signature<'_>) -> Result<RowCopies, OpError> {
    let [old, index, new] = signature.inputs else { return Err(wrong_arity()) };
    check_integers("index_vector", index.dtype)?;
    let [count] = index.shape[..] else {
        return Err(shape_error(format!("index_vector has shape {} but needs one axis", index.shape)));
    };
    let (Some((rows, row)), Some((new_rows, new_row))) = (old.shape.split_first(), new.shape.split_first()) else {
        return Err(shape_error("both tensors need rows"));
    };
    if *new_rows != count || row != new_row {
        return Err(shape_error(format!(
            "new_tensor has shape {} but {count} rows like those of {} are needed",
            new.shape, old.shape
        )));
    }
    Ok(RowCopies { rows: *rows, inner: row.iter().product(), count })
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let RowCopies { rows, inner, count } = row_copies(signature)?;
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        copy_first(call)?;
        let ([_, index, new], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (index, new) = (integers(call.par, index)?, elements::<T>(new)?);
        scatter_set_nd(new, &index, count, elements_mut(out)?, &[rows], inner).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn rows_are_replaced_by_an_index_of_one_axis() {
        let old = || OpTest::new("_contrib_index_copy").f32([3, 1], &[1.0, 2.0, 3.0]);
        let y = old().i32([2], &[2, 0]).f32([2, 1], &[7.0, 8.0]).run();
        assert_eq!(f32s(&y, [3, 1]), [8.0, 2.0, 7.0]);
        let error = old().i32([1, 2], &[2, 0]).f32([2, 1], &[7.0, 8.0]).error().message.clone();
        assert!(error.contains("needs one axis"), "{error}");
    }
}
