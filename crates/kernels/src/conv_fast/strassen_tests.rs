//! 1x1 convolutions by seven products against their definition. They need AVX-512.

use super::kernel::Algorithm;
use super::strassen::Strassen;
use super::tests::{Case, activations};
use super::*;
use crate::activation::Activation;
use crate::cache_class::CacheClass;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

/// One kernel that shares the sums of inputs and one whose chunks make them, where there are any at all.
fn kernels(case: &Case) -> Vec<ConvKernel> {
    let [_, _, h, w] = case.shape;
    if !Strassen::fits(&case.params, [h, w], Isa::detect()) {
        return Vec::new();
    }
    let prepared = |cache| {
        case.with(Isa::Avx512, |_, out| Algorithm::Strassen(Strassen::new(case.params, out, Isa::Avx512, cache)))
    };
    CacheClass::ALL.map(prepared).into()
}

fn bits(case: &Case, kernel: &ConvKernel, par: &dyn Par) -> Vec<u32> {
    case.run_nchw(kernel, par).iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn seven_products_equal_the_definition(
        inputs in 1usize..5, outputs in 1usize..4, n in 1usize..3, pairs in 1usize..7, w in 1usize..35,
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = Conv2dParams::square(32 * inputs, 64 * outputs, 1);
        let case = Case::new(params, n, [2 * pairs, w], seed).with_epilogue(bias, residual, activation);
        case.check_kernels(&kernels(&case), 1e-6);
    }
}

#[test]
fn sums_are_shared_or_made_by_every_chunk_and_bits_do_not_depend_on_who_runs_them() {
    let mut ways = Vec::new();
    for (inputs, outputs, size) in [(256, 512, 14), (512, 512, 14), (128, 256, 28)] {
        let params = Conv2dParams::square(inputs, outputs, 1);
        let case = Case::new(params, 2, [size, size], 3).with_epilogue(true, true, Activation::Relu);
        for kernel in kernels(&case) {
            ways.push(kernel.scratch_len() > 0);
            let serial = bits(&case, &kernel, &Serial);
            assert_eq!(serial, bits(&case, &kernel, &Reverse), "{}", kernel.name());
            assert_eq!(serial, bits(&case, &kernel, &Threads(3)), "{}", kernel.name());
            case.check_kernels(&[kernel], 1e-6);
        }
    }
    assert!(ways.is_empty() || ways.contains(&true) && ways.contains(&false), "both ways of making sums");
}

#[test]
fn an_infinity_reaches_no_other_pixel_than_its_own_and_one_more() {
    let params = Conv2dParams::square(64, 64, 1);
    let case = Case::new(params, 1, [4, 6], 9);
    for kernel in kernels(&case) {
        let clean = bits(&case, &kernel, &Serial);
        let mut spoiled = Case::new(params, 1, [4, 6], 9);
        spoiled.x[24 * 5 + 6 + 2] = f32::INFINITY;
        let y = bits(&spoiled, &kernel, &Serial);
        for (at, (clean, got)) in clean.iter().zip(&y).enumerate() {
            let (row, col) = (at % 24 / 6, at % 6);
            let shares = col == 2 && (row == 1 || row == 3);
            assert!(shares || clean == got, "the output at {at}");
            assert!(!(col == 2 && row == 1 && f32::from_bits(*got).is_finite()), "the output at {at} sees it");
        }
    }
}

#[test]
fn it_is_chosen_where_it_saves_more_than_its_sums_cost_and_only_where_transforms_are_allowed() {
    let choose = |(inputs, outputs, size): (usize, usize, usize), isa, winograd| {
        let options = ConvOptions { winograd, ..ConvOptions::default() };
        ConvKernel::select(Conv2dParams::square(inputs, outputs, 1), [1, inputs, size, size], isa, options)
            .expect("a sound convolution")
            .method()
    };
    let large = (512, 512, 14);
    assert_eq!(choose(large, Isa::Avx512, Winograd::Off), Method::Direct);
    assert_eq!(choose(large, Isa::Avx512, Winograd::F2), Method::Direct);
    assert_eq!(choose(large, Isa::Avx2, Winograd::F4), Method::Direct);
    assert_eq!(choose((512, 512, 7), Isa::Avx512, Winograd::F4), Method::Direct, "rows that make no pairs");
    assert_eq!(choose((512, 128, 28), Isa::Avx512, Winograd::F4), Method::Direct, "too few products for the sums");
    assert_eq!(choose((64, 384, 14), Isa::Avx512, Winograd::F4), Method::Direct, "products that are too short");
    if Isa::detect() == Isa::Avx512 {
        assert_eq!(choose(large, Isa::Avx512, Winograd::F4), Method::Strassen);
    }
}
