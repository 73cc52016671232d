//! `_onehot_encode`, `fill_element_0index`: one element of each row, in MXNet's first versions.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_tensor::PartialShape;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_onehot_encode",
        doc: "Rows like those of rhs with a one where lhs says, else zeros; no one where lhs is \
              outside.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        infer_shape: |shapes| {
            rows(shapes, 1, 0, "lhs")?;
            let rows = shapes.inputs[1].clone();
            shapes.set_output(0, rows)
        },
        infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
        bind: |_, signature| {
            let width = signature.outputs[0].shape[1];
            dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
                let index = elements::<T>(&call.inputs[0])?;
                let out = elements_mut::<T>(&mut call.outputs[0])?;
                out.fill(T::ZERO);
                put(out, width, index, |_| T::ONE);
                Ok(())
            })))
        },
        ..OpDef::BASE
    },
    OpDef {
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
    },
];

/// Input `matrix` must be a matrix, and input `vector` have a number for each of its rows.
fn rows(shapes: &mut Shapes<'_>, matrix: usize, vector: usize, name: &str) -> Result<(), OpError> {
    let height = match shapes.dims(matrix).as_deref() {
        None => None,
        Some([height, _]) => *height,
        Some(_) => {
            return Err(shape_error(format!("input {matrix} has shape {}; expected a matrix", shapes.inputs[matrix])));
        }
    };
    shapes.set_input(vector, name, PartialShape::from_dims([height]))
}

fn put<T: Element>(out: &mut [T], width: usize, index: &[T], value: impl Fn(usize) -> T) {
    for (row, index) in index.iter().enumerate() {
        if let Some(column) = usize::try_from(index.to_i64()).ok().filter(|column| *column < width) {
            out[row * width + column] = value(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn one_element_of_each_row_is_set() {
        let ones = OpTest::new("_onehot_encode").f32([3], &[2.0, 0.0, -1.0]).f32([3, 3], &[9.0; 9]).run();
        assert_close(&f32s(&ones, [3, 3]), &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let data = OpTest::new("fill_element_0index").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).f32([2], &[7.0, 8.0]);
        assert_close(&f32s(&data.f32([2], &[1.0, 2.0]).run(), [2, 2]), &[1.0, 7.0, 3.0, 4.0]);
        let error = OpTest::new("_onehot_encode").f32([2], &[0.0; 2]).f32([3, 3], &[0.0; 9]).error();
        assert!(error.message.starts_with("lhs has shape (2,)"), "{}", error.message);
    }
}
