//! The profiler: recording operators, and what was recorded.

use crate::border::{Error, c_functions};
use crate::pointers::{count, put, texts};
use crate::returned;
use crate::runtime::engine;
use mxrt::{ForkSafeMutex, profile};
use std::ffi::{c_char, c_int, c_void};
use std::sync::LazyLock;

/// Where `MXDumpProfile` writes.
static FILE: LazyLock<ForkSafeMutex<String>> = LazyLock::new(|| ForkSafeMutex::new("profile.json".to_owned()));

/// Settings of MXNet's profiler. Only `filename` changes something: operators are what is recorded.
const SETTINGS: [&str; 12] = [
    "filename",
    "profile_all",
    "profile_symbolic",
    "profile_imperative",
    "profile_memory",
    "profile_api",
    "profile_process",
    "continuous_dump",
    "dump_period",
    "aggregate_stats",
    "contiguous_dump",
    "gpu_memory_profile_filename_prefix",
];

/// # Safety
/// `number` texts each.
unsafe fn configure(number: c_int, keys: *const *const c_char, vals: *const *const c_char) -> Result<(), Error> {
    let number = count(number, "num_params")?;
    // SAFETY: contract.
    let (keys, vals) = unsafe { (texts(keys, number, "keys")?, texts(vals, number, "vals")?) };
    if let Some(key) = keys.iter().find(|key| !SETTINGS.contains(key)) {
        return Err(Error::value(format!("{key} is no setting of the profiler; they are {}", SETTINGS.join(", "))));
    }
    if let Some((_, name)) = keys.iter().zip(vals).find(|(key, _)| **key == "filename") {
        name.clone_into(&mut *FILE.lock());
    }
    Ok(())
}

fn switch(state: c_int) -> Result<(), Error> {
    match state {
        0 | 1 => profile::set_on(state == 1),
        other => return Err(Error::value(format!("the argument state is {other}; expected 0 (stop) or 1 (run)"))),
    }
    Ok(())
}

/// Writes what was recorded in the form of Chrome's traces. `finished`: recording ends, and what
/// was written is forgotten.
fn dump(finished: c_int) -> Result<(), Error> {
    if finished != 0 {
        profile::set_on(false);
        engine()?.wait_for_devices(&mut || true)?;
    }
    let mut events = profile::snapshot(finished != 0).trace_events();
    events.extend(crate::profiler_objects::events(finished != 0));
    let body = events.join(",\n");
    let content = format!("{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{body}\n]}}\n");
    let file = FILE.lock().clone();
    Ok(mxrt::io::write_file(file, content.as_bytes()).map_err(mxrt::io::DataError::from)?)
}

/// Times by operator, then by domain of the program's own objects, in milliseconds. `sort_by`: 0
/// total, 1 average, 2 shortest, 3 longest, 4 number.
fn table(reset: bool, sort_by: c_int, ascending: bool) -> Result<String, Error> {
    if !(0..=4).contains(&sort_by) {
        return Err(Error::value(format!("the argument sort_by is {sort_by}; expected 0 to 4")));
    }
    let key = |total: &profile::Total| match sort_by {
        1 => total.total / total.count as f64,
        2 => total.min,
        3 => total.max,
        4 => total.count as f64,
        _ => total.total,
    };
    let mut text = String::from("\nProfile Statistics:\n");
    let operators = ("operator".to_owned(), profile::snapshot(reset).totals());
    for (title, mut rows) in std::iter::once(operators).chain(crate::profiler_objects::totals(reset)) {
        rows.sort_by(|a, b| if ascending { key(a).total_cmp(&key(b)) } else { key(b).total_cmp(&key(a)) });
        text += &format!(
            "{title}\n=================\n{:<25}{:>16} {:>16} {:>16} {:>16} {:>16}\n",
            "Name", "Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"
        );
        for row in rows {
            let (total, min, max) = (row.total / 1e3, row.min / 1e3, row.max / 1e3);
            let average = total / row.count as f64;
            let (name, number) = (row.name, row.count);
            text += &format!("{name:<25}{number:>16} {total:>16.4} {min:>16.4} {max:>16.4} {average:>16.4}\n");
        }
    }
    Ok(text)
}

c_functions! {
    /// Settings of the profiler: `filename` is where `MXDumpProfile` writes.
    fn MXSetProfilerConfig(num_params: c_int, keys: *const *const c_char, vals: *const *const c_char) {
        configure(num_params, keys, vals)
    }

    /// As `MXSetProfilerConfig`; there are no servers.
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

    /// As `MXSetProfilerState`; there are no servers.
    fn MXSetProcessProfilerState(state: c_int, profile_process: c_int, kv_store: *mut c_void) {
        let _ = (profile_process, kv_store);
        switch(state)
    }

    /// Writes what was recorded to the file.
    fn MXDumpProfile(finished: c_int) {
        dump(finished)
    }

    /// As `MXDumpProfile`; there are no servers.
    fn MXDumpProcessProfile(finished: c_int, profile_process: c_int, kv_store: *mut c_void) {
        let _ = (profile_process, kv_store);
        dump(finished)
    }

    /// Ends (1) or begins (0) recording.
    fn MXProfilePause(paused: c_int) {
        switch(c_int::from(paused == 0))
    }

    /// As `MXProfilePause`; there are no servers.
    fn MXProcessProfilePause(paused: c_int, profile_process: c_int, kv_store: *mut c_void) {
        let _ = (profile_process, kv_store);
        switch(c_int::from(paused == 0))
    }

    /// Times by operator as a table, in memory that belongs to the thread.
    fn MXAggregateProfileStatsPrint(out_str: *mut *const c_char, reset: c_int) {
        put(out_str, returned::text(table(reset != 0, 0, false)?)?, "out_str")
    }

    /// As `MXAggregateProfileStatsPrint`, sorted. `format` must be 0, a table.
    fn MXAggregateProfileStatsPrintEx(
        out_str: *mut *const c_char,
        reset: c_int,
        format: c_int,
        sort_by: c_int,
        ascending: c_int,
    ) {
        if format != 0 {
            return Err(Error::absent(format!("the argument format is {format}: only 0, a table, is part of mxrt")));
        }
        put(out_str, returned::text(table(reset != 0, sort_by, ascending != 0)?)?, "out_str")
    }
}
