//! `_np_trace`: sums of diagonals.

use super::{AXIS1, AXIS2, OFFSET, of_plane};
use crate::prelude::*;
use crate::shape::Strided;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_np_trace",
    doc: "The sum over a diagonal of the plane of two axes.",
    attrs: &[OFFSET, AXIS1, AXIS2],
    infer_shape: |shapes| {
        let Some(data) = shapes.input(0) else { return Ok(()) };
        let mut left = of_plane(shapes.attrs, &data)?.shape;
        left.pop();
        shapes.set_output(0, Shape::from(left))
    },
    bind: bind_trace,
    form: |attrs, signature| {
        let Strided { offset, strides, shape } = of_plane(attrs, &signature.inputs[0].shape)?;
        for_all(signature.inputs[0].dtype, KernelForm::SumsOfPart { first: offset, shape, steps: strides })
    },
    ..OpDef::BASE
}];

fn bind_trace(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let view = of_plane(attrs, &signature.inputs[0].shape)?;
    let n = view.shape.last().copied().unwrap_or(0);
    let signature = &Signature { inputs: signature.inputs, outputs: signature.outputs, options: signature.options };
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let mut picked = Scratch::<T>::new(call.par, view.shape.iter().product());
        mxrt_kernels::shape::copy_strided(call.par, x, view.offset, &view.strides, &view.shape, &mut picked)
            .map_err(kernel_error)?;
        for (i, out) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().enumerate() {
            let row = &picked[i * n..(i + 1) * n];
            *out = match T::FLOAT {
                true => T::from_f64(row.iter().fold(0.0, |sum, v| sum + v.to_f64())),
                false => T::from_i64(row.iter().fold(0i64, |sum, v| sum.wrapping_add(v.to_i64()))),
            };
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_diagonal_is_summed() {
        let y = OpTest::new("_np_trace").f32([2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).run();
        assert_eq!(f32s(&y, []), [4.0]);
        let y = OpTest::new("_np_trace").f32([0, 3], &[]).run();
        assert_eq!(f32s(&y, [])[0].to_bits(), 0, "of no elements");
    }
}
