//! Operators on images: resizing, sampling at real positions, deformable convolution, detection.
//!
//! Images are planes of one channel each, `[batch, channels, height, width]`. Positions are
//! computed as MXNet computes them, because a rounding that differs can choose another pixel.

pub mod adaptive_pool;
pub mod boxes;
pub mod columns;
pub mod correlation;
pub mod deformable;
pub mod deformable_roi;
pub mod multibox;
pub mod multibox_target;
pub mod nms;
pub mod proposal;
pub mod resize;
pub mod roi;
pub mod rotated_roi;
pub mod sampler;
