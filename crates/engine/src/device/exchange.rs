//! Arrays that come from, or go to, other libraries: the two sides agree on a stream, and the host
//! waits for nothing.

use super::api::{DeviceError, DevicePtr};
use super::captured::ForeignUse;
use super::event::EventRef;
use super::memory::DeviceBlock;
use super::open::OpenDevice;
use super::stream::{LEGACY_STREAM, Stream, WaitSet};
use super::sync_object::Garbage;
use crate::engine::Engine;
use crate::failure::{FailureKind, OpError, WaitError};
use crate::op::spec::{Access, DeviceId};
use crate::var::Var;

const IMPORTING: &str = "importing an array";

/// The stream on which another library is going to use an array, by the numbers of the DLPack
/// protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConsumerStream {
    /// A stream of this number: 1 is the legacy default stream, 2 the one of the thread, others are
    /// handles.
    Number(u64),
    /// The consumer answers for the order, and that when it gives the array back it is done with it.
    NoSync,
}

impl ConsumerStream {
    /// Parses the argument of `__dlpack__(stream=...)`.
    pub fn parse(stream: Option<i64>) -> Result<Self, OpError> {
        match stream {
            None => Ok(ConsumerStream::Number(1)),
            Some(-1) => Ok(ConsumerStream::NoSync),
            Some(number) if number > 0 => Ok(ConsumerStream::Number(number as u64)),
            Some(number) => {
                let message = format!(
                    "exporting an array to stream {number}: expected None, -1 (no synchronisation), 1 (default stream), \
                     2 (stream of the thread) or the handle of a stream"
                );
                Err(OpError::new(FailureKind::Value, message))
            }
        }
    }
}

/// A use of an array by another library. Dropping it says that the library has submitted its last
/// use: the memory can then be reused after that.
#[must_use = "dropping it says that the other library has submitted its last use"]
pub struct ExportGuard {
    var: Var,
    device: &'static OpenDevice,
    stream: Option<&'static Stream>,
}

/// A stream of ours that another library was asked to have an array ready on.
pub struct ImportStream {
    stream: &'static Stream,
}

/// Memory of a device that a variable owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceMemoryRef {
    /// The device that holds the memory.
    pub device: DeviceId,
    /// Address of the memory.
    pub ptr: DevicePtr,
    /// Size of the memory, as requested.
    pub bytes: usize,
}

