//! Helpers of the tests of convolutions: cases with their definition in `f64`, and strategies.

use crate::activation::Activation;
use crate::blocked::lines::testing::{fill_unused, rounded, to_blocks, to_lines};
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo, from_blocked, to_blocked};
use crate::cache_class::CacheClass;
use crate::conv::method::PreparedConv;
use crate::conv::select::choose;
use crate::conv::*;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::Reverse;
use crate::vector_units::VectorUnits;
use proptest::prelude::*;
use std::sync::Arc;

/// The method of this name.
pub(in crate::conv) fn method(name: &str) -> Method {
    name.parse().expect("a method")
}

/// Whether a method fits a convolution of images that are large enough for it.
pub(in crate::conv) fn fits(name: &str, params: Conv2dParams, isa: Isa) -> bool {
    let (units, cache, precision) = (VectorUnits::detect(isa), CacheClass::detect(), Precision::Single);
    let shape = [1, params.in_channels, 64, 64];
    method(name).0.fits(&ConvSignature { isa, units, cache, precision, params, shape })
}

/// The name of the kernel that is chosen for an image of `size` pixels a side with AVX-512 on units of
/// a kind, whichever this machine has.
pub(in crate::conv) fn chosen_on(units: VectorUnits, params: Conv2dParams, size: usize) -> String {
    let shape = [1, params.in_channels, size, size];
    let (isa, cache, precision) = (Isa::Avx512, CacheClass::Medium, Precision::Single);
    let signature = ConvSignature { isa, units, cache, precision, params, shape };
    let out = params.output_size([size, size]).expect("an image as large as the kernel");
    choose(&signature, out, &ConvOptions::default()).method.0.prepare(&signature, out, false).name()
}

/// Values that are far from round, repeatable from `seed`.
pub(in crate::conv) fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

pub(in crate::conv) struct Case {
    pub params: Conv2dParams,
    pub shape: [usize; 4],
    pub x: Vec<f32>,
    pub w: Vec<f32>,
    bias: Option<Vec<f32>>,
    residual: Option<Vec<f32>>,
    activation: Activation,
}

impl Case {
    pub(in crate::conv) fn new(params: Conv2dParams, n: usize, size: [usize; 2], seed: u64) -> Case {
        let shape = [n, params.in_channels, size[0], size[1]];
        Case {
            params,
            shape,
            x: values(seed, shape.iter().product()),
            w: values(seed ^ 1, params.weight_len()),
            bias: None,
            residual: None,
            activation: Activation::None,
        }
    }

    pub(in crate::conv) fn out_size(&self) -> [usize; 2] {
        self.params.output_size([self.shape[2], self.shape[3]]).expect("the kernel fits the image")
    }

    pub(in crate::conv) fn out_len(&self) -> usize {
        self.shape[0] * self.params.out_channels * self.out_size().iter().product::<usize>()
    }

    pub(in crate::conv) fn with_epilogue(mut self, bias: bool, residual: bool, activation: Activation) -> Case {
        self.bias = bias.then(|| values(7, self.params.out_channels));
        self.residual = residual.then(|| values(8, self.out_len()));
        self.activation = activation;
        self
    }

    /// The definition, in f64, and the largest sum of magnitudes (the scale of rounding).
    pub(in crate::conv) fn reference(&self) -> (Vec<f64>, f64) {
        let Conv2dParams { kernel, stride, dilate, pad, out_channels, .. } = self.params;
        let [_, c, h, w] = self.shape;
        let [oh, ow] = self.out_size();
        let (inputs, outputs) = (self.params.group_inputs(), self.params.group_outputs());
        let mut scale = 1e-30;
        let y = (0..self.out_len()).map(|at| {
            let (n, o, row, col) =
                (at / (ow * oh * out_channels), at / (ow * oh) % out_channels, at / ow % oh, at % ow);
            let (mut sum, mut magnitude) = (0.0, 0.0);
            let mut add = |term: f64| {
                sum += term;
                magnitude += term.abs();
            };
            add(self.bias.as_ref().map_or(0.0, |b| f64::from(b[o])));
            add(self.residual.as_ref().map_or(0.0, |r| f64::from(r[at])));
            for i in 0..inputs {
                let channel = o / outputs * inputs + i;
                for a in 0..kernel[0] {
                    for b in 0..kernel[1] {
                        let (r, s) = (row * stride[0] + a * dilate[0], col * stride[1] + b * dilate[1]);
                        if (pad[0]..pad[0] + h).contains(&r) && (pad[1]..pad[1] + w).contains(&s) {
                            let x = self.x[((n * c + channel) * h + r - pad[0]) * w + s - pad[1]];
                            let weight = self.w[((o * inputs + i) * kernel[0] + a) * kernel[1] + b];
                            add(f64::from(x) * f64::from(weight));
                        }
                    }
                }
            }
            scale = f64::max(scale, magnitude);
            self.activation.of(sum)
        });
        (y.collect(), scale)
    }

