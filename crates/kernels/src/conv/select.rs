//! The choice of a method for a convolution: a table of measured choices, then estimates. Nothing
//! is measured here, so that the same shape gives the same bits on every run.
//!
//! A choice comes from the first of these that has one, as long as the options allow it: the
//! caller's table ([`ConvOptions::tuned`]), the table that is part of this crate (`measured.txt`),
//! the lowest estimate.

use crate::conv::method::Method;
use crate::conv::options::{ConvOptions, Precision, Winograd};
use crate::conv::table::{ConvSignature, ConvTable};
use std::sync::LazyLock;

/// Choices measured where estimates err.
static MEASURED: LazyLock<ConvTable> =
    LazyLock::new(|| include_str!("measured.txt").parse().unwrap_or_else(|e| panic!("measured.txt: {e}")));

/// Reads the table of measured choices.
pub(crate) fn prepare() {
    LazyLock::force(&MEASURED);
}

/// A chosen method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub method: Method,
    /// Whether the caller's table had it.
    pub tuned: bool,
}

/// Chooses the method for this convolution, whose output has `out` rows and columns.
pub(super) fn choose(signature: &ConvSignature, out: [usize; 2], options: &ConvOptions) -> Choice {
    let allowed = candidates(signature, options.winograd, options.tiles);
    let from = |table: &ConvTable| table.get(signature).map(|t| t.method).filter(|m| allowed.contains(m));
    if let Some(method) = options.tuned.and_then(from) {
        return Choice { method, tuned: true };
    }
    let method = from(&MEASURED).unwrap_or_else(|| by_estimate(signature, out, &allowed));
    Choice { method, tuned: false }
}

/// The methods that can compute it and are allowed, in the order of the list; never none.
pub(super) fn candidates(signature: &ConvSignature, winograd: Winograd, tiles: bool) -> Vec<Method> {
    let precision = |m: &Method| signature.precision == Precision::Bf16 || !m.rounds();
    let allowed = |m: &Method| m.0.needs() <= winograd && precision(m) && (tiles || !m.tiles());
    Method::all().filter(|method| allowed(method) && method.0.fits(signature)).collect()
}

/// The allowed method that is expected to take least time.
fn by_estimate(signature: &ConvSignature, out: [usize; 2], allowed: &[Method]) -> Method {
    let costs = allowed.iter().filter_map(|method| Some((*method, method.0.cost(signature, out)?)));
    costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or_else(|| last(allowed), |(method, _)| method)
}

/// The plainest allowed method.
fn last(allowed: &[Method]) -> Method {
    *allowed.last().expect("every convolution fits a method")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_class::CacheClass;
    use crate::conv::params::Conv2dParams;
    use crate::conv::tests::method;
    use crate::isa::Isa;
    use crate::vector_units::VectorUnits;

    fn signature(isa: Isa) -> ConvSignature {
        let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(64, 64, 3) };
        let (cache, precision) = (CacheClass::Medium, Precision::Single);
        let units = VectorUnits::Whole;
        ConvSignature { isa, units, cache, precision, params, shape: [1, 64, 56, 56] }
    }

    fn tuned(method: Method) -> Option<&'static ConvTable> {
        let mut table = ConvTable::default();
        table.insert(signature(Isa::Avx2), method, 1);
        Some(Box::leak(Box::new(table)))
    }

    #[test]
    fn the_committed_table_is_sound_and_every_line_of_it_is_a_possible_choice() {
        for (signature, tuned) in MEASURED.iter() {
            let allowed = candidates(signature, Winograd::F4, false);
            // Which methods exist is the same everywhere, but for bf16 and tiles, which only some
            // machines have.
            let somewhere = tuned.method.rounds() || tuned.method.tiles();
            assert!(allowed.contains(&tuned.method) || somewhere, "{signature} {}", tuned.method);
        }
    }

    #[test]
    fn channels_whose_values_have_no_32_bit_offsets_are_convolved_directly() {
        for (kernel, stride) in [([3, 3], 1), ([3, 3], 2), ([5, 5], 1), ([1, 7], 1)] {
            let methods = |channels| {
                let square = Conv2dParams::square(channels, 1, 3);
                let params = Conv2dParams { kernel, stride: [stride; 2], ..square };
                candidates(&ConvSignature { params, ..signature(Isa::Avx512) }, Winograd::F4, false)
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
        assert_eq!(rule, Choice { method: method("winograd-f4"), tuned: false });
        assert_eq!(
            pick(Isa::Avx2, options(method("winograd-f2"), Winograd::F4)),
            Choice { method: method("winograd-f2"), tuned: true }
        );
        assert_eq!(
            pick(Isa::Portable, options(method("winograd-f2"), Winograd::F4)).method,
            method("winograd-f4"),
            "another instruction set"
        );
        assert_eq!(
            pick(Isa::Avx2, options(method("winograd-f4"), Winograd::F2)),
            Choice { method: method("winograd-f2"), tuned: false }
        );
        assert_eq!(
            pick(Isa::Avx2, options(method("winograd-f2"), Winograd::Off)),
            Choice { method: method("direct"), tuned: false }
        );
        assert_eq!(
            pick(Isa::Avx2, options(method("depthwise"), Winograd::F4)).method,
            method("winograd-f4"),
            "not a depthwise layer"
        );
    }
}
