//! Libraries of NVIDIA that compute in place of mxrt's kernels, where the settings name them. None
//! is opened otherwise. A library that is named and cannot be used is an error of every call on the
//! GPU: nobody shall measure one of them without it.

use crate::cublaslt::CublasLt;
use crate::cudnn::Cudnn;
use crate::device::{CudaDevice, lock, raw_stream};
use crate::driver::served;
use crate::library::{Opened, number, words};
use cudarc::driver::sys::CUstream;
use mxrt_engine::ForkSafeMutex;
use mxrt_engine::device::{DeviceError, ErrorClass, StreamHandle};
use std::ffi::CStr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// "Not supported", among the driver's numbers.
const NOT_SUPPORTED: i32 = 801;

/// A library that can compute in place of mxrt's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// products
    CublasLt,
    /// convolutions of planes
    Cudnn,
}

/// A row for each library.
struct ProviderRow {
    provider: Provider,
    /// word in the settings
    word: &'static str,
    name: &'static str,
    /// major versions of CUDA and the files of the library for them, the newest first
    files: &'static [(i32, &'static str)],
    version: &'static CStr,
    /// function that returns the version of CUDA that the file is for, where its name does not say it
    runtime: Option<&'static CStr>,
    /// the oldest version that serves
    least: usize,
    packages: &'static str,
    /// Makes what calls need on a device, unless it is made.
    open: fn(&CudaDevice) -> Result<(), DeviceError>,
}

static ROWS: [ProviderRow; 2] = [
    ProviderRow {
        provider: Provider::CublasLt,
        word: "cublaslt",
        name: "cuBLASLt",
        files: &[(13, "libcublasLt.so.13"), (12, "libcublasLt.so.12")],
        version: c"cublasLtGetVersion",
        runtime: None,
        least: 120_000,
        packages: "nvidia-cublas, or nvidia-cublas-cu12 for drivers of CUDA 12",
        open: |device| device.cublaslt().map(drop),
    },
    ProviderRow {
        provider: Provider::Cudnn,
        word: "cudnn",
        name: "cuDNN",
        files: &[(12, "libcudnn.so.9")],
        version: c"cudnnGetVersion",
        runtime: Some(c"cudnnGetCudartVersion"),
        least: 90_000,
        packages: "nvidia-cudnn-cu13, or nvidia-cudnn-cu12 for drivers of CUDA 12",
        open: |device| device.cudnn().map(drop),
    },
];

impl Provider {
    fn row(self) -> &'static ProviderRow {
        &ROWS[self as usize]
    }

    /// The name of the library.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The library of a word.
    pub fn of_word(word: &str) -> Option<Provider> {
        ROWS.iter().find(|row| row.word == word).map(|row| row.provider)
    }

    /// The library with a name.
    pub fn of_name(name: &str) -> Option<Provider> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.provider)
    }

    /// Whether the settings name it.
    pub fn is_chosen(self) -> bool {
        provider_settings().chosen.contains(&self)
    }

    /// The file of the library that the driver serves; an error says what was found, and what to do.
    pub(crate) fn find(self) -> Result<Opened, String> {
        let row = self.row();
        let mut reasons = Vec::new();
        for (major, file) in row.files {
            match Opened::find(file).and_then(|opened| row.check(*major, opened)) {
                Ok(opened) => return Ok(opened),
                Err(why) => reasons.push(why),
            }
        }
        Err(reasons.join("; "))
    }

    /// The error of a call on a device where the library cannot be used.
    pub(crate) fn refused(self, why: &str) -> DeviceError {
        let ProviderRow { word, name, least, packages, .. } = self.row();
        let message = format!(
            "MXRT_GPU_LIBRARIES names {word}, and {name} cannot be used: {why}. Expected {name} {} or newer, for a CUDA \
             that the driver serves: pip install {packages}, or leave {word} out of MXRT_GPU_LIBRARIES",
            words(*least)
        );
        DeviceError::new(ErrorClass::Recoverable, NOT_SUPPORTED, message)
    }
}

