//! Which method computes a convolution: a table of measured choices, then rules over shape, instruction set, cache and
//! options. Nothing is measured here, so that the same shape gives the same bits on every run.
//!
//! A choice comes from the first of these that has one, as long as the options allow it:
//! the caller's table ([`ConvOptions::tuned`]), the table that is part of this crate (`measured.txt`), the rules below.

use super::bf16::Bf16;
use super::depthwise::Depthwise;
use super::direct::Direct;
use super::kernel::Algorithm;
use super::method::{ConvOptions, Method, Precision, Winograd};
use super::params::Conv2dParams;
use super::table::{ConvSignature, ConvTable};
use super::winograd::{self, AtLoad, InRegisters, Phases, Scheme};
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use std::sync::LazyLock;

/// Choices measured where the rules err.
static MEASURED: LazyLock<ConvTable> =
    LazyLock::new(|| include_str!("measured.txt").parse().unwrap_or_else(|e| panic!("measured.txt: {e}")));

/// Inputs with fewer channels than this are made planes: blocks of 16 would be mostly empty.
pub(super) const PLANAR_CHANNELS: usize = 8;
/// By rule transforms pay from this many channels on both sides.
const WINOGRAD_CHANNELS: usize = 16;
/// How much faster a transform must be expected to be to replace direct convolution.
const MARGIN: f64 = 1.15;
/// Bytes that arrive from memory in a microsecond, and bytes of an input that are rounded in one.
const MEMORY: f64 = 44e3;
const ROUNDING: f64 = 80e3;
/// Weights of more bytes than this come from memory for every image, for which cores wait together: so much longer.
const KEPT: f64 = 5e6;
const SHARED: f64 = 1.5;
/// What transforming a channel costs at one point, in multiply-adds, with stride 1 and with stride 2.
const TRANSFORMS: f64 = 6.4;
const STRIDED_TRANSFORMS: f64 = 12.0;
/// What filters in registers cost, in multiply-adds: forming the values for a patch, and each product with one of them. Fitted to layers
/// of 4x4 to 8x8 patches.
const FORMING: f64 = 63.0;
const FORMED: f64 = 0.8;
/// Multiply-adds of bf16 in the time of one of `f32`.
const BF16_GAIN: f64 = 1.85;

/// A chosen method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub method: Method,
    /// Whether the caller's table had it.
    pub tuned: bool,
}

/// What computes this convolution, whose output is of size `out`.
pub(super) fn choose(signature: &ConvSignature, out: [usize; 2], options: &ConvOptions) -> Choice {
    let allowed = candidates(signature, options.winograd);
    let weight_bytes = signature.params.weight_len() * size_of::<f32>();
    if options.one_packing.is_some_and(|least| weight_bytes >= least) {
        return Choice { method: for_all_images(signature, &allowed), tuned: false };
    }
    let from = |table: &ConvTable| table.get(signature).map(|t| t.method).filter(|m| allowed.contains(m));
    if let Some(method) = options.tuned.and_then(from) {
        return Choice { method, tuned: true };
    }
    let method = from(&MEASURED).unwrap_or_else(|| by_rule(signature, out, &allowed));
    Choice { method, tuned: false }
}

/// The methods that can compute it; never none.
pub(super) fn candidates(signature: &ConvSignature, winograd: Winograd) -> Vec<Method> {
    let ConvSignature { params: p, isa, precision, .. } = signature;
    if Depthwise::fits(p) {
        return vec![Method::Depthwise];
    }
    let mut methods = vec![Method::Direct];
    let bf16 = *precision == Precision::Bf16 && Bf16::fits(p, *isa);
    // The other half of an odd channel's pair may hold anything; the direct convolution masks it.
    let even = bf16 && p.in_channels.is_multiple_of(2);
    methods.extend(bf16.then_some(Method::Bf16));
    if winograd != Winograd::Off && winograd::fits(p, 1) {
        methods.push(Method::F2);
        methods.extend(even.then_some(Method::F2Bf16));
        if winograd == Winograd::F4 {
            methods.push(Method::F4);
            methods.extend(InRegisters::fits(p, *isa).then_some(Method::Registers));
        }
    }
    if winograd == Winograd::F4 {
        methods.extend(Phases::fits(p).then_some(Method::Phases));
        methods.extend(Scheme::of_taps(p).map(|_| Method::Taps));
        if winograd::fits(p, 2) {
            methods.push(Method::Strided);
            methods.extend(even.then_some(Method::StridedBf16));
        }
    }
    methods
}

