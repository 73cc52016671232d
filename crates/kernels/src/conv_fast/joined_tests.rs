//! Joined convolutions against the two run one after the other, and those against their definition.

use super::tests::activations;
use super::*;
use crate::activation::Activation;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads, random};
use proptest::prelude::*;

/// A depthwise convolution, the 1x1 convolution behind it, and their operands.
struct Case {
    first: ConvKernel,
    then: ConvKernel,
    weights: [Vec<f32>; 2],
    biases: [Option<Vec<f32>>; 2],
    activations: [Activation; 2],
    residual: Option<Vec<f32>>,
    x: Vec<f32>,
}

fn with_halo(s: BlockedShape, halo: Halo) -> BlockedShape {
    BlockedShape::new(s.n, s.c, s.h, s.w, halo)
}

impl Case {
    fn new(first: Conv2dParams, filters: usize, shape: [usize; 4], isa: Isa, precision: Precision) -> Case {
        let options = ConvOptions { precision, ..ConvOptions::default() };
        let first = ConvKernel::select(first, shape, isa, options).expect("a sound convolution");
        let map = first.output_shape();
        let pointwise = Conv2dParams::square(map.c, filters, 1);
        let then = ConvKernel::select(pointwise, [map.n, map.c, map.h, map.w], isa, options).expect("a sound one");
        let ys = then.output_shape();
        Case {
            weights: [&first, &then].map(|k| random(k.params().weight_len(), 1)),
            biases: [Some(random(map.c, 2)), Some(random(filters, 3))],
            activations: [Activation::Relu, Activation::None],
            residual: Some(random(ys.n * ys.c * ys.h * ys.w, 4)),
            x: random(shape.iter().product(), 5),
            first,
            then,
        }
    }

    /// The input with more halo than is read, and the residual.
    fn operands(&self) -> [(BlockedShape, Vec<f32>); 2] {
        let xs = self.first.input_shape();
        let Halo { top, left, bottom, right } = xs.halo;
        let xs = with_halo(xs, Halo { top: top + 1, left: left + 2, bottom, right: right + 1 });
        let rs = with_halo(self.then.output_shape(), Halo { top: 1, left: 0, bottom: 2, right: 1 });
        [(xs, Some(&self.x)), (rs, self.residual.as_ref())].map(|(shape, plain)| {
            let mut data = vec![f32::NAN; shape.len()];
            if let Some(plain) = plain {
                to_blocked(Isa::detect(), plain, &mut BlockedMut::new(shape, &mut data), &Serial);
            }
            (shape, data)
        })
    }

    fn epilogue<'a>(&'a self, (rs, residual): &'a (BlockedShape, Vec<f32>)) -> ConvEpilogue<'a> {
        let add = self.residual.as_ref().map(|_| Residual::Add(Blocked::new(*rs, residual)));
        let residual = add.unwrap_or(Residual::None);
        ConvEpilogue { bias: self.biases[1].as_deref(), residual, activation: self.activations[1] }
    }

    /// The output with a halo.
    fn ys(&self) -> BlockedShape {
        with_halo(self.then.output_shape(), Halo { top: 2, left: 1, bottom: 1, right: 3 })
    }

    fn one_after_the_other(&self) -> Vec<u32> {
        let [(xs, x), residual] = self.operands();
        let pack = |k: &ConvKernel, w: &[f32]| {
            let mut packed = vec![f32::NAN; k.packed_len()];
            k.pack(w, &mut packed);
            packed
        };
        let packed = [pack(&self.first, &self.weights[0]), pack(&self.then, &self.weights[1])];
        let (ms, ys) = (self.first.output_shape(), self.ys());
        let (mut m, mut y) = (vec![f32::NAN; ms.len()], vec![f32::NAN; ys.len()]);
        let mut scratch = vec![f32::NAN; self.first.scratch_len().max(self.then.scratch_len())];
        let first = ConvEpilogue {
            bias: self.biases[0].as_deref(),
            activation: self.activations[0],
            ..ConvEpilogue::default()
        };
        let x = Blocked::new(xs, &x);
        self.first.run(x, &packed[0], first, &mut BlockedMut::new(ms, &mut m), &mut scratch, &Serial);
        let (map, then) = (Blocked::new(ms, &m), self.epilogue(&residual));
        self.then.run(map, &packed[1], then, &mut BlockedMut::new(ys, &mut y), &mut scratch, &Serial);
        self.bits(&y)
    }

    fn joined(&self, kernel: &JoinedKernel, par: &dyn Par) -> Vec<u32> {
        let [(xs, x), residual] = self.operands();
        let mut packed = vec![f32::NAN; kernel.packed_len()];
        kernel.pack(&self.weights[0], &self.weights[1], &mut packed);
        let ys = self.ys();
        let mut y = vec![f32::NAN; ys.len()];
        let first = FirstEpilogue { bias: self.biases[0].as_deref(), activation: self.activations[0] };
        let x = Blocked::new(xs, &x);
        kernel.run(x, &packed, first, self.epilogue(&residual), &mut BlockedMut::new(ys, &mut y), par);
        self.bits(&y)
    }

