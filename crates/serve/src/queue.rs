//! How many requests, and how many bytes of them, may be held: of all models, and of each.

use crate::refusal::{Outcome, Refusal};
use hyper::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The bounds, and what is held now. Requests hold of it by an [`crate::account::Account`].
#[derive(Debug)]
pub(crate) struct Queue {
    /// what messages call it
    name: String,
    max_requests: usize,
    max_bytes: usize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// most bytes since it was asked for them
    peak: AtomicUsize,
    /// lately, from admission to result, in microseconds
    usual_micros: AtomicU64,
}

impl Queue {
    pub(crate) fn new(name: impl Into<String>, max_requests: usize, max_bytes: usize) -> Arc<Queue> {
        Arc::new(Queue {
            name: name.into(),
            max_requests,
            max_bytes,
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            usual_micros: AtomicU64::new(0),
        })
    }

    /// Requests that wait or compute.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Bytes that requests hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Refuses now what would be refused when its body is here.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.requests() < self.max_requests { Ok(()) } else { Err(self.full("requests", self.max_requests)) }
    }

    pub(crate) fn add_bytes(&self, bytes: usize) -> Result<(), Refusal> {
        if !add(&self.bytes, bytes, self.max_bytes) {
            return Err(self.full("bytes", self.max_bytes));
        }
        self.peak.fetch_max(self.bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// The most bytes that were held since this was called last.
    pub(crate) fn take_peak(&self) -> usize {
        self.peak.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn remove_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self) -> Result<(), Refusal> {
        if add(&self.requests, 1, self.max_requests) { Ok(()) } else { Err(self.full("requests", self.max_requests)) }
    }

    pub(crate) fn leave(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Learns how long a request took, for `Retry-After`.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let before = self.usual_micros.load(Ordering::Relaxed);
        self.usual_micros.store(before - before / 8 + micros / 8, Ordering::Relaxed);
    }

    fn full(&self, what: &str, limit: usize) -> Refusal {
        // What is admitted last waits for all others, so its time is the time for a full queue.
        let seconds = self.usual_micros.load(Ordering::Relaxed).div_ceil(1_000_000).max(1);
        let message = format!("{} is full ({limit} {what}): try again in {seconds} s, or another server", self.name);
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, Outcome::Rejected, message).retry_after(seconds)
    }
}

fn add(counter: &AtomicUsize, amount: usize, limit: usize) -> bool {
    let grown = |now: usize| now.checked_add(amount).filter(|sum| *sum <= limit);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_follows_how_long_requests_take() {
        let queue = Queue::new("the queue", 0, 0);
        assert_eq!(queue.check().expect_err("full").retry_after, Some(1));
        for _ in 0..100 {
            queue.took(Duration::from_secs(3));
        }
        assert_eq!(queue.check().expect_err("full").retry_after, Some(3));
    }
}
