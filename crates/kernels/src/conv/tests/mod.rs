//! Every algorithm against a convolution in f64 written from the definition.

use super::*;
use crate::activation::Activation;
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo, from_blocked, to_blocked};
use crate::cache_class::CacheClass;
use crate::conv::method::PreparedConv;
use crate::conv::methods::direct::Direct;
use crate::conv::methods::winograd::{Scheme, WinogradFused, WinogradPolyphase, WinogradPretransformed};
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads, Uneven};
use proptest::prelude::*;
use std::sync::Arc;

mod bf16;
mod few_channels;
mod packing;
mod plain_tensors;
mod pooled;
mod strided;
mod taps;
mod unpack;

/// The method of this name.
pub(in crate::conv) fn method(name: &str) -> Method {
    name.parse().expect("a method")
}

/// Whether a method fits a convolution of images that are large enough for it.
pub(in crate::conv) fn fits(name: &str, params: Conv2dParams, isa: Isa) -> bool {
    let (cache, precision) = (CacheClass::detect(), Precision::Single);
    let shape = [1, params.in_channels, 64, 64];
    method(name).0.fits(&ConvSignature { isa, cache, precision, params, shape })
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

    fn out_size(&self) -> [usize; 2] {
        self.params.output_size([self.shape[2], self.shape[3]]).expect("the kernel fits the image")
    }

    fn out_len(&self) -> usize {
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

    fn select(&self, isa: Isa, winograd: Winograd) -> ConvKernel {
        ConvKernel::select(self.params, self.shape, isa, ConvOptions { winograd, ..ConvOptions::default() })
            .expect("a sound convolution")
    }

    /// What `prepare` makes for the number of images and the rows and columns of the output.
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

    fn packed(&self, kernel: &ConvKernel) -> Vec<f32> {
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

    /// Compares what selection chooses with the reference; `tolerance` is relative to the scale of
    /// the sums.
    fn check(&self, isa: Isa, winograd: Winograd, tolerance: f64) {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_direct_convolution_equals_its_definition_on_every_instruction_set(
        params in convolutions(), n in 1usize..4, h in 0usize..12, w in 0usize..35,
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = Case::new(params, n, [reach(0) + h, reach(1) + w], seed).with_epilogue(bias, residual, activation);
        case.check_kernels(&Isa::ALL.map(|isa| case.select(isa, Winograd::Off)), 1e-6);
    }
}

#[test]
fn convolutions_of_real_networks_equal_their_definition() {
    let square = Conv2dParams::square;
    let cases = [
        (Conv2dParams { stride: [2, 2], pad: [3, 3], ..square(3, 64, 7) }, [40, 46]),
        (Conv2dParams { pad: [1, 1], ..square(64, 64, 3) }, [14, 14]),
        (Conv2dParams { stride: [2, 2], pad: [1, 1], ..square(32, 80, 3) }, [15, 15]),
        (square(72, 48, 1), [7, 7]),
        (Conv2dParams { stride: [2, 2], ..square(64, 96, 1) }, [14, 14]),
        (Conv2dParams { groups: 32, pad: [1, 1], ..square(128, 128, 3) }, [9, 9]),
        (Conv2dParams { groups: 96, stride: [2, 2], pad: [1, 1], ..square(96, 96, 3) }, [17, 17]),
        (Conv2dParams { kernel: [1, 7], pad: [0, 3], ..square(40, 24, 1) }, [12, 17]),
    ];
    for (params, size) in cases {
        for isa in Isa::ALL {
            Case::new(params, 2, size, 3).with_epilogue(true, true, Activation::Relu).check(isa, Winograd::Off, 1e-6);
        }
    }
}

#[test]
fn a_one_dimensional_convolution_is_a_two_dimensional_one_of_height_one() {
    let params = Conv2dParams { kernel: [1, 3], pad: [0, 1], ..Conv2dParams::square(20, 33, 1) };
    for isa in Isa::ALL {
        Case::new(params, 3, [1, 50], 5).check(isa, Winograd::Off, 1e-6);
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

#[test]
fn a_convolution_has_the_same_bits_whoever_runs_its_chunks() {
    for case in chunked_cases() {
        for isa in [Isa::Avx512, Isa::Avx2] {
            for winograd in [Winograd::Off, Winograd::F2, Winograd::F4] {
                let kernel = case.select(isa, winograd);
                let run = |par: &dyn Par| case.run_nchw(&kernel, par).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                let serial = run(&Serial);
                assert_eq!(serial, run(&Reverse), "{}", kernel.name());
                assert_eq!(serial, run(&Threads(3)), "{}", kernel.name());
                assert_eq!(serial, run(&Uneven(2)), "{}", kernel.name());
                assert_eq!(serial, run(&Uneven(4)), "{}", kernel.name());
            }
        }
    }
}

/// Runs what the first of two threads would begin with.
struct FirstOfTwo;

impl Par for FirstOfTwo {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        Serial.run(chunks / 2, scratch_bytes, body);
    }

    fn parallelism(&self) -> usize {
        2
    }
}

/// Which rows of which blocks of channels the first of two threads writes.
fn first_half(kernel: &ConvKernel) -> Vec<(usize, usize)> {
    let (xs, ys) = (kernel.input_shape(), kernel.output_shape());
    let (x, packed) = (vec![0.0; xs.len()], vec![0.0; kernel.packed_len()]);
    let (mut y, mut scratch) = (vec![f32::NAN; ys.len()], vec![0.0; kernel.scratch_len()]);
    let mut out = BlockedMut::new(ys, &mut y);
    kernel.run(Blocked::new(xs, &x), &packed, ConvEpilogue::default(), &mut out, &mut scratch, &FirstOfTwo);
    let places = (0..ys.blocks()).flat_map(|block| (0..ys.h).map(move |row| (block, row)));
    places.filter(|(block, row)| !y[ys.offset(0, *block, *row, 0)].is_nan()).collect()
}

#[test]
fn a_core_writes_the_same_half_of_a_depthwise_layer_and_of_the_1x1_layer_behind_it() {
    for (channels, size, by_rows) in [(128, 56, true), (256, 28, true), (512, 14, false)] {
        let half = |block, row| if by_rows { row < size / 2 } else { block < channels / BLOCK / 2 };
        let places = (0..channels / BLOCK).flat_map(|block| (0..size).map(move |row| (block, row)));
        let expected: Vec<_> = places.filter(|(block, row)| half(*block, *row)).collect();
        let shape = [1, channels, size, size];
        let square = Conv2dParams::square(channels, channels, 1);
        let depthwise = Conv2dParams { groups: channels, pad: [1, 1], ..Conv2dParams::square(channels, channels, 3) };
        for isa in Isa::ALL.map(Isa::or_best) {
            let planes = |out| Direct::new(square, Elements::Single, out, false, isa, CacheClass::Medium);
            let direct = ConvKernel::with(square, shape, isa, method("direct"), |out| Arc::new(planes(out)));
            let single = ConvKernel::select(depthwise, shape, isa, ConvOptions::default());
            for kernel in [direct, single].map(|kernel| kernel.expect("a sound convolution")) {
                assert_eq!(first_half(&kernel), expected, "{} of {channels} @{size}", kernel.name());
            }
        }
    }
}

#[test]
fn a_kernel_that_does_not_fit_or_contradicts_itself_is_not_selected() {
    let select = |params: Conv2dParams, shape| ConvKernel::select(params, shape, Isa::detect(), ConvOptions::default());
    assert!(select(Conv2dParams::square(8, 8, 5), [1, 8, 4, 9]).is_none(), "larger than the image");
    assert!(select(Conv2dParams::square(8, 8, 3), [1, 9, 4, 9]).is_none(), "other channels");
    assert!(
        select(Conv2dParams { groups: 3, ..Conv2dParams::square(8, 9, 1) }, [1, 8, 4, 4]).is_none(),
        "uneven groups"
    );
    assert!(
        select(Conv2dParams { stride: [0, 1], ..Conv2dParams::square(8, 8, 1) }, [1, 8, 4, 4]).is_none(),
        "no stride"
    );
    assert!(select(Conv2dParams::square(8, 8, 1), [1, 8, 0, 4]).is_none(), "an empty image");
    for pad in [1 << 20, 1 << 30] {
        let params = Conv2dParams { pad: [pad; 2], ..Conv2dParams::square(64, 64, 1) };
        assert!(select(params, [1, 64, 4, 4]).is_none(), "larger than offsets: {pad}");
    }
}

#[test]
fn nan_and_infinity_reach_exactly_the_outputs_that_see_them() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(16, 16, 3) };
    let mut case = Case::new(params, 1, [9, 9], 1).with_epilogue(true, false, Activation::Relu);
    case.x[4 * 9 + 4] = f32::NAN;
    for isa in Isa::ALL {
        let y = case.run_nchw(&case.select(isa, Winograd::Off), &Serial);
        for (at, v) in y.iter().enumerate() {
            let (row, col) = (at / 9 % 9, at % 9);
            let sees = (3..6).contains(&row) && (3..6).contains(&col);
            assert_eq!(v.is_nan(), sees, "{isa} at ({row}, {col})");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_winograd_form_equals_the_definition_on_every_instruction_set(
        inputs in 1usize..60, outputs in 1usize..60, n in 1usize..3, h in 1usize..24, w in 1usize..24,
        pad in [1usize..4, 1usize..4], bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = Conv2dParams { pad, ..Conv2dParams::square(inputs, outputs, 3) };
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let at_load = |isa, scheme| case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa));
        case.check_kernels(&Isa::ALL.map(|isa| at_load(isa.or_best(), Scheme::F2)), 1e-6);
        case.check_kernels(&Isa::ALL.map(|isa| at_load(isa.or_best(), Scheme::F4)), 3e-6);
    }

    #[test]
    fn filters_transformed_in_registers_equal_the_definition(
        input_blocks in 1usize..6, outputs in 1usize..40, n in 1usize..3, h in 1usize..24, w in 1usize..24,
        pad in [1usize..4, 1usize..4], bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = Conv2dParams { pad, ..Conv2dParams::square(16 * input_blocks, outputs, 3) };
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        if fits("winograd-fused", params, Isa::detect()) {
            let choose = |n, out| WinogradFused::new(params, n, out);
            case.check_kernels(&[case.with(Isa::Avx512, choose)], 3e-6);
        }
    }
}

#[test]
fn patches_of_every_size_equal_the_definition() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(32, 20, 3) };
    if fits("winograd-fused", params, Isa::detect()) {
        for (h, w) in (1..=12).flat_map(|h| (1..=12).map(move |w| (h, w))) {
            let case = Case::new(params, 1, [h, w], 7).with_epilogue(true, true, Activation::Relu);
            let choose = |n, out| WinogradFused::new(params, n, out);
            case.check_kernels(&[case.with(Isa::Avx512, choose)], 3e-6);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_phases_of_a_strided_convolution_equal_the_definition_on_every_instruction_set(
        inputs in 1usize..5, outputs in 1usize..70, kernel in [5usize..9, 5usize..9], n in 1usize..3,
        h in 8usize..40, w in 8usize..40, pad in [0usize..4, 0usize..4],
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let square = Conv2dParams::square(inputs, outputs, 1);
        let params = Conv2dParams { kernel, pad, stride: [2, 2], ..square };
        prop_assert!(fits("winograd-polyphase", params, Isa::detect()));
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let phases = |isa: Isa| case.with(isa, |n, out| WinogradPolyphase::new(params, n, out, isa));
        // One channel has sums of few terms, beside which the rounding of the whole tile weighs
        // more.
        case.check_kernels(&Isa::ALL.map(|isa| phases(isa.or_best())), 2e-5);
    }
}

#[test]
fn the_first_layer_of_real_networks_is_computed_by_phases_and_equals_the_definition() {
    let params = Conv2dParams { stride: [2, 2], pad: [3, 3], ..Conv2dParams::square(3, 64, 7) };
    let case = Case::new(params, 2, [45, 62], 6).with_epilogue(true, false, Activation::Relu);
    if Isa::Avx512.is_available() {
        assert_eq!(case.select(Isa::Avx512, Winograd::F4).name(), "winograd F(4,4) polyphase, avx512");
    }
    case.check(Isa::detect(), Winograd::F4, 2e-6);
}

#[test]
fn each_algorithm_is_selected_where_it_pays() {
    let padded = |i, o| Conv2dParams { pad: [1, 1], ..Conv2dParams::square(i, o, 3) };
    let name = |params: Conv2dParams, n, size, isa, winograd| {
        let shape = [n, params.in_channels, size, size];
        ConvKernel::select(params, shape, isa, ConvOptions { winograd, ..ConvOptions::default() })
            .expect("a sound convolution")
            .name()
    };
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let at_load = format!("winograd F(4,3) pre-transformed, 25 tiles, {isa}");
        assert_eq!(name(padded(64, 64), 1, 56, isa, Winograd::F4), at_load);
        assert!(name(padded(64, 64), 1, 56, isa, Winograd::F2).starts_with("winograd F(2,3) pre-transformed"));
        assert!(name(padded(64, 64), 1, 56, isa, Winograd::Off).starts_with("direct"));
        assert!(name(padded(12, 64), 1, 56, isa, Winograd::F4).starts_with("direct"), "too few channels");
        assert!(name(padded(512, 512), 8, 14, isa, Winograd::F4).contains("pre-transformed"), "a batch has many tiles");
        let strided = |outputs| Conv2dParams { stride: [2, 2], ..padded(64, outputs) };
        let of_strides = format!("winograd F(4,3) stride 2 pre-transformed, 13 tiles, {isa}");
        assert_eq!(name(strided(64), 1, 56, isa, Winograd::F4), of_strides);
        assert!(name(strided(64), 1, 56, isa, Winograd::F2).starts_with("direct"), "larger tiles are forbidden");
        assert!(name(strided(12), 1, 56, isa, Winograd::F4).starts_with("direct"), "too few channels");
        let depthwise = Conv2dParams { groups: 64, ..padded(64, 64) };
        assert_eq!(name(depthwise, 1, 56, isa, Winograd::F4), format!("depthwise {isa}"));
    }
    if Isa::Avx512.is_available() {
        for (channels, size, patches) in [(256, 14, "7x7"), (512, 7, "7x7"), (512, 6, "6x6"), (512, 5, "5x5")] {
            let chosen = name(padded(channels, channels), 1, size, Isa::Avx512, Winograd::F4);
            assert_eq!(chosen, format!("winograd F(4,3) fused-transform, {patches} patches, avx512"));
        }
        for (channels, size, scheme, tiles, why) in [
            (128, 56, "F(4,3)", 13, "not six blocks of few tiles"),
            (128, 28, "F(3,3)", 25, "one block fits the cache"),
            (256, 28, "F(3,3)", 13, "one block does not"),
        ] {
            let strided = Conv2dParams { stride: [2, 2], ..padded(channels, channels) };
            let chosen = name(strided, 1, size, Isa::Avx512, Winograd::F4);
            assert_eq!(chosen, format!("winograd {scheme} stride 2 pre-transformed, {tiles} tiles, avx512"), "{why}");
        }
    }
}

#[test]
fn an_outlier_leaks_into_its_tile_under_winograd_and_not_at_all_without() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(32, 32, 3) };
    let mut case = Case::new(params, 1, [16, 16], 4);
    case.x[5 * 16 + 5] = 1e4;
    let (expected, _) = case.reference();
    let unseen_error = |winograd| {
        let y = case.run_nchw(&case.select(Isa::detect(), winograd), &Serial);
        let far = |at: usize| !(4..7).contains(&(at / 16 % 16)) || !(4..7).contains(&(at % 16));
        let errors = y.iter().zip(&expected).enumerate().filter(|(at, _)| far(*at));
        errors.map(|(_, (&got, want))| (f64::from(got) - want).abs()).fold(0.0, f64::max)
    };
    assert!(unseen_error(Winograd::Off) < 1e-4);
    let leak = unseen_error(Winograd::F4);
    assert!((1e-4..1e-1).contains(&leak), "the documented leak is a few millionths of the outlier, got {leak}");
}

