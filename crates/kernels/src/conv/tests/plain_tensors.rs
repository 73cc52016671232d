//! Convolutions with three spatial axes against the plain kernel in f64.

use crate::activation::Activation;
use crate::conv::tests::{method, values};
use crate::conv::*;
use crate::conv_plain::{ConvParams, conv_size, convolution};
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

/// A convolution of volumes: `[n, c, d, h, w]` and the kernel.
#[derive(Clone, Debug)]
struct VolumeCase {
    shape: [usize; 5],
    params: Conv2dParams,
    depth: Depth,
    residual: bool,
}

impl VolumeCase {
    fn outputs(&self) -> Option<Vec<usize>> {
        let [n, _, d, h, w] = self.shape;
        let Depth { kernel, stride, dilate, pad } = self.depth;
        let [rows, cols] = self.params.output_size([h, w])?;
        Some(vec![n, self.params.out_channels, conv_size(d, kernel, stride, pad, dilate)?, rows, cols])
    }

    fn weights(&self) -> usize {
        self.params.weight_len() * self.depth.kernel
    }

    fn select(&self, isa: Isa, winograd: Winograd) -> PlainConv {
        self.select_with(isa, ConvOptions { winograd, ..ConvOptions::default() })
    }

    fn select_with(&self, isa: Isa, options: ConvOptions) -> PlainConv {
        PlainConv::select(self.params, self.depth, self.shape, isa, options).expect("a sound convolution")
    }

    /// Runs with bias, perhaps a residual, and ReLU, in a workspace full of NaN.
    fn run(&self, conv: &PlainConv, par: &dyn Par) -> Vec<f32> {
        let out: usize = self.outputs().expect("the kernel fits").iter().product();
        let (bias, residual) = (values(3, self.params.out_channels), values(4, out));
        let mut packed = vec![f32::NAN; conv.packed_len()];
        conv.pack(&values(2, self.weights()), &mut packed);
        let epilogue = PlainEpilogue {
            bias: Some(&bias),
            residual: self.residual.then_some(&residual),
            activation: Activation::Relu,
        };
        let (mut y, mut workspace) = (vec![f32::NAN; out], vec![f32::NAN; conv.workspace_len()]);
        conv.run(&values(1, self.shape.iter().product()), &packed, epilogue, &mut y, &mut workspace, par);
        y
    }

    /// The result in f64, and a bound of the sums of magnitudes.
    fn reference(&self) -> (Vec<f64>, f64) {
        let wide = |seed, n| values(seed, n).iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let out = self.outputs().expect("the kernel fits");
        let (p, depth) = (&self.params, &self.depth);
        let three = |first: usize, rest: [usize; 2]| [first, rest[0], rest[1]];
        let (kernel, stride) = (three(depth.kernel, p.kernel), three(depth.stride, p.stride));
        let (pad, dilate) = (three(depth.pad, p.pad), three(depth.dilate, p.dilate));
        let params = ConvParams { kernel: &kernel, stride: &stride, pad: &pad, dilate: &dilate, groups: p.groups };
        let (x, w) = (wide(1, self.shape.iter().product()), wide(2, self.weights()));
        let len = out.iter().product();
        let mut y = vec![0.0; len];
        convolution(&Serial, params, &x, &self.shape, &w, Some(&wide(3, p.out_channels)), &mut y, &out);
        let residual = if self.residual { wide(4, len) } else { vec![0.0; len] };
        y.iter_mut().zip(residual).for_each(|(y, r)| *y = (*y + r).max(0.0));
        (y, (self.weights() / p.out_channels) as f64)
    }

    fn check(&self) {
        let (expected, scale) = self.reference();
        for isa in Isa::ALL {
            for winograd in [Winograd::Off, Winograd::F4] {
                self.check_kernel(&self.select(isa, winograd), &expected, 3e-6 * scale.max(4.0));
            }
        }
    }

    fn check_kernel(&self, conv: &PlainConv, expected: &[f64], tolerance: f64) {
        let y = self.run(conv, &Serial);
        for (at, (got, want)) in y.iter().zip(expected).enumerate() {
            let difference = (f64::from(*got) - want).abs();
            assert!(difference <= tolerance, "{self:?} {}: {got}, not {want}, at {at}", conv.name());
        }
        for par in [&Reverse as &dyn Par, &Threads(3)] {
            let again = self.run(conv, par);
            assert!(y.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()), "{}", conv.name());
        }
        self.check_unpacking(conv);
    }

    fn check_unpacking(&self, conv: &PlainConv) {
        if !conv.can_unpack() {
            return;
        }
        let (weights, outputs) = (values(2, self.weights()), self.params.out_channels);
        let (each, middle) = (weights.len() / outputs, outputs / 2);
        let mut packed = vec![f32::NAN; conv.packed_len()];
        conv.pack(&weights, &mut packed);
        let mut back = vec![f32::NAN; weights.len()];
        conv.unpack(&packed, 0..middle, &mut back[..middle * each]);
        conv.unpack(&packed, middle..outputs, &mut back[middle * each..]);
        assert!(back.iter().zip(&weights).all(|(a, b)| a.to_bits() == b.to_bits()), "{}", conv.name());
    }
}

