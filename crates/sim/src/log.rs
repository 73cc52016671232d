//! The record of all calls of the devices, in order.

use mxrt_engine::device::{DevicePtr, Tag};
use std::sync::Arc;

/// One call.
#[derive(Clone, Debug)]
pub enum LogEntry {
    /// A piece of work was submitted to a stream.
    Work {
        /// Number of the stream.
        stream: usize,
        /// The op and its accesses.
        tag: Arc<Tag>,
    },
    /// An event was recorded on a stream.
    Record {
        /// Number of the stream.
        stream: usize,
        /// Number of the record, in the order of records.
        record: u64,
        /// The op after whose work it comes; 0: no op.
        op: u64,
    },
    /// A stream was notified to wait for a record.
    Wait {
        /// Number of the stream.
        stream: usize,
        /// Number of the record.
        record: u64,
        /// The op that has to wait; 0: no op.
        op: u64,
    },
    /// The host knows that a record is complete.
    Known {
        /// Number of the record.
        record: u64,
        /// How it came to know.
        how: Knows,
    },
    /// The host used variables itself.
    Host {
        /// Name of the op.
        name: String,
        /// Numbers of the variables, and whether they were written.
        accesses: Vec<(u64, bool)>,
    },
    /// The host is about to wait for values, or has done so: outside of these it may not wait for
    /// devices.
    MayWait(bool),
    /// Memory was given back to a device.
    Free {
        /// Address of the memory.
        ptr: DevicePtr,
    },
    /// A piece of work met memory that does not exist.
    BadMemory {
        /// The op that did the work.
        tag: Arc<Tag>,
        /// Address of the memory.
        ptr: DevicePtr,
    },
}

/// How the host came to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knows {
    /// The host waited.
    Waited,
    /// The host asked.
    Asked,
    /// The host was called back.
    Called,
}

/// The calls of a world.
pub type Log = Vec<LogEntry>;
