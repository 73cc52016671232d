//! The interface of devices. A backend is one crate that implements [`Driver`] and [`Device`]. The
//! engine knows nothing else of it, and a program passes the engine a list of drivers.

use super::kernel::Kernel;
use crate::op::spec::{DeviceId, DeviceKind, OpName};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A source of devices of one kind.
pub trait Driver: Send + Sync + fmt::Debug {
    /// The kind of its devices.
    fn kind(&self) -> DeviceKind;
    /// How many there are; 0 where there is no hardware. Never fails.
    fn count(&self) -> usize;
    /// The reason why there are no devices, in words, if more is known than that.
    fn absence(&self) -> Option<String> {
        None
    }
    /// Opens a device; called once for each, when it is first used.
    fn open(&self, index: u16) -> Result<Arc<dyn Device>, DeviceError>;
}

/// A stream of a device: what is submitted to it runs in the order of submission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamHandle(pub u64);

/// An event of a device: the end of what was submitted to a stream before it was recorded there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EventHandle(pub u64);

/// Work that a device has recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecordingHandle(pub u64);

/// An address in a device's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address that is `bytes` bytes higher.
    pub fn offset(self, bytes: usize) -> DevicePtr {
        DevicePtr(self.0 + bytes as u64)
    }
}

/// The memory that a copy reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryPlace {
    /// Memory of the host.
    Host(*mut u8),
    /// Memory of this device, or of another one of its driver.
    Device(DevicePtr),
}

// SAFETY: an address; the thread that makes a copy of it answers for what it points to.
unsafe impl Send for MemoryPlace {}

/// The purpose of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamKind {
    /// Kernels.
    Compute,
    /// Kernels that others should not keep waiting.
    Priority,
    /// Copies to the device, and the end of the op that asked for them.
    CopyIn,
    /// Functions of the host that fill page-locked memory for `CopyIn`.
    StageIn,
    /// Functions of the host that empty page-locked memory, and the end of the op that asked for
    /// it.
    CopyOut,
    /// Copies from the device into page-locked memory for `CopyOut`.
    StageOut,
}

/// The consequence of a device's error for later work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorClass {
    /// The call had no effect; the device keeps working.
    Recoverable,
    /// There was not enough memory; the device keeps working.
    OutOfMemory,
    /// Everything on the device is lost. The call that says so need not be the one that is to
    /// blame.
    Lost,
}

/// The error of a call of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (device error {code})")]
pub struct DeviceError {
    /// Consequence of the error.
    pub class: ErrorClass,
    /// The driver's number for it.
    pub code: i32,
    /// The driver's words for it.
    pub message: String,
}

impl DeviceError {
    /// An error of this class.
    pub fn new(class: ErrorClass, code: i32, message: impl Into<String>) -> Self {
        DeviceError { class, code, message: message.into() }
    }
}

/// One access of an op, for a backend that checks or records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagAccess {
    /// [`Var::id`](crate::Var::id).
    pub var: u64,
    /// Memory of the device that the variable owned when the work was submitted.
    pub memory: Option<DevicePtr>,
    /// Whether it is written.
    pub write: bool,
}

/// The op to which a piece of work belongs.
#[derive(Clone, Debug)]
pub struct Tag {
    /// A number no other op of the engine has.
    pub op: u64,
    /// Name of the op.
    pub name: OpName,
    /// The device on which the op runs.
    pub device: DeviceId,
    /// Variables that the op reads and writes.
    pub accesses: Vec<TagAccess>,
    /// Whether the op waited for everything submitted before, because readers of a variable that it
    /// writes have left no event.
    pub behind_all: bool,
}

/// A copy to submit.
#[derive(Clone, Debug)]
pub struct CopyJob {
    /// The target; memory of the host is page-locked.
    pub to: MemoryPlace,
    /// The source; memory of the host is page-locked.
    pub from: MemoryPlace,
    /// How much.
    pub bytes: usize,
    /// The op it belongs to.
    pub tag: Arc<Tag>,
}

/// Memory to be set to zero.
#[derive(Clone, Debug)]
pub struct ClearJob {
    /// Address of the first byte.
    pub at: DevicePtr,
    /// How much.
    pub bytes: usize,
    /// The op it belongs to.
    pub tag: Arc<Tag>,
}

/// The function that a device calls when it is done.
pub type Callback = Box<dyn FnOnce(Result<(), DeviceError>) + Send>;

/// A device that was opened. Calls may come from any thread. None of them waits for submitted work
/// except [`host_wait`](Device::host_wait) and [`synchronize`](Device::synchronize). Callbacks of
/// [`when_complete`](Device::when_complete) make calls as well: they come from a thread that may.
pub trait Device: Send + Sync {
    /// Bytes of its memory.
    fn total_memory(&self) -> usize;

    /// Bytes that neither this process nor another one uses; `None`: not known.
    fn free_memory(&self) -> Option<usize> {
        None
    }

    /// A new stream; streams live as long as the device.
    fn new_stream(&self, kind: StreamKind) -> Result<StreamHandle, DeviceError>;

