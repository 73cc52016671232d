//! The configuration with which an engine is started.

use crate::device::{COMPUTE_STREAMS, DeviceReserve, Driver};
use crate::failure::{FailureKind, OpError};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Settings of one engine. `Config::default()` uses every core the process may use and sets no
/// memory limit.
#[derive(Clone, Debug)]
pub struct Config {
    /// The kind of engine that runs the ops.
    pub kind: EngineKind,
    /// Number of threads that may compute concurrently. `None`: the affinity mask of the process,
    /// capped by its cgroup quota.
    pub cores: Option<usize>,
    /// Upper bound in bytes for the memory pool; `None`: no bound.
    pub memory_limit: Option<usize>,
    /// How many small ops that one thread pushes in a row may go to the pool as one job; 0: none,
    /// they run at once in the pushing thread where that is possible.
    pub bulk_size: usize,
    /// Sources of the devices other than the CPU, one driver for each kind.
    pub drivers: Vec<Arc<dyn Driver>>,
    /// How many compute streams a device gets.
    pub compute_streams: usize,
    /// Events and memory that each device keeps for later ops.
    pub device_reserve: DeviceReserve,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            kind: EngineKind::ThreadedPerDevice,
            cores: None,
            memory_limit: None,
            bulk_size: 0,
            drivers: Vec::new(),
            compute_streams: COMPUTE_STREAMS,
            device_reserve: DeviceReserve::default(),
        }
    }
}

/// The kinds of engine, by MXNet's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EngineKind {
    /// `NaiveEngine`: every op runs in the thread that pushes it, before the push returns (if its
    /// dependencies are complete).
    Naive,
    /// `ThreadedEngine`: one set of queues for all devices.
    Threaded,
    /// `ThreadedEnginePerDevice`: a set of queues for each device, served in turn. The default.
    ThreadedPerDevice,
    /// `ThreadedEngineAsync`: as `ThreadedEngine`; an op on a device is handed on as soon as its
    /// work is submitted there.
    ThreadedAsync,
    /// `ThreadedEnginePerDeviceAsync`: as `ThreadedEnginePerDevice`, with the same difference.
    ThreadedPerDeviceAsync,
}

impl EngineKind {
    /// Every kind, in the order in which messages list them.
    pub const ALL: [EngineKind; 5] = [
        EngineKind::Naive,
        EngineKind::Threaded,
        EngineKind::ThreadedPerDevice,
        EngineKind::ThreadedAsync,
        EngineKind::ThreadedPerDeviceAsync,
    ];

    /// Whether ops on devices are handed on before they are complete there. Otherwise the host
    /// waits for the device after each op.
    pub fn is_async(self) -> bool {
        matches!(self, EngineKind::ThreadedAsync | EngineKind::ThreadedPerDeviceAsync)
    }

    /// Whether every device has its own set of queues.
    pub fn is_per_device(self) -> bool {
        matches!(self, EngineKind::ThreadedPerDevice | EngineKind::ThreadedPerDeviceAsync)
    }

    /// MXNet's name of this kind.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Naive => "NaiveEngine",
            EngineKind::Threaded => "ThreadedEngine",
            EngineKind::ThreadedPerDevice => "ThreadedEnginePerDevice",
            EngineKind::ThreadedAsync => "ThreadedEngineAsync",
            EngineKind::ThreadedPerDeviceAsync => "ThreadedEnginePerDeviceAsync",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = EngineError;

    fn from_str(name: &str) -> Result<Self, EngineError> {
        EngineKind::ALL.into_iter().find(|k| k.name() == name).ok_or_else(|| EngineError::UnknownKind(name.to_owned()))
    }
}

/// The reason why an engine could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The name is not one of the known kinds.
    #[error("Cannot find Engine {0}; known: {known}", known = known_kinds())]
    UnknownKind(String),
    /// The number of cores cannot be used.
    #[error("starting an engine with {0} cores: expected a number from 1 to {max}", max = MAX_CORES)]
    BadCores(usize),
    /// The handlers that make forking safe could not be installed.
    #[error("starting an engine: the fork handlers could not be installed (error code {0})")]
    ForkHandlers(i32),
}

impl From<EngineError> for OpError {
    fn from(error: EngineError) -> OpError {
        let kind = match &error {
            EngineError::ForkHandlers(_) => FailureKind::Memory,
            _ => FailureKind::Value,
        };
        OpError::new(kind, error.to_string())
    }
}

/// More cores than this are an input error, not a machine.
pub const MAX_CORES: usize = 4096;

fn known_kinds() -> String {
    EngineKind::ALL.map(EngineKind::name).join(", ")
}

impl Config {
    /// The number of core tokens this configuration gives.
    pub(crate) fn resolve_cores(&self) -> Result<usize, EngineError> {
        match self.cores {
            Some(n) if (1..=MAX_CORES).contains(&n) => Ok(n),
            Some(n) => Err(EngineError::BadCores(n)),
            // The standard library looks at the affinity mask and at the cgroup quota.
            None => Ok(std::thread::available_parallelism().map_or(1, |n| n.get())),
        }
    }
}
