//! Convolution and transposed convolution in plain code: the reference for faster ones, and the
//! path for double precision.

use crate::element::Float;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::vectorize::vectorized;
use crate::window::{inside, three};

/// A convolution; kernel, stride, padding and dilation have one number for each of one to three
/// spatial axes.
#[derive(Clone, Copy, Debug)]
pub struct ConvParams<'a> {
    /// Sizes of the kernel.
    pub kernel: &'a [usize],
    /// Distances between windows.
    pub stride: &'a [usize],
    /// Padding before (and after).
    pub pad: &'a [usize],
    /// Distances between taps.
    pub dilate: &'a [usize],
    /// Into how many independent groups the channels fall.
    pub groups: usize,
}

/// The number of outputs of a convolution along an axis; `None` where the kernel does not fit or
/// stride, kernel or dilation is 0.
pub fn conv_size(size: usize, kernel: usize, stride: usize, pad: usize, dilate: usize) -> Option<usize> {
    if kernel == 0 || stride == 0 || dilate == 0 {
        return None;
    }
    let room = (size + 2 * pad).checked_sub(dilate * (kernel - 1) + 1)?;
    Some(room / stride + 1)
}

/// The plan with three spatial axes and its channels counted.
struct PlainPlan {
    kernel: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
    dilate: [usize; 3],
    /// Spatial sizes of the side that windows slide over.
    wide: [usize; 3],
    /// Spatial sizes of the side with one element a window.
    narrow: [usize; 3],
    in_channels: usize,
    out_channels: usize,
    groups: usize,
}

