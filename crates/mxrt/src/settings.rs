//! The environment variables, read in one place for every border.

use crate::devices::{self, DeviceSettings, SimSettings, SimWork};
use crate::{BuildOptions, Config, ConvTable, EngineKind, Isa, KernelOptions, MAX_CORES, PassChoice};

/// What the environment decides.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// for [`Engine::start`](crate::Engine::start)
    pub engine: Config,
    /// what the drivers in `engine` were made of
    pub devices: DeviceSettings,
    /// for [`CachedOp::compile`](crate::CachedOp::compile)
    pub plans: BuildOptions,
    /// say more (`MXRT_DEBUG`): print what the engine is doing when the process gets SIGUSR1; borders note where their
    /// callers push operators, for [`Failure::pushed_at`](crate::Failure::pushed_at)
    pub debug: bool,
    /// variables of other libraries that are not obeyed, a line each: for the border to print
    pub warnings: Vec<String>,
}

/// What MXNet joins if bulks are switched on without a number.
const BULK_SIZE: usize = 15;

impl Settings {
    /// Reads `MXNET_ENGINE_TYPE`, `MXRT_CORES` (or `OMP_NUM_THREADS` and `MXNET_CPU_WORKER_NTHREADS` together),
    /// `MXNET_EXEC_BULK_EXEC_INFERENCE` and `MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN`, `MXRT_DEBUG`,
    /// `MXRT_MEMORY_LIMIT_MB`, `MXRT_CONV_WINOGRAD`, `MXRT_ISA`, `MXRT_TUNED` (file of a [`ConvTable`]), `MXRT_PASSES`,
    /// `MXRT_PLAN_CACHE` (plans per model) and `MXRT_PLAN_CACHE_MB`, and for simulated devices `MXRT_SIM_DEVICES`, `MXRT_SIM_GPUS`,
    /// `MXRT_SIM_SEED`, `MXRT_SIM_DELAY_US`, `MXRT_SIM_MODE`, `MXRT_SIM_CHECK`,
    /// `MXRT_SIM_IGNORE_WAITS` and `MXRT_SIM_MEMORY_MB`, through `env`, usually `|name| std::env::var(name).ok()`.
    /// An error names the variable, its value and what it may be.
    pub fn from_environment(env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        if let Some(kind) = env("MXNET_ENGINE_TYPE") {
            settings.engine.kind = kind.parse::<EngineKind>().map_err(|e| format!("MXNET_ENGINE_TYPE: {e}"))?;
        }
        settings.engine.cores = cores(env, &mut settings.warnings)?;
        settings.engine.bulk_size = bulk_size(env)?;
        settings.devices.sim = sim(env)?;
        settings.engine.drivers = devices::drivers(&settings.devices);
        settings.debug = env("MXRT_DEBUG").is_some_and(|text| !matches!(text.trim(), "" | "0"));
        settings.engine.memory_limit = number(env, "MXRT_MEMORY_LIMIT_MB")?.map(|mb| mb.saturating_mul(1 << 20));
        settings.plans.kernel.winograd = match number(env, "MXRT_CONV_WINOGRAD")? {
            None | Some(1) => KernelOptions::default().winograd,
            Some(tile @ (0 | 2 | 4)) => tile as u8,
            Some(other) => {
                return Err(format!("MXRT_CONV_WINOGRAD is {other}; expected 0 (off), 2, 4 or 1 (default)"));
            }
        };
        if let Some(name) = given(env, "MXRT_ISA") {
            let isa = name.trim().parse::<Isa>().map_err(|e| format!("MXRT_ISA: {e}"))?;
            if !isa.is_available() {
                return Err(format!(
                    "MXRT_ISA is '{isa}', which this processor does not have; its best is {}",
                    Isa::detect()
                ));
            }
            settings.plans.kernel.isa = isa;
        }
        if let Some(path) = given(env, "MXRT_TUNED") {
            settings.plans.kernel.tuned = Some(tuned(&path).map_err(|e| format!("MXRT_TUNED is '{path}': {e}"))?);
        }
        if let Some(list) = given(env, "MXRT_PASSES") {
            settings.plans.passes = PassChoice::parse(&list).map_err(|e| format!("MXRT_PASSES is '{list}': {e}"))?;
        }
        let cache = &mut settings.plans.cache;
        cache.plans = number(env, "MXRT_PLAN_CACHE")?.unwrap_or(cache.plans);
        cache.bytes = number(env, "MXRT_PLAN_CACHE_MB")?.map_or(cache.bytes, |mb| mb.saturating_mul(1 << 20));
        Ok(settings)
    }
}

/// How many threads may compute: `MXRT_CORES`, else what MXNet's two variables allow together, else all.
fn cores(env: &dyn Fn(&str) -> Option<String>, warnings: &mut Vec<String>) -> Result<Option<usize>, String> {
    match number(env, "MXRT_CORES")? {
        Some(cores @ 1..=MAX_CORES) => return Ok(Some(cores)),
        Some(other) => {
            return Err(format!("MXRT_CORES is {other}; expected a number of threads from 1 to {MAX_CORES}"));
        }
        None => {}
    }
    // Without OMP_NUM_THREADS an operator of MXNet takes all cores, so the number of its workers bounds nothing.
    let workers = threads(env, "MXNET_CPU_WORKER_NTHREADS", warnings);
    let Some(threads) = threads(env, "OMP_NUM_THREADS", warnings) else { return Ok(None) };
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Some(threads.saturating_mul(workers.unwrap_or(1)).min(available)))
}

