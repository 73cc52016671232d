//! 3x3 convolutions with stride 2 by transforms against their definition.

use crate::conv::methods::winograd::{Scheme, WinogradPretransformed};
use crate::conv::tests::{Case, activations, chosen_on};
use crate::conv::*;
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::par::Serial;
use crate::vector_units::VectorUnits;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_winograd_form_with_stride_2_equals_the_definition_on_every_instruction_set(
        inputs in 1usize..60, outputs in 1usize..60, n in 1usize..3, h in 3usize..40, w in 3usize..40,
        pad in [0usize..4, 0usize..4], bias: bool, residual: bool, activation in activations(), seed: u64,
    ) {
        let params = Conv2dParams { pad, stride: [2, 2], ..Conv2dParams::square(inputs, outputs, 3) };
        let case = Case::new(params, n, [h, w], seed).with_epilogue(bias, residual, activation);
        let pretransformed = |isa, scheme| case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa));
        for (scheme, tolerance) in [(Scheme::STRIDED2, 1e-6), (Scheme::STRIDED3, 1e-6), (Scheme::STRIDED4, 3e-6)] {
            case.check_kernels(&Isa::ALL.map(|isa| pretransformed(isa.or_best(), scheme)), tolerance);
        }
    }
}

#[test]
fn an_infinity_stays_among_the_outputs_of_its_tile_with_stride_2() {
    let params = Conv2dParams { pad: [1, 1], stride: [2, 2], ..Conv2dParams::square(32, 32, 3) };
    // Outputs 0 to 8 along each side: tiles of 2, 2, 2, 2 and 1 (in another order), of 3 each, of 3
    // each instead of 4.
    let mut case = Case::new(params, 1, [18, 18], 4);
    case.x[9 * 18 + 9] = f32::INFINITY;
    let sees = |at: usize| [4, 5].contains(&(at / 9)) && [4, 5].contains(&(at % 9));
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for scheme in [Scheme::STRIDED2, Scheme::STRIDED3, Scheme::STRIDED4] {
            let kernel =
                case.with(isa, |n, out| WinogradPretransformed::new(params, n, out, scheme, Elements::Single, isa));
            let y = case.run_nchw(&kernel, &Serial);
            // Input 9 is seen by outputs 4 and 5; their tiles may spread it over all their outputs.
            let tiles = 9usize.div_ceil(scheme.outs()[0]);
            let tile = |at: usize| (0..tiles).rfind(|tile| tile * 9 / tiles <= at);
            let near = |at: usize| (tile(4)..=tile(5)).contains(&tile(at));
            for at in 0..81 {
                assert!(!sees(at) || !y[at].is_finite(), "{isa} {scheme:?}: output {at} sees it");
                assert!(y[at].is_finite() || near(at / 9) && near(at % 9), "{isa} {scheme:?}: output {at} is far away");
            }
        }
    }
}

#[test]
fn the_tile_is_the_one_that_was_measured_to_be_fastest() {
    // The fewer tiles, the more the bytes of their weights count; slower arithmetic hides them.
    let layers = [
        (64, 128, 56, ["F(4,3) stride 2", "F(4,3) stride 2"]),
        (128, 256, 28, ["F(3,3) stride 2", "F(3,3) stride 2"]),
        (256, 512, 14, ["direct", "F(2,3) stride 2"]),
    ];
    if !Isa::Avx512.is_available() {
        return;
    }
    for (inputs, outputs, size, expected) in layers {
        let params = Conv2dParams { stride: [2, 2], pad: [1, 1], ..Conv2dParams::square(inputs, outputs, 3) };
        for (units, expected) in VectorUnits::ALL.into_iter().zip(expected) {
            let chosen = chosen_on(units, params, size);
            assert!(chosen.contains(expected), "{units:?} {inputs} to {outputs}: {chosen}");
        }
    }
}