    pub(in crate::conv) fn select(&self, isa: Isa, winograd: Winograd) -> ConvKernel {
        ConvKernel::select(self.params, self.shape, isa, ConvOptions { winograd, ..ConvOptions::default() })
            .expect("a sound convolution")
    }

    /// The result of `prepare` for the number of images and the rows and columns of the output.
    pub(in crate::conv) fn with<P: PreparedConv + 'static>(
        &self,
        isa: Isa,
        prepare: impl FnOnce(usize, [usize; 2]) -> P,
    ) -> ConvKernel {
        let images = self.shape[0];
        // Nothing depends on which method it is said to be.
        ConvKernel::with(self.params, self.shape, isa, method("direct"), |out| Arc::new(prepare(images, out)))
            .expect("a sound convolution")
    }

    pub(in crate::conv) fn packed(&self, kernel: &ConvKernel) -> Vec<f32> {
        let mut packed = vec![f32::NAN; kernel.packed_len()];
        kernel.pack(&self.w, &mut packed);
        packed
    }

    /// Through NCHW, in a workspace full of NaN.
    pub(in crate::conv) fn run_nchw(&self, kernel: &ConvKernel, par: &dyn Par) -> Vec<f32> {
        let mut y = vec![f32::NAN; self.out_len()];
        let plain = PlainConv::of_images(kernel.clone());
        let mut workspace = vec![f32::NAN; plain.workspace_len()];
        let epilogue = PlainEpilogue {
            bias: self.bias.as_deref(),
            residual: self.residual.as_deref(),
            activation: self.activation,
        };
        plain.run(&self.x, &self.packed(kernel), epilogue, &mut y, &mut workspace, par);
        y
    }

    /// Blocked, with a larger input halo than needed, an output that is a slice of the channels of
    /// a wider one, and NaN in every buffer beforehand. Checks that the halo of the output is zero
    /// and nothing else of the wider tensor was written.
    fn run_blocked(&self, kernel: &ConvKernel, par: &dyn Par) -> Vec<f32> {
        let mut xs = kernel.input_shape();
        let extra =
            |halo: Halo| Halo { top: halo.top + 1, left: halo.left + 2, bottom: halo.bottom, right: halo.right + 1 };
        let resize = |s: BlockedShape, halo: Halo| match s.block {
            1 => BlockedShape::planar(s.n, s.c, s.h, s.w, halo),
            _ => BlockedShape::new(s.n, s.c, s.h, s.w, halo),
        };
        xs = resize(xs, extra(xs.halo));
        let mut x = vec![f32::NAN; xs.len()];
        to_blocked(Isa::detect(), &self.x, &mut BlockedMut::new(xs, &mut x), par);
        spoil_unused_channels(&xs, &mut x);

        let rs = resize(kernel.output_shape(), Halo { top: 0, left: 3, bottom: 1, right: 0 });
        let residual = self.residual.as_ref().map(|r| {
            let mut data = vec![f32::NAN; rs.len()];
            to_blocked(Isa::detect(), r, &mut BlockedMut::new(rs, &mut data), par);
            data
        });
        let mut ys = resize(kernel.output_shape(), Halo { top: 2, left: 1, bottom: 3, right: 4 });
        let guard = 2 * ys.block_stride();
        ys.image_stride += guard;
        let mut y = vec![f32::NAN; ys.len() + guard];
        let epilogue = ConvEpilogue {
            bias: self.bias.as_deref(),
            residual: residual.as_ref().map_or(Residual::None, |r| Residual::Add(Blocked::new(rs, r))),
            activation: self.activation,
        };
        let mut scratch = vec![f32::NAN; kernel.scratch_len()];
        kernel.run(
            Blocked::new(xs, &x),
            &self.packed(kernel),
            epilogue,
            &mut BlockedMut::new(ys, &mut y),
            &mut scratch,
            par,
        );

        for image in y.chunks(ys.image_stride) {
            assert!(image[ys.image_len()..].iter().all(|v| v.is_nan()), "wrote beyond its channels");
            for (row, pixels) in image[..ys.image_len()].chunks(ys.row_stride()).enumerate() {
                let row = row % (ys.h + 5);
                for (col, pixel) in pixels.chunks(BLOCK).enumerate() {
                    let inside = (2..2 + ys.h).contains(&row) && (1..1 + ys.w).contains(&col);
                    assert!(inside || pixel.iter().all(|&v| v == 0.0), "the halo at ({row}, {col}) is not zero");
                }
            }
        }
        let mut out = vec![f32::NAN; self.out_len()];
        from_blocked(Isa::detect(), Blocked::new(ys, &y), &mut out, par);
        out
    }

    /// The case with a residual that rounding does not change.
    pub(in crate::conv) fn with_rounded_residual(mut self) -> Case {
        self.residual = self.residual.map(|residual| rounded(&residual));
        self
    }

    /// All of the output, halo included, with input, residual and output in lines where asked for;
    /// in blocks, in NCHW order within them.
    pub(in crate::conv) fn run_lines(&self, kernel: &ConvKernel, lines: [bool; 3], par: &dyn Par) -> Vec<f32> {
        let of = |shape: BlockedShape, halo: Halo, lines: bool| {
            let make = if lines { BlockedShape::lines } else { BlockedShape::new };
            make(shape.n, shape.c, shape.h, shape.w, halo)
        };
        let data = |shape: &BlockedShape, x: &[f32]| {
            let blocks = of(*shape, shape.halo, false);
            let mut data = vec![f32::NAN; blocks.len()];
            to_blocked(Isa::detect(), x, &mut BlockedMut::new(blocks, &mut data), &Serial);
            fill_unused(&blocks, &mut data, f32::NAN);
            if shape.in_lines() { to_lines(shape, &data).1 } else { data }
        };
        let input = kernel.input_shape();
        let xs = of(input, Halo { left: input.halo.left + 1, bottom: input.halo.bottom + 2, ..input.halo }, lines[0]);
        let rs = of(kernel.output_shape(), Halo { top: 0, left: 3, bottom: 1, right: 0 }, lines[1]);
        let ys = of(kernel.output_shape(), Halo { top: 2, left: 1, bottom: 3, right: 4 }, lines[2]);
        let (x, residual) = (data(&xs, &self.x), self.residual.as_ref().map(|r| data(&rs, r)));
        let epilogue = ConvEpilogue {
            bias: self.bias.as_deref(),
            residual: residual.as_ref().map_or(Residual::None, |r| Residual::Add(Blocked::new(rs, r))),
            activation: self.activation,
        };
        let (mut y, mut scratch) = (vec![f32::NAN; ys.len()], vec![f32::NAN; kernel.scratch_len()]);
        let packed = self.packed(kernel);
        kernel.run(Blocked::new(xs, &x), &packed, epilogue, &mut BlockedMut::new(ys, &mut y), &mut scratch, par);
        if ys.in_lines() {
            let finite = |pair: &f32| bytemuck::cast::<f32, [u16; 2]>(*pair).iter().all(|half| half & 0x7f80 < 0x7f80);
            assert!(y.iter().all(finite), "a line of {:?} has channels that are no numbers", self.params);
            return to_blocks(&ys, &y).1;
        }
        fill_unused(&ys, &mut y, 0.0);
        y
    }

    /// Compares what selection chooses with the reference; `tolerance` is relative to the scale of
    /// the sums.
    pub(in crate::conv) fn check(&self, isa: Isa, winograd: Winograd, tolerance: f64) {
        self.check_kernels(&[self.select(isa, winograd)], tolerance);
    }

    /// Compares kernels with the reference, each run in both ways.
    pub(in crate::conv) fn check_kernels(&self, kernels: &[ConvKernel], tolerance: f64) {
        let (expected, scale) = self.reference();
        for kernel in kernels {
            self.check_kernel(kernel, &expected, scale, tolerance);
        }
    }

    fn check_kernel(&self, kernel: &ConvKernel, expected: &[f64], scale: f64, tolerance: f64) {
        for (how, y) in [("nchw", self.run_nchw(kernel, &Serial)), ("blocked", self.run_blocked(kernel, &Reverse))] {
            for (at, (&got, &want)) in y.iter().zip(expected).enumerate() {
                let error = (f64::from(got) - want).abs();
                assert!(
                    error <= tolerance * scale,
                    "{} {how}: element {at} of {:?} on {:?} is {got}, expected {want}",
                    kernel.name(),
                    self.params,
                    self.shape
                );
            }
        }
    }
}

