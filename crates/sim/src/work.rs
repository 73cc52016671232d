//! Items of a stream.

use mxrt_engine::device::{ClearJob, CopyJob, DevicePtr, Kernel, MemoryPlace, Tag};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One record of an event. Done when its turn on the stream has come.
pub(crate) struct StreamRecord {
    pub number: u64,
    pub device: usize,
    /// 0: not done; otherwise the time, plus one.
    time: AtomicU64,
}

impl StreamRecord {
    pub fn new(number: u64, device: usize) -> Arc<Self> {
        Arc::new(StreamRecord { number, device, time: AtomicU64::new(0) })
    }

    pub fn time(&self) -> Option<u64> {
        self.time.load(Ordering::Acquire).checked_sub(1)
    }

    pub fn finish(&self, time: u64) {
        self.time.store(time + 1, Ordering::Release);
    }
}

/// A kernel, a copy, memory to be cleared, or a kernel of the device's own that knows nothing of
/// the engine.
pub(crate) enum StreamJob {
    Kernel(Kernel),
    Copy(CopyJob),
    Clear(ClearJob),
    Own(Arc<Tag>, Box<dyn FnOnce() + Send>),
}

impl StreamJob {
    pub fn tag(&self) -> &Arc<Tag> {
        match self {
            StreamJob::Kernel(kernel) => kernel.tag(),
            StreamJob::Copy(copy) => &copy.tag,
            StreamJob::Clear(clear) => &clear.tag,
            StreamJob::Own(tag, _) => tag,
        }
    }

    /// Memory of devices that the job uses, page-locked memory of the host included.
    pub fn memory(&self) -> Vec<DevicePtr> {
        let mut all: Vec<DevicePtr> = self.tag().accesses.iter().filter_map(|a| a.memory).collect();
        match self {
            StreamJob::Copy(copy) => all.extend([copy.to, copy.from].map(|place| match place {
                MemoryPlace::Device(ptr) => ptr,
                MemoryPlace::Host(ptr) => DevicePtr(ptr.expose_provenance() as u64),
            })),
            StreamJob::Clear(clear) => all.push(clear.at),
            StreamJob::Kernel(_) | StreamJob::Own(..) => {}
        }
        all
    }

    pub fn run(self) {
        match self {
            StreamJob::Kernel(kernel) => kernel.run(),
            StreamJob::Own(_, body) => body(),
            StreamJob::Clear(clear) => {
                // SAFETY: contract of `Device::clear`; device addresses are addresses of the host
                // here.
                unsafe { address(MemoryPlace::Device(clear.at)).write_bytes(0, clear.bytes) }
            }
            StreamJob::Copy(copy) => {
                // SAFETY: the thread that submitted the copy answers for both places, until an
                // event after it is complete (contract of `Device::copy`); device addresses are
                // addresses of the host here.
                unsafe { std::ptr::copy(address(copy.from), address(copy.to), copy.bytes) }
            }
        }
    }
}

fn address(place: MemoryPlace) -> *mut u8 {
    match place {
        MemoryPlace::Host(ptr) => ptr,
        MemoryPlace::Device(ptr) => std::ptr::with_exposed_provenance_mut(ptr.0 as usize),
    }
}

pub(crate) enum Item {
    StreamJob { job: StreamJob, submitted: u64 },
    Record { record: Arc<StreamRecord>, submitted: u64 },
    Wait { record: Arc<StreamRecord> },
}

/// The present activity of a stream.
pub(crate) enum StreamActivity {
    Nothing,
    /// The work has begun; the body runs when it ends.
    Begun {
        job: StreamJob,
        ends: u64,
    },
    /// The body has run, the rest of its time has not passed.
    Ending {
        tag: Arc<Tag>,
        memory: Vec<DevicePtr>,
        ends: u64,
    },
    /// A thread is running a body.
    Busy,
}
