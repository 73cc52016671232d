//! Choices for building plans.

use crate::passes::PassChoice;
use mxrt_engine::CoreLimit;
use mxrt_ops::KernelOptions;

/// How much a plan cache may keep. The plan used last always stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimit {
    /// plans
    pub plans: usize,
    /// bytes of plans and of folded and packed weights
    pub bytes: usize,
    /// bytes of folded and packed weights, in addition to those of the plan with most, that are kept even
    /// if that is more than 1.5 times the parameters
    pub packed: usize,
}

impl Default for CacheLimit {
    fn default() -> Self {
        CacheLimit { plans: 64, bytes: 1 << 30, packed: 16 << 20 }
    }
}

/// Choices for building plans.
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// choices for kernels
    pub kernel: KernelOptions,
    /// passes that run
    pub passes: PassChoice,
    /// limits of a cache of plans
    pub cache: CacheLimit,
    /// bound of the cores that calls on the CPU use together
    pub cores: Option<&'static CoreLimit>,
    /// recordings of its kernels that a plan keeps on a GPU, for concurrent calls; 0: none
    pub gpu_recordings: usize,
    /// whether operators for which a device has no kernel run on the host, with copies around them
    pub fallback: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        let (kernel, passes, cache) = (KernelOptions::default(), PassChoice::default(), CacheLimit::default());
        BuildOptions { kernel, passes, cache, cores: None, gpu_recordings: 4, fallback: false }
    }
}
