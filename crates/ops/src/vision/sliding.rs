//! Windows of a convolution, and the attributes that describe them.

use crate::nn::convolution::spatial_list;
use crate::prelude::*;
use mxrt_kernels::conv_plain::conv_size;
use mxrt_kernels::vision::columns::ColumnWindows;

pub(super) const KERNEL: AttrDef =
    AttrDef::required("kernel", AttrKind::Shape, "Size: (width,), (height, width) or (depth, height, width).");
pub(super) const STRIDE: AttrDef =
    AttrDef::new("stride", AttrKind::Shape, "()", "Distances between windows; 1 if not given.");
pub(super) const DILATE: AttrDef =
    AttrDef::new("dilate", AttrKind::Shape, "()", "Distances between taps; 1 if not given.");
pub(super) const PAD: AttrDef = AttrDef::new("pad", AttrKind::Shape, "()", "Zeros on both sides; 0 if not given.");

/// The windows of the attributes over an image.
pub(super) struct Sliding {
    pub(super) kernel: Dims,
    stride: Dims,
    dilate: Dims,
    pad: Dims,
    image: Dims,
    windows: Dims,
}

impl Sliding {
    pub(super) fn new(attrs: &Attrs, image: &[usize]) -> Result<Sliding, OpError> {
        let kernel = kernel_of(attrs)?;
        let list = |name, default| spatial_list(attrs, name, default, kernel.len());
        let (stride, dilate, pad) = (list("stride", 1)?, list("dilate", 1)?, list("pad", 0)?);
        if stride.iter().chain(&dilate).any(|v| *v == 0) {
            return Err(value_error("stride and dilate must be positive"));
        }
        if stride.iter().chain(&dilate).chain(&pad).chain(image).any(|v| *v > i32::MAX as usize) {
            return Err(value_error("stride, dilate, pad or an extent of the image is too large"));
        }
        if image.len() != kernel.len() {
            let (have, want) = (image.len(), kernel.len());
            return Err(shape_error(format!("the image has {have} spatial axes but kernel has {want} extents")));
        }
        let windows = (0..kernel.len())
            .map(|axis| {
                conv_size(image[axis], kernel[axis], stride[axis], pad[axis], dilate[axis]).ok_or_else(|| {
                    shape_error(format!(
                        "kernel size exceeds input: spatial axis {axis} has {} + 2 * {} (padding) \
                         elements",
                        image[axis], pad[axis]
                    ))
                })
            })
            .collect::<Result<Dims, OpError>>()?;
        Ok(Sliding { kernel, stride, dilate, pad, image: image.iter().copied().collect(), windows })
    }

    /// The windows as the kernels take them.
    pub(super) fn kernel(&self) -> ColumnWindows {
        ColumnWindows::new(&self.kernel, &self.stride, &self.dilate, &self.pad, &self.image, &self.windows)
    }

    /// The number of windows.
    pub(super) fn columns(&self) -> Result<usize, OpError> {
        checked_product(&self.windows)
    }
}

/// The extents of the kernel, checked.
pub(super) fn kernel_of(attrs: &Attrs) -> Result<Dims, OpError> {
    let kernel = extents("kernel", attrs.ints("kernel"))?;
    if !(1..=3).contains(&kernel.len()) || kernel.iter().any(|k| !(1..=i32::MAX as usize).contains(k)) {
        return Err(value_error("kernel must have one to three positive extents"));
    }
    Ok(kernel)
}