/// A variable that other libraries read, too: what makes no sense is ignored, as they do, with a warning.
fn threads(env: &dyn Fn(&str) -> Option<String>, name: &str, warnings: &mut Vec<String>) -> Option<usize> {
    let text = given(env, name)?;
    // OMP_NUM_THREADS may be a list for nested regions; the first number is the outer one.
    let first = text.split(',').next().and_then(|number| number.trim().parse::<usize>().ok());
    let number = first.filter(|n| *n > 0);
    if number.is_none() {
        warnings.push(format!("{name} is '{text}' and is ignored; expected a number of threads, 1 or more"));
    }
    number
}

/// How many small operators a thread joins: MXNet's variables. Without them none: they run at once in the calling thread.
fn bulk_size(env: &dyn Fn(&str) -> Option<String>) -> Result<usize, String> {
    let size = number(env, "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN")?;
    Ok(match number(env, "MXNET_EXEC_BULK_EXEC_INFERENCE")? {
        Some(0) => 0,
        Some(_) => size.unwrap_or(BULK_SIZE),
        None => size.unwrap_or(0),
    })
}

/// Simulated devices.
fn sim(env: &dyn Fn(&str) -> Option<String>) -> Result<SimSettings, String> {
    let mut sim = SimSettings::default();
    sim.devices = number(env, "MXRT_SIM_DEVICES")?.unwrap_or(sim.devices);
    sim.gpus = number(env, "MXRT_SIM_GPUS")?.unwrap_or(sim.gpus);
    sim.seed = number(env, "MXRT_SIM_SEED")?.unwrap_or(0) as u64;
    sim.max_delay_us = number(env, "MXRT_SIM_DELAY_US")?.unwrap_or(0) as u64;
    sim.memory = number(env, "MXRT_SIM_MEMORY_MB")?.map(|mb| mb.saturating_mul(1 << 20));
    let on = |name| given(env, name).is_some_and(|text| text.trim() != "0");
    sim.record = on("MXRT_SIM_CHECK");
    sim.ignore_waits = on("MXRT_SIM_IGNORE_WAITS");
    if let Some(word) = given(env, "MXRT_SIM_MODE") {
        let known = SimWork::WORDS.iter().find(|(name, _)| *name == word.trim());
        let words = SimWork::WORDS.map(|(name, _)| name).join(", ");
        sim.work = known.ok_or_else(|| format!("MXRT_SIM_MODE is '{word}'; expected one of {words}"))?.1;
    }
    Ok(sim)
}

/// The table of measured convolutions in a file; it stays for as long as the process.
fn tuned(path: &str) -> Result<&'static ConvTable, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    Ok(Box::leak(Box::new(text.parse()?)))
}

/// A variable that is set to something.
fn given(env: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    env(name).filter(|text| !text.trim().is_empty())
}

fn number(env: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<Option<usize>, String> {
    match given(env, name) {
        None => Ok(None),
        Some(text) => match text.trim().parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(format!("{name} is '{text}'; expected a whole number")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Settings::from_environment(&find)
    }

    #[test]
    fn a_table_of_measured_convolutions_is_read_from_its_file() {
        let path = std::env::temp_dir().join(format!("mxrt-settings-{}.txt", std::process::id()));
        let path = path.to_str().unwrap();
        let line = "avx2 medium single n1 64x56x56 64 k3x3 s1x1 d1x1 p1x1 g1 f4 280000";
        std::fs::write(path, line).unwrap();
        let tuned = read(&[("MXRT_TUNED", path)]).unwrap().plans.kernel.tuned;
        std::fs::write(path, line.replace("f4", "fast")).unwrap();
        let bad = read(&[("MXRT_TUNED", path)]).unwrap_err();
        std::fs::remove_file(path).unwrap();
        assert_eq!(tuned.map(ConvTable::len), Some(1));
        assert!(bad.contains("line 1") && bad.contains("known: direct"), "{bad}");
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
        ])
        .unwrap();
        assert_eq!(settings.engine.kind, EngineKind::Naive);
        assert_eq!((settings.engine.cores, settings.engine.memory_limit), (Some(3), Some(100 << 20)));
        assert_eq!(settings.plans.kernel.winograd, 0);
        assert!(settings.debug && settings.engine.bulk_size == BULK_SIZE);
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
    fn workers_of_mxnet_alone_bound_nothing() {
        let settings = read(&[("MXNET_CPU_WORKER_NTHREADS", "1")]).unwrap();
        assert!(settings.engine.cores.is_none() && settings.warnings.is_empty());
    }

    #[test]
    fn values_that_mean_nothing_are_errors_that_name_the_variable() {
        let engine = read(&[("MXNET_ENGINE_TYPE", "FastEngine")]).unwrap_err();
        assert!(engine.contains("MXNET_ENGINE_TYPE: Cannot find Engine FastEngine; known: NaiveEngine"), "{engine}");
        let cores = read(&[("MXRT_CORES", "many")]).unwrap_err();
        assert_eq!(cores, "MXRT_CORES is 'many'; expected a whole number");
        for wrong in ["0", "100000"] {
            let cores = read(&[("MXRT_CORES", wrong)]).unwrap_err();
            assert_eq!(cores, format!("MXRT_CORES is {wrong}; expected a number of threads from 1 to 4096"));
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
