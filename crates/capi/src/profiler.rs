//! The profiler: recording operators, and what was recorded.

use crate::border::{Error, c_functions};
use crate::pointers::{count, distinct, put, texts};
use crate::returned::{self, ResultPlace};
use crate::runtime::engine;
use mxrt::internal::{ForkSafeMutex, profile};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// The file that `MXDumpProfile` writes.
static FILE: ForkSafeMutex<Cow<'static, str>> = ForkSafeMutex::new(Cow::Borrowed("profile.json"));

/// Whether recording was begun and not ended; a pause does not change it.
static RUNS: AtomicBool = AtomicBool::new(false);

/// The values that a setting has.
#[derive(Clone, Copy)]
enum Setting {
    Text,
    Boolean,
    Number,
}

/// Settings of MXNet's profiler. Only `filename` changes something: operators are what is recorded.
const SETTINGS: [(&str, Setting); 12] = [
    ("filename", Setting::Text),
    ("profile_all", Setting::Boolean),
    ("profile_symbolic", Setting::Boolean),
    ("profile_imperative", Setting::Boolean),
    ("profile_memory", Setting::Boolean),
    ("profile_api", Setting::Boolean),
    ("profile_process", Setting::Boolean),
    ("continuous_dump", Setting::Boolean),
    ("dump_period", Setting::Number),
    ("aggregate_stats", Setting::Boolean),
    ("contiguous_dump", Setting::Boolean),
    ("gpu_memory_profile_filename_prefix", Setting::Text),
];

/// Checks a setting: its name, and that its value is of its type.
fn check_setting(key: &str, value: &str) -> Result<(), Error> {
    let Some((_, setting)) = SETTINGS.iter().find(|(name, _)| *name == key) else {
        let names = SETTINGS.map(|(name, _)| name).join(", ");
        return Err(Error::value(format!("{key} is no setting of the profiler; they are {names}")));
    };
    let wanted = match setting {
        Setting::Boolean if !["0", "1", "true", "false", "True", "False"].contains(&value) => "boolean",
        Setting::Number if value.parse::<f64>().is_err() => "float",
        _ => return Ok(()),
    };
    Err(Error::value(format!("Invalid Parameter format for {key} expect {wanted} but value='{value}'")))
}

/// # Safety
/// `number` texts each.
unsafe fn configure(number: c_int, keys: *const *const c_char, vals: *const *const c_char) -> Result<(), Error> {
    let number = count(number, "num_params")?;
    // SAFETY: contract.
    let (keys, vals) = unsafe { (distinct(keys, number, "keys")?, texts(vals, number, "vals")?) };
    keys.iter().zip(&vals).try_for_each(|(key, value)| check_setting(key, value))?;
    if let Some((_, name)) = keys.iter().zip(vals).find(|(key, _)| **key == "filename") {
        *FILE.lock() = Cow::Owned(name.to_owned());
    }
    Ok(())
}

fn switch(state: c_int) -> Result<(), Error> {
    match state {
        0 | 1 => {
            RUNS.store(state == 1, Ordering::Relaxed);
            profile::set_on(state == 1);
        }
        other => return Err(Error::value(format!("the argument state is {other}; expected 0 (stop) or 1 (run)"))),
    }
    Ok(())
}

/// Interrupts recording, or continues it where it was begun.
fn pause(paused: bool) {
    if paused || RUNS.load(Ordering::Relaxed) {
        profile::set_on(!paused);
    }
}

/// Writes what was recorded in the form of Chrome's traces. `finished`: recording ends, and what
/// was written is forgotten.
fn dump(finished: c_int) -> Result<(), Error> {
    if finished != 0 {
        RUNS.store(false, Ordering::Relaxed);
        profile::set_on(false);
        engine()?.wait_for_devices(&mut || true)?;
    }
    let mut events = profile::snapshot(finished != 0).trace_events();
    events.extend(crate::profiler_objects::events(finished != 0));
    let body = events.join(",\n");
    let content = format!("{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{body}\n]}}\n");
    let file = FILE.lock().clone();
    Ok(mxrt::internal::io::write_file(&*file, content.as_bytes()).map_err(mxrt::internal::io::DataError::from)?)
}

/// The order of rows.
#[derive(Clone, Copy)]
struct Order {
    by: fn(&profile::Total) -> f64,
    ascending: bool,
}

impl Order {
    /// `sort_by`: 0 total, 1 average, 2 shortest, 3 longest, 4 number.
    fn new(sort_by: c_int, ascending: bool) -> Result<Order, Error> {
        let by: fn(&profile::Total) -> f64 = match sort_by {
            0 => |total| total.total,
            1 => |total| total.total / total.count as f64,
            2 => |total| total.min,
            3 => |total| total.max,
            4 => |total| total.count as f64,
            _ => return Err(Error::value(format!("the argument sort_by is {sort_by}; expected 0 to 4"))),
        };
        Ok(Order { by, ascending })
    }

    fn sort(self, rows: &mut [profile::Total]) {
        let Order { by, ascending } = self;
        rows.sort_by(|a, b| if ascending { by(a).total_cmp(&by(b)) } else { by(b).total_cmp(&by(a)) });
    }
}

