//! `khatri_rao`: Kronecker products of columns.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::par::{chunk_rows, par_chunks_mut};
use mxrt_tensor::PartialShape;

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

fn bind(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let columns = signature.outputs[0].shape[1];
    let heights: Vec<usize> = signature.inputs.iter().map(|t| t.shape[0]).collect();
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let matrices = call.inputs.iter().map(elements::<T>).collect::<Result<Vec<_>, _>>()?;
        let band = chunk_rows::<T>(columns);
        par_chunks_mut(call.par, elements_mut(&mut call.outputs[0])?, band * columns, |chunk, out| {
            for (i, out) in out.chunks_exact_mut(columns).enumerate() {
                let mut row = chunk * band + i;
                out.fill(T::ONE);
                // The last matrix runs fastest.
                for (matrix, height) in matrices.iter().zip(&heights).rev() {
                    let factors = &matrix[row % height * columns..][..columns];
                    row /= height;
                    out.iter_mut().zip(factors).for_each(|(out, factor)| *out = factor.times(*out));
                }
            }
        });
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn columns_are_multiplied_with_each_other() {
        let pair = || OpTest::new("khatri_rao").attr("num_args", "2").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let y = pair().f32([3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).run();
        assert_close(&f32s(&y, [6, 2]), &[1.0, 4.0, 3.0, 8.0, 5.0, 12.0, 3.0, 8.0, 9.0, 16.0, 15.0, 24.0]);
        assert!(pair().f32([1, 3], &[0.0; 3]).error().message.starts_with("input 1"));
    }
}