/// The method prepared for this convolution; for `in_blocks` see [`ConvOptions`].
pub(super) fn prepare(method: Method, signature: &ConvSignature, out: [usize; 2], in_blocks: bool) -> Algorithm {
    let ConvSignature { params: p, shape: [n, ..], isa, cache, .. } = *signature;
    let at_load = |scheme, elements| Algorithm::AtLoad(AtLoad::new(p, n, out, scheme, elements, isa));
    match method {
        Method::Direct => {
            let planar = p.in_channels < PLANAR_CHANNELS && !in_blocks;
            Algorithm::Direct(Direct::new(p, Elements::Single, out, planar, isa, cache))
        }
        Method::Depthwise => Algorithm::Depthwise(Depthwise::new(p, out, isa)),
        Method::F2 => at_load(Scheme::F2, Elements::Single),
        Method::F4 => at_load(Scheme::F4, Elements::Single),
        Method::F2Bf16 => at_load(Scheme::F2, Elements::Pairs),
        Method::Registers => Algorithm::InRegisters(InRegisters::new(p, n, out)),
        Method::Phases => Algorithm::Phases(Phases::new(p, n, out, isa)),
        Method::Strided => at_load(strided(signature, out, Elements::Single).0, Elements::Single),
        Method::StridedBf16 => at_load(strided(signature, out, Elements::Pairs).0, Elements::Pairs),
        Method::Taps => at_load(taps_scheme(p), Elements::Single),
        Method::Bf16 => Algorithm::Bf16(Bf16::new(p, n, out, isa, cache)),
    }
}

/// The allowed method that is expected to take least time.
fn by_rule(signature: &ConvSignature, out: [usize; 2], allowed: &[Method]) -> Method {
    let ConvSignature { params: p, isa, .. } = signature;
    if let [only] = allowed {
        return *only;
    }
    if allowed.contains(&Method::Phases) && Phases::pays(p, *isa) {
        return Method::Phases;
    }
    let few_channels = p.in_channels.min(p.out_channels) < WINOGRAD_CHANNELS;
    let worth = allowed.iter().copied().filter(|m| !(*m == Method::Phases || few_channels && m.transforms()));
    let cost = |method: Method| {
        let time = expected(method, signature, out);
        match method {
            Method::Direct => time / MARGIN,
            _ => time,
        }
    };
    worth.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(Method::Direct)
}

/// The allowed method that does for images of any size, on weights that take no more bytes than they are.
fn for_all_images(signature: &ConvSignature, allowed: &[Method]) -> Method {
    let ConvSignature { params: p, isa, .. } = signature;
    let few_channels = p.in_channels.min(p.out_channels) < WINOGRAD_CHANNELS;
    let does = |method: Method| match method {
        Method::Depthwise | Method::Direct | Method::Bf16 => true,
        Method::Registers => !few_channels,
        // A first layer has few weights.
        Method::Phases => Phases::pays(p, *isa),
        Method::F2 | Method::F4 | Method::Strided | Method::Taps | Method::F2Bf16 | Method::StridedBf16 => false,
    };
    let fastest_first = [Method::Depthwise, Method::Phases, Method::Bf16, Method::Registers];
    fastest_first.into_iter().find(|method| does(*method) && allowed.contains(method)).unwrap_or(Method::Direct)
}

