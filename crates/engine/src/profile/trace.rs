//! Records as events of the Chrome and Perfetto trace format.

use super::{Record, Snapshot, StepRecord};
use crate::device::device_trace;
use serde_json::{Value, json};
use std::collections::HashMap;

impl Snapshot {
    /// Returns the records as events of the Chrome and Perfetto trace format, one JSON object each:
    /// running times by thread, those of steps (category `layer`) below those of their ops, and
    /// arrows from the op that wrote a value to those that read it.
    pub fn trace_events(&self) -> Vec<String> {
        let mut events =
            vec![event(json!({ "name": "process_name", "ph": "M", "pid": 0, "args": { "name": "mxrt" } }))];
        events.extend(self.thread_names());
        let mut written_by: HashMap<u64, &Record> = HashMap::new();
        let mut arrows = 0u64;
        for record in &self.records {
            events.push(event(span(record)));
            for source in record.reads.iter().filter_map(|v| written_by.get(v)).filter(|s| s.ended <= record.started) {
                arrows += 1;
                events.extend(arrow(arrows, source, record).map(event));
            }
            written_by.extend(record.writes.iter().map(|v| (*v, record)));
        }
        events.extend(self.steps.iter().map(|step| event(step_span(step))));
        events.extend(device_trace(&self.device_records).into_iter().map(event));
        events
    }

    fn thread_names(&self) -> impl Iterator<Item = String> {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort();
        let named = |(number, name): (&u32, &String)| {
            event(json!({ "name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": { "name": name } }))
        };
        threads.into_iter().map(named)
    }
}

/// Writes an event as text, of which a trace has very many: a value takes several times its room.
fn event(value: Value) -> String {
    value.to_string()
}

/// Rounds microseconds to the nanoseconds that the file has.
pub fn rounded(micros: f64) -> f64 {
    (micros * 1e3).round() / 1e3
}

/// Returns the length of a span. Both ends are rounded alike, so that what lies within another span
/// does so in the file.
fn length(started: f64, ended: f64) -> f64 {
    ((ended * 1e3).round() - (started * 1e3).round()).max(0.0) / 1e3
}

fn span(r: &Record) -> Value {
    let mut args = json!({
        "device": r.device.to_string(),
        "lane": format!("{:?}", r.lane),
        "queued_us": rounded((r.started - r.queued).max(0.0)),
        "reads": r.reads,
        "writes": r.writes,
        "failed": r.failed,
    });
    add_request(&mut args, r.request);
    let (ts, dur) = (rounded(r.started), length(r.started, r.ended));
    let name = r.name.as_str();
    json!({
        "name": name, "ph": "X", "pid": 0, "cat": "operator", "tid": r.thread, "ts": ts, "dur": dur, "args": args,
    })
}

fn step_span(s: &StepRecord) -> Value {
    let mut args = json!({ "operator": s.operator, "failed": s.failed });
    add_request(&mut args, s.request);
    let (ts, dur) = (rounded(s.started), length(s.started, s.ended));
    json!({
        "name": &*s.name, "ph": "X", "pid": 0, "cat": "layer", "tid": s.thread, "ts": ts, "dur": dur, "args": args,
    })
}

/// Adds the number of the request, if the op belongs to one.
fn add_request(args: &mut Value, request: Option<u64>) {
    if let Some(number) = request {
        args["request"] = number.into();
    }
}

/// Returns both ends of the arrow from the op that wrote a value to the one that reads it.
fn arrow(number: u64, from: &Record, to: &Record) -> [Value; 2] {
    let end = |phase: &str, thread: u32, time: f64| {
        json!({
            "name": "value", "ph": phase, "pid": 0, "cat": "data", "id": number, "tid": thread, "ts": rounded(time),
        })
    };
    let mut last = end("f", to.thread, to.started);
    last["bp"] = "e".into();
    [end("s", from.thread, from.started), last]
}
