//! Devices other than the CPU: streams, events, memory, and what they mean for variables.
//! `PROTOCOL.md`, "Devices", is the specification.

mod api;
mod captured;
mod event;
mod exchange;
mod host;
mod kernel;
#[cfg(all(test, loom))]
mod loom_devices;
mod memory;
mod op;
mod open;
mod outcome;
mod park;
mod recording;
mod spare;
mod staging;
mod status;
mod stream;
mod sync_object;
mod timing;

pub use api::{
    Callback, ClearJob, CopyJob, Device, DeviceError, DevicePtr, Driver, ErrorClass, EventHandle, MemoryPlace,
    RecordingHandle, StreamHandle, StreamKind, Tag, TagAccess,
};
pub use exchange::{ConsumerStream, DeviceMemoryRef, ExportGuard, ImportStream};
pub use kernel::{Kernel, KernelCtx};
pub use memory::DeviceStats;
pub use op::DeviceCtx;
pub use open::{DeviceReserve, OpenDevice};
pub use recording::Recording;
pub use spare::SpareMemory;
pub use status::KernelScope;
pub use timing::DeviceRecord;

pub(crate) use event::EventRef;
pub(crate) use host::HostWait;
pub(crate) use open::{COMPUTE_STREAMS, Devices};
pub(crate) use park::inherited_with_devices;
pub(crate) use sync_object::{Extra, Garbage, SyncObject};
pub(crate) use timing::{snapshot as device_records, trace_events as device_trace};
