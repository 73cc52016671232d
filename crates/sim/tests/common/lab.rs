//! The devices of a rig: plain simulated ones, or, in a process that was given the library of
//! `crates/cuda-standin` (`MXRT_SIM_THROUGH`), simulated ones accessed through the CUDA driver's
//! functions and `crates/cuda`, with the record of [`RecordedDriver`]. `MXRT_SIM_THROUGH=gpu` means
//! the GPU of this machine, for tests whose devices have threads: `scripts/check_gpu.py` runs them.

use mxrt_cuda::CudaDriver;
use mxrt_engine::device::Driver;
use mxrt_engine::{DeviceKind, Engine};
use mxrt_sim::{Call, Fault, Log, Mode, RecordedDriver, Recorder, SimConfig, World};
use std::ffi::{CString, c_int};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const GPU: &str = "gpu";

/// The operations that a test may ask of the devices without the engine.
#[derive(Clone)]
pub enum Lab {
    Sim(World),
    Standin(Recorder),
    Gpu(Recorder),
}

impl From<World> for Lab {
    fn from(world: World) -> Lab {
        Lab::Sim(world)
    }
}

/// The controls of the stand-in.
struct Standin {
    restart: unsafe extern "C" fn(u64) -> c_int,
    step: unsafe extern "C" fn() -> c_int,
    pending: unsafe extern "C" fn(*mut usize) -> c_int,
    live_events: unsafe extern "C" fn(*mut usize) -> c_int,
    fail: unsafe extern "C" fn(c_int, c_int, u64, c_int) -> c_int,
}

/// The stand-in that this process was given.
fn standin() -> Option<&'static Standin> {
    static STANDIN: OnceLock<Option<Standin>> = OnceLock::new();
    let load = || {
        let path = CString::new(std::env::var("MXRT_SIM_THROUGH").ok().filter(|path| path != GPU)?).unwrap();
        // SAFETY: the library of the workspace.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!library.is_null(), "MXRT_SIM_THROUGH names no library: {path:?}");
        let find = |name: &str| {
            let name = CString::new(format!("mxrt_standin_{name}")).unwrap();
            // SAFETY: the library is open.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            assert!(!found.is_null(), "{name:?}");
            found
        };
        // SAFETY: the signatures in crates/cuda-standin.
        Some(unsafe {
            Standin {
                restart: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(u64) -> c_int>(find("restart")),
                step: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn() -> c_int>(find("step")),
                pending: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(*mut usize) -> c_int>(find(
                    "pending",
                )),
                live_events: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(*mut usize) -> c_int>(find(
                    "live_events",
                )),
                fail: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(c_int, c_int, u64, c_int) -> c_int>(
                    find("fail"),
                ),
            }
        })
    };
    STANDIN.get_or_init(load).as_ref()
}

/// Whether devices are the GPU of this machine: one, whose memory the host cannot address.
pub fn on_gpu() -> bool {
    std::env::var("MXRT_SIM_THROUGH").is_ok_and(|through| through == GPU)
}

fn ours() -> &'static Standin {
    standin().expect("the process was given the stand-in")
}

/// Devices accessed through the CUDA driver, if the process was given one.
pub fn through_the_driver(config: &SimConfig) -> Option<(Arc<dyn Driver>, Lab)> {
    if on_gpu() {
        assert!(matches!(config.mode, Mode::Threaded { .. }), "a GPU does its work when it likes");
        let driver = RecordedDriver::with(CudaDriver::new(true), DeviceKind::SIM, None);
        assert!(driver.count() > 0, "{:?}", driver.absence());
        let recorder = driver.recorder();
        return Some((driver, Lab::Gpu(recorder)));
    }
    standin()?;
    if config.ignore_waits {
        // The driver has no such thing.
        return None;
    }
    let scheduled = matches!(config.mode, Mode::Scheduled { .. });
    let runs = std::env::var("STANDIN_MODE").is_ok_and(|mode| mode == "scheduled");
    assert_eq!(scheduled, runs, "STANDIN_MODE does not suit this test");
    // SAFETY: no arguments.
    let step = scheduled.then(|| Arc::new(|| unsafe { (ours().step)() } == 0) as mxrt_sim::Step);
    let driver = RecordedDriver::with(CudaDriver::new(true), DeviceKind::SIM, step);
    assert_eq!(driver.count(), 2, "STANDIN_DEVICES: {:?}", driver.absence());
    let recorder = driver.recorder();
    Some((driver, Lab::Standin(recorder)))
}

