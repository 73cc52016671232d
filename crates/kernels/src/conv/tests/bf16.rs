//! Convolutions of bf16 against their definition in f64. On a machine without AVX512-BF16 only what
//! is chosen there is tested.

use crate::activation::Activation;
use crate::cache_class::CacheClass;
use crate::conv::methods::direct_bf16::{DirectBf16, multiplies_pairs};
use crate::conv::methods::winograd::{Scheme, WinogradPretransformed};
use crate::conv::tests::{Case, activations, chunked_cases, convolutions, method};
use crate::conv::*;
use crate::gemm::tile::Elements;
use crate::isa::{Isa, pairs_are_fast};
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads, Uneven};
use proptest::prelude::*;

/// The largest error of a product of two rounded numbers, relative to it: 2^-8 from each, and a
/// little.
const ROUNDING: f64 = 2.02 / 256.0;

/// The case with inputs and weights that rounding does not change.
fn rounded(mut case: Case) -> Case {
    for v in case.x.iter_mut().chain(&mut case.w) {
        *v = half::bf16::from_f32(*v).to_f32();
    }
    case
}

fn kernel(case: &Case, cache: CacheClass) -> Option<ConvKernel> {
    let params = case.params;
    multiplies_pairs(&params, Isa::detect())
        .then(|| case.with(Isa::Avx512, |n, out| DirectBf16::new(params, n, out, Isa::Avx512, cache)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_convolution_of_bf16_values_equals_its_definition(
        params in convolutions(), more in 0usize..50, n in 1usize..4, h in 0usize..12, w in 0usize..35,
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        // More channels than the other tests have: blocks of pairs are twice as wide.
        let params = match params.groups {
            1 => Conv2dParams { in_channels: params.in_channels + more, ..params },
            groups if params.in_channels > groups => Conv2dParams { in_channels: groups * 2 * (8 + more % 8), ..params },
            _ => params,
        };
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = Case::new(params, n, [reach(0) + h, reach(1) + w], seed).with_epilogue(bias, residual, activation);
        let kernels: Vec<ConvKernel> = kernel(&case, CacheClass::Medium).into_iter().collect();
        case.check_kernels(&kernels, ROUNDING);
        rounded(case).check_kernels(&kernels, 1e-6);
    }
}

/// F(2,3) and its like with products of bf16; none where they do not fit or the machine has none.
fn transformed(case: &Case) -> Vec<ConvKernel> {
    let params = case.params;
    let schemes = match params.stride {
        _ if !multiplies_pairs(&params, Isa::detect()) => &[][..],
        [1, 1] => &[Scheme::F2],
        _ => &[Scheme::STRIDED2, Scheme::STRIDED3],
    };
    let pretransformed = |scheme: &Scheme| {
        let new = |n, out| WinogradPretransformed::new(params, n, out, *scheme, Elements::Pairs, Isa::Avx512);
        case.with(Isa::Avx512, new)
    };
    schemes.iter().map(pretransformed).collect()
}

/// The case with weights and inputs that all values of F(2,3) and its like are exact in bf16 of.
fn coarse(mut case: Case) -> Case {
    case.x.iter_mut().for_each(|v| *v = (*v * 8.0).round() / 8.0);
    case.w.iter_mut().for_each(|v| *v = (*v * 4.0).round() / 4.0);
    case
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_transformed_convolution_of_bf16_values_equals_its_definition(
        inputs in 8usize..50, outputs in 1usize..70, stride in 1usize..3, n in 1usize..3,
        h in 3usize..30, w in 3usize..30, pad in [0usize..3, 0usize..3],
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = Conv2dParams { pad, stride: [stride; 2], ..Conv2dParams::square(2 * inputs, outputs, 3) };
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let kernels = transformed(&case);
        // A value of a tile is a sum of up to four inputs, rounded once.
        case.check_kernels(&kernels, 2.0 * ROUNDING);
        coarse(case).check_kernels(&kernels, 1e-6);
    }
}

#[test]
fn inputs_are_rounded_as_a_whole_or_row_by_row_with_the_same_result() {
    let square = Conv2dParams::square;
    let mut ways = Vec::new();
    for (params, size) in [
        (square(512, 512, 1), 7),
        (Conv2dParams { stride: [2, 2], ..square(256, 512, 1) }, 14),
        (Conv2dParams { stride: [2, 2], pad: [1, 1], ..square(128, 256, 3) }, 15),
        (Conv2dParams { groups: 32, pad: [1, 1], ..square(1024, 512, 3) }, 9),
        (square(256, 64, 1), 40),
    ] {
        let case = rounded(Case::new(params, 2, [size, size], 3).with_epilogue(true, true, Activation::Relu));
        let Some(kernels) = CacheClass::ALL.map(|cache| kernel(&case, cache)).into_iter().collect::<Option<Vec<_>>>()
        else {
            return;
        };
        ways.extend(kernels.iter().map(|k| k.scratch_len() > 0));
        case.check_kernels(&kernels, 1e-6);
        let bits =
            |k: &ConvKernel, par: &dyn Par| case.run_nchw(k, par).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let first = bits(&kernels[0], &Serial);
        for k in &kernels {
            assert_eq!(first, bits(k, &Serial), "{} depends on the cache", k.name());
        }
    }
    assert!(ways.contains(&true) && ways.contains(&false), "both ways of rounding");
}

#[test]
fn a_convolution_of_bf16_has_the_same_bits_whoever_runs_its_chunks() {
    for case in chunked_cases() {
        let fits_winograd = case.params.kernel == [3, 3] && case.params.groups == 1;
        let transformed = if fits_winograd { transformed(&case) } else { Vec::new() };
        for kernel in kernel(&case, CacheClass::Medium).into_iter().chain(transformed) {
            let run = |par: &dyn Par| case.run_nchw(&kernel, par).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let serial = run(&Serial);
            assert_eq!(serial, run(&Reverse), "{}", kernel.name());
            assert_eq!(serial, run(&Threads(3)), "{}", kernel.name());
            assert_eq!(serial, run(&Uneven(2)), "{}", kernel.name());
            // More threads than share a single block of tiles.
            assert_eq!(serial, run(&Threads(6)), "{}", kernel.name());
        }
    }
}

#[test]
fn bf16_is_used_on_request_only_and_only_where_the_machine_multiplies_it_faster() {
    let select = |params: Conv2dParams, size, isa, precision| {
        let options = ConvOptions { precision, ..ConvOptions::default() };
        let shape = [1, params.in_channels, size, size];
        ConvKernel::select(params, shape, isa, options).expect("a sound convolution").method()
    };
    let pointwise = Conv2dParams::square(256, 64, 1);
    let strided = Conv2dParams { stride: [2, 2], pad: [1, 1], ..Conv2dParams::square(64, 128, 3) };
    for (params, otherwise) in [(pointwise, method("direct")), (strided, method("winograd-strided"))] {
        let size = 56;
        assert_eq!(select(params, size, Isa::detect(), Precision::Single), otherwise);
        for isa in [Isa::Portable, Isa::Avx2] {
            assert_eq!(select(params, size, isa, Precision::Bf16), otherwise, "no such instructions in {isa}");
        }
        let here = select(params, size, Isa::detect(), Precision::Bf16);
        assert_eq!(here.rounds(), pairs_are_fast(), "{here}");
    }
    for (channels, size) in [(64, 56), (128, 28), (256, 14), (512, 7)] {
        let padded = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(channels, channels, 3) };
        let here = select(padded, size, Isa::detect(), Precision::Bf16);
        assert_eq!(
            here == method("winograd-f2-bf16"),
            pairs_are_fast(),
            "{here}: nearly as few multiplications as F(4,3), half of the bytes"
        );
        assert!(!select(padded, size, Isa::detect(), Precision::Single).rounds());
    }
    let few = Conv2dParams { stride: [2, 2], ..Conv2dParams::square(3, 32, 3) };
    assert_eq!(select(few, 56, Isa::detect(), Precision::Bf16), method("direct"), "three channels");
}

#[test]
fn nan_and_infinity_pass_through_bf16() {
    let params = Conv2dParams::square(17, 16, 1);
    let mut case = Case::new(params, 1, [3, 3], 1).with_epilogue(true, false, Activation::Relu);
    (case.x[0], case.x[1]) = (f32::NAN, f32::INFINITY);
    case.w.fill(1.0);
    let Some(kernel) = kernel(&case, CacheClass::Medium) else { return };
    let y = case.run_nchw(&kernel, &Serial);
    for plane in y.chunks(9) {
        assert!(plane[0].is_nan() && plane[1] == f32::INFINITY && plane[2..].iter().all(|v| v.is_finite()));
    }
}

#[test]
fn an_outlier_leaves_no_trace_in_f2_of_bf16_and_some_thousandths_of_itself_with_stride_2() {
    for stride in [1, 2] {
        let params = Conv2dParams { pad: [1, 1], stride: [stride; 2], ..Conv2dParams::square(32, 32, 3) };
        let mut case = Case::new(params, 1, [16, 16], 4);
        let (side, at) = (16 / stride, 3);
        let sees = |out: usize| (out * stride).abs_diff(at) <= 1;
        for kernel in transformed(&case) {
            let plain = case.run_nchw(&kernel, &Serial);
            let usual = std::mem::replace(&mut case.x[at * 16 + at], 1e4);
            let y = case.run_nchw(&kernel, &Serial);
            case.x[at * 16 + at] = usual;
            let unseen = |i: &usize| !sees(i / side % side) || !sees(i % side);
            let leak = (0..y.len()).filter(unseen).map(|i| (y[i] - plain[i]).abs()).fold(0.0, f32::max);
            // With stride 2 and three outputs, a difference of neighbours stands for one of them.
            if kernel.name().contains("F(3,3)") {
                assert!(
                    (1.0..100.0).contains(&leak),
                    "the documented leak is some thousandths of the outlier, got {leak}"
                );
            } else {
                assert_eq!(leak, 0.0, "{}", kernel.name());
            }
        }
    }
}