/// Channels beyond the last hold anything.
fn spoil_unused_channels(shape: &BlockedShape, data: &mut [f32]) {
    let used = shape.c - (shape.blocks() - 1) * shape.block;
    for image in data.chunks_mut(shape.image_stride) {
        let last = &mut image[shape.image_len() - shape.block_stride()..shape.image_len()];
        last.chunks_mut(shape.block).for_each(|pixel| pixel[used..].fill(f32::NAN));
    }
}

pub(in crate::conv) fn activations() -> impl Strategy<Value = Activation> {
    prop_oneof![
        Just(Activation::None),
        Just(Activation::Relu),
        Just(Activation::Clip { lo: -0.5, hi: 6.0 }),
        Just(Activation::Leaky { slope: 0.25 })
    ]
}

prop_compose! {
    /// Any convolution: groups of any size (also of one channel), kernels up to 5, strides,
    /// dilations and pads up to 3.
    pub(in crate::conv) fn convolutions()(
        groups in prop_oneof![3 => Just(1usize), 1 => 2usize..5, 1 => 5usize..40],
        inputs in 1usize..40, outputs in 1usize..40, depthwise in prop::bool::weighted(0.2),
        kernel in [1usize..6, 1usize..6], stride in [1usize..4, 1usize..4],
        dilate in [1usize..4, 1usize..4], pad in [0usize..4, 0usize..4],
    ) -> Conv2dParams {
        // Many groups of many channels would only make the test slow.
        let limit = |c: usize| if groups == 1 { c } else { 1 + c % (80 / groups).max(1) };
        let (inputs, outputs) = if depthwise { (1, 1) } else { (limit(inputs), limit(outputs)) };
        Conv2dParams { in_channels: groups * inputs, out_channels: groups * outputs, kernel, stride, dilate, pad, groups }
    }
}

