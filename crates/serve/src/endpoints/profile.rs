//! Profiles of the engine over some seconds, on the port for operators.

use super::call::{EndpointCall, number};
use crate::answer::Answer;
use crate::background::JobKind;
use crate::refusal::{Cause, Refusal};
use mxrt_engine::profile;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Default and maximum length of a profile, in seconds.
const USUAL: f64 = 10.0;
const MOST: f64 = 60.0;

/// Whether a profile is being taken. The process has only one profiler.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Running profiler. It is switched off when this is dropped, also when the client goes away.
struct Profiling;

impl Profiling {
    fn begin() -> Result<Profiling, Refusal> {
        let refused = |words: &str| Refusal::new(Cause::InUse, words);
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(refused("another profile is being taken: ask again when it has ended"));
        }
        if profile::is_on() {
            TAKEN.store(false, Ordering::SeqCst);
            return Err(refused("the program's own profiler is on: mxrt.profiler.set_state('stop') ends it"));
        }
        drop(profile::snapshot(true));
        profile::set_on(true);
        Ok(Profiling)
    }
}

impl Drop for Profiling {
    fn drop(&mut self) {
        profile::set_on(false);
        TAKEN.store(false, Ordering::SeqCst);
    }
}

/// Answers with a profile of the next seconds (`?seconds=10`), in the trace format of Chrome and
/// Perfetto.
pub(super) async fn answer(call: EndpointCall) -> Result<Answer, Refusal> {
    let seconds = number(&call.request, "seconds", USUAL, 0.0..=MOST)?;
    let profiling = Profiling::begin()?;
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let text = call.shared.service.background.run(JobKind::Looking, None, move || {
        let found = profile::snapshot(true);
        drop(profiling);
        Ok(format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", found.trace_events().join(",\n")))
    });
    Ok(Answer::text(text.await?.into_bytes(), "application/json"))
}
