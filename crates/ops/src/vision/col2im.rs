//! `col2im`: sums of what columns hold of every pixel.

use super::sliding::{DILATE, KERNEL, PAD, STRIDE, Sliding};
use crate::execution::in_single;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "col2im",
    doc: "Adds the columns of im2col up at their pixels.\n\n\
        data is (batch, channels * taps of the kernel, number of windows), the output (batch, \
        channels, output_size...).",
    attrs: &[
        AttrDef::required("output_size", AttrKind::Shape, "Spatial extents of the output."),
        KERNEL,
        STRIDE,
        DILATE,
        PAD,
    ],
    infer_shape: col2im_shapes,
    bind: bind_col2im,
    form: |attrs, signature| {
        let windows = Sliding::new(attrs, &signature.outputs[0].shape[2..])?.kernel();
        for_floats(signature.inputs[0].dtype, KernelForm::ColumnSums(windows))
    },
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn col2im_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let image = extents("output_size", shapes.attrs.ints("output_size"))?;
    let sliding = Sliding::new(shapes.attrs, &image)?;
    let taps = checked_product(&sliding.kernel)?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [batch, rows, _] = dims[..] else {
        return Err(shape_error(format!(
            "data has shape {}; expected (batch, channels * taps, windows)",
            shapes.inputs[0]
        )));
    };
    if rows.is_some_and(|rows| !rows.is_multiple_of(taps)) {
        return Err(shape_error(format!(
            "data has shape {}, but its second axis must be a multiple of the {taps} taps of the \
             kernel",
            shapes.inputs[0]
        )));
    }
    let columns = sliding.columns()?;
    shapes.set_input(0, "data", PartialShape::from_dims([batch, rows, Some(columns)]))?;
    let mut out = vec![batch, rows.map(|rows| rows / taps)];
    out.extend(image.iter().map(|n| Some(*n)));
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn bind_col2im(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.outputs[0].shape;
    let (planes, windows) = (shape[0] * shape[1], Sliding::new(attrs, &shape[2..])?.kernel());
    in_single(signature, |signature| {
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            windows.scatter(call.par, planes, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s, f32s};

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        // Four windows see the one pixel. 2051 lies between two numbers; in half precision 2048 + 1
        // is 2048.
        let mut columns = [1.0; 16];
        columns[3] = 2048.0;
        let test = OpTest::new("col2im").attr("kernel", "(4,)").attr("output_size", "(1,)").attr("pad", "(3,)");
        assert_eq!(f16s(&test.f16([1, 4, 4], &columns).run(), [1, 1, 1]), [2052.0]);
    }

    #[test]
    fn columns_add_up_to_pixels() {
        let test = || OpTest::new("col2im").attr("kernel", "2").attr("output_size", "4");
        let columns = [0.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 0.0];
        assert_eq!(f32s(&test().attr("pad", "1").f32([1, 2, 5], &columns).run(), [1, 1, 4]), [2.0, 4.0, 6.0, 8.0]);
        assert!(test().f32([1, 3, 3], &[0.0; 9]).error().message.contains("multiple of the 2 taps"));
    }
}
