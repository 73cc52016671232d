//! `_image_to_tensor`: from pixels to planes.

use super::image_axis;
use crate::prelude::*;
use mxrt_kernels::image::layout::to_planes;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_image_to_tensor",
    aliases: &["_npx__image_to_tensor"],
    doc: "From (height, width, channels) with values from 0 to 255 to (channels, height, width), \
          float32, from 0 to 1; a batch of images has a first axis more.",
    ignores_unknown_attrs: true,
    infer_shape,
    infer_dtype: |dtypes| dtypes.set_output(0, DType::F32),
    bind,
    form: |_, signature| {
        let [pixels, channels] = sizes(signature);
        for_all(signature.inputs[0].dtype, KernelForm::ImagePlanes { pixels, channels })
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(axis) = image_axis(shapes)? else { return Ok(()) };
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    dims[axis..].rotate_right(1);
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// Pixels of an image, and numbers of a pixel.
fn sizes(signature: &Signature<'_>) -> [usize; 2] {
    let shape = &signature.inputs[0].shape;
    let axis = shape.len() - 3;
    [shape[axis] * shape[axis + 1], shape[axis + 2]]
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let sizes = sizes(signature);
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        to_planes::<T>(call.par, sizes, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn channels_come_first_and_values_end_at_one() {
        let y = OpTest::new("_image_to_tensor").f32([1, 1, 2, 2], &[0.0, 51.0, 102.0, 255.0]).run();
        assert_eq!(f32s(&y, [1, 2, 1, 2]), [0.0, 0.4, 0.2, 1.0]);
        let error = OpTest::new("_image_to_tensor").f32([2, 2], &[0.0; 4]).error().message.clone();
        assert!(error.contains("(height, width, channels)"), "{error}");
    }
}
