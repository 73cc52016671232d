//! Direct convolution, depthwise convolution and what holds for every method.

use crate::activation::Activation;
use crate::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Halo, from_blocked, to_blocked};
use crate::cache_class::CacheClass;
use crate::conv::methods::direct::Direct;
use crate::conv::tests::{Case, activations, chunked_cases, convolutions, method, values};
use crate::conv::*;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads, Uneven};
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_direct_convolution_equals_its_definition_on_every_instruction_set(
        params in convolutions(), n in 1usize..4, h in 0usize..12, w in 0usize..35,
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = Case::new(params, n, [reach(0) + h, reach(1) + w], seed).with_epilogue(bias, residual, activation);
        case.check_kernels(&Isa::ALL.map(|isa| case.select(isa, Winograd::Off)), 1e-6);
    }
}

#[test]
fn convolutions_of_real_networks_equal_their_definition() {
    let square = Conv2dParams::square;
    let cases = [
        (Conv2dParams { stride: [2, 2], pad: [3, 3], ..square(3, 64, 7) }, [40, 46]),
        (Conv2dParams { pad: [1, 1], ..square(64, 64, 3) }, [14, 14]),
        (Conv2dParams { stride: [2, 2], pad: [1, 1], ..square(32, 80, 3) }, [15, 15]),
        (square(72, 48, 1), [7, 7]),
        (Conv2dParams { stride: [2, 2], ..square(64, 96, 1) }, [14, 14]),
        (Conv2dParams { groups: 32, pad: [1, 1], ..square(128, 128, 3) }, [9, 9]),
        (Conv2dParams { groups: 96, stride: [2, 2], pad: [1, 1], ..square(96, 96, 3) }, [17, 17]),
        (Conv2dParams { kernel: [1, 7], pad: [0, 3], ..square(40, 24, 1) }, [12, 17]),
    ];
    for (params, size) in cases {
        for isa in Isa::ALL {
            Case::new(params, 2, size, 3).with_epilogue(true, true, Activation::Relu).check(isa, Winograd::Off, 1e-6);
        }
    }
}

#[test]
fn a_one_dimensional_convolution_is_a_two_dimensional_one_of_height_one() {
    let params = Conv2dParams { kernel: [1, 3], pad: [0, 1], ..Conv2dParams::square(20, 33, 1) };
    for isa in Isa::ALL {
        Case::new(params, 3, [1, 50], 5).check(isa, Winograd::Off, 1e-6);
    }
}

#[test]
fn a_convolution_has_the_same_bits_whoever_runs_its_chunks() {
    for case in chunked_cases() {
        for isa in [Isa::Avx512, Isa::Avx2] {
            for winograd in [Winograd::Off, Winograd::F2, Winograd::F4] {
                let kernel = case.select(isa, winograd);
                let run = |par: &dyn Par| case.run_nchw(&kernel, par).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                let serial = run(&Serial);
                assert_eq!(serial, run(&Reverse), "{}", kernel.name());
                assert_eq!(serial, run(&Threads(3)), "{}", kernel.name());
                assert_eq!(serial, run(&Uneven(2)), "{}", kernel.name());
                assert_eq!(serial, run(&Uneven(4)), "{}", kernel.name());
            }
        }
    }
}

/// Runs what the first of two threads would begin with.
struct FirstOfTwo;

impl Par for FirstOfTwo {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        Serial.run(chunks / 2, scratch_bytes, body);
    }

    fn parallelism(&self) -> usize {
        2
    }
}

/// The rows of blocks of channels that the first of two threads writes.
fn first_half(kernel: &ConvKernel) -> Vec<(usize, usize)> {
    let (xs, ys) = (kernel.input_shape(), kernel.output_shape());
    let (x, packed) = (vec![0.0; xs.len()], vec![0.0; kernel.packed_len()]);
    let (mut y, mut scratch) = (vec![f32::NAN; ys.len()], vec![0.0; kernel.scratch_len()]);
    let mut out = BlockedMut::new(ys, &mut y);
    kernel.run(Blocked::new(xs, &x), &packed, ConvEpilogue::default(), &mut out, &mut scratch, &FirstOfTwo);
    let places = (0..ys.blocks()).flat_map(|block| (0..ys.h).map(move |row| (block, row)));
    places.filter(|(block, row)| !y[ys.offset(0, *block, *row, 0)].is_nan()).collect()
}

