//! The environment variables, read in one place for every border.

mod table;

pub(crate) use table::tuned;
pub use table::{SETTINGS, Setting};

use crate::devices::{self, DeviceSettings};
use mxrt_engine::{Config, DeviceKind};
use mxrt_graph::BuildOptions;

/// Settings from the environment.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// configuration for [`Engine::start`](mxrt_engine::Engine::start)
    pub engine: Config,
    /// settings from which the drivers in `engine` were made
    pub devices: DeviceSettings,
    /// options for [`CachedOp::compile`](mxrt_graph::CachedOp::compile)
    pub plans: BuildOptions,
    /// bytes of packed weights that processes share as files; `None`: each has its own
    pub shared_weights: Option<usize>,
    /// take denormal numbers for zeros, for [`set_flush_denormals`](crate::engine::set_flush_denormals)
    pub flush_denormals: bool,
    /// give no warnings of dense copies of sparse arrays
    pub hide_dense_copies: bool,
    /// nodes that a symbol may have, for [`LoadOptions`](mxrt_graph::LoadOptions)
    pub max_nodes: Option<usize>,
    /// say more (`MXRT_DEBUG`): print what the engine is doing when the process gets SIGUSR1;
    /// borders note where their callers push operators, for
    /// [`Failure::pushed_at`](mxrt_engine::Failure::pushed_at)
    pub debug: bool,
    /// variables of other libraries that are not obeyed, a line each: for the border to print
    pub warnings: Vec<String>,
}

/// The number of operators that MXNet joins if bulks are switched on without a number.
const BULK_SIZE: usize = 15;

/// The settings read so far; some depend on several variables.
#[derive(Default)]
struct Reading {
    settings: Settings,
    cores: Option<usize>,
    openmp_threads: Option<usize>,
    workers: Option<usize>,
    /// warnings about the two variables above
    thread_warnings: Vec<String>,
    /// variables of MXNet that change nothing here
    without_effect: Vec<&'static str>,
    joins: Option<bool>,
    bulk_size: Option<usize>,
}

impl Settings {
    /// Reads the variables of [`SETTINGS`] through `env`, usually
    /// `|name| std::env::var(name).ok()`. One that is set to nothing counts as not set. An error
    /// names the variable, its value and what it may be.
    pub fn from_environment(env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let mut reading = Reading::default();
        for setting in SETTINGS {
            if let Some(text) = env(setting.name).filter(|text| !text.trim().is_empty()) {
                setting.apply(&mut reading, &text)?;
            }
        }
        Ok(reading.finish())
    }

    /// How many devices of a kind there are. Starts no engine.
    pub fn device_count(&self, kind: DeviceKind) -> usize {
        self.engine.drivers.iter().find(|driver| driver.kind() == kind).map_or(0, |driver| driver.count())
    }
}

impl Reading {
    /// A number of threads in a variable that other libraries read, too: what makes no sense is
    /// ignored, as they do, with a warning.
    fn threads(&mut self, name: &str, text: &str) -> Option<usize> {
        // OMP_NUM_THREADS may be a list for nested regions; the first number is the outer one.
        let first = text.split(',').next().and_then(|number| number.trim().parse::<usize>().ok());
        let number = first.filter(|n| *n > 0);
        if number.is_none() {
            let line = format!("{name} is '{text}' and is ignored; expected a number of threads, 1 or more");
            self.thread_warnings.push(line);
        }
        number
    }

    fn finish(mut self) -> Settings {
        let engine = &mut self.settings.engine;
        engine.cores = self.cores;
        if self.cores.is_none() {
            // Without OMP_NUM_THREADS an operator of MXNet takes all cores, so the number of its
            // workers bounds nothing.
            let available = std::thread::available_parallelism().map_or(1, usize::from);
            let both = self.openmp_threads.map(|threads| threads.saturating_mul(self.workers.unwrap_or(1)));
            engine.cores = both.map(|threads| threads.min(available));
            self.settings.warnings.append(&mut self.thread_warnings);
        }
        let libraries = &self.settings.devices.libraries;
        if libraries.tf32 && libraries.chosen.is_empty() {
            self.without_effect.push(table::TF32);
        }
        if !self.without_effect.is_empty() {
            let names = self.without_effect.join(", ");
            self.settings.warnings.push(format!("set in the environment, but without effect in mxrt: {names}"));
        }
        let engine = &mut self.settings.engine;
        // Without the variables none are joined: small operators run at once in the calling thread.
        engine.bulk_size = match self.joins {
            Some(false) => 0,
            Some(true) => self.bulk_size.unwrap_or(BULK_SIZE),
            None => self.bulk_size.unwrap_or(0),
        };
        engine.drivers = devices::drivers(&self.settings.devices);
        self.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::SimWork;
    use crate::engine::EngineKind;
    use mxrt_ops::{ConvTable, Isa, KernelOptions};

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Settings::from_environment(&find)
    }