/// Expected microseconds of a method on one core.
fn expected(method: Method, signature: &ConvSignature, out: [usize; 2]) -> f64 {
    let ConvSignature { params: p, shape: [images, channels, h, w], isa, .. } = *signature;
    let pixels = (images * out[0] * out[1]) as f64;
    let weights = p.weight_len() as f64;
    let pairs = (p.in_channels * p.out_channels) as f64;
    match method {
        Method::F2 => at_load(Scheme::F2, signature, out, Elements::Single),
        Method::F4 => at_load(Scheme::F4, signature, out, Elements::Single),
        Method::F2Bf16 => at_load(Scheme::F2, signature, out, Elements::Pairs),
        Method::Strided => strided(signature, out, Elements::Single).1,
        Method::StridedBf16 => strided(signature, out, Elements::Pairs).1,
        Method::Taps => at_load(taps_scheme(p), signature, out, Elements::Single),
        Method::Registers => {
            let kernel = InRegisters::new(p, images, out);
            let (products, forming) = (kernel.products() as f64, FORMING * kernel.patches() as f64);
            estimate(
                isa,
                (FORMED * products + forming) * pairs + TRANSFORMS * products * channels_of(&p),
                4.0 * weights,
            )
        }
        Method::Bf16 => {
            let read = (images * channels * h * w) as f64
                / if p.kernel == [1, 1] { (p.stride[0] * p.stride[1]) as f64 } else { 1.0 };
            estimate(isa, pixels * weights / BF16_GAIN, 2.0 * weights) + 4.0 * read / ROUNDING
        }
        Method::Direct | Method::Depthwise | Method::Phases => estimate(isa, pixels * weights, 4.0 * weights),
    }
}

/// The scheme for filters that candidates have one for.
fn taps_scheme(p: Conv2dParams) -> Scheme {
    Scheme::of_taps(&p).unwrap_or_else(|| panic!("no transform is made for {p:?}: selection asked for it"))
}

/// Multiply-adds that a transform with filters transformed at load is worth, and bytes of its weights. Transforms cost in proportion
/// to the channels of one side and all points of their tiles, products to the channels of both and the points that
/// outputs need.
fn transformed(scheme: Scheme, elements: Elements, signature: &ConvSignature, out: [usize; 2]) -> (f64, f64) {
    let ConvSignature { params: p, shape: [images, ..], .. } = *signature;
    let pairs = (p.in_channels * p.out_channels) as f64;
    let per_channel = if scheme.stride() == 1 { TRANSFORMS } else { STRIDED_TRANSFORMS };
    let [points, needed] = [scheme.points_in(out), scheme.points_for(out)].map(|points| (images * points) as f64);
    let transforms = points * per_channel * channels_of(&p);
    let filters = scheme.filters() as f64;
    let (gain, bytes) = match elements {
        Elements::Single => (1.0, 4.0),
        Elements::Pairs => (BF16_GAIN, 2.0),
    };
    ((1.1 * needed * pairs + transforms) / gain, bytes * filters * pairs)
}

/// Channels that are transformed.
fn channels_of(p: &Conv2dParams) -> f64 {
    (p.in_channels + p.out_channels) as f64
}

/// Expected microseconds with stride 1.
fn at_load(scheme: Scheme, signature: &ConvSignature, out: [usize; 2], elements: Elements) -> f64 {
    let (products, bytes) = transformed(scheme, elements, signature, out);
    estimate(signature.isa, products, bytes)
}

/// The tile that is expected to take least time with stride 2, and its expected microseconds.
fn strided(signature: &ConvSignature, out: [usize; 2], elements: Elements) -> (Scheme, f64) {
    let ConvSignature { shape: [images, ..], isa, .. } = *signature;
    let time = |scheme: Scheme| {
        let (products, bytes) = transformed(scheme, elements, signature, out);
        let [rows, cols] = scheme.outs();
        let tiles = (images * out[0].div_ceil(rows) * out[1].div_ceil(cols)) as f64;
        // Fewer tiles give less to multiply while weights arrive, for which cores wait together.
        let waiting = (8.0 / tiles).min(1.0);
        products / multiply_adds(isa) + waiting * bytes / MEMORY
    };
    let (first, others) = match elements {
        Elements::Single => (Scheme::STRIDED4, &[Scheme::STRIDED3, Scheme::STRIDED2][..]),
        // The more points, the larger are errors of their rounding.
        Elements::Pairs => (Scheme::STRIDED3, &[Scheme::STRIDED2][..]),
    };
    let times = others.iter().map(|scheme| (*scheme, time(*scheme)));
    times.fold((first, time(first)), |best, next| if next.1 < best.1 { next } else { best })
}

