//! Convolutions on tiles against their definition in f64: with the model of tiles on every machine,
//! and with the bits of the processor's where it has some.

use crate::activation::Activation;
use crate::amx::model::Modelled;
use crate::amx::parts::PARTS;
use crate::amx::tiles::Tiles;
use crate::blocked::lines::testing::rounded as rounded_all;
use crate::conv::methods::tiles::{TilesConv, suits};
use crate::conv::tests::{Case, activations, convolutions, method};
use crate::conv::*;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads, Uneven};
use proptest::prelude::*;

/// The largest error of a product of two rounded numbers, relative to it: 2^-8 from each, and a
/// little.
const ROUNDING: f64 = 2.02 / 256.0;

fn kernel<T: Tiles + 'static, const COUNT: usize>(case: &Case) -> ConvKernel {
    case.with(Isa::detect(), |images, out| TilesConv::<T, COUNT>::new(case.params, images, out))
}

/// The case with inputs and weights that rounding does not change.
fn rounded(mut case: Case) -> Case {
    for v in case.x.iter_mut().chain(&mut case.w) {
        *v = half::bf16::from_f32(*v).to_f32();
    }
    case
}

fn bits(case: &Case, kernel: &ConvKernel, par: &dyn Par) -> Vec<u32> {
    let bits = |v: &f32| if v.is_nan() { f32::NAN.to_bits() } else { v.to_bits() };
    case.run_nchw(kernel, par).iter().map(bits).collect()
}

/// The processor's tiles, where it has some, give the model's bits.
fn check_hardware<const COUNT: usize>(case: &Case, want: &[u32]) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if crate::amx::is_permitted() {
        let kernel = kernel::<crate::amx::hardware::Hardware, COUNT>(case);
        for par in [&Serial as &dyn Par, &Threads(3), &Uneven(3)] {
            assert!(bits(case, &kernel, par) == want, "{:?} {:?}", case.params, case.shape);
        }
    }
    let _ = (case, want);
}

/// Any convolution that tiles take.
fn suitable(params: Conv2dParams, more: usize) -> Conv2dParams {
    let (in_channels, out_channels) = (16 + params.in_channels % 24 + more, 16 + params.out_channels % 40);
    let params = Conv2dParams { groups: 1, in_channels, out_channels, ..params };
    assert!(suits(&params));
    params
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_convolution_on_tiles_equals_its_definition_and_has_the_bits_of_the_model(
        params in convolutions(), more in 0usize..40, images in 1usize..3, h in 0usize..9, w in 0usize..40,
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = suitable(params, more);
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = Case::new(params, images, [reach(0) + h, reach(1) + w], seed).with_epilogue(bias, residual, activation);
        let [bf16, single] = [kernel::<Modelled, 1>(&case), kernel::<Modelled, PARTS>(&case)];
        case.check_kernels(std::slice::from_ref(&bf16), ROUNDING);
        case.check_kernels(std::slice::from_ref(&single), 2e-7);
        check_hardware::<1>(&case, &bits(&case, &bf16, &Reverse));
        check_hardware::<PARTS>(&case, &bits(&case, &single, &Reverse));
        rounded(case).check_kernels(&[bf16], 1e-6);
    }
}

#[test]
fn layers_of_networks_have_the_bits_of_the_model_however_they_are_shared() {
    let square = Conv2dParams::square;
    for (params, images, size) in [
        (square(64, 96, 1), 2, [19, 14]),
        (Conv2dParams { stride: [2, 2], ..square(48, 64, 1) }, 1, [15, 15]),
        (Conv2dParams { pad: [1, 1], ..square(40, 130, 3) }, 1, [7, 7]),
        (Conv2dParams { pad: [1, 1], stride: [2, 2], ..square(32, 32, 3) }, 2, [15, 20]),
        (Conv2dParams { kernel: [1, 7], pad: [0, 3], ..square(32, 48, 1) }, 1, [9, 17]),
    ] {
        let case = Case::new(params, images, size, 5).with_epilogue(true, true, Activation::Relu);
        let kernel = kernel::<Modelled, 1>(&case);
        let want = bits(&case, &kernel, &Serial);
        for par in [&Reverse as &dyn Par, &Threads(3), &Uneven(3)] {
            assert!(bits(&case, &kernel, par) == want, "{params:?}");
        }
        check_hardware::<1>(&case, &want);
    }
}

