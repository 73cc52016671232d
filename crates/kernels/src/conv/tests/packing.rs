//! Equal forms of packed weights are equal bits, and images of all usual sizes need few forms.

use crate::cache_class::CacheClass;
use crate::conv::select::candidates;
use crate::conv::tests::{convolutions, values};
use crate::conv::*;
use crate::isa::Isa;
use crate::vector_units::VectorUnits;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// A convolution prepared for images of some size, by every method.
fn kernels(params: Conv2dParams, [n, h, w]: [usize; 3], isa: Isa) -> Vec<ConvKernel> {
    let of = |precision| {
        let (units, cache) = (VectorUnits::detect(isa), CacheClass::detect());
        let shape = [n, params.in_channels, h, w];
        let signature = ConvSignature { isa, units, cache, precision, params, shape };
        let methods = candidates(&signature, Winograd::F4, true).into_iter();
        methods.filter_map(|method| ConvKernel::of(&signature, method, false)).collect::<Vec<_>>()
    };
    [of(Precision::Single), of(Precision::Bf16)].concat()
}

/// Direct convolution of an input in blocks.
fn in_blocks(params: Conv2dParams, [n, h, w]: [usize; 3], isa: Isa) -> Option<ConvKernel> {
    let options = ConvOptions { winograd: Winograd::Off, in_blocks: true, ..ConvOptions::default() };
    ConvKernel::select(params, [n, params.in_channels, h, w], isa, options)
}

/// Packed bits by form.
#[derive(Default)]
struct Forms(HashMap<String, Vec<u32>>);

impl Forms {
    /// Packs to `len` elements and compares with what was packed in this form before.
    fn check(&mut self, form: String, len: usize, pack: impl FnOnce(&mut [f32])) -> Result<(), TestCaseError> {
        let mut packed = vec![f32::NAN; len];
        pack(&mut packed);
        let bits: Vec<u32> = packed.into_iter().map(f32::to_bits).collect();
        prop_assert!(self.0.get(&form).is_none_or(|first| *first == bits), "two kinds of {form}");
        self.0.insert(form, bits);
        Ok(())
    }
}

/// Layers of networks: also those for which there are transforms.
fn layers() -> impl Strategy<Value = Conv2dParams> {
    let three =
        |inputs, outputs, s| Conv2dParams { pad: [1, 1], stride: [s; 2], ..Conv2dParams::square(inputs, outputs, 3) };
    let first =
        |inputs, outputs, k| Conv2dParams { pad: [3, 3], stride: [2, 2], ..Conv2dParams::square(inputs, outputs, k) };
    prop_oneof![
        (1usize..70, 1usize..70, 1usize..3).prop_map(move |(inputs, outputs, s)| three(inputs, outputs, s)),
        (1usize..5, 1usize..40, 5usize..9).prop_map(move |(inputs, outputs, k)| first(inputs, outputs, k)),
        convolutions(),
    ]
}

fn images() -> impl Strategy<Value = [usize; 3]> {
    [1usize..4, 1usize..40, 1usize..40]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn equal_forms_are_equal_bits(params in layers(), sizes in [images(), images()], seed: u64) {
        let weights = values(seed, params.weight_len());
        for isa in Isa::ALL {
            let mut forms = Forms::default();
            let of = |size| kernels(params, size, isa).into_iter().chain(in_blocks(params, size, isa));
            for kernel in sizes.into_iter().flat_map(of) {
                forms.check(kernel.packing(), kernel.packed_len(), |out| kernel.pack(&weights, out))?;
            }
        }
    }

    #[test]
    fn equal_forms_of_volumes_and_images_are_equal_bits(
        channels in 1usize..40, outputs in 1usize..40, groups in prop_oneof![Just(1), 2usize..4],
        deep in 1usize..4, wide in 1usize..4, dilate in 1usize..3, pad in 0usize..2,
        sizes in [(images(), 1usize..7), (images(), 1usize..7)],
    ) {
        let params = Conv2dParams { groups, pad: [pad; 2], ..Conv2dParams::square(channels * groups, outputs * groups, wide) };
        let weights = values(1, params.weight_len() * deep);
        let (isa, options, mut forms) = (Isa::detect(), ConvOptions::default(), Forms::default());
        for ([n, h, w], d) in sizes {
            for depth in [Depth { kernel: deep, stride: 1, dilate, pad }, Depth { kernel: deep, ..Depth::NONE }] {
                if let Some(conv) = PlainConv::select(params, depth, [n, params.in_channels, d, h, w], isa, options) {
                    forms.check(conv.packing(), conv.packed_len(), |out| conv.pack(&weights, out))?;
                }
            }
            let image = ConvKernel::select(params, [n, params.in_channels, h, w], isa, options);
            if let Some(kernel) = image.filter(|_| deep == 1) {
                forms.check(kernel.packing(), kernel.packed_len(), |out| kernel.pack(&weights, out))?;
            }
        }
    }
}

#[test]
fn the_form_depends_on_the_method_and_not_on_the_image() {
    let layers = [
        Conv2dParams { pad: [3, 3], stride: [2, 2], ..Conv2dParams::square(3, 64, 7) },
        Conv2dParams { pad: [1, 1], ..Conv2dParams::square(64, 64, 3) },
        Conv2dParams::square(64, 256, 1),
        Conv2dParams { pad: [1, 1], groups: 64, ..Conv2dParams::square(64, 64, 3) },
    ];
    for (params, isa) in layers.into_iter().flat_map(|params| Isa::ALL.map(|isa| (params, isa))) {
        let mut forms: HashMap<Method, HashSet<String>> = HashMap::new();
        for side in [7, 8, 14, 20, 28, 56, 112, 224] {
            for kernel in kernels(params, [1, side, side], isa) {
                forms.entry(kernel.method()).or_default().insert(kernel.packing());
            }
        }
        assert!(forms.values().all(|forms| forms.len() == 1), "{forms:?}");
    }
}
