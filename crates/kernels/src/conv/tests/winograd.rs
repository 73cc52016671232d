//! Winograd convolutions of 3x3 filters and of first layers, and where each method is chosen.

use crate::activation::Activation;
use crate::conv::methods::winograd::{Scheme, WinogradFused, WinogradPolyphase, WinogradPretransformed};
use crate::conv::tests::{Case, activations, chosen_on, fits};
use crate::conv::*;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::Serial;
use crate::vector_units::VectorUnits;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_winograd_form_equals_the_definition_on_every_instruction_set(
        inputs in 1usize..60, outputs in 1usize..60, n in 1usize..3, h in 1usize..24, w in 1usize..24,
        pad in [1usize..4, 1usize..4], bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = Conv2dParams { pad, ..Conv2dParams::square(inputs, outputs, 3) };
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let pretransformed = |isa, scheme| case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa));
        case.check_kernels(&Isa::ALL.map(|isa| pretransformed(isa.or_best(), Scheme::F2)), 1e-6);
        case.check_kernels(&Isa::ALL.map(|isa| pretransformed(isa.or_best(), Scheme::F4)), 3e-6);
    }

    #[test]
    fn filters_transformed_on_their_way_equal_the_definition(
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
    fn polyphase_winograd_of_a_strided_convolution_equal_the_definition_on_every_instruction_set(
        inputs in 1usize..5, outputs in 1usize..70, kernel in [5usize..9, 5usize..9], n in 1usize..3,
        h in 8usize..40, w in 8usize..40, pad in [0usize..4, 0usize..4],
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let square = Conv2dParams::square(inputs, outputs, 1);
        let params = Conv2dParams { kernel, pad, stride: [2, 2], ..square };
        prop_assert!(fits("winograd-polyphase", params, Isa::detect()));
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let polyphase = |isa: Isa| case.with(isa, |n, out| WinogradPolyphase::new(params, n, out, isa));
        // One channel has sums of few terms, beside which the rounding of the whole tile weighs
        // more.
        case.check_kernels(&Isa::ALL.map(|isa| polyphase(isa.or_best())), 2e-5);
    }
}

#[test]
fn the_first_layer_of_real_networks_is_polyphase_winograd_and_equals_the_definition() {
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
        let pretransformed = format!("winograd F(4,3) pre-transformed, 25 tiles, {isa}");
        assert_eq!(name(padded(64, 64), 1, 56, isa, Winograd::F4), pretransformed);
        assert!(name(padded(64, 64), 1, 56, isa, Winograd::F2).starts_with("winograd F(2,3) pre-transformed"));
        assert!(name(padded(64, 64), 1, 56, isa, Winograd::Off).starts_with("direct"));
        assert!(name(padded(12, 64), 1, 56, isa, Winograd::F4).starts_with("direct"), "too few channels");
        assert!(name(padded(512, 512), 8, 14, isa, Winograd::F4).contains("pre-transformed"), "a batch has many tiles");
        let strided = |outputs| Conv2dParams { stride: [2, 2], ..padded(64, outputs) };
        let strided_name = format!("winograd F(4,3) stride 2 pre-transformed, 13 tiles, {isa}");
        assert_eq!(name(strided(64), 1, 56, isa, Winograd::F4), strided_name);
        assert!(name(strided(64), 1, 56, isa, Winograd::F2).starts_with("direct"), "larger tiles are forbidden");
        assert!(name(strided(12), 1, 56, isa, Winograd::F4).starts_with("direct"), "too few channels");
        let depthwise = Conv2dParams { groups: 64, ..padded(64, 64) };
        assert_eq!(name(depthwise, 1, 56, isa, Winograd::F4), format!("depthwise {isa}"));
    }
}

#[test]
fn units_that_take_halves_of_vectors_read_more_bytes_for_fewer_products() {
    if !Isa::Avx512.is_available() {
        return;
    }
    let padded = |channels| Conv2dParams { pad: [1, 1], ..Conv2dParams::square(channels, channels, 3) };
    let fused = |patches| format!("winograd F(4,3) fused-transform, {patches}x{patches} patches, avx512");
    for (channels, size, [whole, halves]) in [
        // Arithmetic in halves takes longer than reading four times as many bytes.
        (256, 14, [fused(7), "winograd F(4,3) pre-transformed, 16 tiles, avx512".to_owned()]),
        (512, 7, [fused(7), fused(7)]),
        (512, 6, [fused(6), fused(6)]),
        (512, 5, [fused(5), fused(5)]),
    ] {
        let chosen = VectorUnits::ALL.map(|units| chosen_on(units, padded(channels), size));
        assert_eq!(chosen, [whole, halves], "{channels} on {size}");
    }
    for (channels, size, scheme, tiles, why) in [
        (128, 56, "F(4,3)", 13, "not six blocks of few tiles"),
        (128, 28, "F(3,3)", 25, "one block fits the cache"),
        (256, 28, "F(3,3)", 13, "one block does not"),
    ] {
        let strided = Conv2dParams { stride: [2, 2], ..padded(channels) };
        let chosen = VectorUnits::ALL.map(|units| chosen_on(units, strided, size));
        let expected = format!("winograd {scheme} stride 2 pre-transformed, {tiles} tiles, avx512");
        assert_eq!(chosen, [expected.clone(), expected], "{why}");
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
            assert!(
                (4..7).all(|row| plane[row * 16 + 4..row * 16 + 7].iter().all(|bad| *bad)),
                "{isa}: outputs that see it"
            );
            assert!(
                plane.iter().enumerate().all(|(at, bad)| !bad || (at / 16 < 12 && at % 16 < 12)),
                "{isa}: far away"
            );
            plane.iter().filter(|bad| **bad).count()
        };
        assert_eq!(bad(case.select(isa, Winograd::Off)), 9, "{isa}");
        let pretransformed = |scheme| {
            case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa))
        };
        // The values of F(2,3) reach only outputs that see them; as NaN, because differences of
        // infinities are formed.
        assert_eq!(bad(pretransformed(Scheme::F2)), 9, "{isa}");
        assert!(bad(pretransformed(Scheme::F4)) > 9, "{isa}: the documented spread");
    }
}