#[test]
fn inputs_and_weights_that_have_no_parts_are_those_of_a_convolution_in_float32() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(35, 40, 3) };
    let plain = Case::new(params, 2, [9, 11], 3).with_epilogue(true, false, Activation::None);
    let far = bits(&plain, &kernel::<Modelled, PARTS>(&plain), &Serial);
    for (value, in_weights) in
        [(f32::INFINITY, false), (f32::NAN, false), (3e38, false), (3e38, true), (f32::NAN, true)]
    {
        let mut case = Case::new(params, 2, [9, 11], 3).with_epilogue(true, false, Activation::None);
        let numbers = if in_weights { &mut case.w } else { &mut case.x };
        numbers[1234] = value;
        let tiles = kernel::<Modelled, PARTS>(&case);
        let direct = case.select(Isa::detect(), Winograd::Off);
        let (got, want) = (case.run_nchw(&tiles, &Serial), case.run_nchw(&direct, &Serial));
        let near = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * a.abs().max(1.0);
        assert!(got.iter().zip(&want).all(|(a, b)| near(*a, *b)), "{value} {in_weights}");
        assert!(in_weights || got.iter().any(|v| !v.is_finite() || v.abs() > 1e30), "{value}");
        let reversed = bits(&case, &tiles, &Reverse);
        check_hardware::<PARTS>(&case, &reversed);
        let same = reversed.iter().zip(&far).filter(|(a, b)| a == b).count();
        assert!(in_weights || same >= got.len() - 9 * 40, "outputs elsewhere keep their bits");
    }
}

#[test]
fn weights_come_back_from_tiles_bit_for_bit() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(35, 70, 3) };
    let mut case = Case::new(params, 1, [5, 5], 4);
    case.w[..3].copy_from_slice(&[-0.0, 2f32.powi(-103), 1.6e38]);
    for infinity in [false, true] {
        if infinity {
            case.w[999] = f32::INFINITY;
        }
        let kernel = kernel::<Modelled, PARTS>(&case);
        let mut packed = vec![f32::NAN; kernel.packed_len()];
        kernel.pack(&case.w, &mut packed);
        let each = 35 * 9;
        for outputs in [0..70, 33..34, 30..65] {
            let mut back = vec![f32::NAN; outputs.len() * each];
            kernel.unpack(&packed, outputs.clone(), &mut back);
            let bits = |all: &[f32]| all.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&back), bits(&case.w[outputs.start * each..outputs.end * each]), "{outputs:?}");
        }
    }
    assert!(!kernel::<Modelled, 1>(&case).can_unpack(), "bf16 has lost digits");
}

#[test]
fn tiles_are_chosen_where_the_options_allow_them() {
    let params = Conv2dParams::square(256, 256, 1);
    let choose = |precision, tiles| {
        let options = ConvOptions { precision, tiles, ..ConvOptions::default() };
        ConvKernel::select(params, [1, 256, 28, 28], Isa::Avx512, options).expect("a sound convolution").method()
    };
    let [bf16, single] = ["tiles-bf16", "tiles"].map(method);
    assert!([Precision::Single, Precision::Bf16].iter().all(|precision| !choose(*precision, false).tiles()));
    let permitted = crate::amx::is_permitted();
    assert_eq!([choose(Precision::Bf16, true) == bf16, choose(Precision::Single, true) == single], [permitted; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_convolution_in_lines_gives_the_rounded_numbers_of_one_in_blocks(
        params in convolutions(), sides in [16usize..70, 16usize..70], images in 1usize..3, h in 0usize..6, w in 0usize..16,
        residual: bool, activation in activations(), lines: [bool; 3], seed: u64,
    ) {
        let params = Conv2dParams { in_channels: sides[0], out_channels: sides[1], groups: 1, ..params };
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = rounded(Case::new(params, images, [reach(0) + h, reach(1) + w], seed));
        let case = case.with_epilogue(true, residual, activation).with_rounded_residual();
        let modelled = kernel::<Modelled, 1>(&case);
        let want = case.run_lines(&modelled, [false; 3], &Serial);
        let want = if lines[2] { rounded_all(&want) } else { want };
        let bits = |v: Vec<f32>| v.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        prop_assert_eq!(&bits(case.run_lines(&modelled, lines, &Reverse)), &bits(want.clone()));
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if crate::amx::is_permitted() {
            let hardware = kernel::<crate::amx::hardware::Hardware, 1>(&case);
            for par in [&Serial as &dyn Par, &Threads(3), &Uneven(3)] {
                prop_assert_eq!(&bits(case.run_lines(&hardware, lines, par)), &bits(want.clone()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_depthwise_convolution_in_lines_gives_the_rounded_numbers_of_one_in_blocks(
        params in convolutions(), channels in 2usize..100, images in 1usize..3, h in 0usize..9, w in 0usize..20,
        residual: bool, activation in activations(), lines: [bool; 3], seed: u64,
    ) {
        let params = Conv2dParams { in_channels: channels, out_channels: channels, groups: channels, ..params };
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = rounded(Case::new(params, images, [reach(0) + h, reach(1) + w], seed));
        let case = case.with_epilogue(true, residual, activation).with_rounded_residual();
        let kernel = case.select(Isa::detect(), Winograd::Off);
        let want = case.run_lines(&kernel, [false; 3], &Serial);
        let want = if lines[2] { rounded_all(&want) } else { want };
        for par in [&Reverse as &dyn Par, &Threads(3)] {
            prop_assert_eq!(&case.run_lines(&kernel, lines, par), &want);
        }
    }
}
