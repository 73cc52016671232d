//! The times of ops on a device, for the profiler: two timing events around the work of each op,
//! read when it is complete. While the profiler is off there are no such events.

use super::api::EventHandle;
use super::outcome::Enqueued;
use super::stream::Stream;
use crate::op::spec::{DeviceId, OpName};
use crate::profile::rounded;
use crate::sync::clock;
use crate::sync::global::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Records that are kept; later ones are counted.
const KEPT: usize = 1 << 16;

static RECORDS: Mutex<(Vec<RawTiming>, u64)> = Mutex::new((Vec::new(), 0));

/// One op on a device.
#[derive(Clone, Debug)]
pub struct DeviceRecord {
    /// Name of the op.
    pub name: OpName,
    /// The device on which the op ran.
    pub device: DeviceId,
    /// Number of the stream, unique in the engine.
    pub stream: u32,
    /// Microseconds on the clock of the host's records: when its work was submitted, when it
    /// started on the device and when it was complete there. The difference of the last two is the
    /// device's own measurement.
    pub submitted: f64,
    /// Time of the start, in the unit of `submitted`.
    pub started: f64,
    /// Time of the end, in the unit of `submitted`.
    pub ended: f64,
    /// Whether the op's writes have failed.
    pub failed: bool,
}

struct RawTiming {
    name: OpName,
    device: DeviceId,
    stream: u32,
    /// Ticks of the host, and the device's clock at that moment.
    submitted: (u64, u64),
    started: u64,
    ended: u64,
    failed: bool,
}

/// The events of one op that is not complete.
pub(crate) struct Timing {
    stream: &'static Stream,
    submitted: (u64, u64),
    started: EventHandle,
    ended: Option<EventHandle>,
}

impl Timing {
    /// Marks the beginning; `None`: the device refuses, and the op is not measured.
    #[cold]
    pub fn start(stream: &'static Stream) -> Option<Timing> {
        // Before the mark, which may be reached at once.
        let submitted = (clock::now(), stream.device.backend.now());
        Some(Timing { stream, submitted, started: mark(stream)?, ended: None })
    }

    /// Marks the end.
    #[cold]
    pub fn end(mut self) -> Option<Timing> {
        self.ended = mark(self.stream);
        self.ended?;
        Some(self)
    }

    /// The op is complete: notes when it ran.
    #[cold]
    pub fn resolve(self, op: &Enqueued) {
        let backend = &*self.stream.device.backend;
        if self.stream.device.is_lost() {
            return;
        }
        let times = self.ended.and_then(|ended| Some((backend.time_of(self.started)?, backend.time_of(ended)?)));
        let Some((started, ended)) = times else { return };
        let (name, failed) = (op.name.clone(), op.has_failed());
        let raw = RawTiming {
            name,
            device: op.device,
            stream: self.stream.number,
            submitted: self.submitted,
            started,
            ended,
            failed,
        };
        let mut records = RECORDS.lock();
        if records.0.len() < KEPT {
            records.0.push(raw);
        } else {
            records.1 += 1;
        }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        let device = self.stream.device;
        if !device.is_lost() {
            let give = |handle| device.timing_events.give(&*device.backend, handle);
            give(self.started);
            self.ended.into_iter().for_each(give);
        }
    }
}

fn mark(stream: &Stream) -> Option<EventHandle> {
    let (pool, backend) = (&stream.device.timing_events, &*stream.device.backend);
    let handle = pool.take(backend).ok()?;
    match backend.record(stream.handle, handle, 0) {
        Ok(()) => Some(handle),
        Err(_) => {
            pool.give(backend, handle);
            None
        }
    }
}

/// The records so far, in the order of the starts, and the number of records that found no room.
pub(crate) fn snapshot(clear: bool, micros: impl Fn(u64) -> f64) -> (Vec<DeviceRecord>, u64) {
    let mut records = RECORDS.lock();
    let translate = |raw: &RawTiming| {
        let submitted = micros(raw.submitted.0);
        let on_host = |time: u64| submitted + (time as f64 - raw.submitted.1 as f64) / 1e3;
        DeviceRecord {
            name: raw.name.clone(),
            device: raw.device,
            stream: raw.stream,
            submitted,
            started: on_host(raw.started),
            ended: on_host(raw.ended),
            failed: raw.failed,
        }
    };
    let mut list: Vec<DeviceRecord> = records.0.iter().map(translate).collect();
    let lost = records.1;
    let gone = if clear { std::mem::take(&mut *records) } else { (Vec::new(), 0) };
    drop(records);
    drop(gone);
    list.sort_by(|a, b| a.started.total_cmp(&b.started));
    (list, lost)
}

/// Returns the records as events of the Chrome trace format: a process for each device, a lane for
/// each stream.
pub(crate) fn trace_events(records: &[DeviceRecord]) -> Vec<Value> {
    let mut events = Vec::new();
    let mut processes: HashMap<DeviceId, usize> = HashMap::new();
    let mut lanes: Vec<(DeviceId, u32)> = Vec::new();
    for record in records {
        let (next, stream) = (processes.len() + 1, record.stream);
        let pid = *processes.entry(record.device).or_insert(next);
        if pid == next {
            let name = record.device.to_string();
            events.push(json!({ "name": "process_name", "ph": "M", "pid": pid, "args": { "name": name } }));
        }
        if !lanes.contains(&(record.device, stream)) {
            lanes.push((record.device, stream));
            let name = format!("{} stream {stream}", record.device);
            events
                .push(json!({ "name": "thread_name", "ph": "M", "pid": pid, "tid": stream, "args": { "name": name } }));
        }
        events.push(span(record, pid));
    }
    events
}

fn span(record: &DeviceRecord, pid: usize) -> Value {
    json!({
        "name": record.name.as_str(),
        "ph": "X",
        "pid": pid,
        "cat": "device",
        "tid": record.stream,
        "ts": rounded(record.started),
        "dur": rounded((record.ended - record.started).max(0.0)),
        "args": {
            "submitted_us": rounded(record.submitted),
            "waited_us": rounded((record.started - record.submitted).max(0.0)),
            "failed": record.failed,
        },
    })
}
