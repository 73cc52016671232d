//! `_np_diag`: the diagonal of a matrix, or a matrix with a diagonal.

use super::{K, bind_placed, diagonal, square, start};
use crate::prelude::*;
use crate::shape::{bind_strided, placed_form, strided_form};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_diag",
    doc: "The k-th diagonal of a matrix; of a vector, the square matrix that has it as its k-th \
          diagonal.",
    attrs: &[K],
    infer_shape: |shapes| {
        let Some(data) = shapes.input(0) else { return Ok(()) };
        let k = shapes.attrs.int("k");
        match data[..] {
            [n] => shapes.set_output(0, square(n, k)?),
            [_, _] => shapes.set_output(0, Shape::new(&[diagonal(&data, (0, 1), k)?.shape[0]])),
            _ => Err(shape_error(format!("the input has shape {data}; expected one axis or two"))),
        }
    },
    bind: |attrs, signature| match signature.inputs[0].shape[..] {
        [_] => bind_placed(attrs.int("k"), signature),
        _ => bind_strided(diagonal(&signature.inputs[0].shape, (0, 1), attrs.int("k"))?, signature),
    },
    form: |attrs, signature| match signature.inputs[0].shape[..] {
        [_] => placed_form(start(attrs.int("k")), signature),
        _ => strided_form(&diagonal(&signature.inputs[0].shape, (0, 1), attrs.int("k"))?),
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_diagonal_is_taken_or_made() {
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let diag = |k: &str| OpTest::new("_np_diag").attr("k", k);
        assert_eq!(f32s(&diag("1").f32([2, 3], &x).run(), [2]), [1.0, 5.0]);
        assert_eq!(f32s(&diag("7").f32([2, 3], &x).run(), [0]), [0.0; 0]);
        assert_eq!(f32s(&diag("-1").f32([1], &[3.0]).run(), [2, 2]), [0.0, 0.0, 3.0, 0.0]);
    }
}
