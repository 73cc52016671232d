//! `khatri_rao`: Kronecker products of columns.

use crate::prelude::*;
use mxrt_kernels::par::{chunk_rows, par_chunks_mut};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "khatri_rao",
    doc: "The Kronecker products of the columns of matrices with equally many columns.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of matrices.").unlisted()],
    infer_shape,
    bind,
    form: |_, signature| for_floats(signature.inputs[0].dtype, KernelForm::KroneckerColumns),
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (mut rows, mut columns) = (Some(1), None);
    for i in 0..shapes.inputs.len() {
        let dims = shapes.dims(i);
        match dims.as_deref() {
            None => rows = None,
            Some([height, width]) => {
                let all = rows.zip(*height).map(|(a, b)| checked_product(&[a, b])).transpose()?;
                (rows, columns) = (all, columns.or(*width));
            }
            Some(_) => {
                return Err(shape_error(format!("input {i} has shape {}; expected a matrix", shapes.inputs[i])));
            }
        }
    }
    for i in 0..shapes.inputs.len() {
        shapes.set_input(i, &format!("input {i}"), PartialShape::from_dims([None, columns]))?;
    }
    shapes.set_output(0, PartialShape::from_dims([rows, columns]))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let columns = signature.outputs[0].shape[1];
    let mut heights: Vec<usize> = signature.inputs.iter().map(|t| t.shape[0]).collect();
    let height = heights.pop().ok_or_else(wrong_arity)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let mut matrices = call.inputs.iter().map(elements::<T>).collect::<Result<Vec<_>, _>>()?;
        let last = matrices.pop().ok_or_else(wrong_arity)?;
        let band = chunk_rows::<T>(columns);
        par_chunks_mut(call.par, elements_mut(&mut call.outputs[0])?, band * columns, |chunk, mut out| {
            let mut row = chunk * band;
            while !out.is_empty() {
                // The last matrix runs fastest: the rows of the others are those of this run.
                let (mut left, first) = (row / height, row % height);
                let rows = (height - first).min(out.len() / columns);
                let (run, rest) = out.split_at_mut(rows * columns);
                run.copy_from_slice(&last[first * columns..][..run.len()]);
                for (matrix, height) in matrices.iter().zip(&heights).rev() {
                    multiply_rows(run, &matrix[left % height * columns..][..columns]);
                    left /= height;
                }
                (row, out) = (row + rows, rest);
            }
        });
        Ok(())
    })))
}

/// Multiplies every row with these factors.
fn multiply_rows<T: Element>(rows: &mut [T], factors: &[T]) {
    if let [factor] = factors {
        return rows.iter_mut().for_each(|element| *element = factor.times(*element));
    }
    for row in rows.chunks_exact_mut(factors.len()) {
        row.iter_mut().zip(factors).for_each(|(element, factor)| *element = factor.times(*element));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn columns_are_multiplied_with_each_other() {
        let pair = || OpTest::new("khatri_rao").attr("num_args", "2").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let y = pair().f32([3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).run();
        assert_close(&f32s(&y, [6, 2]), &[1.0, 4.0, 3.0, 8.0, 5.0, 12.0, 3.0, 8.0, 9.0, 16.0, 15.0, 24.0]);
        let single = OpTest::new("khatri_rao").attr("num_args", "3").f32([2, 1], &[1.0, 2.0]);
        let y = single.f32([1, 1], &[3.0]).f32([2, 1], &[5.0, 7.0]).run();
        assert_close(&f32s(&y, [4, 1]), &[15.0, 21.0, 30.0, 42.0]);
        assert!(pair().f32([1, 3], &[0.0; 3]).error().message.starts_with("input 1"));
    }
}
