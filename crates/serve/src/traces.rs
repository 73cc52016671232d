//! Spans of requests, kept until an exporter takes them for an OpenTelemetry collector.

use crate::refusal::Outcome;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Largest number of kept spans. Later ones are dropped and counted.
const MOST: usize = 8192;

/// Span of a request that has ended. Times are nanoseconds since 1970.
#[derive(Clone, Debug)]
pub struct Span {
    /// id of the trace
    pub trace: u128,
    /// id of the span
    pub number: u64,
    /// id of the client's span, if the client gave one
    pub parent: Option<u64>,
    /// arrival of the head
    pub began: u64,
    /// start and end of waiting for a permit and computing; none if that was not reached
    pub computed: Option<(u64, u64)>,
    /// end of the request
    pub ended: u64,
    /// name and version of the model; empty if the request named no existing one
    pub model: (String, String),
    /// name of the outcome
    pub outcome: &'static str,
}

/// Trace of a request whose span is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    trace: u128,
    parent: Option<u64>,
}

/// Times of a request: its start, and the start and end of its computation.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) began: Instant,
    pub(crate) computed: Option<(Instant, Instant)>,
}

/// Spans of a server.
pub(crate) struct Traces {
    on: bool,
    waiting: Mutex<VecDeque<Span>>,
    lost: AtomicU64,
    numbers: AtomicU64,
    keys: RandomState,
}

impl Traces {
    pub(crate) fn new(on: bool) -> Traces {
        let (lost, numbers) = (AtomicU64::new(0), AtomicU64::new(0));
        Traces { on, waiting: Mutex::default(), lost, numbers, keys: RandomState::new() }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a new random id, which is not 0.
    fn number(&self) -> u64 {
        self.keys.hash_one(self.numbers.fetch_add(1, Ordering::Relaxed)).max(1)
    }

    /// Reads the header `traceparent` of W3C Trace Context. Returns `None` if spans are off, or if
    /// the client does not sample this trace. A request without a valid header begins a new trace.
    pub(crate) fn of(&self, header: Option<&str>) -> Option<Traced> {
        if !self.on {
            return None;
        }
        match header.and_then(parent) {
            Some((trace, parent, true)) => Some(Traced { trace, parent: Some(parent) }),
            Some((.., false)) => None,
            None => Some(Traced { trace: u128::from(self.number()) << 64 | u128::from(self.number()), parent: None }),
        }
    }

    /// Records the span of a request that ends now.
    pub(crate) fn end(&self, of: Traced, times: Times, model: Option<(&str, &str)>, outcome: Outcome) {
        let (now, ended) = (Instant::now(), since_1970(SystemTime::now()));
        let at = |time: Instant| ended.saturating_sub(nanos(now.saturating_duration_since(time)));
        let (name, version) = model.unwrap_or_default();
        let span = Span {
            trace: of.trace,
            number: self.number(),
            parent: of.parent,
            began: at(times.began),
            computed: times.computed.map(|(from, to)| (at(from), at(to))),
            ended,
            model: (name.to_owned(), version.to_owned()),
            outcome: outcome.name(),
        };
        let mut waiting = self.waiting();
        if waiting.len() < MOST {
            waiting.push_back(span);
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes all kept spans.
    pub(crate) fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.waiting()).into()
    }

    /// Returns the number of dropped spans; `None` if spans are off.
    pub(crate) fn lost(&self) -> Option<u64> {
        self.on.then(|| self.lost.load(Ordering::Relaxed))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn since_1970(time: SystemTime) -> u64 {
    nanos(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Parses a header to the ids of its trace and span, and whether the trace is sampled.
fn parent(header: &str) -> Option<(u128, u64, bool)> {
    let mut parts = header.trim().split('-');
    let mut hex = |digits: usize| {
        let lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        parts.next().filter(|part| part.len() == digits && part.bytes().all(lower))
    };
    let version = hex(2)?;
    let (trace, span, flags) = (hex(32)?, hex(16)?, hex(2)?);
    // Later versions may have more parts.
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()? & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_a_span_belongs_to() {
        let traces = Traces::new(true);
        let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let traced = traces.of(Some(header)).expect("it is recorded");
        assert_eq!((traced.trace, traced.parent), (0x0af7651916cd43dd8448eb211c80319c, Some(0xb7ad6b7169203331)));
        assert_eq!(traces.of(Some(&header.replace("-01", "-00"))), None, "the client does not record it");
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            let traced = traces.of(Some(wrong)).expect("it begins a trace");
            assert_eq!(traced.parent, None, "{wrong}");
        }
        assert_ne!(traces.of(None), traces.of(None));
        assert_eq!(Traces::new(false).of(Some(header)), None);
    }

    #[test]
    fn spans_wait_for_who_takes_them_and_no_more_than_a_bound() {
        let traces = Traces::new(true);
        let traced = traces.of(None).expect("it is recorded");
        let times = Times { began: Instant::now(), computed: None };
        for _ in 0..MOST + 3 {
            traces.end(traced, times, Some(("m", "1")), Outcome::Success);
        }
        assert_eq!(traces.lost(), Some(3));
        let taken = traces.take();
        assert_eq!(taken.len(), MOST);
        assert!(taken.iter().all(|span| span.began <= span.ended && span.trace == traced.trace));
        assert!(traces.take().is_empty());
    }
}
