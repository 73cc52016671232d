//! Bounds on the number and bytes of requests, of all models and of each.

use crate::refusal::{Cause, Refusal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bounds, and the amounts that are held now. Requests hold them by an [`crate::account::Account`].
#[derive(Debug)]
pub(crate) struct Queue {
    /// name in messages
    name: String,
    max_requests: usize,
    max_bytes: usize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// most bytes that were held since the last call of `take_peak`
    peak: AtomicUsize,
    /// recent average time from admission to result, in microseconds
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

    /// Returns the number of requests that wait or compute.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the bytes that requests hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Refuses a request if the queue is full. Callers check this before they read its body.
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

    /// Returns the most bytes that were held since the last call.
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

    /// Adds the time of a request to the average, which `Retry-After` uses.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let before = self.usual_micros.load(Ordering::Relaxed);
        self.usual_micros.store(before - before / 8 + micros / 8, Ordering::Relaxed);
    }

    fn full(&self, what: &str, limit: usize) -> Refusal {
        // The last admitted request waits for all others, so its time is the time for a full queue.
        let seconds = self.usual_micros.load(Ordering::Relaxed).div_ceil(1_000_000).max(1);
        let message = format!("{} is full ({limit} {what}): try again in {seconds} s, or another server", self.name);
        Refusal::new(Cause::Full, message).retry_after(seconds)
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