impl ProviderRow {
    fn check(&self, major: i32, opened: Opened) -> Result<Opened, String> {
        let Opened { path, .. } = &opened;
        let version = number(opened.symbol(self.version)).ok_or_else(|| format!("{path} does not say its version"))?;
        if version < self.least {
            return Err(format!("{path} is {} {}, which is too old", self.name, words(version)));
        }
        let runtime = self.runtime.and_then(|function| number(opened.symbol(function)));
        let (major, served) = (runtime.map_or(major, |version| version as i32 / 1000), served());
        if major > served / 1000 {
            let (served, minor) = (served / 1000, served % 1000 / 10);
            return Err(format!("{path} is for CUDA {major}, but the driver serves CUDA {served}.{minor}"));
        }
        Ok(opened)
    }
}

/// Settings of libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// libraries that compute in place of mxrt's kernels
    pub chosen: Vec<Provider>,
    /// whether they may round factors of float32 to TF32
    pub tf32: bool,
}

static SETTINGS: OnceLock<ProviderSettings> = OnceLock::new();

/// Says which libraries compute in place of mxrt's kernels. The first call counts; without one none
/// does.
pub fn set_providers(settings: ProviderSettings) {
    let _ = SETTINGS.set(settings);
}

/// The settings of libraries.
pub fn provider_settings() -> &'static ProviderSettings {
    static NONE: ProviderSettings = ProviderSettings { chosen: Vec::new(), tf32: false };
    SETTINGS.get().unwrap_or(&NONE)
}

/// State of the libraries on a device: handles, and the algorithms that they chose.
#[derive(Default)]
pub(crate) struct Providers {
    pub cublaslt: OnceLock<CublasLt>,
    pub cudnn: OnceLock<Cudnn>,
    making: Mutex<()>,
}

/// The GPUs in use, by number.
static OPEN: ForkSafeMutex<Vec<(u16, Weak<CudaDevice>)>> = ForkSafeMutex::new(Vec::new());

/// Notes a GPU that is in use from now on.
pub(crate) fn note_open(index: u16, device: &Arc<CudaDevice>) {
    OPEN.lock().push((index, Arc::downgrade(device)));
}

impl CudaDevice {
    /// The GPU of a number, if it is in use.
    pub fn opened(index: u16) -> Option<Arc<CudaDevice>> {
        OPEN.lock().iter().find(|(number, _)| *number == index)?.1.upgrade()
    }

    /// Submits what `call` submits to a stream, as functions of libraries do. While a graph is
    /// recorded on the stream, that becomes a part of it.
    pub(crate) fn submit_foreign(
        &self,
        stream: StreamHandle,
        call: impl FnOnce(CUstream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let raw = raw_stream(stream);
        if self.recorded_stream.load(Ordering::Acquire) == stream.0
            && let Some(graph) = lock(&self.recording).as_mut()
        {
            return self.with(|api| graph.captured(api, raw, || call(raw)))?;
        }
        self.with(|_| call(raw))?
    }

    /// Checks that all libraries that the settings name can be used here.
    pub fn check_providers(&self) -> Result<(), DeviceError> {
        provider_settings().chosen.iter().try_for_each(|provider| (provider.row().open)(self))
    }
}

impl Providers {
    /// The value of a cell, which is made once, also if several threads want it.
    pub fn kept<'a, T>(
        &self,
        cell: &'a OnceLock<T>,
        make: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<&'a T, DeviceError> {
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let _alone = lock(&self.making);
        match cell.get() {
            Some(known) => Ok(known),
            None => {
                let made = make()?;
                Ok(cell.get_or_init(|| made))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_names_and_nothing_is_chosen_by_itself() {
        for row in &ROWS {
            assert_eq!((row.provider.row().word, Provider::of_word(row.word)), (row.word, Some(row.provider)));
            assert!(!row.provider.is_chosen());
        }
        let error = Provider::CublasLt.refused("it is absent").message;
        assert!(error.contains("names cublaslt") && error.contains("12.0.0 or newer"), "{error}");
    }
}