impl Engine {
    /// Lets another library use a variable's memory on its stream: that stream waits for the last
    /// writer, and for readers if the library may write. Blocks only until what was pushed before
    /// is submitted; if the library captures its stream, until it is complete. `poll` is called
    /// about every 50 ms meanwhile.
    pub fn export_to(
        &'static self,
        var: &Var,
        device: DeviceId,
        consumer: ConsumerStream,
        writable: bool,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<ExportGuard, WaitError> {
        let refuse = |error: OpError| WaitError::Failed(crate::Failure::new((*error).clone()));
        let device = self.device(device).map_err(refuse)?;
        device.usable().map_err(refuse)?;
        device.end_captured_uses();
        let access = if writable { Access::Update } else { Access::Read };
        let events = self.submitted_events(var, access, poll)?;
        let stream = match consumer {
            ConsumerStream::NoSync => None,
            ConsumerStream::Number(number) => {
                let stream = device.foreign_stream(number);
                let stream = stream.map_err(|e| refuse(device.op_error(&e, "exporting an array")))?;
                self.order_export(stream, &events, poll)?;
                Some(stream)
            }
        };
        Ok(ExportGuard { var: var.clone(), device, stream })
    }

    /// Makes the stream of another library wait for these events; if that library captures it, the
    /// host waits. A capture must not wait for what is outside of it.
    fn order_export(
        &'static self,
        stream: &'static Stream,
        events: &[EventRef],
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<(), WaitError> {
        let refuse = |error: OpError| WaitError::Failed(crate::Failure::new((*error).clone()));
        let failed = |e: DeviceError| refuse(stream.device.foreign_error(e, "exporting an array"));
        let mut waits = WaitSet::default();
        events.iter().for_each(|e| waits.add(e));
        if !stream.is_captured().map_err(failed)? {
            return stream.wait_for(&waits, 0).map_err(failed);
        }
        for event in waits.events() {
            match self.devices.host_wait(event, &mut || poll() && !self.is_closed()) {
                Ok(true) => {}
                Ok(false) => return Err(self.gave_up()),
                Err(lost) => return Err(refuse(lost)),
            }
        }
        Ok(())
    }

    /// A stream to ask another library to have its array ready on.
    pub fn import_stream(&'static self, device: DeviceId) -> Result<ImportStream, OpError> {
        let device = self.device(device)?;
        device.usable()?;
        device.end_captured_uses();
        let stream = device.import_stream().map_err(|e| device.op_error(&e, IMPORTING))?;
        Ok(ImportStream { stream })
    }

    /// Memory of another library for a variable that has none. `done` is called when the variable
    /// is gone and no submitted work uses the memory any more, in any thread; it must be short.
    pub fn adopt_memory(
        &'static self,
        var: &Var,
        device: DeviceId,
        ptr: DevicePtr,
        bytes: usize,
        done: impl FnOnce() + Send + 'static,
    ) -> Result<(), OpError> {
        let device = self.device(device)?;
        let block = DeviceBlock::foreign(device, ptr, bytes, Box::new(done));
        let old = self.without_fork(|| var.inner().with_new_sync(|sync| sync.replace_memory(block)));
        drop(old);
        Ok(())
    }
}

impl Var {
    /// The memory of a device that the variable owns.
    pub fn memory(&self) -> Option<DeviceMemoryRef> {
        self.inner().extra()?;
        self.locked(|_, inner| {
            let extra = inner.extra()?;
            // SAFETY: under the lock.
            let memory = unsafe { (*extra.sync.get()).memory() }?;
            Some(DeviceMemoryRef { device: memory.device.id, ptr: memory.ptr, bytes: memory.bytes })
        })
    }
}

impl ImportStream {
    /// The number of the stream, for the other library.
    pub fn number(&self) -> u64 {
        self.stream.device.backend.stream_number(self.stream.handle)
    }

    /// The other library has submitted what makes its array ready: ops that use the variable come
    /// after it. Nothing may have been pushed for the variable yet. Refuses an array that is made in
    /// a capture, which has no value before the captured graph runs.
    pub fn finish(self, var: &Var) -> Result<(), OpError> {
        let device = self.stream.device;
        if self.stream.is_captured().map_err(|e| device.op_error(&e, IMPORTING))? {
            let message = format!(
                "{IMPORTING} on {}: its library is capturing a graph, so the array has no value before that graph is \
                 launched, and no operator can wait for it; import it before the capture begins or after it has ended",
                device.id
            );
            return Err(OpError::new(FailureKind::Device, message).device(device.id.to_string()));
        }
        let event = device.engine.without_fork(|| self.stream.record(None));
        let event = event.map_err(|e| device.op_error(&e, IMPORTING))?;
        let mut garbage = Garbage::default();
        let register = || var.inner().with_new_sync(|sync| sync.register_write(&event, 0, true, &mut garbage));
        device.engine.without_fork(register);
        Ok(())
    }
}

impl Drop for ExportGuard {
    fn drop(&mut self) {
        if self.device.is_lost() {
            return;
        }
        // A consumer that answers for the order has not said where its work runs. To wait for the
        // whole context would block this thread until every library is done, and break the captures
        // of them all. The legacy default stream waits for every stream that was not made
        // non-blocking, so an event there covers most consumers that do not keep their promise, and
        // the host waits for nothing.
        let stream = self.stream.or_else(|| self.device.foreign_stream(LEGACY_STREAM).ok());
        if let Some(stream) = stream {
            self.device.end_use(ForeignUse { var: self.var.clone(), stream });
        }
    }
}

impl std::fmt::Debug for ExportGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ExportGuard of {:?}", self.var)
    }
}

impl std::fmt::Debug for ImportStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ImportStream {}", self.stream.number)
    }
}
