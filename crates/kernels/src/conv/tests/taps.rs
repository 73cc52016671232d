//! Convolutions of other filters than 3x3 by transforms against their definition.

use crate::conv::methods::winograd::{Scheme, WinogradPretransformed};
use crate::conv::tests::{Case, activations};
use crate::conv::*;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::Serial;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn winograd_of_other_filters_than_3x3_equals_the_definition_on_every_instruction_set(
        inputs in 1usize..60, outputs in 1usize..60, n in 1usize..3, h in 1usize..24, w in 1usize..24,
        kernel in prop::sample::select(&[[5, 5], [1, 3], [3, 1], [1, 5], [5, 1], [1, 7], [7, 1]][..]),
        pad in [0usize..4, 0usize..4], bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        // No smaller than the filter.
        let (h, w) = (h.max(kernel[0]), w.max(kernel[1]));
        let params = Conv2dParams { kernel, pad, ..Conv2dParams::square(inputs, outputs, 1) };
        let scheme = Scheme::of_taps(&params).expect("there is one for each of these");
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let pretransformed = |isa: Isa| case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa));
        case.check_kernels(&Isa::ALL.map(|isa| pretransformed(isa.or_best())), 3e-6);
    }
}

#[test]
fn an_infinity_stays_among_the_outputs_of_its_tile_for_lines_and_5x5_filters() {
    for (kernel, outs) in [([5, 5], [2, 2]), ([1, 3], [1, 4]), ([7, 1], [2, 1])] {
        let pad = [kernel[0] / 2, kernel[1] / 2];
        let params = Conv2dParams { kernel, pad, ..Conv2dParams::square(32, 32, 1) };
        let scheme = Scheme::of_taps(&params).expect("there is one");
        // Of an odd size: tiles at the edges are clipped.
        let mut case = Case::new(params, 1, [17, 17], 4);
        case.x[9 * 17 + 8] = f32::INFINITY;
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let pretransformed = |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa);
            let y = case.run_nchw(&case.with(isa, pretransformed), &Serial);
            for at in 0..17 * 17usize {
                let sees = [(at / 17).abs_diff(9) <= pad[0], (at % 17).abs_diff(8) <= pad[1]] == [true; 2];
                // Some output of its tile sees it.
                let near = |at: usize, from: usize, side: usize| {
                    let tile = at / outs[side] * outs[side];
                    (tile..tile + outs[side]).any(|at| at.abs_diff(from) <= pad[side])
                };
                assert!(!sees || !y[at].is_finite(), "{isa} {kernel:?}: output {at} sees it");
                let near = near(at / 17, 9, 0) && near(at % 17, 8, 1);
                assert!(y[at].is_finite() || near, "{isa} {kernel:?}: output {at} is far away");
            }
        }
    }
}

#[test]
fn transforms_of_other_filters_are_chosen_where_they_pay_and_may_be_used() {
    let chosen = |kernel: [usize; 2], [inputs, outputs]: [usize; 2], size, winograd| {
        let params = Conv2dParams { kernel, ..Conv2dParams::square(inputs, outputs, 1) };
        let options = ConvOptions { winograd, ..ConvOptions::default() };
        let kernel = ConvKernel::select(params, [1, inputs, size, size], Isa::Portable, options);
        kernel.expect("a sound convolution").name()
    };
    let layers = [
        ([5, 5], [64, 192], 31, "winograd F(2,5) pre-transformed"),
        ([1, 7], [128, 128], 23, "winograd F(1x2,1x7) pre-transformed"),
        ([7, 1], [128, 128], 23, "winograd F(2x1,7x1) pre-transformed"),
        ([1, 3], [384, 384], 10, "winograd F(1x4,1x3) pre-transformed"),
        ([5, 5], [8, 64], 31, "direct"),
        ([3, 5], [64, 64], 31, "direct"),
        ([1, 4], [64, 64], 31, "direct"),
    ];
    for (kernel, channels, size, expected) in layers {
        let name = chosen(kernel, channels, size, Winograd::F4);
        assert!(name.starts_with(expected), "{kernel:?} {channels:?}: {name}");
        // Its points are those of F(4,3) or more.
        for less in [Winograd::F2, Winograd::Off] {
            let name = chosen(kernel, channels, size, less);
            assert!(name.starts_with("direct"), "{kernel:?} {channels:?} with {less:?}: {name}");
        }
    }
}

#[test]
fn an_outlier_leaks_no_more_than_a_few_millionths_of_its_size() {
    for kernel in [[3, 3], [5, 5], [1, 3], [1, 5], [7, 1]] {
        let pad = [kernel[0] / 2, kernel[1] / 2];
        let params = Conv2dParams { kernel, pad, ..Conv2dParams::square(32, 32, 1) };
        let scheme = Scheme::of_taps(&params).unwrap_or(Scheme::F4);
        let mut case = Case::new(params, 1, [16, 16], 4);
        case.x[5 * 16 + 5] = 1e4;
        let (expected, _) = case.reference();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let pretransformed = |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa);
            let y = case.run_nchw(&case.with(isa, pretransformed), &Serial);
            let seen = |at: usize| (at / 16 % 16).abs_diff(5) <= pad[0] && (at % 16).abs_diff(5) <= pad[1];
            let errors = y.iter().zip(&expected).enumerate().filter(|(at, _)| !seen(*at));
            let leak = errors.map(|(_, (&got, want))| (f64::from(got) - want).abs()).fold(0.0, f64::max);
            assert!(leak < 4e-2, "{isa} {kernel:?}: {leak}");
            println!("{isa} {kernel:?}: {:.1e} of the outlier", leak / 1e4);
        }
    }
}