fn case(shape: [usize; 5], outputs: usize, kernel: [usize; 3], stride: [usize; 3], pad: [usize; 3]) -> VolumeCase {
    let [depth, kernel @ ..] = kernel;
    let params = Conv2dParams {
        kernel,
        stride: [stride[1], stride[2]],
        pad: [pad[1], pad[2]],
        ..Conv2dParams::square(shape[1], outputs, 1)
    };
    let depth = Depth { kernel: depth, stride: stride[0], dilate: 1, pad: pad[0] };
    VolumeCase { shape, params, depth, residual: false }
}

#[test]
fn slices_that_an_output_sees_are_channels_of_one_image() {
    let conv = case([1, 32, 8, 14, 14], 32, [3; 3], [1; 3], [1; 3]).select(Isa::Avx2, Winograd::F4);
    assert!(conv.kernel().method().transforms(), "{}", conv.name());
    assert_eq!(conv.kernel().params().in_channels, 96);
    assert!(conv.name().ends_with(", 3 slices at once"), "{}", conv.name());
    let few = case([1, 3, 8, 14, 14], 32, [3; 3], [1; 3], [1; 3]).select(Isa::Avx2, Winograd::F4);
    assert_eq!((few.kernel().params().in_channels, few.signature()), (9, None), "nothing is chosen for planes");
    let mut grouped = case([1, 32, 8, 14, 14], 32, [3; 3], [1; 3], [1; 3]);
    grouped.params.groups = 32;
    let conv = grouped.select(Isa::Avx2, Winograd::F4);
    assert_eq!(conv.kernel().method(), method("depthwise"));
    assert!(conv.name().ends_with(", 3 slices one by one"), "{}", conv.name());
}

#[test]
fn volumes_of_common_networks_agree_with_the_definition() {
    // First layers, a layer of C3D, factors of R(2+1)D, one kernel over all of a volume, strides
    // that leave slices out.
    case([2, 3, 5, 12, 12], 16, [3; 3], [1; 3], [1; 3]).check();
    case([1, 3, 9, 16, 16], 8, [7; 3], [2; 3], [3; 3]).check();
    case([2, 32, 4, 9, 9], 32, [3; 3], [1; 3], [1; 3]).check();
    case([2, 20, 5, 9, 8], 24, [1, 3, 3], [1, 2, 2], [0, 1, 1]).check();
    case([2, 24, 6, 7, 7], 20, [3, 1, 1], [2, 1, 1], [1, 0, 0]).check();
    case([2, 17, 4, 3, 3], 5, [4, 3, 3], [1; 3], [0; 3]).check();
    case([2, 16, 9, 5, 5], 16, [1; 3], [4, 1, 1], [0; 3]).check();
}

#[test]
fn volumes_are_computed_in_bf16_too() {
    for inputs in [32, 20] {
        let case = case([2, inputs, 4, 9, 9], 32, [3; 3], [1; 3], [1; 3]);
        let conv =
            case.select_with(Isa::detect(), ConvOptions { precision: Precision::Bf16, ..ConvOptions::default() });
        let (expected, scale) = case.reference();
        case.check_kernel(&conv, &expected, 1e-3 * scale);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn volumes_agree_with_the_definition(
        n in 1usize..4,
        group_inputs in 1usize..20,
        group_outputs in 1usize..20,
        groups in prop_oneof![Just(1), Just(1), 2usize..5],
        size in prop::array::uniform3(1usize..9),
        kernel in prop::array::uniform3(1usize..4),
        stride in prop::array::uniform3(1usize..4),
        dilate in prop::array::uniform3(prop_oneof![Just(1), Just(1), Just(2)]),
        pad in prop::array::uniform3(0usize..3),
        residual: bool,
    ) {
        let [d, h, w] = size;
        let shape = [n, group_inputs * groups, d, h, w];
        let mut case = case(shape, group_outputs * groups, kernel, stride, pad);
        case.params = Conv2dParams { groups, dilate: [dilate[1], dilate[2]], ..case.params };
        case.depth.dilate = dilate[0];
        case.residual = residual;
        if case.outputs().is_some() {
            case.check();
        }
    }
}

#[test]
fn what_does_not_fit_or_takes_too_many_elements_is_left_to_the_plain_kernel() {
    let select = |case: VolumeCase| {
        PlainConv::select(case.params, case.depth, case.shape, Isa::Portable, ConvOptions::default())
    };
    assert!(select(case([1, 4, 2, 5, 5], 4, [3; 3], [1; 3], [0; 3])).is_none(), "a kernel deeper than the volume");
    assert!(select(case([0, 4, 4, 5, 5], 4, [3; 3], [1; 3], [0; 3])).is_none(), "no volume");
    let far = 1 << 31;
    assert!(select(case([1, 4, 1, 5, 5], 4, [1, 3, 3], [far, 1, 1], [far - 1, 0, 0])).is_none(), "two far apart");
    assert!(select(case([1, 4, 1, 5, 5], 4, [1, 3, 3], [usize::MAX, 1, 1], [0; 3])).is_some(), "only the first");
}
