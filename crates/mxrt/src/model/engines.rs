//! Engines of models: one for each set of choices, as an engine lasts as long as the process.

use crate::Error;
use crate::devices::{self, DeviceSettings};
use crate::engine::EngineKind;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Config, Engine};

/// The choices that distinguish engines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EngineChoice {
    pub kind: EngineKind,
    pub cores: Option<usize>,
    pub memory_limit: Option<usize>,
    pub bulk_size: usize,
    pub compute_streams: usize,
    pub devices: DeviceSettings,
}

impl Default for EngineChoice {
    fn default() -> EngineChoice {
        EngineChoice::of(&Config::default(), DeviceSettings::default())
    }
}

impl EngineChoice {
    pub fn of(config: &Config, devices: DeviceSettings) -> EngineChoice {
        let Config { kind, cores, memory_limit, bulk_size, compute_streams, .. } = *config;
        EngineChoice { kind, cores, memory_limit, bulk_size, compute_streams, devices }
    }

    /// The engine of these choices, started at their first use.
    pub fn engine(&self) -> Result<&'static Engine, Error> {
        static STARTED: Mutex<Vec<(EngineChoice, &'static Engine)>> = Mutex::new(Vec::new());
        let mut started = STARTED.lock();
        if let Some((_, engine)) = started.iter().find(|(choice, _)| choice == self) {
            return Ok(engine);
        }
        let EngineChoice { kind, cores, memory_limit, bulk_size, compute_streams, .. } = *self;
        let drivers = devices::drivers(&self.devices);
        let engine = Engine::start(Config {
            kind,
            cores,
            memory_limit,
            bulk_size,
            drivers,
            compute_streams,
            ..Config::default()
        })?;
        started.push((self.clone(), engine));
        Ok(engine)
    }
}
