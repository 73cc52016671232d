//! The parameters of a convolution.

use crate::blocked::Halo;

/// A two-dimensional convolution; a one-dimensional one has height 1 in its image and kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conv2dParams {
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the output.
    pub out_channels: usize,
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Rows and columns between outputs.
    pub stride: [usize; 2],
    /// Rows and columns between the kernel's taps.
    pub dilate: [usize; 2],
    /// Rows of zeros above and below, columns of zeros left and right.
    pub pad: [usize; 2],
    /// Groups of channels that do not see each other.
    pub groups: usize,
}

impl Conv2dParams {
    /// A convolution of a square kernel with stride 1, no padding and one group.
    pub fn square(in_channels: usize, out_channels: usize, kernel: usize) -> Self {
        Conv2dParams {
            in_channels,
            out_channels,
            kernel: [kernel; 2],
            stride: [1; 2],
            dilate: [1; 2],
            pad: [0; 2],
            groups: 1,
        }
    }

    /// Height and width of the output for an image of this size; none where the kernel does not
    /// fit.
    pub fn output_size(&self, [h, w]: [usize; 2]) -> Option<[usize; 2]> {
        let along = |i: usize, size: usize| {
            let reach = self.dilate[i] * self.kernel[i].checked_sub(1)? + 1;
            Some((size + 2 * self.pad[i]).checked_sub(reach)? / self.stride[i] + 1)
        };
        Some([along(0, h)?, along(1, w)?])
    }

    /// Elements of the weights, `[out_channels][in_channels / groups][height][width]`.
    pub fn weight_len(&self) -> usize {
        self.out_channels * self.in_channels / self.groups * self.taps()
    }

    /// Positions of the kernel.
    pub(crate) fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Input channels that one output channel sees.
    pub(crate) fn group_inputs(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of one group.
    pub(crate) fn group_outputs(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Whether each channel has one filter of its own: as many groups as inputs and as outputs.
    pub(crate) fn is_depthwise(&self) -> bool {
        self.groups == self.in_channels && self.groups == self.out_channels && self.groups > 1
    }

    /// Whether every count is positive and the groups divide the channels.
    pub(crate) fn is_sound(&self) -> bool {
        let positive = [self.in_channels, self.out_channels, self.groups]
            .into_iter()
            .chain(self.kernel)
            .chain(self.stride)
            .chain(self.dilate);
        positive.min() > Some(0)
            && self.in_channels.is_multiple_of(self.groups)
            && self.out_channels.is_multiple_of(self.groups)
    }

    /// The zeros that a direct convolution reads around an image of this size.
    pub(crate) fn halo(&self, size: [usize; 2], out: [usize; 2]) -> Halo {
        let after = |i: usize| {
            let last = (out[i] - 1) * self.stride[i] + (self.kernel[i] - 1) * self.dilate[i];
            (last + 1).saturating_sub(size[i] + self.pad[i])
        };
        Halo { top: self.pad[0], left: self.pad[1], bottom: after(0), right: after(1) }
    }

    /// Multiply-adds for one image.
    pub(crate) fn work(&self, out: [usize; 2]) -> usize {
        self.weight_len() * out[0] * out[1]
    }
}
