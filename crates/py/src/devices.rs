//! Devices besides the CPU: a list of them, and their memory.

use crate::{convert, errors, runtime};
use mxrt::internal::devices;
use mxrt_engine::{DeviceId, DeviceKind, Engine, FailureKind, OpError};
use mxrt_tensor::DeviceType;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// The kinds this build knows: names and MXNet's numbers.
#[pyfunction]
pub(crate) fn device_kinds() -> Vec<(String, i32)> {
    devices::kinds().map(|kind| (kind.to_string(), DeviceType::Device(kind).code())).collect()
}

fn kind(name: &str) -> Result<DeviceKind, OpError> {
    match convert::context((name, 0))?.device_type {
        DeviceType::Device(kind) => Ok(kind),
        other => Err(OpError::new(FailureKind::Value, format!("{} is no device other than the CPU", other.name()))),
    }
}

pub(crate) fn device(py: Python<'_>, (name, number): (&str, i32)) -> PyResult<DeviceId> {
    let found = kind(name).and_then(|kind| match u16::try_from(number) {
        Ok(number) => Ok(DeviceId::new(kind, number)),
        Err(_) => Err(OpError::new(FailureKind::Device, format!("{name}({number}): invalid number"))),
    });
    found.map_err(|e| errors::from_op(py, &e))
}

/// DLPack's numbers of the devices that it has no kind for: all simulated ones of this process, one
/// kind after the other.
fn numbered(engine: &'static Engine) -> impl Iterator<Item = DeviceId> {
    let kinds: Vec<DeviceKind> = runtime::environment().map_or(Vec::new(), |s| s.devices.simulated().collect());
    kinds.into_iter().flat_map(|kind| (0..engine.device_count(kind)).map(move |i| DeviceId::new(kind, i as u16)))
}

/// `None`: it is a GPU of CUDA's, which DLPack knows.
pub(crate) fn number_of(engine: &'static Engine, device: DeviceId) -> Option<i32> {
    numbered(engine).position(|d| d == device).map(|number| number as i32)
}

pub(crate) fn with_number(engine: &'static Engine, number: i32) -> Option<DeviceId> {
    numbered(engine).nth(usize::try_from(number).ok()?)
}

/// The GPU that another library of CUDA calls by this number.
pub(crate) fn gpu_with_number(number: i32) -> Option<DeviceId> {
    let simulated = runtime::environment().is_ok_and(|s| s.devices.simulated().any(|kind| kind == DeviceKind::GPU));
    let number = u16::try_from(number).ok().filter(|_| !simulated)?;
    Some(DeviceId::new(DeviceKind::GPU, number))
}

/// The known facts about driver and GPUs, for `mxrt info` and `mxrt doctor`: the version of CUDA
/// that the driver supports; name, compute capability and bytes of memory of each GPU; and the
/// reason why there are none. Uses no GPU.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn gpu_status(py: Python<'_>) -> PyResult<(Option<i32>, Vec<(String, (i32, i32), usize)>, Option<String>)> {
    let settings = runtime::environment().map_err(|message| errors::plain(FailureKind::Value, message))?;
    let found = py.detach(|| settings.devices.gpu_status());
    let gpus = found.gpus.into_iter().map(|gpu| (gpu.name, gpu.capability, gpu.memory)).collect();
    Ok((found.version, gpus, found.reason))
}

/// Returns the folder for kernels that are compiled at run time, and why it is not used. Makes no
/// folder. `None`: the system names no folder of caches.
#[pyfunction]
pub(crate) fn cache_folder() -> PyResult<Option<(PathBuf, Option<String>)>> {
    let settings = runtime::environment().map_err(|message| errors::plain(FailureKind::Value, message))?;
    let found = settings.devices.cache_folder();
    Ok(found.map(|(folder, checked)| (folder, checked.err().map(|error| error.to_string()))))
}

/// An optional library of CUDA: name, path, version, the reason why there is none, and whether the
/// settings name it; `None`: settings do not decide.
type LibraryRow = (&'static str, Option<String>, Option<String>, Option<String>, Option<bool>);

/// The optional libraries of CUDA. Opens them.
#[pyfunction]
pub(crate) fn gpu_libraries(py: Python<'_>) -> PyResult<Vec<LibraryRow>> {
    let settings = runtime::environment().map_err(|message| errors::plain(FailureKind::Value, message))?;
    let chosen = &settings.devices.libraries.chosen;
    let is_chosen = |name: &str| devices::Provider::of_name(name).map(|provider| chosen.contains(&provider));
    let found = py.detach(devices::libraries);
    Ok(found.into_iter().map(|l| (l.name, l.path, l.version, l.reason, is_chosen(l.name))).collect())
}

/// Says where packages of NVIDIA are: the folder `nvidia` of each folder on the search path. Reads
/// nothing.
#[pyfunction]
pub(crate) fn set_library_roots(roots: Vec<PathBuf>) {
    devices::set_library_roots(roots);
}

/// The reasons why there are no kernels for GPUs of a compute capability, and why chains of
/// functions are not compiled for them; compiles one to find out.
#[pyfunction]
pub(crate) fn gpu_kernels(py: Python<'_>, capability: (i32, i32)) -> (Option<String>, Option<String>) {
    let found = py.detach(|| devices::kernel_status(capability));
    (found.kernels.err(), found.chains.err())
}

/// How many devices of a kind there are. Does not start the engine.
#[pyfunction]
pub(crate) fn device_count(py: Python<'_>, name: &str) -> PyResult<usize> {
    let kind = kind(name).map_err(|e| errors::from_op(py, &e))?;
    let settings = runtime::environment().map_err(|message| errors::plain(FailureKind::Value, message))?;
    Ok(py.detach(|| settings.device_count(kind)))
}

/// Memory of a device, in bytes.
#[pyfunction]
pub(crate) fn device_stats<'py>(py: Python<'py>, name: (String, i32)) -> PyResult<Bound<'py, PyDict>> {
    let device = device(py, (&name.0, name.1))?;
    let engine = runtime::runtime()?.engine;
    let stats = py.detach(|| engine.device_stats(device)).map_err(|e| errors::from_op(py, &e))?;
    let facts = PyDict::new(py);
    facts.set_item("total", stats.total)?;
    facts.set_item("free", stats.free)?;
    facts.set_item("in_use", stats.in_use)?;
    facts.set_item("cached", stats.cached)?;
    facts.set_item("peak", stats.peak)?;
    facts.set_item("limit", stats.limit)?;
    Ok(facts)
}

/// Bounds the memory of a device, in bytes; None: no bound but its size.
#[pyfunction]
#[pyo3(signature = (name, bytes))]
pub(crate) fn set_device_limit(py: Python<'_>, name: (String, i32), bytes: Option<usize>) -> PyResult<()> {
    let device = device(py, (&name.0, name.1))?;
    let engine = runtime::runtime()?.engine;
    py.detach(|| engine.set_device_limit(device, bytes)).map_err(|e| errors::from_op(py, &e))
}

/// Gives memory that no array uses back to the device.
#[pyfunction]
pub(crate) fn trim_device(py: Python<'_>, name: (String, i32)) -> PyResult<()> {
    let device = device(py, (&name.0, name.1))?;
    let engine = runtime::runtime()?.engine;
    py.detach(|| engine.trim_device(device)).map_err(|e| errors::from_op(py, &e))
}
