//! Objects that programs record themselves: tasks, frames, events, counters and markers.

use crate::border::{Error, c_functions};
use crate::handles::{free, get, hold};
use crate::pointers::{put, text};
use mxrt::internal::{ForkSafeMutex, profile};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

/// Handle of an object of the profiler.
pub type ProfileHandle = *mut c_void;

/// Records that are kept; later ones are left out.
const MAX_RECORDS: usize = 1 << 20;

/// An object that a program made.
pub(crate) enum ProfileObject {
    /// a group of the others
    Domain(String),
    /// something that begins and ends: a task, a frame, or an event without a domain
    Duration { category: String, name: String, began: ForkSafeMutex<Option<f64>> },
    /// a number over time
    Counter { category: String, name: String, value: ForkSafeMutex<u64> },
}

/// The records of a program's objects.
#[derive(Default)]
struct Recorded {
    /// JSON objects of Chrome's trace format
    events: Vec<String>,
    /// totals by domain and name: number, and sum, shortest and longest of the times in
    /// microseconds
    totals: BTreeMap<(String, String), (u64, f64, f64, f64)>,
}

static RECORDED: ForkSafeMutex<Option<Recorded>> = ForkSafeMutex::new(None);

fn with_recorded<R>(f: impl FnOnce(&mut Recorded) -> R) -> R {
    f(RECORDED.lock().get_or_insert_default())
}

/// The events that programs recorded, as JSON objects.
pub(crate) fn events(clear: bool) -> Vec<String> {
    with_recorded(|recorded| if clear { std::mem::take(&mut recorded.events) } else { recorded.events.clone() })
}

/// Times of spans by domain, then by name.
pub(crate) fn totals(clear: bool) -> BTreeMap<String, Vec<profile::Total>> {
    let found =
        with_recorded(|recorded| if clear { std::mem::take(&mut recorded.totals) } else { recorded.totals.clone() });
    let mut tables: BTreeMap<String, Vec<profile::Total>> = BTreeMap::new();
    for ((domain, name), (count, total, min, max)) in found {
        tables.entry(domain).or_default().push(profile::Total { name, count, total, min, max });
    }
    tables
}

/// Records an event if recording is on. `more` is a member of the JSON object and its value.
fn record(category: &str, name: &str, phase: char, time: f64, more: (&str, Value)) {
    if !profile::is_on() {
        return;
    }
    let thread = profile::this_thread();
    let mut event =
        json!({ "name": name, "cat": category, "ph": phase, "pid": 0, "tid": thread, "ts": profile::rounded(time) });
    event[more.0] = more.1;
    with_recorded(|recorded| {
        if recorded.events.len() < MAX_RECORDS {
            recorded.events.push(event.to_string());
        }
    });
}

/// # Safety
/// `name` is null or a text; `out` is null or points to a place for the handle.
unsafe fn give(
    make: impl FnOnce(String) -> ProfileObject,
    name: (*const c_char, &str),
    out: *mut ProfileHandle,
) -> Result<(), Error> {
    // SAFETY: contract.
    let name = unsafe { text(name.0, name.1)? }.to_owned();
    // SAFETY: contract.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: contract.
    unsafe { put(out, hold(make(name)), "out") }
}

fn domain(handle: ProfileHandle) -> Result<String, Error> {
    match &*get::<ProfileObject>(handle)? {
        ProfileObject::Domain(name) => Ok(name.clone()),
        other => Err(wrong(other, "a domain")),
    }
}

fn wrong(object: &ProfileObject, expected: &str) -> Error {
    let (what, name) = match object {
        ProfileObject::Domain(name) => ("the domain", name),
        ProfileObject::Duration { name, .. } => ("a task, frame or event,", name),
        ProfileObject::Counter { name, .. } => ("the counter", name),
    };
    Error::value(format!("the object of the profiler is {what} '{name}'; expected {expected}"))
}

fn duration(name: String, category: String) -> ProfileObject {
    ProfileObject::Duration { category, name, began: ForkSafeMutex::new(None) }
}

