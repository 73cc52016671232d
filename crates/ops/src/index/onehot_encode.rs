//! `_onehot_encode`: rows with a one, in MXNet's first versions.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

/// Input `matrix` must be a matrix, and input `vector` have a number for each of its rows.
pub(super) fn rows(shapes: &mut Shapes<'_>, matrix: usize, vector: usize, name: &str) -> Result<(), OpError> {
    let height = match shapes.dims(matrix).as_deref() {
        None => None,
        Some([height, _]) => *height,
        Some(_) => {
            return Err(shape_error(format!("input {matrix} has shape {}; expected a matrix", shapes.inputs[matrix])));
        }
    };
    shapes.set_input(vector, name, PartialShape::from_dims([height]))
}

pub(super) fn put<T: Element>(out: &mut [T], width: usize, index: &[T], value: impl Fn(usize) -> T) {
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
        let error = OpTest::new("_onehot_encode").f32([2], &[0.0; 2]).f32([3, 3], &[0.0; 9]).error();
        assert!(error.message.starts_with("lhs has shape (2,)"), "{}", error.message);
    }
}
