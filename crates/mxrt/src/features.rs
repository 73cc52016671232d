//! Features of this build and of the processor.

/// All features that MXNet tells, in its order: programs ask for any of them.
const NAMES: [&str; 32] = [
    "CUDA",
    "CUDNN",
    "NCCL",
    "CUDA_RTC",
    "TENSORRT",
    "CPU_SSE",
    "CPU_SSE2",
    "CPU_SSE3",
    "CPU_SSE4_1",
    "CPU_SSE4_2",
    "CPU_SSE4A",
    "CPU_AVX",
    "CPU_AVX2",
    "OPENMP",
    "SSE",
    "F16C",
    "JEMALLOC",
    "BLAS_OPEN",
    "BLAS_ATLAS",
    "BLAS_MKL",
    "BLAS_APPLE",
    "LAPACK",
    "MKLDNN",
    "OPENCV",
    "CAFFE",
    "PROFILER",
    "DIST_KVSTORE",
    "CXX14",
    "INT64_TENSOR_SIZE",
    "SIGNAL_HANDLER",
    "DEBUG",
    "TVM_OP",
];
/// Features of every build. Most others name libraries, which mxrt does without.
const PRESENT: [&str; 2] = ["PROFILER", "INT64_TENSOR_SIZE"];

/// Returns the features that MXNet tells, with whether each is there. MXNet tells which
/// instructions of the processor it was compiled for; mxrt, which this one has and mxrt therefore
/// may use. `has_gpus`: whether there are GPUs, for which every build has kernels.
pub fn mxnet_features(has_gpus: bool) -> Vec<(&'static str, bool)> {
    let cpu: Vec<String> = cpu_features().into_iter().map(|name| name.to_uppercase().replace('.', "_")).collect();
    let is_there = |name: &str| {
        // Two names of instructions have no prefix.
        let instructions = name.strip_prefix("CPU_").or((name == "SSE" || name == "F16C").then_some(name));
        instructions.is_some_and(|name| cpu.iter().any(|of_cpu| of_cpu == name))
            || PRESENT.contains(&name)
            || (name == "CUDA" && has_gpus)
            || (name == "DEBUG" && cfg!(debug_assertions))
    };
    NAMES.into_iter().map(|name| (name, is_there(name))).collect()
}

/// Returns the instruction sets that kernels can use and that the processor has.
pub fn cpu_features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! look { ($($name:tt),*) => { $(if std::arch::is_x86_feature_detected!($name) { found.push($name); })* } }
        look!("sse", "sse2", "sse3", "sse4.1", "sse4.2", "sse4a", "avx", "avx2", "fma", "f16c");
        look!("avx512f", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16");
        if mxrt_ops::has_amx() {
            found.push("amx_bf16");
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        macro_rules! look { ($($name:tt),*) => { $(if std::arch::is_aarch64_feature_detected!($name) { found.push($name); })* } }
        look!("neon", "fp16", "dotprod", "bf16", "i8mm", "sve");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_has_is_told_under_mxnets_names() {
        let features = mxnet_features(true);
        let is_enabled = |name| features.iter().find(|(known, _)| *known == name).map(|(_, enabled)| *enabled);
        let cpu = cpu_features();
        for (name, own) in [("CPU_AVX2", "avx2"), ("CPU_SSE4_1", "sse4.1"), ("SSE", "sse"), ("F16C", "f16c")] {
            assert_eq!(is_enabled(name), Some(cpu.contains(&own)), "{name}");
        }
        assert_eq!(
            (is_enabled("CUDA"), is_enabled("CUDNN"), mxnet_features(false).contains(&("CUDA", false))),
            (Some(true), Some(false), true)
        );
        assert_eq!(
            (is_enabled("PROFILER"), is_enabled("SIGNAL_HANDLER"), is_enabled("TVM_OP")),
            (Some(true), Some(false), Some(false))
        );
        assert_eq!(features.len(), 32);
    }
}
