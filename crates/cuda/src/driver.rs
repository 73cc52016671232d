//! The GPUs of the machine, or the reason why there are none.

use crate::api::{AGAIN, Api, api, hidden};
use crate::device::CudaDevice;
use crate::errors::{NOT_INITIALIZED, check};
use crate::fork;
use mxrt_engine::device::{Device, DeviceError, Driver, ErrorClass};
use mxrt_engine::{DeviceKind, ForkSafeMutex};
use std::ffi::{CStr, c_int};
use std::sync::Arc;
use std::time::Instant;

/// The GPUs of this machine.
#[derive(Clone, Copy, Debug)]
pub struct CudaDriver {
    enabled: bool,
}

/// The known facts about the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverStatus {
    /// The newest CUDA that it serves: 12040 for 12.4. `None`: there is no driver that can be used.
    pub version: Option<i32>,
    /// The GPUs of the driver.
    pub gpus: Vec<GpuFacts>,
    /// The reason why there are no GPUs.
    pub reason: Option<String>,
}

/// One GPU, as far as the driver tells without a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// The name of the GPU.
    pub name: String,
    /// The compute capability: (9, 0).
    pub capability: (i32, i32),
    /// Bytes of its memory.
    pub memory: usize,
}

impl CudaDriver {
    /// All GPUs; not enabled: none, and the driver is never opened.
    pub fn new(enabled: bool) -> Arc<CudaDriver> {
        Arc::new(CudaDriver { enabled })
    }

    /// How many there are, or why there are none.
    pub fn find(&self) -> Result<usize, String> {
        static FOUND: ForkSafeMutex<Option<(Instant, Result<usize, String>)>> = ForkSafeMutex::new(None);
        if !self.enabled {
            return Err("GPUs are switched off by MXRT_CUDA=0".to_owned());
        }
        // A child that was forked later may ask how many there are, without the driver.
        if let Some((at, known)) = &*FOUND.lock()
            && (known.is_ok() || fork::in_child() || at.elapsed() < AGAIN)
        {
            return known.clone();
        }
        let found = api().and_then(count);
        if !fork::in_child() {
            *FOUND.lock() = Some((Instant::now(), found.clone()));
        }
        found
    }
}

fn count(api: &'static Api) -> Result<usize, String> {
    let mut count = 0;
    // SAFETY: one number is written.
    match check(unsafe { (api.cuDeviceGetCount)(&mut count) }) {
        Ok(()) if count > 0 => Ok(count as usize),
        Ok(()) => Err(hidden().unwrap_or_else(|| "the driver finds no GPU".to_owned())),
        Err(error) => Err(format!("the driver cannot count GPUs: {}", error.message)),
    }
}

impl Driver for CudaDriver {
    fn kind(&self) -> DeviceKind {
        DeviceKind::GPU
    }

    fn count(&self) -> usize {
        self.find().unwrap_or(0)
    }

    fn absence(&self) -> Option<String> {
        self.find().err()
    }

    fn open(&self, index: u16) -> Result<Arc<dyn Device>, DeviceError> {
        let refused = |why: String| DeviceError::new(ErrorClass::Recoverable, NOT_INITIALIZED, why);
        self.find().map_err(refused)?;
        Ok(CudaDevice::open(api().map_err(refused)?, index)?)
    }
}

/// The known facts about driver and GPUs; opens the driver, but makes no context.
pub fn status(driver: &CudaDriver) -> DriverStatus {
    let found = driver.find();
    let api = if driver.enabled { api().ok() } else { None };
    let version = api.map(version);
    let gpus = match (&found, api) {
        (Ok(count), Some(api)) => (0..*count).filter_map(|i| facts(api, i as c_int).ok()).collect(),
        _ => Vec::new(),
    };
    DriverStatus { version, gpus, reason: found.err() }
}

/// The newest CUDA that the driver serves; 0 without one.
pub(crate) fn served() -> i32 {
    api().map_or(0, version)
}

fn version(api: &Api) -> i32 {
    let mut version = 0;
    // SAFETY: one number is written.
    let _ = unsafe { (api.cuDriverGetVersion)(&mut version) };
    version
}

/// The driver's handle of a GPU.
pub(crate) fn ordinal(api: &Api, index: c_int) -> Result<c_int, DeviceError> {
    let mut ordinal = 0;
    // SAFETY: one number is written.
    check(unsafe { (api.cuDeviceGet)(&mut ordinal, index) })?;
    Ok(ordinal)
}

/// A property by its number in the driver's headers.
pub(crate) fn attribute(api: &Api, number: c_int, ordinal: c_int) -> Result<c_int, DeviceError> {
    let mut value = 0;
    // SAFETY: one number is written.
    check(unsafe { (api.cuDeviceGetAttribute)(&mut value, number, ordinal) })?;
    Ok(value)
}

/// Bytes of a GPU's memory.
pub(crate) fn memory(api: &Api, ordinal: c_int) -> Result<usize, DeviceError> {
    let mut bytes = 0;
    // SAFETY: one number is written.
    check(unsafe { (api.cuDeviceTotalMem_v2)(&mut bytes, ordinal) })?;
    Ok(bytes)
}

/// A GPU's compute capability.
pub(crate) fn capability(api: &Api, ordinal: c_int) -> Result<(i32, i32), DeviceError> {
    Ok((attribute(api, 75, ordinal)?, attribute(api, 76, ordinal)?))
}

fn facts(api: &Api, index: c_int) -> Result<GpuFacts, DeviceError> {
    let ordinal = ordinal(api, index)?;
    let mut name = [0u8; 128];
    // SAFETY: at most so many bytes are written, the last of them zero.
    check(unsafe { (api.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, ordinal) })?;
    let name = CStr::from_bytes_until_nul(&name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(GpuFacts { name, capability: capability(api, ordinal)?, memory: memory(api, ordinal)? })
}
