//! Seven products for eight, against the definition in f64.

use super::kernel::Algorithm;
use super::strassen::Strassen;
use super::tests::{Case, activations};
use super::*;
use crate::cache_class::CacheClass;
use crate::isa::Isa;
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
