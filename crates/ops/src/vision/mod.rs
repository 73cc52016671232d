//! Operators on images, `(batch, channels, height, width)`: resizing, warping, detection.

pub mod adaptive_avg_pooling;
pub mod bilinear_resize;
pub mod bilinear_sampler;
pub mod bipartite_matching;
pub mod box_decode;
pub mod box_encode;
pub mod box_iou;
pub mod box_nms;
mod boxes;
pub mod col2im;
pub mod correlation;
pub mod deformable_convolution;
pub mod deformable_psroi_pooling;
pub mod grid_generator;
pub mod im2col;
pub mod multibox_detection;
pub mod multibox_prior;
pub mod multibox_target;
pub mod proposal;
pub mod psroi_pooling;
mod roi;
pub mod roi_align;
pub mod roi_pooling;
pub mod rroi_align;
mod sliding;
pub mod spatial_transformer;
pub mod upsampling;

use crate::prelude::*;
use mxrt_tensor::TensorType;

/// The known extents of an input that must have four axes; `None` if none is known.
pub(crate) fn image_dims(shapes: &Shapes<'_>, index: usize, name: &str) -> Result<Option<[Option<usize>; 4]>, OpError> {
    let Some(dims) = shapes.dims(index) else { return Ok(None) };
    match dims[..] {
        [a, b, c, d] => Ok(Some([a, b, c, d])),
        _ => Err(shape_error(format!(
            "{name} has shape {}; expected 4 axes (batch, channels, height, width)",
            shapes.inputs[index]
        ))),
    }
}

/// Height and width of the planes that are read and of those that are made, checked.
fn planes(signature: &Signature<'_>) -> Result<[[usize; 2]; 2], OpError> {
    let [from, to] = [&signature.inputs[0], &signature.outputs[0]].map(|t| [t.shape[2], t.shape[3]]);
    check_pixels(from, &signature.outputs[0])?;
    Ok([from, to])
}

/// An error where pixels would have to be made out of an image that has none.
pub(crate) fn check_pixels(image: [usize; 2], output: &TensorType) -> Result<(), OpError> {
    if image.contains(&0) && output.shape.size() > 0 {
        return Err(shape_error(format!("an image of {} x {} pixels cannot be resized", image[0], image[1])));
    }
    Ok(())
}
