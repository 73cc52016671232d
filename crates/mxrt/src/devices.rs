//! The kinds of devices besides the CPU: one row each.

use mxrt_cuda::CudaDriver;
pub use mxrt_cuda::{DriverStatus, GpuFacts, LibraryStatus, Provider, ProviderSettings, libraries, set_library_roots};
use mxrt_cuda_kernels::CudaKernels;
pub use mxrt_cuda_kernels::{KernelStatus, kernel_status};
use mxrt_engine::DeviceKind;
use mxrt_engine::cache::{CacheError, CacheFolder, user_folder};
use mxrt_engine::device::Driver;
#[cfg(feature = "sim")]
use mxrt_sim::{Mode, SimConfig, SimDriver};
use std::path::PathBuf;
use std::sync::Arc;

/// The source of the devices of one kind.
struct Row {
    kind: DeviceKind,
    driver: fn(&DeviceSettings) -> Arc<dyn Driver>,
    /// kernels for devices whose memory the host cannot address
    kernels: Option<&'static CudaKernels>,
}

/// A new device is a crate that implements `Driver` and `Device`, and a row here.
static DEVICES: &[Row] = &[
    #[cfg(feature = "sim")]
    Row { kind: DeviceKind::SIM, driver: |s| s.sim.driver(DeviceKind::SIM, s.sim.devices), kernels: None },
    Row { kind: DeviceKind::GPU, driver: gpus, kernels: Some(&CudaKernels) },
];

/// The GPUs: simulated ones where they were asked for, else those of the CUDA driver.
fn gpus(settings: &DeviceSettings) -> Arc<dyn Driver> {
    #[cfg(feature = "sim")]
    if settings.sim.gpus > 0 {
        return settings.sim.driver(DeviceKind::GPU, settings.sim.gpus);
    }
    settings.place_cache();
    mxrt_cuda::set_providers(settings.libraries.clone());
    CudaDriver::new(settings.cuda)
}

/// The settings of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// settings of simulated devices
    pub sim: SimSettings,
    /// whether the CUDA driver is looked for when a GPU is first asked for
    pub cuda: bool,
    /// folder for kernels that were compiled at run time; `None`: in the user's folder of caches
    pub cache: Option<PathBuf>,
    /// libraries that compute in place of kernels
    pub libraries: ProviderSettings,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        DeviceSettings { sim: SimSettings::default(), cuda: true, cache: None, libraries: ProviderSettings::default() }
    }
}

impl DeviceSettings {
    fn place_cache(&self) {
        if let Some(folder) = &self.cache {
            mxrt_cuda::set_cache_folder(folder.clone());
        }
    }

    /// Returns the folder for kernels that are compiled at run time, and why it is not used. Makes
    /// no folder. `None`: the system names no folder of caches.
    pub fn cache_folder(&self) -> Option<(PathBuf, Result<(), CacheError>)> {
        let folder = self.cache.clone().or_else(user_folder)?;
        let checked = CacheFolder::check(&folder);
        Some((folder, checked))
    }

    /// The known facts about driver and GPUs. Opens the driver, but uses no GPU.
    pub fn gpu_status(&self) -> DriverStatus {
        self.place_cache();
        match self.simulated_gpus() {
            0 => mxrt_cuda::status(&CudaDriver::new(self.cuda)),
            n => {
                let reason = Some(format!("GPUs are simulated (MXRT_SIM_GPUS={n})"));
                DriverStatus { version: None, gpus: Vec::new(), reason }
            }
        }
    }

    /// The kinds whose devices are simulated.
    pub fn simulated(&self) -> impl Iterator<Item = DeviceKind> {
        let gpus = (self.simulated_gpus() > 0).then_some(DeviceKind::GPU);
        cfg!(feature = "sim").then_some(DeviceKind::SIM).into_iter().chain(gpus)
    }

    fn simulated_gpus(&self) -> usize {
        if cfg!(feature = "sim") { self.sim.gpus } else { 0 }
    }
}

/// Simulated devices: they compute on the CPU, later, in other threads, in any order that events
/// allow. Without the feature `sim` there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimSettings {
    /// number of devices `sim(i)`
    pub devices: usize,
    /// number of simulated devices `gpu(i)`
    pub gpus: usize,
    /// seed of the random delays and of the order of work
    pub seed: u64,
    /// longest random pause before a piece of work, in microseconds
    pub max_delay_us: u64,
    /// threads that do their work
    pub work: SimWork,
    /// whether calls are recorded, so that a checker can see whether all of them were ordered
    pub record: bool,
    /// whether streams ignore events, to show that tests and checker notice it
    pub ignore_waits: bool,
    /// memory of each device in bytes; `None` for the default
    pub memory: Option<usize>,
}

/// The threads that do the work of simulated devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimWork {
    /// a thread for each stream
    Threaded,
    /// one thread, in an order that the seed decides, without pauses
    Pumped,
    /// no thread: a thread that waits for a device does its work, in an order that the seed decides
    Scheduled,
}

impl SimWork {
    /// All words of `MXRT_SIM_MODE` and their modes.
    pub(crate) const WORDS: [(&'static str, SimWork); 3] =
        [("threaded", SimWork::Threaded), ("pumped", SimWork::Pumped), ("scheduled", SimWork::Scheduled)];
}

impl Default for SimSettings {
    /// Two devices. They cost nothing until they are used.
    fn default() -> Self {
        SimSettings {
            devices: 2,
            gpus: 0,
            seed: 0,
            max_delay_us: 0,
            work: SimWork::Threaded,
            record: false,
            ignore_waits: false,
            memory: None,
        }
    }
}

#[cfg(feature = "sim")]
impl SimSettings {
    fn driver(&self, kind: DeviceKind, devices: usize) -> Arc<dyn Driver> {
        let seed = self.seed;
        let mode = match self.work {
            SimWork::Threaded => Mode::Threaded { seed, max_delay_us: self.max_delay_us },
            SimWork::Pumped => Mode::Pumped { seed },
            SimWork::Scheduled => Mode::Scheduled { seed },
        };
        let SimSettings { record, ignore_waits, .. } = *self;
        let config = SimConfig { kind, devices, mode, record, ignore_waits, ..SimConfig::default() };
        let memory = self.memory.unwrap_or(config.memory);
        SimDriver::new(SimConfig { memory, ..config })
    }
}

/// The drivers of all kinds, for [`Config::drivers`](mxrt_engine::Config).
pub(crate) fn drivers(settings: &DeviceSettings) -> Vec<Arc<dyn Driver>> {
    let own = || DEVICES.iter().filter_map(|row| Some((row.kind, row.kernels?)));
    mxrt_ops::set_device_kernels(own().map(|(kind, kernels)| (kind, kernels as _)).collect());
    crate::images::register();
    mxrt_tensor::set_region_kernels(own().map(|(kind, kernels)| (kind, kernels as _)).collect());
    DEVICES.iter().map(|row| (row.driver)(settings)).collect()
}

/// The kinds of devices besides the CPU that this build knows, present or not.
pub fn kinds() -> impl Iterator<Item = DeviceKind> {
    DEVICES.iter().map(|row| row.kind)
}

/// Whether this build knows a kind of device.
pub fn is_known(kind: DeviceKind) -> bool {
    kinds().any(|known| known == kind)
}
