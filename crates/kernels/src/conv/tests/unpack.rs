//! Weights come back from their packed form bit for bit.

use crate::conv::methods::winograd::WinogradFused;
use crate::conv::tests::{Case, convolutions, fits, method};
use crate::conv::*;
use crate::isa::Isa;
use proptest::prelude::*;

/// Any bits: infinities, NaN with their payloads, numbers below the normal ones.
fn any_bits(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        f32::from_bits((state >> 32) as u32)
    };
    (0..n).map(|_| next()).collect()
}

fn bits(weights: &[f32]) -> Vec<u32> {
    weights.iter().map(|w| w.to_bits()).collect()
}

/// Packs any bits and unpacks the output channels of each of these ranges.
fn check(kernel: &ConvKernel, seed: u64, ends: &[usize]) {
    let params = *kernel.params();
    assert!(kernel.can_unpack(), "{}", kernel.name());
    let weights = any_bits(seed, params.weight_len());
    let mut packed = vec![f32::NAN; kernel.packed_len()];
    kernel.pack(&weights, &mut packed);
    let each = params.weight_len() / params.out_channels;
    let mut start = 0;
    for end in ends.iter().copied().chain([params.out_channels]).map(|end| end.min(params.out_channels)) {
        if end >= start {
            let mut some = vec![f32::NAN; (end - start) * each];
            kernel.unpack(&packed, start..end, &mut some);
            assert_eq!(bits(&some), bits(&weights[start * each..end * each]), "{} {start}..{end}", kernel.name());
            start = end;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn direct_convolutions_give_back_what_they_packed(params in convolutions(), in_blocks: bool, seed: u64, ends in prop::collection::vec(0usize..80, 0..3)) {
        for isa in Isa::ALL {
            let options = ConvOptions { winograd: Winograd::Off, in_blocks, ..ConvOptions::default() };
            let kernel = ConvKernel::select(params, [1, params.in_channels, 40, 40], isa, options);
            // Tiles lose digits of the smallest numbers.
            if let Some(kernel) = kernel.filter(|k| k.can_unpack() && k.method() != method("tiles")) {
                check(&kernel, seed, &ends);
            }
        }
    }

    #[test]
    fn filters_transformed_on_their_way_are_given_back(inputs in 1usize..5, outputs in 1usize..80, seed: u64, ends in prop::collection::vec(0usize..80, 0..3)) {
        let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(16 * inputs, outputs, 3) };
        if fits("winograd-fused", params, Isa::detect()) {
            let case = Case::new(params, 1, [7, 7], seed);
            check(&case.with(Isa::Avx512, |n, out| WinogradFused::new(params, n, out)), seed, &ends);
        }
    }
}

#[test]
fn what_packing_rounds_or_transforms_is_not_offered() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(64, 64, 3) };
    let options = ConvOptions { winograd: Winograd::F2, ..ConvOptions::default() };
    let kernel = ConvKernel::select(params, [1, 64, 56, 56], Isa::Portable, options).expect("a sound convolution");
    assert_eq!(kernel.method(), method("winograd-f2"));
    assert!(!kernel.can_unpack());
}