    #[test]
    fn a_table_of_measured_convolutions_is_read_from_its_file() {
        let path = std::env::temp_dir().join(format!("mxrt-settings-{}.txt", std::process::id()));
        let path = path.to_str().unwrap();
        let line = "avx2 medium single n1 64x56x56 64 k3x3 s1x1 d1x1 p1x1 g1 winograd-f4 280000";
        std::fs::write(path, line).unwrap();
        let tuned = read(&[("MXRT_TUNED", path)]).unwrap().plans.kernel.tuned;
        std::fs::write(path, line.replace("winograd-f4", "fast")).unwrap();
        let bad = read(&[("MXRT_TUNED", path)]).unwrap_err();
        std::fs::remove_file(path).unwrap();
        assert_eq!(tuned.map(ConvTable::len), Some(1));
        assert!(bad.contains("line 1") && bad.contains("`fast` is not a method"), "{bad}");
    }

    #[test]
    fn without_variables_everything_is_as_by_default() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.engine.kind, Config::default().kind);
        assert_eq!((settings.engine.cores, settings.engine.memory_limit), (None, None));
        assert_eq!(settings.plans.kernel.winograd, KernelOptions::default().winograd);
    }

    #[test]
    fn variables_are_taken_over() {
        let settings = read(&[
            ("MXNET_ENGINE_TYPE", "NaiveEngine"),
            ("MXRT_CORES", " 3 "),
            ("OMP_NUM_THREADS", "1"),
            ("MXRT_MEMORY_LIMIT_MB", "100"),
            ("MXRT_CONV_WINOGRAD", "0"),
            ("MXNET_EXEC_BULK_EXEC_INFERENCE", "1"),
            ("MXRT_DEBUG", "1"),
            ("MXRT_PLAN_CACHE", "5"),
            ("MXRT_PLAN_CACHE_MB", "7"),
            ("MXRT_MAX_NODES", "9"),
            ("MXNET_GPU_WORKER_NTHREADS", "6"),
        ])
        .unwrap();
        assert_eq!(settings.engine.compute_streams, 6);
        assert_eq!(settings.engine.kind, EngineKind::Naive);
        assert_eq!((settings.engine.cores, settings.engine.memory_limit), (Some(3), Some(100 << 20)));
        assert_eq!(settings.plans.kernel.winograd, 0);
        assert!(settings.debug && settings.engine.bulk_size == BULK_SIZE);
        assert_eq!(settings.max_nodes, Some(9));
        assert_eq!((settings.plans.cache.plans, settings.plans.cache.bytes), (5, 7 << 20));
        let settings = read(&[("MXRT_ISA", "portable"), ("MXRT_PASSES", "-drop_dead")]).unwrap();
        assert_eq!(settings.plans.kernel.isa, Isa::Portable);
        assert!(!settings.plans.passes.runs("drop_dead") && settings.plans.passes.runs("merge_equal"));
        let sim = read(&[("MXRT_SIM_GPUS", "2"), ("MXRT_SIM_DEVICES", "0"), ("MXRT_SIM_MODE", "scheduled")]).unwrap();
        assert!(
            sim.devices.sim.gpus == 2 && sim.devices.sim.devices == 0 && sim.devices.sim.work == SimWork::Scheduled
        );
        assert_eq!(read(&[("OMP_NUM_THREADS", "1,4")]).unwrap().engine.cores, Some(1));
    }

    #[test]
    fn numbers_of_threads_for_other_libraries_are_ignored_with_a_warning_when_they_mean_nothing() {
        for name in ["OMP_NUM_THREADS", "MXNET_CPU_WORKER_NTHREADS"] {
            for wrong in ["abc", "-3", "0", "1.5"] {
                let settings = read(&[(name, wrong)]).unwrap();
                assert_eq!(settings.engine.cores, None);
                let line = format!("{name} is '{wrong}' and is ignored; expected a number of threads, 1 or more");
                assert_eq!(settings.warnings, [line]);
            }
        }
        let both = read(&[("OMP_NUM_THREADS", "1"), ("MXNET_CPU_WORKER_NTHREADS", "many")]).unwrap();
        assert_eq!((both.engine.cores, both.warnings.len()), (Some(1), 1));
        assert!(read(&[("MXRT_CORES", "2"), ("OMP_NUM_THREADS", "abc")]).unwrap().warnings.is_empty());
    }

    #[test]
    fn variables_of_mxnet_without_effect_are_named_in_one_line() {
        let set = [
            ("MXNET_GPU_COPY_NTHREADS", "1"),
            ("MXNET_GPU_MEM_POOL_TYPE", "Round"),
            ("MXNET_GPU_MEM_POOL_RESERVE", "10"),
            ("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "20"),
            ("MXNET_GPU_MEM_POOL_PAGE_SIZE", "1024"),
            ("MXNET_CUDA_ALLOW_TENSOR_CORE", "0"),
            ("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "1"),
        ];
        let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
        let line = format!("set in the environment, but without effect in mxrt: {}", names.join(", "));
        assert_eq!(read(&set).unwrap().warnings, [line]);
        let same = [("MXNET_CUDA_ALLOW_TENSOR_CORE", "1"), ("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "0")];
        assert!(read(&same).unwrap().warnings.is_empty());
    }

    #[test]
    fn libraries_are_words_and_may_round_if_mxnets_variable_says_so() {
        let of = |set: &[(&str, &str)]| read(set).map(|settings| (settings.devices.libraries, settings.warnings));
        assert_eq!(of(&[]).unwrap().0, crate::devices::ProviderSettings::default());
        let both = of(&[("MXRT_GPU_LIBRARIES", "cudnn, cublaslt")]).unwrap().0.chosen;
        assert_eq!(both, [crate::devices::Provider::Cudnn, crate::devices::Provider::CublasLt]);
        let set = [("MXRT_GPU_LIBRARIES", " cublaslt "), ("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "1")];
        let (libraries, warnings) = of(&set).unwrap();
        assert!(libraries.chosen == [crate::devices::Provider::CublasLt] && libraries.tf32 && warnings.is_empty());
        let error = of(&[("MXRT_GPU_LIBRARIES", "cublaslt,mkl")]).unwrap_err();
        assert!(
            error.starts_with("MXRT_GPU_LIBRARIES is 'cublaslt,mkl'; expected a list of cublaslt, cudnn"),
            "{error}"
        );
    }

    #[test]
    fn workers_of_mxnet_alone_bound_nothing() {
        let settings = read(&[("MXNET_CPU_WORKER_NTHREADS", "1")]).unwrap();
        assert!(settings.engine.cores.is_none() && settings.warnings.is_empty());
    }

    #[test]
    fn a_switch_is_0_or_1() {
        let switches: Vec<&str> =
            SETTINGS.iter().filter(|row| row.expects.starts_with("0 or 1")).map(|row| row.name).collect();
        assert!(switches.len() >= 6, "{switches:?}");
        for name in switches {
            assert!(read(&[(name, "0")]).is_ok() && read(&[(name, "1")]).is_ok(), "{name}");
            let error = read(&[(name, "yes")]).unwrap_err();
            assert!(error.starts_with(&format!("{name} is 'yes'; expected 0 or 1")), "{error}");
        }
    }

    #[test]
    fn values_that_mean_nothing_are_errors_that_name_the_variable() {
        for wrong in ["0", "17", "-1", "two"] {
            let streams = read(&[("MXNET_GPU_WORKER_NTHREADS", wrong)]).unwrap_err();
            let wanted = format!("MXNET_GPU_WORKER_NTHREADS is '{wrong}'; expected a number from 1 to 16");
            assert!(streams.contains(&wanted), "{streams}");
        }
        let engine = read(&[("MXNET_ENGINE_TYPE", "FastEngine")]).unwrap_err();
        assert!(
            engine.contains("MXNET_ENGINE_TYPE is 'FastEngine': Cannot find Engine FastEngine; known: NaiveEngine"),
            "{engine}"
        );
        let limit = read(&[("MXRT_MEMORY_LIMIT_MB", "much")]).unwrap_err();
        assert_eq!(limit, "MXRT_MEMORY_LIMIT_MB is 'much'; expected a whole number");
        for wrong in ["0", "100000", "many"] {
            let cores = read(&[("MXRT_CORES", wrong)]).unwrap_err();
            assert_eq!(cores, format!("MXRT_CORES is '{wrong}'; expected a number of threads from 1 to 4096"));
        }
        assert!(read(&[("MXRT_CONV_WINOGRAD", "3")]).unwrap_err().contains("expected 0 (off), 2, 4 or 1"));
        let isa = read(&[("MXRT_ISA", "mmx")]).unwrap_err();
        assert!(isa.contains("MXRT_ISA") && isa.contains("portable"), "{isa}");
        assert_eq!(
            read(&[("MXRT_SIM_MODE", "real")]).unwrap_err(),
            "MXRT_SIM_MODE is 'real'; expected one of threaded, pumped, scheduled"
        );
        let tuned = read(&[("MXRT_TUNED", "/no/such/file")]).unwrap_err();
        assert!(tuned.starts_with("MXRT_TUNED is '/no/such/file': "), "{tuned}");
        let passes = read(&[("MXRT_PASSES", "-fuse_all")]).unwrap_err();
        assert!(passes.contains("MXRT_PASSES") && passes.contains("fuse_conv"), "{passes}");
    }
}