/// Shapes large enough to be cut into several chunks in every direction.
pub(in crate::conv) fn chunked_cases() -> Vec<Case> {
    let square = Conv2dParams::square;
    [
        (Conv2dParams { pad: [1, 1], ..square(64, 64, 3) }, 2, [28, 28]),
        (Conv2dParams { pad: [1, 1], ..square(256, 256, 3) }, 2, [14, 14]),
        (square(512, 512, 1), 1, [7, 7]),
        (square(512, 512, 1), 2, [14, 14]),
        (square(1024, 128, 1), 1, [14, 14]),
        (Conv2dParams { kernel: [7, 1], pad: [3, 0], ..square(128, 192, 1) }, 1, [17, 17]),
        (Conv2dParams { groups: 64, pad: [1, 1], ..square(64, 64, 3) }, 2, [56, 56]),
        (Conv2dParams { stride: [2, 2], pad: [3, 3], ..square(3, 32, 7) }, 1, [112, 112]),
        (Conv2dParams { stride: [2, 2], pad: [1, 1], ..square(64, 128, 3) }, 1, [56, 56]),
        (Conv2dParams { stride: [2, 2], pad: [1, 1], ..square(256, 256, 3) }, 1, [14, 14]),
    ]
    .into_iter()
    .map(|(params, n, size)| Case::new(params, n, size, 11).with_epilogue(true, true, Activation::Relu))
    .collect()
}
