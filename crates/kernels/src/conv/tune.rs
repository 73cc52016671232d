//! Measuring the methods of one convolution, on request only: nothing here is called by selection.

use crate::aligned::AlignedVec;
use crate::blocked::convert::to_blocked;
use crate::blocked::{Blocked, BlockedMut};
use crate::conv::kernel::ConvKernel;
use crate::conv::method::Method;
use crate::conv::operands::ConvEpilogue;
use crate::conv::options::{ConvOptions, Winograd};
use crate::conv::select::candidates;
use crate::conv::table::ConvSignature;
use crate::par::{Par, ReusedScratch};
use crate::processor_time::processor_time;
use std::time::{Duration, Instant};

/// A method that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The method.
    pub method: Method,
    /// Name of the kernel, as plans show it.
    pub name: String,
    /// The median of its times in nanoseconds.
    pub ns: u64,
}

/// Calls of every method at least.
const LEAST_ROUNDS: usize = 3;
/// Bytes read between two calls, so that weights and activations come from where they come from
/// inside a network.
const EVICTED: usize = 48 << 20;

/// Measures every method that can compute a convolution, interleaved, by the processor time of the
/// calling thread, for about as long as `budget` says. The fastest comes first; none at all if the parameters
/// contradict each other or the instruction set is missing.
///
/// Between calls the caches are filled with something else.
pub fn measure(signature: &ConvSignature, winograd: Winograd, budget: Duration) -> Vec<Measured> {
    if !signature.isa.is_available() {
        return Vec::new();
    }
    let methods = candidates(signature, winograd, true);
    let mut runs: Vec<MethodRun> = methods.into_iter().filter_map(|method| MethodRun::new(signature, method)).collect();
    let evicted = AlignedVec::zeroed(EVICTED / size_of::<f32>());
    let (begin, par) = (Instant::now(), ReusedScratch::default());
    let mut rounds = 0;
    while !runs.is_empty() && (rounds < LEAST_ROUNDS || begin.elapsed() < budget) {
        for run in &mut runs {
            std::hint::black_box(evicted.chunks(16).map(|line| line[0]).sum::<f32>());
            run.time(&par);
        }
        rounds += 1;
    }
    let mut measured: Vec<Measured> = runs.into_iter().map(MethodRun::finish).collect();
    measured.sort_by_key(|m| m.ns);
    measured
}

/// The method chosen without a table of the caller's.
pub fn chosen(signature: &ConvSignature, winograd: Winograd) -> Option<Method> {
    let options = ConvOptions { winograd, precision: signature.precision, tiles: true, ..ConvOptions::default() };
    ConvKernel::select(signature.params, signature.shape, signature.isa, options).map(|kernel| kernel.method())
}

/// One method with operands of its own.
struct MethodRun {
    kernel: ConvKernel,
    x: AlignedVec,
    packed: AlignedVec,
    y: AlignedVec,
    scratch: AlignedVec,
    times: Vec<u64>,
}

impl MethodRun {
    fn new(signature: &ConvSignature, method: Method) -> Option<MethodRun> {
        let kernel = ConvKernel::of(signature, method, false)?;
        let mut packed = AlignedVec::zeroed(kernel.packed_len());
        kernel.pack(&values(kernel.params().weight_len()), &mut packed);
        let xs = kernel.input_shape();
        let mut x = AlignedVec::zeroed(xs.len());
        let par = ReusedScratch::default();
        to_blocked(kernel.isa(), &values(xs.n * xs.c * xs.h * xs.w), &mut BlockedMut::new(xs, &mut x), &par);
        let (y, scratch) = (AlignedVec::zeroed(kernel.output_shape().len()), AlignedVec::zeroed(kernel.scratch_len()));
        Some(MethodRun { kernel, x, packed, y, scratch, times: Vec::new() })
    }

    fn time(&mut self, par: &dyn Par) {
        let (xs, ys) = (self.kernel.input_shape(), self.kernel.output_shape());
        let begin = processor_time();
        self.kernel.run(
            Blocked::new(xs, &self.x),
            &self.packed,
            ConvEpilogue::default(),
            &mut BlockedMut::new(ys, &mut self.y),
            &mut self.scratch,
            par,
        );
        self.times.push((processor_time() - begin).as_nanos().max(1) as u64);
    }

    fn finish(mut self) -> Measured {
        self.times.sort_unstable();
        let ns = self.times.get(self.times.len() / 2).copied().unwrap_or(u64::MAX);
        Measured { method: self.kernel.method(), name: self.kernel.name(), ns }
    }
}

/// Values between -1 and 1 without a pattern that matters.
fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_class::CacheClass;
    use crate::conv::{Conv2dParams, Precision};
    use crate::isa::Isa;
    use crate::vector_units::VectorUnits;

    fn signature(isa: Isa) -> ConvSignature {
        let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(16, 16, 3) };
        let (cache, precision) = (CacheClass::detect(), Precision::Single);
        ConvSignature { isa, units: VectorUnits::detect(isa), cache, precision, params, shape: [1, 16, 9, 9] }
    }

    #[test]
    fn every_method_that_is_allowed_is_measured_and_the_fastest_comes_first() {
        let methods = |winograd| {
            let measured = measure(&signature(Isa::Portable), winograd, Duration::ZERO);
            assert!(measured.is_sorted_by_key(|m| m.ns) && measured.iter().all(|m| m.ns > 0));
            let mut methods: Vec<&str> = measured.iter().map(|m| m.method.name()).collect();
            methods.sort_unstable();
            methods
        };
        assert_eq!(methods(Winograd::Off), ["direct"]);
        assert_eq!(methods(Winograd::F4), ["direct", "winograd-f2", "winograd-f4"]);
    }

    #[test]
    fn what_contradicts_itself_is_not_measured() {
        let mut wrong = signature(Isa::Portable);
        wrong.shape[1] = 17;
        assert_eq!(measure(&wrong, Winograd::F4, Duration::ZERO), []);
    }
}