#[test]
fn an_infinity_spreads_over_its_tile_under_f4_and_no_further_and_not_at_all_under_f2() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(32, 32, 3) };
    let mut case = Case::new(params, 1, [16, 16], 4);
    case.x[5 * 16 + 5] = f32::INFINITY;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let bad = |kernel: ConvKernel| {
            let y = case.run_nchw(&kernel, &Serial);
            let plane: Vec<bool> = y[..256].iter().map(|v| !v.is_finite()).collect();
            assert!((4..7).all(|row| plane[row * 16 + 4..row * 16 + 7].iter().all(|bad| *bad)), "{isa}: who sees it");
            assert!(
                plane.iter().enumerate().all(|(at, bad)| !bad || (at / 16 < 12 && at % 16 < 12)),
                "{isa}: far away"
            );
            plane.iter().filter(|bad| **bad).count()
        };
        assert_eq!(bad(case.select(isa, Winograd::Off)), 9, "{isa}");
        let at_load = |scheme| {
            case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa))
        };
        // The values of F(2,3) reach only outputs that see them; as NaN, because differences of
        // infinities are formed.
        assert_eq!(bad(at_load(Scheme::F2)), 9, "{isa}");
        assert!(bad(at_load(Scheme::F4)) > 9, "{isa}: the documented spread");
    }
}

proptest! {
    #[test]
    fn conversion_to_blocked_and_back_is_exact(
        n in 1usize..3, c in 1usize..40, h in 1usize..9, w in 1usize..40, planar: bool, halo in 0usize..3,
    ) {
        let halo = Halo { top: halo, left: 1, bottom: 2 * halo, right: halo };
        let shape = if planar { BlockedShape::planar(n, c, h, w, halo) } else { BlockedShape::new(n, c, h, w, halo) };
        let x = values(3, n * c * h * w);
        for isa in Isa::ALL {
            let mut blocked = vec![f32::NAN; shape.len()];
            to_blocked(isa, &x, &mut BlockedMut::new(shape, &mut blocked), &Reverse);
            let mut back = vec![f32::NAN; x.len()];
            from_blocked(isa, Blocked::new(shape, &blocked), &mut back, &Serial);
            prop_assert_eq!(&back, &x);
        }
    }
}
