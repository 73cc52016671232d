//! `fill_element_0index`: one element of each row set, in MXNet's first versions.

use super::onehot_encode::{put, rows};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "fill_element_0index",
    doc: "lhs with the elements of mhs, one in each row, where rhs says; none where rhs is \
          outside.",
    inputs: Inputs::Fixed(&["lhs", "mhs", "rhs"]),
    infer_shape: |shapes| {
        rows(shapes, 0, 1, "mhs")?;
        rows(shapes, 0, 2, "rhs")?;
        let rows = shapes.inputs[0].clone();
        shapes.set_output(0, rows)
    },
    infer_dtype: |dtypes| dtypes.uniform(&["lhs", "mhs", "rhs"]),
    bind: |_, signature| {
        let width = signature.outputs[0].shape[1];
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let [data, values, index] = call.inputs else { return Err(wrong_arity()) };
            let (values, index) = (elements::<T>(values)?, elements::<T>(index)?);
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            out.copy_from_slice(elements(data)?);
            put(out, width, index, |row| values[row]);
            Ok(())
        })))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn one_element_of_each_row_is_replaced() {
        let data = OpTest::new("fill_element_0index").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).f32([2], &[7.0, 8.0]);
        assert_close(&f32s(&data.f32([2], &[1.0, 2.0]).run(), [2, 2]), &[1.0, 7.0, 3.0, 4.0]);
    }
}
