//! Scaled outputs beside those of a convolution, or in their place: the bits that [`pointwise`] makes of the outputs afterwards.

use super::select::candidates;
use super::tests::{Case, chunked_cases};
use super::*;
use crate::activation::Activation;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads};

/// A tensor full of NaN.
fn empty(shape: BlockedShape) -> Vec<f32> {
    vec![f32::NAN; shape.len()]
}

fn bits(data: &[f32]) -> Vec<u32> {
    data.iter().map(|v| v.to_bits()).collect()
}

/// Everything that a run needs but its outputs.
struct Operands {
    kernel: ConvKernel,
    x: Vec<f32>,
    packed: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Operands {
    fn new(case: &Case, kernel: ConvKernel) -> Operands {
        let channels = kernel.params().out_channels;
        let of_channels = |factor: f32| (0..channels).map(|c| factor * (c as f32 - 7.5)).collect::<Vec<_>>();
        let shape = kernel.input_shape();
        let mut x = empty(shape);
        to_blocked(Isa::Portable, &case.x, &mut BlockedMut::new(shape, &mut x), &Serial);
        let mut packed = vec![f32::NAN; kernel.packed_len()];
        kernel.pack(&case.w, &mut packed);
        let residual = (0..kernel.output_shape().len()).map(|i| (i % 13) as f32 - 6.0).collect();
        let (bias, scale, shift) = (of_channels(0.25), of_channels(0.125), of_channels(-0.5));
        Operands { kernel, x, packed, bias, residual, scale, shift }
    }

    /// Outputs of a run; those that are scaled go to a tensor of their own if `apart`.
    fn run(&self, scaled: Option<&mut BlockedMut<'_>>, in_place: bool, shape: BlockedShape, par: &dyn Par) -> Vec<f32> {
        let mut y = empty(shape);
        let residual = Residual::Add(Blocked::new(self.kernel.output_shape(), &self.residual));
        let epilogue = ConvEpilogue { bias: Some(&self.bias), residual, activation: Activation::None };
        let (scale, shift, activation) = (&self.scale[..], &self.shift[..], Activation::Relu);
        let wanted = scaled.is_some() || in_place;
        let scaled = wanted.then_some(Scaled { scale, shift, activation, to: scaled });
        let mut scratch = vec![f32::NAN; self.kernel.scratch_len()];
        let x = Blocked::new(self.kernel.input_shape(), &self.x);
        let mut out = BlockedMut::new(shape, &mut y);
        self.kernel.run_scaled(x, &self.packed, epilogue, &mut out, scaled, &mut scratch, par);
        y
    }

    fn check(&self, par: &dyn Par) {
        let name = self.kernel.name();
        let wide = |[top, left, bottom, right]: [usize; 4]| BlockedShape {
            halo: Halo { top, left, bottom, right },
            ..self.kernel.output_shape()
        };
        let of = |s: BlockedShape| BlockedShape::new(s.n, s.c, s.h, s.w, s.halo);
        let (ys, zs) = (of(wide([1, 0, 2, 1])), of(wide([0, 2, 1, 1])));
        let y = self.run(None, false, ys, par);
        let expected = |shape: BlockedShape| {
            let mut z = empty(shape);
            let (scale, shift) = (Some(&self.scale[..]), Some(&self.shift[..]));
            let op = Pointwise { scale, shift, activation: Activation::Relu, ..Pointwise::default() };
            pointwise(self.kernel.isa(), Blocked::new(ys, &y), op, &mut BlockedMut::new(shape, &mut z), &Serial);
            bits(&z)
        };
        let mut z = empty(zs);
        let beside = self.run(Some(&mut BlockedMut::new(zs, &mut z)), false, ys, par);
        assert_eq!(bits(&beside), bits(&y), "the outputs of {name} beside scaled ones");
        assert_eq!(bits(&z), expected(zs), "scaled outputs of {name}");
        assert_eq!(bits(&self.run(None, true, ys, par)), expected(ys), "scaled outputs of {name} in place");
    }
}

#[test]
fn scaled_outputs_have_the_bits_of_a_step_of_its_own_with_every_method() {
    let odd = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(20, 40, 3) };
    let small = [Case::new(odd, 2, [9, 11], 3), Case::new(Conv2dParams::square(33, 50, 1), 1, [5, 3], 4)];
    let mut names = std::collections::BTreeSet::new();
    for case in chunked_cases().iter().chain(&small) {
        for isa in [Isa::Avx512, Isa::Avx2] {
            for precision in [Precision::Single, Precision::Bf16] {
                let isa = isa.or_best();
                let cache = crate::cache_class::CacheClass::Medium;
                let signature = ConvSignature { isa, cache, precision, params: case.params, shape: case.shape };
                for method in candidates(&signature, Winograd::F4) {
                    let Some(kernel) = ConvKernel::by_method(&signature, method) else { continue };
                    names.insert(method.to_string());
                    let operands = Operands::new(case, kernel);
                    operands.check(&Serial);
                    operands.check(&Reverse);
                    operands.check(&Threads(3));
                }
            }
        }
    }
    assert!(names.len() >= 8, "methods seen: {names:?}");
}

#[test]
#[should_panic(expected = "scaling needs 16 factors")]
fn factors_of_another_number_of_channels_are_refused() {
    let case = Case::new(Conv2dParams::square(16, 16, 1), 1, [4, 4], 5);
    let kernel = ConvKernel::select(case.params, case.shape, Isa::Portable, ConvOptions::default());
    let mut operands = Operands::new(&case, kernel.expect("a sound convolution"));
    operands.scale.pop();
    let shape = operands.kernel.output_shape();
    operands.run(None, true, shape, &Serial);
}