/// Expected microseconds: arithmetic and the reading of weights overlap in part.
fn estimate(isa: Isa, products: f64, weight_bytes: f64) -> f64 {
    let shared = if weight_bytes > KEPT { SHARED } else { 1.0 };
    let (compute, memory) = (products / multiply_adds(isa), shared * weight_bytes / MEMORY);
    compute.max(memory) + 0.5 * compute.min(memory)
}

/// Multiply-adds in a microsecond.
fn multiply_adds(isa: Isa) -> f64 {
    match isa {
        Isa::Avx512 => 135e3,
        Isa::Avx2 => 68e3,
        Isa::Portable => 20e3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_class::CacheClass;

    fn signature(isa: Isa) -> ConvSignature {
        let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(64, 64, 3) };
        let (cache, precision) = (CacheClass::Medium, Precision::Single);
        ConvSignature { isa, cache, precision, params, shape: [1, 64, 56, 56] }
    }

    fn tuned(method: Method) -> Option<&'static ConvTable> {
        let mut table = ConvTable::default();
        table.insert(signature(Isa::Avx2), method, 1);
        Some(Box::leak(Box::new(table)))
    }

    #[test]
    fn the_committed_table_is_sound_and_every_line_of_it_is_a_possible_choice() {
        for (signature, tuned) in MEASURED.iter() {
            let allowed = candidates(signature, Winograd::F4);
            // Which methods exist is the same everywhere, but for bf16, which only some machines multiply.
            assert!(allowed.contains(&tuned.method) || tuned.method == Method::Bf16, "{signature} {}", tuned.method);
        }
    }

    #[test]
    fn channels_whose_values_have_no_32_bit_offsets_are_convolved_directly() {
        for (kernel, stride) in [([3, 3], 1), ([3, 3], 2), ([5, 5], 1), ([1, 7], 1)] {
            let methods = |channels| {
                let square = Conv2dParams::square(channels, 1, 3);
                let params = Conv2dParams { kernel, stride: [stride; 2], ..square };
                candidates(&ConvSignature { params, ..signature(Isa::Avx512) }, Winograd::F4)
            };
            assert!(methods(1 << 20).iter().any(|method| method.transforms()));
            assert!(!methods((1 << 20) + 16).iter().any(|method| method.transforms()));
        }
    }

    #[test]
    fn a_table_of_the_caller_goes_before_the_rules_but_not_before_what_the_options_forbid() {
        let out = [56, 56];
        let pick = |isa, options| choose(&signature(isa), out, &options);
        let options = |method, winograd| ConvOptions { winograd, tuned: tuned(method), ..ConvOptions::default() };
        let rule = pick(Isa::Avx2, ConvOptions::default());
        assert_eq!(rule, Choice { method: Method::F4, tuned: false });
        assert_eq!(pick(Isa::Avx2, options(Method::F2, Winograd::F4)), Choice { method: Method::F2, tuned: true });
        assert_eq!(
            pick(Isa::Portable, options(Method::F2, Winograd::F4)).method,
            Method::F4,
            "another instruction set"
        );
        assert_eq!(pick(Isa::Avx2, options(Method::F4, Winograd::F2)), Choice { method: Method::F2, tuned: false });
        assert_eq!(
            pick(Isa::Avx2, options(Method::F2, Winograd::Off)),
            Choice { method: Method::Direct, tuned: false }
        );
        assert_eq!(
            pick(Isa::Avx2, options(Method::Depthwise, Winograd::F4)).method,
            Method::F4,
            "not a depthwise layer"
        );
    }
}