/// Times under a title.
type Table = (String, Vec<profile::Total>);

/// Times by operator, then by domain of the program's own objects.
fn tables(reset: bool, order: Order) -> Vec<Table> {
    let operators = ("operator".to_owned(), profile::snapshot(reset).totals());
    let mut tables: Vec<Table> = std::iter::once(operators).chain(crate::profiler_objects::totals(reset)).collect();
    tables.iter_mut().for_each(|(_, rows)| order.sort(rows));
    tables
}

/// Number of calls; milliseconds in all, of the shortest, of the longest, and on average.
fn columns(row: &profile::Total) -> (u64, [f64; 4]) {
    let total = row.total / 1e3;
    (row.count, [total, row.min / 1e3, row.max / 1e3, total / row.count as f64])
}

fn table(tables: &[Table]) -> String {
    let mut text = String::from("\nProfile Statistics:\n");
    for (title, rows) in tables {
        text += &format!(
            "{title}\n=================\n{:<25}{:>16} {:>16} {:>16} {:>16} {:>16}\n",
            "Name", "Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"
        );
        for row in rows {
            let (number, [total, min, max, average]) = columns(row);
            text += &format!("{:<25}{number:>16} {total:>16.4} {min:>16.4} {max:>16.4} {average:>16.4}\n", row.name);
        }
    }
    text
}

/// Formats the tables as MXNet's JSON. Memory is not recorded.
fn json(tables: &[Table]) -> String {
    let row = |row: &profile::Total| {
        let (number, [total, min, max, average]) = columns(row);
        (row.name.clone(), json!({ "Count": number, "Total": total, "Min": min, "Max": max, "Avg": average }))
    };
    let table = |(title, rows): &Table| (title.clone(), Value::Object(rows.iter().map(row).collect()));
    let times: Map<String, Value> = tables.iter().map(table).collect();
    let all = json!({ "Time": times, "Memory": {}, "Unit": { "Time": "ms", "Memory": "kB" } });
    format!("{all:#}\n")
}

/// Times in a form: 0, a table, or 1, JSON.
fn totals(reset: bool, format: c_int, order: Order) -> Result<String, Error> {
    let write = match format {
        0 => table,
        1 => json,
        _ => return Err(Error::value(format!("the argument format is {format}; expected 0 (table) or 1 (JSON)"))),
    };
    Ok(write(&tables(reset, order)))
}

c_functions! {
    /// Settings of the profiler: `filename` is where `MXDumpProfile` writes.
    fn MXSetProfilerConfig(num_params: c_int, keys: *const *const c_char, vals: *const *const c_char) {
        configure(num_params, keys, vals)
    }

    /// Variant of `MXSetProfilerConfig`; there are no servers.
    fn MXSetProcessProfilerConfig(
        num_params: c_int,
        keys: *const *const c_char,
        vals: *const *const c_char,
        kv_store: *mut c_void,
    ) {
        let _ = kv_store;
        configure(num_params, keys, vals)
    }

    /// Begins (1) or ends (0) recording.
    fn MXSetProfilerState(state: c_int) {
        switch(state)
    }

    /// Variant of `MXSetProfilerState`; there are no servers.
    fn MXSetProcessProfilerState(state: c_int, profile_process: c_int, kv_store: *mut c_void) {
        let _ = (profile_process, kv_store);
        switch(state)
    }

    /// Writes what was recorded to the file.
    fn MXDumpProfile(finished: c_int) {
        dump(finished)
    }

    /// Variant of `MXDumpProfile`; there are no servers.
    fn MXDumpProcessProfile(finished: c_int, profile_process: c_int, kv_store: *mut c_void) {
        let _ = (profile_process, kv_store);
        dump(finished)
    }

    /// Interrupts recording (1), or continues (0) what `MXSetProfilerState` began.
    fn MXProfilePause(paused: c_int) {
        pause(paused != 0);
        Ok(())
    }

    /// Variant of `MXProfilePause`; there are no servers.
    fn MXProcessProfilePause(paused: c_int, profile_process: c_int, kv_store: *mut c_void) {
        let _ = (profile_process, kv_store);
        pause(paused != 0);
        Ok(())
    }

    /// Times by operator as a table, in memory that belongs to the thread.
    fn MXAggregateProfileStatsPrint(out_str: *mut *const c_char, reset: c_int) {
        let text = totals(reset != 0, 0, Order::new(0, false)?)?;
        put(out_str, returned::text(ResultPlace::of("MXAggregateProfileStatsPrint"), text)?, "out_str")
    }

    /// Variant of `MXAggregateProfileStatsPrint` with sorting. `format`: 0 a table, 1 JSON.
    fn MXAggregateProfileStatsPrintEx(
        out_str: *mut *const c_char,
        reset: c_int,
        format: c_int,
        sort_by: c_int,
        ascending: c_int,
    ) {
        let text = totals(reset != 0, format, Order::new(sort_by, ascending != 0)?)?;
        put(out_str, returned::text(ResultPlace::of("MXAggregateProfileStatsPrintEx"), text)?, "out_str")
    }
}
