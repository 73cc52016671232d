//! Seven products for eight, against the definition in f64.

use super::direct::Direct;
use super::kernel::Algorithm;
use super::strassen::Strassen;
use super::tests::{Case, activations};
use super::*;
use crate::activation::Activation;
use crate::cache_class::CacheClass;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use proptest::prelude::*;

fn kernel(case: &Case, isa: Isa, cache: CacheClass) -> ConvKernel {
    case.with(isa.or_best(), |_, out| Algorithm::Strassen(Strassen::new(case.params, out, isa.or_best(), cache)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn seven_products_equal_the_definition_on_every_instruction_set(
        inputs in 1usize..4, outputs in 1usize..5, n in 1usize..3, h in 0usize..16, w in 0usize..31,
        kernel_size in [1usize..4, 1usize..4], dilate in [1usize..3, 1usize..3], pad in [0usize..4, 0usize..4],
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let square = Conv2dParams::square(32 * inputs, 32 * outputs, 1);
        let params = Conv2dParams { kernel: kernel_size, dilate, pad, ..square };
        let reach = |i: usize| (dilate[i] * (kernel_size[i] - 1) + 1).saturating_sub(2 * pad[i]).max(1);
        let size = [reach(0) + 1 + h, reach(1) + w];
        prop_assert!(Strassen::fits(&params, size));
        let case = Case::new(params, n, size, seed).with_epilogue(bias, residual, activation);
        for cache in [CacheClass::Small, CacheClass::Large] {
            case.check_kernels(&Isa::ALL.map(|isa| kernel(&case, isa, cache)), 2e-6);
        }
    }
}

#[test]
fn bands_of_unequal_rows_equal_the_definition() {
    // Sums of inputs for 7 pairs of rows are too many for one band.
    let case = Case::new(Conv2dParams::square(1024, 96, 1), 1, [14, 14], 9).with_epilogue(true, true, Activation::Relu);
    case.check_kernels(&Isa::ALL.map(|isa| kernel(&case, isa, CacheClass::Medium)), 2e-6);
}

/// Rows and columns of the outputs of all channels for which `is` holds.
fn places(y: &[f32], [_, cols]: [usize; 2], is: impl Fn(f32) -> bool) -> Vec<[usize; 2]> {
    let plane = y.len() / 32;
    let hit = |at: &usize| (0..32).any(|channel| is(y[channel * plane + at]));
    (0..plane).filter(hit).map(|at| [at / cols, at % cols]).collect()
}

#[test]
fn an_infinity_reaches_the_output_half_an_image_away_and_no_other() {
    let size = [6, 5];
    let mut case = Case::new(Conv2dParams::square(32, 32, 1), 1, size, 5);
    case.x[7 * 30 + 5 + 3] = f32::INFINITY;
    for isa in Isa::ALL {
        let bad = |kernel: &ConvKernel| places(&case.run_nchw(kernel, &Serial), size, |v| !v.is_finite());
        assert_eq!(bad(&kernel(&case, isa, CacheClass::Medium)), [[1, 3], [4, 3]], "{isa}");
        assert_eq!(bad(&case.with(isa.or_best(), direct(&case, isa))), [[1, 3]], "{isa}");
    }
}

#[test]
fn an_outlier_adds_some_ten_millionths_of_its_size_half_an_image_away() {
    let size = [6, 5];
    let mut case = Case::new(Conv2dParams::square(256, 32, 1), 1, size, 5);
    case.x[7 * 30 + 4 * 5 + 3] = 1e6;
    for isa in Isa::ALL {
        let exact = case.run_nchw(&case.with(isa.or_best(), direct(&case, isa)), &Serial);
        let y = case.run_nchw(&kernel(&case, isa, CacheClass::Medium), &Serial);
        let off: Vec<f32> = y.iter().zip(&exact).map(|(y, exact)| (y - exact).abs()).collect();
        assert_eq!(places(&off, size, |e| e > 1e-3), [[1, 3], [4, 3]], "{isa}");
        let most = (0..32).map(|channel| off[channel * 30 + 8]).fold(0.0, f32::max);
        assert!((0.01..1.0).contains(&most), "{isa}: {most}");
    }
}

fn direct(case: &Case, isa: Isa) -> impl FnOnce(usize, [usize; 2]) -> Algorithm {
    let (params, isa) = (case.params, isa.or_best());
    move |_, out| Algorithm::Direct(Direct::new(params, Elements::Single, out, false, isa, CacheClass::Medium))
}

#[test]
fn it_is_chosen_where_channels_and_pixels_are_many_unless_forbidden() {
    let method = |inputs, outputs, size, winograd| {
        let options = ConvOptions { winograd, ..ConvOptions::default() };
        let params = Conv2dParams::square(inputs, outputs, 1);
        ConvKernel::select(params, [1, inputs, size, size], Isa::detect(), options).map(|kernel| kernel.method())
    };
    assert_eq!(method(512, 512, 14, Winograd::F4), Some(Method::Strassen));
    assert_eq!(method(512, 512, 14, Winograd::F2), Some(Method::Direct));
    assert_eq!(method(512, 512, 14, Winograd::Off), Some(Method::Direct));
    assert_eq!(method(512, 512, 4, Winograd::F4), Some(Method::Direct), "more time for weights than for products");
    assert_eq!(method(64, 256, 56, Winograd::F4), Some(Method::Direct), "sums cost more than they save");
    assert_eq!(method(528, 512, 14, Winograd::F4), Some(Method::Direct), "no halves of whole blocks");
}

/// Runs what the first of two would, if nobody took anything from him.
struct FirstOfTwo;

impl Par for FirstOfTwo {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        Serial.run(chunks / 2, scratch_bytes, body);
    }

    fn parallelism(&self) -> usize {
        2
    }
}

/// Which rows of which blocks of channels the first of two writes.
fn first_half(kernel: &ConvKernel) -> Vec<(usize, usize)> {
    let (xs, ys) = (kernel.input_shape(), kernel.output_shape());
    let (x, packed) = (vec![0.0; xs.len()], vec![0.0; kernel.packed_len()]);
    let (mut y, mut scratch) = (vec![f32::NAN; ys.len()], vec![0.0; kernel.scratch_len()]);
    let epilogue = ConvEpilogue { bias: None, residual: Residual::None, activation: Activation::None };
    kernel.run(Blocked::new(xs, &x), &packed, epilogue, &mut BlockedMut::new(ys, &mut y), &mut scratch, &FirstOfTwo);
    let places = (0..ys.blocks()).flat_map(|block| (0..ys.h).map(move |row| (block, row)));
    places.filter(|(block, row)| !y[ys.offset(0, *block, *row, 0)].is_nan()).collect()
}

#[test]
fn a_core_writes_the_same_half_of_a_depthwise_layer_and_of_the_seven_products_behind_it() {
    for (inputs, outputs, size, by_rows) in
        [(128, 128, 56, true), (256, 256, 28, true), (256, 512, 14, false), (512, 512, 14, false)]
    {
        let half = |block, row| if by_rows { row < size / 2 } else { block < outputs / BLOCK / 2 };
        let places = (0..outputs / BLOCK).flat_map(|block| (0..size).map(move |row| (block, row)));
        let expected: Vec<_> = places.filter(|(block, row)| half(*block, *row)).collect();
        let shape = |channels| [1, channels, size, size];
        let square = Conv2dParams::square(inputs, outputs, 1);
        let depthwise = Conv2dParams { groups: outputs, pad: [1, 1], ..Conv2dParams::square(outputs, outputs, 3) };
        for isa in Isa::ALL.map(Isa::or_best) {
            let strassen = |_, out| Algorithm::Strassen(Strassen::new(square, out, isa, CacheClass::Medium));
            let seven = ConvKernel::with(square, shape(inputs), isa, strassen);
            let single = ConvKernel::select(depthwise, shape(outputs), isa, ConvOptions::default());
            for kernel in [seven, single].map(|kernel| kernel.expect("a sound convolution")) {
                assert_eq!(first_half(&kernel), expected, "{} of {outputs} @{size}", kernel.name());
            }
        }
    }
}
