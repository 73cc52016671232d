//! Every environment variable: one row each. Reading, error texts, `mxrt info` and docs/settings.md
//! follow from it.

use super::Reading;
use crate::devices::{Provider, SimWork};
use crate::engine::EngineKind;
use mxrt_engine::MAX_CORES;
use mxrt_graph::PassChoice;
use mxrt_ops::{ConvTable, KernelOptions};
use std::path::Path;
use std::str::FromStr;

/// One environment variable.
pub struct Setting {
    /// the variable
    pub name: &'static str,
    /// the accepted values; errors say "expected" before this text
    pub expects: &'static str,
    /// the value if it is not set or empty
    pub default: &'static str,
    /// the effect of the setting
    pub doc: &'static str,
    /// the subject: a heading of the documentation
    pub subject: &'static str,
    /// takes the value over
    pub(super) read: fn(&mut Reading, &str) -> Result<(), Wrong>,
}

/// The reason why a value is refused.
pub(super) enum Wrong {
    /// The value is not one that the row expects.
    Unexpected,
    /// The value is refused for this reason.
    Because(String),
}

const CPU: &str = "Threads and memory";
const MODELS: &str = "Models";
const OPERATORS: &str = "Engine";
const GPUS: &str = "GPUs";
const SIM: &str = "Simulated devices";

/// The variable of MXNet that allows products of float32 to round.
pub(super) const TF32: &str = "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION";

/// More streams of a GPU hold memory and overlap nothing.
const MAX_COMPUTE_STREAMS: usize = 16;

/// A variable of MXNet that changes nothing here. A value other than `$same`, which says what mxrt
/// does, is answered with a warning.
macro_rules! without_effect {
    ($name:literal, $default:literal, $same:literal, $doc:literal) => {
        Setting {
            name: $name,
            expects: "any value",
            default: $default,
            doc: concat!("Has no effect, and is answered with a warning: ", $doc),
            subject: GPUS,
            read: |to, text| {
                if text.trim() != $same {
                    to.without_effect.push($name);
                }
                Ok(())
            },
        }
    };
}

