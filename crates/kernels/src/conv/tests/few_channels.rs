//! Inputs of fewer channels than planes are for, read from blocks: as good as from planes, and
//! nothing beyond the last channel.

use crate::blocked::BLOCK;
use crate::conv::methods::direct::PLANAR_CHANNELS;
use crate::conv::tests::{Case, activations};
use crate::conv::*;
use crate::isa::Isa;
use proptest::prelude::*;

prop_compose! {
    /// Convolutions of one to seven channels.
    fn few_channels()(
        groups in prop_oneof![3 => Just(1usize), 1 => 2usize..4], inputs in 1usize..8, outputs in 1usize..40,
        kernel in [1usize..5, 1usize..5], stride in [1usize..3, 1usize..3],
        dilate in [1usize..3, 1usize..3], pad in [0usize..3, 0usize..3],
    ) -> Conv2dParams {
        let inputs = 1 + (inputs - 1) % ((PLANAR_CHANNELS - 1) / groups);
        Conv2dParams { in_channels: groups * inputs, out_channels: groups * outputs, kernel, stride, dilate, pad, groups }
    }
}

fn select(case: &Case, isa: Isa, in_blocks: bool) -> ConvKernel {
    let options = ConvOptions { winograd: Winograd::Off, in_blocks, ..ConvOptions::default() };
    ConvKernel::select(case.params, case.shape, isa, options).expect("a sound convolution")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn few_channels_are_read_from_blocks_as_from_planes(
        params in few_channels(), n in 1usize..3, h in 0usize..12, w in 0usize..35,
        bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let reach = |i: usize| (params.dilate[i] * (params.kernel[i] - 1) + 1).saturating_sub(2 * params.pad[i]).max(1);
        let case = Case::new(params, n, [reach(0) + h, reach(1) + w], seed).with_epilogue(bias, residual, activation);
        let kernels = Isa::ALL.map(|isa| select(&case, isa, true));
        prop_assert!(kernels.iter().all(|kernel| kernel.input_shape().block == BLOCK));
        case.check_kernels(&kernels, 1e-6);
    }
}

#[test]
fn who_makes_the_input_for_a_convolution_makes_planes_of_few_channels() {
    for channels in 1..=PLANAR_CHANNELS {
        let case = Case::new(Conv2dParams::square(channels, 32, 3), 1, [9, 9], 1);
        let block = |in_blocks| select(&case, Isa::detect(), in_blocks).input_shape().block;
        assert_eq!(block(false), if channels < PLANAR_CHANNELS { 1 } else { BLOCK }, "{channels} channels");
        assert_eq!(block(true), BLOCK, "{channels} channels");
    }
}
