//! Operators on images of shape `(height, width, channels)`.

pub mod border;
pub mod color;
pub mod color_jitter;
pub mod crop;
pub mod cvimresize;
pub mod decode;
pub(crate) mod files;
pub mod flip;
pub mod lighting;
pub mod normalize;
pub mod resize;
pub mod to_tensor;

use crate::prelude::*;

/// Checks that input 0 is one image, `(height, width, channels)` with 1 or 3 channels; the output is
/// like it.
pub(crate) fn one_image(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.all_same()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    match dims[..] {
        [_, _, None | Some(1 | 3)] => Ok(()),
        [_, _, _] => Err(shape_error(format!(
            "the last dimension of input image must be the channel dimension with either 1 or 3 elements, but got \
             input with shape {}",
            shapes.inputs[0]
        ))),
        _ => Err(shape_error(format!(
            "Input image must have shape (height, width, channels), but got {}",
            shapes.inputs[0]
        ))),
    }
}

/// The position of height, width and channels among the dimensions of an image, or of a batch of
/// them.
pub(crate) fn image_axis(shapes: &Shapes<'_>) -> Result<Option<usize>, OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(None) };
    match dims.len() {
        3 | 4 => Ok(Some(dims.len() - 3)),
        _ => Err(shape_error(format!(
            "Input image must have shape (height, width, channels), or (N, height, width, \
             channels) but got {}",
            shapes.inputs[0]
        ))),
    }
}