/// The variables that [`super::Settings::from_environment`] reads, in this order.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "MXRT_CORES",
        expects: "a number of threads from 1 to 4096",
        default: "all cores that the process may use",
        doc: "Threads that may compute, those of data iterators among them.",
        subject: CPU,
        read: |to, text| {
            to.cores = Some(number(text).ok().filter(|n| (1..=MAX_CORES).contains(n)).ok_or(Wrong::Unexpected)?);
            Ok(())
        },
    },
    Setting {
        name: "OMP_NUM_THREADS",
        expects: "a number of threads, 1 or more",
        default: "not set",
        doc: "Threads that may compute where `MXRT_CORES` is not set, times \
            `MXNET_CPU_WORKER_NTHREADS`, at most all cores. Another value is ignored with a \
            warning. Of a list the first number counts.",
        subject: CPU,
        read: |to, text| {
            to.openmp_threads = to.threads("OMP_NUM_THREADS", text);
            Ok(())
        },
    },
    Setting {
        name: "MXNET_CPU_WORKER_NTHREADS",
        expects: "a number of threads, 1 or more",
        default: "1",
        doc: "The other factor. Without `OMP_NUM_THREADS` it bounds nothing, as in MXNet.",
        subject: CPU,
        read: |to, text| {
            to.workers = to.threads("MXNET_CPU_WORKER_NTHREADS", text);
            Ok(())
        },
    },
    Setting {
        name: "MXRT_MEMORY_LIMIT_MB",
        expects: "a whole number",
        default: "no limit",
        doc: "Memory of arrays, weights and intermediate results on the host, in MiB. What does \
            not fit is a `MemoryError`.",
        subject: CPU,
        read: |to, text| {
            to.settings.engine.memory_limit = Some(mebibytes(text)?);
            Ok(())
        },
    },
    Setting {
        name: "MXNET_ENGINE_TYPE",
        expects: "a kind of engine",
        default: "ThreadedEnginePerDevice",
        doc: "`NaiveEngine` runs every operator at its call. `ThreadedEngine` and \
            `ThreadedEnginePerDevice` run them in the background; with `Async` appended \
            to the name they do not wait for devices between operators.",
        subject: OPERATORS,
        read: |to, text| {
            to.settings.engine.kind = text.parse::<EngineKind>().map_err(because)?;
            Ok(())
        },
    },
    Setting {
        name: "MXNET_EXEC_BULK_EXEC_INFERENCE",
        expects: "a whole number",
        default: "0",
        doc: "1: small operators of a thread are joined and run together. 0: they run at once in \
            the calling thread.",
        subject: OPERATORS,
        read: |to, text| {
            to.joins = Some(number::<usize>(text)? != 0);
            Ok(())
        },
    },
    Setting {
        name: "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN",
        expects: "a whole number",
        default: "15 where they are joined",
        doc: "How many small operators are joined; set alone it also switches joining on.",
        subject: OPERATORS,
        read: |to, text| {
            to.bulk_size = Some(number(text)?);
            Ok(())
        },
    },
    Setting {
        name: "MXNET_STORAGE_FALLBACK_LOG_VERBOSE",
        expects: "0 or 1",
        default: "1",
        doc: "1: an operator that has no kernel for the sparse arrays it is given, and computes with dense copies of \
            them, warns once of each kind of call. 0: it does not.",
        subject: OPERATORS,
        read: |to, text| {
            to.settings.hide_dense_copies = !switch(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_FLUSH_DENORMALS",
        expects: "0 or 1",
        default: "0",
        doc: "1: denormal numbers, those nearest to zero, count as zeros, as inputs and as results of \
            operators on the CPU. Processors compute with denormal numbers up to 100 times slower. \
            `mx.engine.set_flush_denormals` changes it.",
        subject: OPERATORS,
        read: |to, text| {
            to.settings.flush_denormals = switch(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_DEBUG",
        expects: "0 or 1",
        default: "0",
        doc: "1: errors name the line that called the operator, and the signal `SIGUSR1` prints \
            the running and the waiting operators.",
        subject: OPERATORS,
        read: |to, text| {
            to.settings.debug = switch(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_MAX_NODES",
        expects: "a whole number",
        default: "no limit",
        doc: "Nodes that a symbol file may have, variables and inner graphs included, for services that load \
              untrusted files. A larger one is an error. `mxrt.set_limits` changes it.",
        subject: MODELS,
        read: |to, text| {
            to.settings.max_nodes = Some(number(text)?);
            Ok(())
        },
    },
    Setting {
        name: "MXRT_PLAN_CACHE",
        expects: "a whole number",
        default: "64",
        doc: "Plans kept for each model: one for each signature of inputs.",
        subject: MODELS,
        read: |to, text| {
            to.settings.plans.cache.plans = number(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_PLAN_CACHE_MB",
        expects: "a whole number",
        default: "1024",
        doc: "Memory of the plans of a model and of their folded and packed weights, in MiB.",
        subject: MODELS,
        read: |to, text| {
            to.settings.plans.cache.bytes = mebibytes(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SHARED_WEIGHTS_MB",
        expects: "a whole number",
        default: "0: each process has its own",
        doc: "Disk space for folded and packed weights that the processes of a user share, in MiB. The \
            processes map files in `MXRT_CACHE_DIR`, so that the workers of a server have one copy \
            together. The files written longest ago are deleted when the space is used up.",
        subject: MODELS,
        read: |to, text| {
            to.settings.shared_weights = Some(mebibytes(text)?).filter(|bytes| *bytes > 0);
            Ok(())
        },
    },
    Setting {
        name: "MXRT_CACHE_DIR",
        expects: "the path of a folder",
        default: "`$XDG_CACHE_HOME/mxrt`, or `~/.cache/mxrt`",
        doc: "Folder of files that the processes of a user share: kernels that were compiled for GPUs at run \
            time, and packed weights. It is created when it is needed. A folder that other users can write is not \
            used.",
        subject: MODELS,
        read: |to, text| {
            to.settings.devices.cache = Some(text.into());
            Ok(())
        },
    },
    Setting {
        name: "MXRT_PASSES",
        expects: "names of passes, a minus before each and commas between",
        default: "all passes",
        doc: "Switches passes over graphs off; `-all` all of them. A wrong name is answered with a \
            list.",
        subject: MODELS,
        read: |to, text| {
            to.settings.plans.passes = PassChoice::parse(text).map_err(because)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_ISA",
        expects: "portable, neon (ARM), avx2, avx512 or amx",
        default: "the best that the processor has",
        doc: "Instruction set of the kernels; amx is AVX-512 with the tiles of AMX for products.",
        subject: MODELS,
        read: |to, text| {
            to.settings.plans.kernel = to.settings.plans.kernel.on(text).map_err(because)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_CONV_WINOGRAD",
        expects: "0 (off), 2, 4 or 1 (default)",
        default: "1",
        doc: "Transforms for convolutions: 0 none, 2 for tiles of 2x2 outputs only, 4 all, 1 what \
            is the default.",
        subject: MODELS,
        read: |to, text| {
            to.settings.plans.kernel.winograd = match number(text) {
                Ok(1) => KernelOptions::default().winograd,
                Ok(tile @ (0 | 2 | 4)) => tile as u8,
                _ => return Err(Wrong::Unexpected),
            };
            Ok(())
        },
    },
    Setting {
        name: "MXRT_TUNED",
        expects: "a file",
        default: "the table of the package",
        doc: "Table of measured convolutions, written by `mxrt tune`.",
        subject: MODELS,
        read: |to, text| {
            to.settings.plans.kernel.tuned = Some(tuned(text).map_err(because)?);
            Ok(())
        },
    },
    Setting {
        name: "MXRT_CUDA",
        expects: "0 or 1",
        default: "1",
        doc: "0: the CUDA driver is never opened, and there are no GPUs.",
        subject: GPUS,
        read: |to, text| {
            to.settings.devices.cuda = switch(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXNET_GPU_WORKER_NTHREADS",
        expects: "a number from 1 to 16",
        default: "4",
        doc: "Streams of each GPU for operators: work of independent calls on different streams overlaps.",
        subject: GPUS,
        read: |to, text| {
            let streams = number(text).ok().filter(|n| (1..=MAX_COMPUTE_STREAMS).contains(n));
            to.settings.engine.compute_streams = streams.ok_or(Wrong::Unexpected)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_GPU_RECORDINGS",
        expects: "a whole number",
        default: "4",
        doc: "CUDA graphs of its kernels that a plan keeps on each GPU, for concurrent calls; 0: kernels are submitted one by one.",
        subject: GPUS,
        read: |to, text| {
            to.settings.plans.gpu_recordings = number(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_GPU_FALLBACK",
        expects: "0 or 1",
        default: "0",
        doc: "1: in a graph on a GPU, operators for which it has no kernel run on the CPU, with copies around them. \
              `hybridize(fallback=...)` says so for one block.",
        subject: GPUS,
        read: |to, text| {
            to.settings.plans.fallback = switch(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_GPU_LIBRARIES",
        expects: "a list of cublaslt, cudnn",
        default: "none",
        doc: "Libraries of NVIDIA that compute in place of mxrt's kernels on GPUs: cublaslt products, cudnn \
              convolutions of planes, both of float16 and float32. One that is named and cannot be used is an error of every call there.",
        subject: GPUS,
        read: |to, text| {
            let words = text.split(',').map(|word| Provider::of_word(word.trim()));
            let chosen = words.collect::<Option<Vec<_>>>();
            to.settings.devices.libraries.chosen = chosen.ok_or(Wrong::Unexpected)?;
            Ok(())
        },
    },
    without_effect!("MXNET_GPU_COPY_NTHREADS", "2", "", "copies have streams of their own, whose number is fixed."),
    without_effect!(
        "MXNET_GPU_MEM_POOL_TYPE",
        "not set",
        "",
        "memory of arrays comes from one kind of pool; `Context.set_memory_limit` bounds it."
    ),
    without_effect!(
        "MXNET_GPU_MEM_POOL_RESERVE",
        "not set",
        "",
        "nothing is reserved; `Context.set_memory_limit` bounds the memory of arrays."
    ),
    without_effect!("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "not set", "", "see `MXNET_GPU_MEM_POOL_TYPE`."),
    without_effect!("MXNET_GPU_MEM_POOL_PAGE_SIZE", "not set", "", "see `MXNET_GPU_MEM_POOL_TYPE`."),
    without_effect!(
        "MXNET_CUDA_ALLOW_TENSOR_CORE",
        "1",
        "1",
        "products of float16 run on tensor cores. 1, which says so, gives no warning."
    ),
    Setting {
        name: TF32,
        expects: "any value",
        default: "0",
        doc: "Other than 0: libraries of `MXRT_GPU_LIBRARIES` may round factors of float32 to TF32. Without them it is \
              answered with a warning: mxrt's products of float32 are exact, except for graphs with \
              `hybridize(precision=\"bf16\")`.",
        subject: GPUS,
        read: |to, text| {
            to.settings.devices.libraries.tf32 = text != "0";
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_DEVICES",
        expects: "a whole number",
        default: "2",
        doc: "Number of devices `mx.sim(i)`.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.devices = number(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_GPUS",
        expects: "a whole number",
        default: "0",
        doc: "Number of simulated devices `mx.gpu(i)`.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.gpus = number(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_MODE",
        expects: "one of threaded, pumped, scheduled",
        default: "threaded",
        doc: "`threaded`: a thread for each stream. `pumped`: one thread, in an order that the \
            seed decides. `scheduled`: no thread; a thread that waits for a device does its work, \
            in an order that the seed decides.",
        subject: SIM,
        read: |to, text| {
            let known = SimWork::WORDS.iter().find(|(word, _)| *word == text);
            to.settings.devices.sim.work = known.ok_or(Wrong::Unexpected)?.1;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_SEED",
        expects: "a whole number",
        default: "0",
        doc: "Seed of the random numbers that choose this order, and pauses.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.seed = number(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_DELAY_US",
        expects: "a whole number",
        default: "0",
        doc: "Longest random pause before a piece of work, with threads, in microseconds.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.max_delay_us = number(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_MEMORY_MB",
        expects: "a whole number",
        default: "4096",
        doc: "Memory of each device, in MiB.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.memory = Some(mebibytes(text)?);
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_CHECK",
        expects: "0 or 1",
        default: "0",
        doc: "1: every call of a device is recorded, and `mx.testing.check(ctx)` names \
            accesses that nothing ordered.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.record = switch(text)?;
            Ok(())
        },
    },
    Setting {
        name: "MXRT_SIM_IGNORE_WAITS",
        expects: "0 or 1",
        default: "0",
        doc: "1: streams do not wait for events. This shows that tests and checker notice it.",
        subject: SIM,
        read: |to, text| {
            to.settings.devices.sim.ignore_waits = switch(text)?;
            Ok(())
        },
    },
];

impl Setting {
    /// Takes a value over, or says in a line what is wrong with it.
    pub(super) fn apply(&self, to: &mut Reading, text: &str) -> Result<(), String> {
        (self.read)(to, text.trim()).map_err(|wrong| match wrong {
            Wrong::Unexpected => format!("{} is '{text}'; expected {}", self.name, self.expects),
            Wrong::Because(reason) => format!("{} is '{text}': {reason}", self.name),
        })
    }
}

fn because(error: impl ToString) -> Wrong {
    Wrong::Because(error.to_string())
}

fn number<T: FromStr>(text: &str) -> Result<T, Wrong> {
    text.parse().map_err(|_| Wrong::Unexpected)
}

fn switch(text: &str) -> Result<bool, Wrong> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Wrong::Unexpected),
    }
}

/// Converts mebibytes to bytes.
fn mebibytes(text: &str) -> Result<usize, Wrong> {
    Ok(number::<usize>(text)?.saturating_mul(1 << 20))
}

/// The table of measured convolutions in a file; it stays for as long as the process.
pub(crate) fn tuned(path: impl AsRef<Path>) -> Result<&'static ConvTable, String> {
    let text = mxrt_io::read_text(path).map_err(|e| e.to_string())?;
    Ok(Box::leak(Box::new(text.parse()?)))
}
