//! Operations of tests on simulated devices, for `mxrt.testing`.

use crate::devices::device;
use crate::{errors, runtime};
use mxrt_engine::FailureKind;
use mxrt_engine::device::{Device, DeviceError, ErrorClass, OpenDevice, StreamHandle, Tag};
use mxrt_sim::{Call, Fault, SimDevice};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::time::Duration;

type Name = (String, i32);

fn open(py: Python<'_>, name: &Name) -> PyResult<&'static OpenDevice> {
    let id = device(py, (&name.0, name.1))?;
    runtime::runtime()?.engine.device(id).map_err(|e| errors::from_op(py, &e))
}

fn sim(open: &'static OpenDevice) -> PyResult<&'static SimDevice> {
    let found = open.backend().as_any().downcast_ref::<SimDevice>();
    found.ok_or_else(|| errors::plain(FailureKind::Value, &format!("{} is not simulated", open.id())))
}

fn raised(error: DeviceError) -> PyErr {
    errors::plain(FailureKind::Device, &error.to_string())
}

/// Calls in the order of `mxrt.testing`.
const CALLS: [Call; 8] =
    [Call::Launch, Call::Copy, Call::Record, Call::Wait, Call::Query, Call::HostWait, Call::Alloc, Call::Execute];

/// Makes a call fail.
#[pyfunction]
pub(crate) fn sim_fail(py: Python<'_>, name: Name, call: usize, after: u64, code: i32) -> PyResult<()> {
    let device = sim(open(py, &name)?)?;
    let Some(call) = CALLS.get(call).copied() else {
        return Err(errors::plain(FailureKind::Index, &format!("there is no call number {call}")));
    };
    device.world().inject(Fault { device: device.index(), call, after, code });
    Ok(())
}

/// Pieces of work that were not done yet.
#[pyfunction]
pub(crate) fn sim_pending(py: Python<'_>, name: Name) -> PyResult<usize> {
    Ok(sim(open(py, &name)?)?.world().pending())
}

/// Another order of the work to come.
#[pyfunction]
pub(crate) fn sim_reseed(py: Python<'_>, name: Name, seed: u64) -> PyResult<()> {
    sim(open(py, &name)?)?.world().reseed(seed);
    Ok(())
}

/// Missing orderings, as far as calls were recorded, and the number of checked pairs of uses.
#[pyfunction]
pub(crate) fn sim_check(py: Python<'_>, name: Name) -> PyResult<(Vec<String>, usize)> {
    let world = sim(open(py, &name)?)?.world();
    let report = py.detach(|| mxrt_sim::check::check(&world.log()));
    Ok((report.violations, report.conflicts))
}

/// A stream of another library.
#[pyfunction]
pub(crate) fn sim_stream(py: Python<'_>, name: Name) -> PyResult<SimStream> {
    let device = open(py, &name)?;
    let number = sim(device)?.new_foreign_stream();
    let stream = device.backend().foreign_stream(number).map_err(raised)?;
    Ok(SimStream { device, stream, number })
}

/// A stream of a simulated device that another library works on.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct SimStream {
    device: &'static OpenDevice,
    stream: StreamHandle,
    number: u64,
}

#[pymethods]
impl SimStream {
    /// The stream's number, for `__dlpack__(stream=...)`.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// The content of a device's memory when the stream comes to it: bytes from an address on,
    /// which the caller keeps valid.
    fn read<'py>(&self, py: Python<'py>, address: u64, bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut copy = vec![0u8; bytes];
        let to = copy.as_mut_ptr().expose_provenance();
        py.detach(|| self.copy(to, address as usize, bytes)).map_err(raised)?;
        Ok(PyBytes::new(py, &copy))
    }

    /// Writes the memory of a device when the stream comes to it, and returns then.
    fn write(&self, py: Python<'_>, address: u64, content: &[u8]) -> PyResult<()> {
        let content = content.to_vec();
        let from = content.as_ptr().expose_provenance();
        py.detach(|| self.copy(address as usize, from, content.len())).map_err(raised)
    }
}

impl SimStream {
    /// Submits a kernel that copies, and waits for it. Both are addresses of memory that stays
    /// meanwhile.
    fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<(), DeviceError> {
        let backend: &Arc<dyn Device> = self.device.backend();
        let tag = Tag {
            op: u64::MAX,
            name: "consumer".into(),
            device: self.device.id(),
            accesses: Vec::new(),
            behind_all: false,
        };
        let event = backend.new_event(false)?;
        let kernel = move || {
            let (to, from) = (std::ptr::with_exposed_provenance_mut::<u8>(to), std::ptr::with_exposed_provenance(from));
            // SAFETY: the host's side belongs to the caller, which waits here; the device's side is
            // kept valid by the owner of the address.
            unsafe { to.copy_from_nonoverlapping(from, bytes) };
        };
        let Some(device) = backend.as_any().downcast_ref::<SimDevice>() else {
            return Err(DeviceError::new(ErrorClass::Recoverable, 101, "not a simulated device"));
        };
        device.launch_own(self.stream, Arc::new(tag), kernel)?;
        backend.record(self.stream, event, 0)?;
        while !backend.host_wait(event, Duration::from_millis(50))? {
            backend.step();
        }
        backend.free_event(event);
        Ok(())
    }
}
