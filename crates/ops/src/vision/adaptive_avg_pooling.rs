//! `_contrib_AdaptiveAvgPooling2D`: means over windows that divide an image into a given number of
//! parts.

use super::{image_dims, planes};
use crate::prelude::*;
use mxrt_kernels::vision::adaptive_pool::AdaptiveAverage;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_AdaptiveAvgPooling2D",
    doc: "Means over windows that divide each plane into output_size parts.\n\n\
        data is (batch, channels, height, width). output_size is (height, width) of the output, \
        one number for both, or empty for (1, 1). Windows are as even as whole pixels allow and \
        may share pixels.",
    attrs: &[AttrDef::new("output_size", AttrKind::Shape, "()", "Height and width of the output; 1 if not given.")],
    infer_shape,
    bind,
    form: |_, signature| {
        planes(signature)?;
        for_floats(signature.inputs[0].dtype, KernelForm::Resample(Resampling::Means))
    },
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let to = match extents("output_size", shapes.attrs.ints("output_size"))?[..] {
        [size] => [size, size],
        [height, width] => [height, width],
        _ => [1, 1],
    };
    let Some([batch, channels, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    shapes.set_output(0, PartialShape::from_dims([batch, channels, Some(to[0]), Some(to[1])]))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [from, to] = planes(signature)?;
    let pooling = AdaptiveAverage { from, to };
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        pooling.run(call.par, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn windows_divide_the_image_and_may_overlap() {
        let x: Vec<f32> = (0..15).map(|v| v as f32).collect();
        let of =
            |size: &str| OpTest::new("_contrib_AdaptiveAvgPooling2D").attr("output_size", size).f32([1, 1, 3, 5], &x);
        assert_close(&f32s(&of("()").run(), [1, 1, 1, 1]), &[7.0]);
        assert_close(&f32s(&of("(1, 2)").run(), [1, 1, 1, 2]), &[6.0, 8.0]);
        assert_close(&f32s(&of("2").run(), [1, 1, 2, 2]), &[3.5, 5.5, 8.5, 10.5]);
        assert_eq!(of("(0, 2)").run().tensor.shape[..], [1, 1, 0, 2]);
        of("-1").error();
    }
}