    /// The values with their halo, but not what lies in channels beyond the last.
    fn bits(&self, y: &[f32]) -> Vec<u32> {
        let ys = self.ys();
        let used = |at: usize| at / ys.block_stride() % ys.blocks() * BLOCK + at % BLOCK < ys.c;
        y.iter().enumerate().filter(|(at, _)| used(*at)).map(|(_, v)| v.to_bits()).collect()
    }

    fn check(&self) -> bool {
        let Some(kernel) = JoinedKernel::possible(&self.first, &self.then) else { return false };
        let apart = self.one_after_the_other();
        assert!(apart.iter().all(|bits| !f32::from_bits(*bits).is_nan()), "the reference is complete");
        for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
            assert!(apart == self.joined(&kernel, par), "{} on {:?}", kernel.name(), self.first.signature());
        }
        true
    }
}

fn depthwise(channels: usize, kernel: usize, stride: usize) -> Conv2dParams {
    Conv2dParams {
        stride: [stride; 2],
        pad: [kernel / 2; 2],
        groups: channels,
        ..Conv2dParams::square(channels, channels, kernel)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn joined_convolutions_have_the_bits_of_one_after_the_other_on_every_instruction_set(
        channels in 2usize..70, filters in 1usize..70, kernel in prop_oneof![3 => Just(3usize), 1 => 1usize..6],
        stride in 1usize..3, n in 1usize..4, h in 5usize..20, w in 5usize..40,
        biases: [bool; 2], residual: bool, activations in [activations(), activations()],
    ) {
        for isa in Isa::ALL {
            for precision in [Precision::Single, Precision::Bf16] {
                let params = depthwise(channels, kernel, stride);
                let mut case = Case::new(params, filters, [n, channels, h, w], isa, precision);
                case.activations = activations;
                case.residual = case.residual.filter(|_| residual);
                for (bias, wanted) in case.biases.iter_mut().zip(biases) {
                    *bias = bias.take().filter(|_| wanted);
                }
                prop_assert_eq!(case.check(), channels >= 8, "all but planes are joined");
            }
        }
    }
}

#[test]
fn layers_of_many_chunks_are_joined_with_the_same_bits() {
    let layers = [(32, 64, 112, 1), (64, 128, 56, 2), (256, 256, 28, 1), (192, 32, 28, 1), (128, 512, 28, 1)];
    for (channels, filters, size, stride) in layers {
        for isa in [Isa::Avx512, Isa::Avx2] {
            for precision in [Precision::Single, Precision::Bf16] {
                let shape = [2, channels, size, size];
                let case = Case::new(depthwise(channels, 3, stride), filters, shape, isa, precision);
                assert!(case.check(), "{channels} to {filters} are joined");
            }
        }
    }
}

#[test]
fn what_is_no_depthwise_and_1x1_pair_is_not_joined() {
    let select = |params: Conv2dParams, size: usize| {
        ConvKernel::select(params, [1, params.in_channels, size, size], Isa::detect(), ConvOptions::default())
            .expect("a sound convolution")
    };
    let first = select(depthwise(32, 3, 1), 20);
    let joins = |then: Conv2dParams, size| JoinedKernel::possible(&first, &select(then, size)).is_some();
    assert!(joins(Conv2dParams::square(32, 8, 1), 20));
    assert!(!joins(Conv2dParams::square(32, 8, 1), 18), "another size");
    assert!(!joins(Conv2dParams { pad: [1, 1], ..Conv2dParams::square(32, 8, 3) }, 20), "3x3");
    assert!(!joins(Conv2dParams { stride: [2, 2], ..Conv2dParams::square(32, 8, 1) }, 20), "every second pixel");
    assert!(!joins(Conv2dParams { groups: 2, ..Conv2dParams::square(32, 8, 1) }, 20), "groups");
    let dense = select(Conv2dParams { pad: [1, 1], ..Conv2dParams::square(32, 32, 3) }, 20);
    assert!(
        JoinedKernel::possible(&dense, &select(Conv2dParams::square(32, 8, 1), 20)).is_none(),
        "a dense first layer"
    );
    let many = (select(depthwise(1024, 3, 1), 14), select(Conv2dParams::square(1024, 1024, 1), 14));
    assert!(JoinedKernel::possible(&many.0, &many.1).is_none(), "weights that no cache holds");
}

#[test]
fn only_maps_that_no_cache_holds_are_joined() {
    let join = |size: usize| {
        let isa = Isa::detect();
        let case = Case::new(depthwise(32, 3, 1), 64, [1, 32, size, size], isa, Precision::Single);
        JoinedKernel::join(&case.first, &case.then).is_some()
    };
    assert!(join(200), "5 MB");
    assert!(!join(56), "400 KB");
}