fn count(handle: ProfileHandle, change: impl FnOnce(u64) -> u64) -> Result<(), Error> {
    let object = get::<ProfileObject>(handle)?;
    let ProfileObject::Counter { category, name, value } = &*object else {
        return Err(wrong(&object, "a counter"));
    };
    let mut value = value.lock();
    *value = change(*value);
    record(category, name, 'C', profile::now_micros(), ("args", json!({ "value": *value })));
    Ok(())
}

c_functions! {
    /// A group of tasks, frames, counters and markers.
    fn MXProfileCreateDomain(domain: *const c_char, out: *mut ProfileHandle) {
        give(ProfileObject::Domain, (domain, "domain"), out)
    }

    /// A piece of work of the program.
    fn MXProfileCreateTask(domain: ProfileHandle, task_name: *const c_char, out: *mut ProfileHandle) {
        let domain = self::domain(domain)?;
        give(|name| duration(name, domain), (task_name, "task_name"), out)
    }

    /// One of many passes of the program.
    fn MXProfileCreateFrame(domain: ProfileHandle, frame_name: *const c_char, out: *mut ProfileHandle) {
        let domain = self::domain(domain)?;
        give(|name| duration(name, domain), (frame_name, "frame_name"), out)
    }

    /// Something that belongs to no domain.
    fn MXProfileCreateEvent(event_name: *const c_char, out: *mut ProfileHandle) {
        give(|name| duration(name, "event".to_owned()), (event_name, "event_name"), out)
    }

    /// A number over time, first 0.
    fn MXProfileCreateCounter(domain: ProfileHandle, counter_name: *const c_char, out: *mut ProfileHandle) {
        let category = self::domain(domain)?;
        let counter = |name| ProfileObject::Counter { category, name, value: ForkSafeMutex::new(0) };
        give(counter, (counter_name, "counter_name"), out)
    }

    /// Frees an object. What it recorded stays.
    fn MXProfileDestroyHandle(frame_handle: ProfileHandle) {
        free::<ProfileObject>(frame_handle)
    }

    /// A task, frame or event begins.
    fn MXProfileDurationStart(duration_handle: ProfileHandle) {
        let object = get::<ProfileObject>(duration_handle)?;
        let ProfileObject::Duration { began, .. } = &*object else {
            return Err(wrong(&object, "a task, a frame or an event"));
        };
        *began.lock() = Some(profile::now_micros());
        Ok(())
    }

    /// Ends the duration. Without a beginning nothing happens.
    fn MXProfileDurationStop(duration_handle: ProfileHandle) {
        let object = get::<ProfileObject>(duration_handle)?;
        let ProfileObject::Duration { category, name, began } = &*object else {
            return Err(wrong(&object, "a task, a frame or an event"));
        };
        let Some(start) = began.lock().take() else { return Ok(()) };
        if profile::is_on() {
            let time = profile::now_micros() - start;
            record(category, name, 'X', start, ("dur", json!(profile::rounded(time))));
            with_recorded(|recorded| {
                let key = (category.clone(), name.clone());
                let (count, total, min, max) = recorded.totals.entry(key).or_insert((0, 0.0, time, time));
                (*count, *total, *min, *max) = (*count + 1, *total + time, min.min(time), max.max(time));
            });
        }
        Ok(())
    }

    /// The number is this now.
    fn MXProfileSetCounter(counter_handle: ProfileHandle, value: u64) {
        count(counter_handle, |_| value)
    }

    /// Adds to the number.
    fn MXProfileAdjustCounter(counter_handle: ProfileHandle, value: i64) {
        count(counter_handle, |before| before.wrapping_add_signed(value))
    }

    /// A moment. `scope`: global, process, thread, task or marker.
    fn MXProfileSetMarker(domain: ProfileHandle, instant_marker_name: *const c_char, scope: *const c_char) {
        let domain = self::domain(domain)?;
        let name = text(instant_marker_name, "instant_marker_name")?;
        let scope = match text(scope, "scope")? {
            "global" => 'g',
            "process" => 'p',
            "thread" | "task" | "marker" => 't',
            other => {
                return Err(Error::value(format!(
                    "the argument scope is '{other}'; expected global, process, thread, task or marker"
                )));
            }
        };
        record(&domain, name, 'i', profile::now_micros(), ("s", json!(scope)));
        Ok(())
    }
}