impl Lab {
    fn sim(&self, what: &str) -> &World {
        match self {
            Lab::Sim(world) => world,
            Lab::Standin(_) | Lab::Gpu(_) => panic!("there is no {what} behind the CUDA driver"),
        }
    }

    pub fn restart(&self, seed: u64) {
        match self {
            Lab::Sim(world) => world.restart(seed),
            Lab::Standin(recorder) => {
                recorder.restart();
                // SAFETY: a number.
                unsafe { (ours().restart)(seed) };
            }
            Lab::Gpu(recorder) => recorder.restart(),
        }
    }

    pub fn reseed(&self, seed: u64) {
        self.sim("new seed").reseed(seed);
    }

    pub fn inject(&self, fault: Fault) {
        let Lab::Sim(world) = self else {
            assert!(!on_gpu(), "a GPU does not fail on demand");
            const CALLS: [Call; 8] = [
                Call::Launch,
                Call::Copy,
                Call::Record,
                Call::Wait,
                Call::Query,
                Call::HostWait,
                Call::Alloc,
                Call::Execute,
            ];
            let call = CALLS.iter().position(|call| *call == fault.call).unwrap() as c_int;
            // SAFETY: numbers.
            unsafe { (ours().fail)(fault.device as c_int, call, fault.after, fault.code) };
            return;
        };
        world.inject(fault);
    }

    pub fn forget_faults(&self) {
        self.sim("way to forget faults").forget_faults();
    }

    pub fn set_memory(&self, device: usize, bytes: usize) {
        self.sim("other memory").set_memory(device, bytes);
    }

    pub fn set_time(&self, name: &str, nanos: u64) {
        self.sim("virtual time").set_time(name, nanos);
    }

    pub fn end_time(&self) -> u64 {
        self.sim("virtual time").end_time()
    }

    pub fn pinned_bytes(&self, device: usize) -> usize {
        self.sim("number of page-locked bytes").pinned_bytes(device)
    }

    pub fn end(&self) {
        self.sim("end").end();
    }

    pub fn live_events(&self) -> usize {
        match self {
            Lab::Sim(world) => world.live_events(),
            Lab::Standin(_) => asked(ours().live_events),
            Lab::Gpu(_) => self.sim("count of events").live_events(),
        }
    }

    pub fn host_uses(&self, name: &str, accesses: &[(u64, bool)]) {
        match self {
            Lab::Sim(world) => world.host_uses(name, accesses),
            Lab::Standin(recorder) | Lab::Gpu(recorder) => recorder.host_uses(name, accesses),
        }
    }

    pub fn may_wait(&self, may: bool) {
        match self {
            Lab::Sim(world) => world.may_wait(may),
            Lab::Standin(recorder) | Lab::Gpu(recorder) => recorder.may_wait(may),
        }
    }

    pub fn log(&self) -> Log {
        match self {
            Lab::Sim(world) => world.log(),
            Lab::Standin(recorder) | Lab::Gpu(recorder) => recorder.log(),
        }
    }

    pub fn pending(&self) -> usize {
        match self {
            Lab::Sim(world) => world.pending(),
            Lab::Standin(_) => asked(ours().pending),
            Lab::Gpu(_) => 0,
        }
    }

    pub fn step(&self) -> bool {
        match self {
            Lab::Sim(world) => world.step(),
            // SAFETY: no arguments.
            Lab::Standin(_) => unsafe { (ours().step)() == 0 },
            Lab::Gpu(_) => false,
        }
    }

    /// Opens the devices: opening does their work, and tests say when that is done.
    pub fn open(&self, engine: &'static Engine) {
        if let Lab::Standin(_) = self {
            for i in [0, 1] {
                engine.device(super::sim(i)).unwrap();
            }
        }
    }

    /// The thread of `crates/cuda` that calls back may be about to drop what it called.
    pub fn settle(&self, engine: &'static Engine) {
        let Lab::Standin(_) = self else { return };
        let live = || {
            [0, 1].map(|i| {
                engine.trim_device(super::sim(i)).unwrap();
                engine.device_stats(super::sim(i)).unwrap().live_events
            })
        };
        for _ in 0..10_000 {
            if live() == [0, 0] {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn asked(question: unsafe extern "C" fn(*mut usize) -> c_int) -> usize {
    let mut number = 0;
    // SAFETY: one number is written.
    let code = unsafe { question(&mut number) };
    assert_eq!(code, 0);
    number
}
