//! The simulated device: everything the engine may expect of an accelerator, and nothing it may
//! not.
//!
//! A [`World`] holds devices, streams and events. Work is done in an order that respects streams
//! and waits and is otherwise chosen by a seeded generator: without threads, in virtual time, by a
//! waiting thread ([`Mode::Scheduled`]), by one thread of its own ([`Mode::Pumped`]), or by a
//! thread for each stream with random delays ([`Mode::Threaded`]). Kernels are functions of the
//! host and device memory is memory of the host, so whole models run.
//!
//! Calls can be made to fail ([`World::inject`]), and are recorded on demand;
//! [`check`](check::check) derives from the record alone what was ordered, and reports what was
//! not. [`RecordedDriver`] writes the same record of the devices of any driver.
//!
//! ```
//! use mxrt_engine::{Access, Config, DeviceId, DeviceKind, Engine, EngineKind, OpSpec};
//! use mxrt_sim::{Mode, SimConfig, SimDriver};
//!
//! let mode = Mode::Threaded { seed: 1, max_delay_us: 100 };
//! let driver = SimDriver::new(SimConfig { mode, ..SimConfig::default() });
//! let kind = EngineKind::ThreadedPerDeviceAsync;
//! let engine = Engine::start(Config { kind, drivers: vec![driver], ..Config::default() }).unwrap();
//! let (sim, x) = (DeviceId::new(DeviceKind::SIM, 0), engine.new_var());
//! engine
//!     .push_device(OpSpec::new("answer", &[(&x, Access::Write)]).device(sim), |ctx| {
//!         let memory = ctx.alloc(0, 8)?;
//!         ctx.launch(move |_| {
//!             // SAFETY: memory of the host that is the op's own until its event is complete.
//!             unsafe { std::ptr::with_exposed_provenance_mut::<u64>(memory.0 as usize).write(42) };
//!             Ok(())
//!         })
//!     })
//!     .unwrap();
//! engine.wait_to_read(&x).unwrap();
//! let memory = x.memory().unwrap().ptr.0 as usize;
//! // SAFETY: the op is complete, and nothing else was pushed.
//! assert_eq!(unsafe { std::ptr::with_exposed_provenance::<u64>(memory).read() }, 42);
//! ```

pub mod check;
mod device;
mod faults;
mod log;
mod memory;
mod random;
mod recorded;
mod work;
mod world;

pub use device::{SimDevice, SimDriver};
pub use faults::{Call, Fault, classify};
pub use log::{Knows, Log, LogEntry};
pub use random::Random;
pub use recorded::{Recorded, RecordedDriver, Recorder, Step};
pub use world::World;

use mxrt_engine::DeviceKind;

/// The thread that does the work of the streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A waiting thread, one step at a time, in virtual time: the same calls with the same seed
    /// give the same run.
    Scheduled {
        /// Chooses among the streams that could continue.
        seed: u64,
    },
    /// A separate thread does the work, for programs that do more than wait.
    Pumped {
        /// The seed, used as in `Scheduled`.
        seed: u64,
    },
    /// A thread for each stream.
    Threaded {
        /// Chooses the delays.
        seed: u64,
        /// Longest delay before a piece of work, in microseconds.
        max_delay_us: u64,
    },
}

/// A world to make.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The kind its devices call themselves.
    pub kind: DeviceKind,
    /// How many devices there are.
    pub devices: usize,
    /// The thread that does the work.
    pub mode: Mode,
    /// Bytes of memory of each device.
    pub memory: usize,
    /// Whether calls are recorded for [`check`](check::check).
    pub record: bool,
    /// Whether waits are left out, as an engine without events would: for showing that the checker
    /// sees it.
    pub ignore_waits: bool,
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            kind: DeviceKind::SIM,
            devices: 2,
            mode: Mode::Threaded { seed: 0, max_delay_us: 0 },
            memory: 4 << 30,
            record: false,
            ignore_waits: false,
        }
    }
}