    /// A new event, with a time if it is for measuring.
    fn new_event(&self, timing: bool) -> Result<EventHandle, DeviceError>;

    /// Gives an event back that has no references.
    fn free_event(&self, event: EventHandle);

    /// Submits: the event is complete when everything submitted to the stream before is. `op`: the
    /// [`Tag::op`] of the work whose end it marks, or 0; for a backend that checks or records.
    fn record(&self, stream: StreamHandle, event: EventHandle, op: u64) -> Result<(), DeviceError>;

    /// Submits: what comes later on the stream waits for the event's last record before this call.
    /// The event may be of another device of the driver. `op`: the [`Tag::op`] of the work that has
    /// to wait, or 0.
    fn stream_wait(&self, stream: StreamHandle, event: EventHandle, op: u64) -> Result<(), DeviceError>;

    /// Whether the event's last record is complete.
    fn query(&self, event: EventHandle) -> Result<bool, DeviceError>;

    /// Blocks until the event's last record is complete, or for about so long; false: it is not
    /// complete yet.
    fn host_wait(&self, event: EventHandle, patience: Duration) -> Result<bool, DeviceError>;

    /// Blocks until everything on the device is complete, that of other libraries included.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// Calls back, in any thread, when the event's last record is complete, or with an error when
    /// the device is lost; at once if it is. Never from inside another call: the caller of that may
    /// hold locks which the callback takes.
    fn when_complete(&self, event: EventHandle, callback: Callback);

    /// Memory of the device, aligned to at least 256 bytes.
    fn alloc(&self, bytes: usize) -> Result<DevicePtr, DeviceError>;

    /// Gives memory back that no submitted work uses.
    fn free(&self, ptr: DevicePtr);

    /// Memory of the host that copies run fastest with.
    fn alloc_pinned(&self, bytes: usize) -> Result<*mut u8, DeviceError>;

    /// Gives such memory back.
    fn free_pinned(&self, ptr: *mut u8);

    /// Submits a copy.
    ///
    /// # Safety
    /// Both places have that many bytes, of memory that stays until an event recorded after the
    /// copy is complete, and what else uses them is ordered against the copy by events.
    unsafe fn copy(&self, stream: StreamHandle, job: CopyJob) -> Result<(), DeviceError>;

    /// Submits setting memory to zero.
    ///
    /// # Safety
    /// As for [`copy`](Device::copy).
    unsafe fn clear(&self, stream: StreamHandle, job: ClearJob) -> Result<(), DeviceError>;

    /// Submits a function of the host: it runs in its turn on the stream. It calls no device.
    fn launch(&self, stream: StreamHandle, kernel: Kernel) -> Result<(), DeviceError>;

    /// Records what is submitted to the stream from now on, by this thread alone, instead of running
    /// it. False: the device records nothing. Memory may be allocated meanwhile.
    fn begin_recording(&self, stream: StreamHandle) -> Result<bool, DeviceError> {
        let _ = stream;
        Ok(false)
    }

    /// Ends a recording. An error if anything could not be recorded.
    fn end_recording(&self, stream: StreamHandle) -> Result<RecordingHandle, DeviceError> {
        let _ = stream;
        Err(no_recordings())
    }

    /// Submits the recorded work as one piece. The recording's next use comes after this one.
    fn launch_recording(&self, stream: StreamHandle, recording: RecordingHandle) -> Result<(), DeviceError> {
        let _ = (stream, recording);
        Err(no_recordings())
    }

    /// Gives a recording back that no submitted work uses.
    fn free_recording(&self, recording: RecordingHandle) {
        let _ = recording;
    }

    /// The host's address of device memory, if the host can use it.
    fn host_pointer(&self, ptr: DevicePtr) -> Option<*mut u8>;

    /// Whether the host can use all of the device's memory, and so run its own kernels there.
    fn host_addressable(&self) -> bool {
        false
    }

    /// A stream of another library, by the number that library gave: for exchanging arrays.
    fn foreign_stream(&self, number: u64) -> Result<StreamHandle, DeviceError>;

    /// Whether a library captures the stream: what is submitted there becomes a part of a graph of
    /// that library, so nothing else may use the stream.
    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DeviceError> {
        let _ = stream;
        Ok(false)
    }

    /// The number of a stream of ours, for another library.
    fn stream_number(&self, stream: StreamHandle) -> u64;

    /// The time at which a timing event's last record was complete: nanoseconds on the device's
    /// clock.
    fn time_of(&self, event: EventHandle) -> Option<u64>;

    /// The device's clock.
    fn now(&self) -> u64;

    /// A device without a thread of its own does a step of submitted work here; false: there is
    /// nothing to do. The thread that waits calls this. The others always return false.
    fn step(&self) -> bool {
        false
    }

    /// Whether work is only done in [`step`](Device::step).
    fn is_stepped(&self) -> bool {
        false
    }

    /// Itself, for a crate that brings kernels of its own for one backend.
    fn as_any(&self) -> &dyn std::any::Any;
}

fn no_recordings() -> DeviceError {
    DeviceError::new(ErrorClass::Recoverable, 801, "this device records no work")
}
