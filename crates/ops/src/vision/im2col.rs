//! `im2col`: the pixels that every window of a convolution sees as columns.

use super::sliding::{DILATE, KERNEL, PAD, STRIDE, Sliding, kernel_of};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "im2col",
    doc: "The pixels that every window of a convolution sees, as columns.\n\n\
        data is (batch, channels, spatial...), the output (batch, channels * taps of the \
        kernel, number of windows).",
    attrs: &[KERNEL, STRIDE, DILATE, PAD],
    infer_shape: im2col_shapes,
    bind: bind_im2col,
    form: |attrs, signature| {
        let windows = Sliding::new(attrs, &signature.inputs[0].shape[2..])?.kernel();
        for_floats(signature.inputs[0].dtype, KernelForm::Columns(windows))
    },
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn im2col_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let taps = checked_product(&kernel_of(shapes.attrs)?)?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [batch, channels, image @ ..] = &dims[..] else {
        return Err(shape_error(format!(
            "data has shape {}; expected (batch, channels, spatial...)",
            shapes.inputs[0]
        )));
    };
    let columns = match image.iter().copied().collect::<Option<Dims>>() {
        Some(image) => Some(Sliding::new(shapes.attrs, &image)?.columns()?),
        None => None,
    };
    let rows = channels.map(|c| checked_product(&[c, taps])).transpose()?;
    shapes.set_output(0, PartialShape::from_dims([*batch, rows, columns]))
}

fn bind_im2col(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let (planes, windows) = (shape[0] * shape[1], Sliding::new(attrs, &shape[2..])?.kernel());
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        windows.gather(call.par, planes, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn what_does_not_fit_is_named() {
        let im2col = |kernel: &str| {
            OpTest::new("im2col").attr("kernel", kernel).f32([1, 1, 4], &[0.0; 4]).error().message.clone()
        };
        assert!(im2col("5").contains("exceeds"));
        assert!(im2col("(2, 2)").contains("spatial axes"));
        assert!(im2col("0").contains("positive"));
    }

    #[test]
    fn columns_are_windows() {
        let test = OpTest::new("im2col").attr("kernel", "2").attr("pad", "1").f32([1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(f32s(&test.run(), [1, 2, 5]), [0.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
    }
}