#[test]
fn a_core_writes_the_same_half_of_a_depthwise_layer_and_of_the_1x1_layer_behind_it() {
    for (channels, size, by_rows) in [(128, 56, true), (256, 28, true), (512, 14, false)] {
        let half = |block, row| if by_rows { row < size / 2 } else { block < channels / BLOCK / 2 };
        let places = (0..channels / BLOCK).flat_map(|block| (0..size).map(move |row| (block, row)));
        let expected: Vec<_> = places.filter(|(block, row)| half(*block, *row)).collect();
        let shape = [1, channels, size, size];
        let square = Conv2dParams::square(channels, channels, 1);
        let depthwise = Conv2dParams { groups: channels, pad: [1, 1], ..Conv2dParams::square(channels, channels, 3) };
        for isa in Isa::ALL.map(Isa::or_best) {
            let planes = |out| Direct::new(square, Elements::Single, out, false, isa, CacheClass::Medium);
            let direct = ConvKernel::with(square, shape, isa, method("direct"), |out| Arc::new(planes(out)));
            let single = ConvKernel::select(depthwise, shape, isa, ConvOptions::default());
            for kernel in [direct, single].map(|kernel| kernel.expect("a sound convolution")) {
                assert_eq!(first_half(&kernel), expected, "{} of {channels} @{size}", kernel.name());
            }
        }
    }
}

#[test]
fn a_kernel_that_does_not_fit_or_contradicts_itself_is_not_selected() {
    let select = |params: Conv2dParams, shape| ConvKernel::select(params, shape, Isa::detect(), ConvOptions::default());
    assert!(select(Conv2dParams::square(8, 8, 5), [1, 8, 4, 9]).is_none(), "larger than the image");
    assert!(select(Conv2dParams::square(8, 8, 3), [1, 9, 4, 9]).is_none(), "other channels");
    assert!(
        select(Conv2dParams { groups: 3, ..Conv2dParams::square(8, 9, 1) }, [1, 8, 4, 4]).is_none(),
        "uneven groups"
    );
    assert!(
        select(Conv2dParams { stride: [0, 1], ..Conv2dParams::square(8, 8, 1) }, [1, 8, 4, 4]).is_none(),
        "no stride"
    );
    assert!(select(Conv2dParams::square(8, 8, 1), [1, 8, 0, 4]).is_none(), "an empty image");
    for pad in [1 << 20, 1 << 30] {
        let params = Conv2dParams { pad: [pad; 2], ..Conv2dParams::square(64, 64, 1) };
        assert!(select(params, [1, 64, 4, 4]).is_none(), "larger than offsets: {pad}");
    }
}

#[test]
fn nan_and_infinity_reach_exactly_the_outputs_that_see_them() {
    let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(16, 16, 3) };
    let mut case = Case::new(params, 1, [9, 9], 1).with_epilogue(true, false, Activation::Relu);
    case.x[4 * 9 + 4] = f32::NAN;
    for isa in Isa::ALL {
        let y = case.run_nchw(&case.select(isa, Winograd::Off), &Serial);
        for (at, v) in y.iter().enumerate() {
            let (row, col) = (at / 9 % 9, at % 9);
            let sees = (3..6).contains(&row) && (3..6).contains(&col);
            assert_eq!(v.is_nan(), sees, "{isa} at ({row}, {col})");
        }
    }
}

proptest! {
    #[test]
    fn conversion_to_blocked_and_back_is_exact(
        n in 1usize..3, c in 1usize..40, h in 1usize..9, w in 1usize..40, planar: bool, halo in 0usize..3,
    ) {
        let halo = Halo { top: halo, left: 1, bottom: 2 * halo, right: halo };
        let shape = if planar { BlockedShape::planar(n, c, h, w, halo) } else { BlockedShape::new(n, c, h, w, halo) };
        let x = values(3, n * c * h * w);
        for isa in Isa::ALL {
            let mut blocked = vec![f32::NAN; shape.len()];
            to_blocked(isa, &x, &mut BlockedMut::new(shape, &mut blocked), &Reverse);
            let mut back = vec![f32::NAN; x.len()];
            from_blocked(isa, Blocked::new(shape, &blocked), &mut back, &Serial);
            prop_assert_eq!(&back, &x);
        }
    }
}
