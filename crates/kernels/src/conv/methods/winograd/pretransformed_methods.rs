//! The methods with pre-transformed filters: which schemes they take, and what they are expected to
//! cost.

use super::fits;
use super::pretransformed::WinogradPretransformed;
use super::scheme::Scheme;
use crate::conv::cost::{
    TRANSFORMS, bf16_gain, estimate, estimate_waiting, too_few_to_transform, transformed_channels,
};
use crate::conv::method::{ConvMethod, PreparedConv};
use crate::conv::methods::direct_bf16::multiplies_pairs;
use crate::conv::options::Winograd;
use crate::conv::table::ConvSignature;
use crate::gemm::tile::Elements;
use crate::vector_units::VectorUnits;
use std::sync::Arc;

/// The cost of transforming a channel at one point with stride 2, in multiply-adds.
const STRIDED_TRANSFORMS: f64 = 12.0;

/// How much longer a multiply-add of points takes than one of direct convolution, unless the units
/// are so slow that all else is hidden.
const SLOWER_PRODUCTS: f64 = 1.1;

/// A family of schemes, and what products are made of.
pub(in crate::conv) struct PretransformedMethod {
    name: &'static str,
    schemes: Schemes,
    elements: Elements,
}

/// The schemes that a method chooses among.
enum Schemes {
    /// One for 3x3 filters with stride 1.
    Of3x3(Scheme),
    /// The fastest of several for 3x3 filters with stride 2.
    Strided(&'static [Scheme]),
    /// The scheme for 5x5 filters, or for lines of 3, 5 or 7 taps.
    OfTaps,
}

/// F(2,3).
pub(in crate::conv) static F2: PretransformedMethod =
    PretransformedMethod { name: "winograd-f2", schemes: Schemes::Of3x3(Scheme::F2), elements: Elements::Single };
/// F(4,3).
pub(in crate::conv) static F4: PretransformedMethod =
    PretransformedMethod { name: "winograd-f4", schemes: Schemes::Of3x3(Scheme::F4), elements: Elements::Single };
/// 5x5 filters and lines of 3, 5 or 7 taps.
pub(in crate::conv) static TAPS: PretransformedMethod =
    PretransformedMethod { name: "winograd-taps", schemes: Schemes::OfTaps, elements: Elements::Single };
/// 3x3 filters with stride 2.
pub(in crate::conv) static STRIDED: PretransformedMethod = PretransformedMethod {
    name: "winograd-strided",
    schemes: Schemes::Strided(&[Scheme::STRIDED4, Scheme::STRIDED3, Scheme::STRIDED2]),
    elements: Elements::Single,
};
/// F(2,3) with products of bf16 values.
pub(in crate::conv) static F2_BF16: PretransformedMethod =
    PretransformedMethod { name: "winograd-f2-bf16", schemes: Schemes::Of3x3(Scheme::F2), elements: Elements::Pairs };
/// 3x3 filters with stride 2 with products of bf16 values. The more points, the larger are errors
/// of their rounding.
pub(in crate::conv) static STRIDED_BF16: PretransformedMethod = PretransformedMethod {
    name: "winograd-strided-bf16",
    schemes: Schemes::Strided(&[Scheme::STRIDED3, Scheme::STRIDED2]),
    elements: Elements::Pairs,
};

impl ConvMethod for PretransformedMethod {
    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> Winograd {
        if matches!(self.schemes, Schemes::Of3x3(Scheme::F2)) { Winograd::F2 } else { Winograd::F4 }
    }

    fn rounds(&self) -> bool {
        self.elements == Elements::Pairs
    }

    fn fits(&self, signature: &ConvSignature) -> bool {
        let p = &signature.params;
        // The other half of an odd channel's pair may hold anything; direct convolution masks it.
        let pairs = || multiplies_pairs(p, signature.isa) && p.in_channels.is_multiple_of(2);
        let suits = match self.schemes {
            Schemes::Of3x3(_) => fits(p, 1),
            Schemes::Strided(_) => fits(p, 2),
            Schemes::OfTaps => Scheme::of_taps(p).is_some(),
        };
        suits && (!self.rounds() || pairs())
    }

    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64> {
        if too_few_to_transform(&signature.params) {
            return None;
        }
        self.fastest(signature, out).map(|(_, microseconds)| microseconds)
    }

    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], _in_blocks: bool) -> Arc<dyn PreparedConv> {
        let ConvSignature { params, shape: [images, ..], isa, .. } = *signature;
        let (scheme, _) = self.fastest(signature, out).unwrap_or_else(|| {
            panic!("{} has no transform for {params:?}: selection asked for it", self.name);
        });
        Arc::new(WinogradPretransformed::new(params, images, out, scheme, self.elements, isa))
    }
}

impl PretransformedMethod {
    /// The scheme that is expected to take least time, and its expected microseconds.
    fn fastest(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<(Scheme, f64)> {
        let time = |scheme: Scheme| (scheme, expected_us(scheme, self.elements, signature, out));
        match &self.schemes {
            Schemes::Of3x3(scheme) => Some(time(*scheme)),
            Schemes::OfTaps => Scheme::of_taps(&signature.params).map(time),
            Schemes::Strided(schemes) => schemes
                .iter()
                .map(|scheme| time(*scheme))
                .reduce(|best, next| if next.1 < best.1 { next } else { best }),
        }
    }
}

/// Expected microseconds of a scheme. Transforms cost in proportion to the channels of one side and
/// all points of their tiles, products to the channels of both and the points that outputs need.
fn expected_us(scheme: Scheme, elements: Elements, signature: &ConvSignature, out: [usize; 2]) -> f64 {
    let ConvSignature { params: p, shape: [images, ..], .. } = *signature;
    let pairs = (p.in_channels * p.out_channels) as f64;
    let per_channel = if scheme.stride() == 1 { TRANSFORMS } else { STRIDED_TRANSFORMS };
    let [points, needed] = [scheme.points_in(out), scheme.points_for(out)].map(|points| (images * points) as f64);
    let transforms = points * per_channel * transformed_channels(&p);
    let (gain, element_bytes) = match elements {
        Elements::Single => (1.0, 4.0),
        Elements::Pairs => (bf16_gain(), 2.0),
    };
    let hidden = scheme.stride() == 1 && signature.units == VectorUnits::Halves;
    let slower = if hidden { 1.0 } else { SLOWER_PRODUCTS };
    let (products, bytes) =
        ((slower * needed * pairs + transforms) / gain, element_bytes * scheme.filters() as f64 * pairs);
    if scheme.stride() == 1 {
        return estimate(signature, products, bytes);
    }
    let [rows, cols] = scheme.outs();
    let tiles = (images * out[0].div_ceil(rows) * out[1].div_ceil(cols)) as f64;
    // Fewer tiles give less to multiply while weights arrive, for which cores wait together.
    let waiting = (8.0 / tiles).min(1.0);
    estimate_waiting(signature, products, waiting * bytes)
}