impl PlainPlan {
    fn new(p: ConvParams<'_>, wide: &[usize], narrow: &[usize], in_channels: usize, out_channels: usize) -> Self {
        let groups = p.groups;
        assert!(
            groups > 0 && in_channels.is_multiple_of(groups) && out_channels.is_multiple_of(groups),
            "{in_channels} and {out_channels} channels do not fall into {groups} groups"
        );
        PlainPlan {
            kernel: three(p.kernel, 1),
            stride: three(p.stride, 1).map(|s| s.max(1)),
            pad: three(p.pad, 0),
            dilate: three(p.dilate, 1).map(|d| d.max(1)),
            wide: three(wide, 1),
            narrow: three(narrow, 1),
            in_channels,
            out_channels,
            groups,
        }
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Calls `body(first element of a row of the wide side, first element and length of the row of
    /// the narrow side that tap meets)`.
    fn rows(&self, tap: usize, mut body: impl FnMut(usize, usize, usize)) {
        let k = [tap / (self.kernel[1] * self.kernel[2]), tap / self.kernel[2] % self.kernel[1], tap % self.kernel[2]];
        let [d, h, w]: [_; 3] = std::array::from_fn(|a| {
            inside(k[a] * self.dilate[a], self.stride[a], self.pad[a], self.wide[a], self.narrow[a])
        });
        if w.is_empty() {
            return;
        }
        let place = |a: usize, o: usize| o * self.stride[a] + k[a] * self.dilate[a] - self.pad[a];
        for od in d {
            for oh in h.clone() {
                let wide = (place(0, od) * self.wide[1] + place(1, oh)) * self.wide[2] + place(2, w.start);
                let narrow = (od * self.narrow[1] + oh) * self.narrow[2] + w.start;
                body(wide, narrow, w.len());
            }
        }
    }
}

/// Convolves `x` of shape (batch, channels, spatial...) with `weight` of shape (outputs, channels /
/// groups, kernel...).
pub fn convolution<T: Float>(
    par: &dyn Par,
    p: ConvParams<'_>,
    x: &[T],
    shape: &[usize],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
    out_shape: &[usize],
) {
    let plan = PlainPlan::new(p, &shape[2..], &out_shape[2..], shape[1], out_shape[1]);
    check_shapes(&plan, (x.len(), shape), weight.len(), bias.map(<[T]>::len), (out.len(), out_shape));
    let (pixels, out_pixels) = (shape[2..].iter().product::<usize>(), out_shape[2..].iter().product::<usize>());
    let (ins, outs, taps) = (plan.in_channels / plan.groups, plan.out_channels / plan.groups, plan.taps());
    let planes = chunk_by_work(out_pixels * ins * taps);
    par_chunks_mut(par, out, planes * out_pixels, |i, out| {
        for (j, out) in out.chunks_mut(out_pixels).enumerate() {
            let (n, c) = ((i * planes + j) / plan.out_channels, (i * planes + j) % plan.out_channels);
            out.fill(bias.map_or(T::ZERO, |b| b[c]));
            for k in 0..ins {
                let x = &x[(n * plan.in_channels + c / outs * ins + k) * pixels..][..pixels];
                for tap in 0..taps {
                    let factor = weight[(c * ins + k) * taps + tap];
                    plan.rows(tap, |wide, narrow, len| {
                        gather_row(factor, &x[wide..], plan.stride[2], &mut out[narrow..][..len]);
                    });
                }
            }
        }
    });
}

/// The transposed convolution of `x` of shape (batch, channels, spatial...) with `weight` of shape
/// (channels, outputs / groups, kernel...): every input spreads the kernel over the output, whose
/// spatial sizes are `stride * (size - 1) + dilate * (kernel - 1) + 1 - 2 * pad` or more (MXNet's
/// `adj`).
pub fn deconvolution<T: Float>(
    par: &dyn Par,
    p: ConvParams<'_>,
    x: &[T],
    shape: &[usize],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
    out_shape: &[usize],
) {
    let plan = PlainPlan::new(p, &out_shape[2..], &shape[2..], shape[1], out_shape[1]);
    check_shapes(&plan, (x.len(), shape), weight.len(), bias.map(<[T]>::len), (out.len(), out_shape));
    let (pixels, out_pixels) = (shape[2..].iter().product::<usize>(), out_shape[2..].iter().product::<usize>());
    let (ins, outs, taps) = (plan.in_channels / plan.groups, plan.out_channels / plan.groups, plan.taps());
    let planes = chunk_by_work(pixels * ins * taps + out_pixels);
    par_chunks_mut(par, out, planes * out_pixels, |i, out| {
        for (j, out) in out.chunks_mut(out_pixels).enumerate() {
            let (n, c) = ((i * planes + j) / plan.out_channels, (i * planes + j) % plan.out_channels);
            out.fill(bias.map_or(T::ZERO, |b| b[c]));
            for k in c / outs * ins..(c / outs + 1) * ins {
                let x = &x[(n * plan.in_channels + k) * pixels..][..pixels];
                for tap in 0..taps {
                    let factor = weight[(k * outs + c % outs) * taps + tap];
                    plan.rows(tap, |wide, narrow, len| {
                        scatter_row(factor, &x[narrow..][..len], plan.stride[2], &mut out[wide..]);
                    });
                }
            }
        }
    });
}

fn check_shapes(
    plan: &PlainPlan,
    (x, shape): (usize, &[usize]),
    weight: usize,
    bias: Option<usize>,
    (out, out_shape): (usize, &[usize]),
) {
    assert!(shape.len() == out_shape.len() && shape[0] == out_shape[0], "convolving {shape:?} to {out_shape:?}");
    check_len("the input", x, shape.iter().product());
    check_len("the output", out, out_shape.iter().product());
    check_len("the weight", weight, plan.in_channels * plan.out_channels / plan.groups * plan.taps());
    check_len("the bias", bias.unwrap_or(plan.out_channels), plan.out_channels);
}

vectorized! {
    fn gather_row[T: Float](factor: T, x: &[T], stride: usize, out: &mut [T]) {
        if stride == 1 {
            out.iter_mut().zip(x).for_each(|(o, &v)| *o += factor * v);
        } else {
            out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(o, &v)| *o += factor * v);
        }
    }
}

vectorized! {
    fn scatter_row[T: Float](factor: T, x: &[T], stride: usize, out: &mut [T]) {
        if stride == 1 {
            out.iter_mut().zip(x).for_each(|(o, &v)| *o += factor * v);
        } else {
            out.iter_mut().step_by(stride).zip(x).for_each(|(o, &v)| *o += factor * v);
        }
    }
}

#[cfg(test)]
mod tests;
