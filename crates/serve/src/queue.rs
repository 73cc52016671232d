//! How many requests, and how many bytes of them, may be held. The order is the engine's, which
//! takes the highest priority first and then the oldest.

use crate::refusal::{Outcome, Refusal};
use hyper::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The bounds, and what is held now.
#[derive(Debug)]
pub(crate) struct Queue {
    max_requests: usize,
    max_bytes: usize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// lately, from admission to result, in microseconds
    usual_micros: AtomicU64,
}

impl Queue {
    pub(crate) fn new(max_requests: usize, max_bytes: usize) -> Arc<Queue> {
        Arc::new(Queue {
            max_requests,
            max_bytes,
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            usual_micros: AtomicU64::new(0),
        })
    }

    /// Requests that wait or compute.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Bytes of request bodies.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Refuses now what would be refused when its body is here.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.requests() < self.max_requests { Ok(()) } else { Err(self.full("requests", self.max_requests)) }
    }

    /// A request whose body is still to come: it holds bytes, but no place.
    pub(crate) fn receive(self: &Arc<Queue>) -> Held {
        Held { queue: self.clone(), bytes: 0, place: false }
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
        let message = format!("the queue is full ({limit} {what}): try again in {seconds} s, or another server");
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, Outcome::Rejected, message).retry_after(seconds)
    }
}

fn add(counter: &AtomicUsize, amount: usize, limit: usize) -> bool {
    let grown = |now: usize| now.checked_add(amount).filter(|sum| *sum <= limit);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
}

/// What one request holds of the queue, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    queue: Arc<Queue>,
    bytes: usize,
    place: bool,
}

impl Held {
    /// Holds more bytes.
    pub(crate) fn add_bytes(&mut self, bytes: usize) -> Result<(), Refusal> {
        if !add(&self.queue.bytes, bytes, self.queue.max_bytes) {
            return Err(self.queue.full("bytes", self.queue.max_bytes));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Takes a place among those that wait or compute.
    pub(crate) fn admit(&mut self) -> Result<(), Refusal> {
        if !add(&self.queue.requests, 1, self.queue.max_requests) {
            return Err(self.queue.full("requests", self.queue.max_requests));
        }
        self.place = true;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.queue.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.place {
            self.queue.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_bytes_are_bounded_and_come_back() {
        let queue = Queue::new(2, 100);
        let mut first = queue.receive();
        first.add_bytes(60).expect("room");
        first.admit().expect("a place");
        let mut second = queue.receive();
        let refused = second.add_bytes(41).expect_err("more than there is");
        assert_eq!((refused.status.as_u16(), refused.outcome), (429, Outcome::Rejected));
        assert!(second.add_bytes(usize::MAX).is_err(), "the sum does not wrap");
        second.add_bytes(40).expect("room");
        second.admit().expect("a place");
        assert!(queue.check().is_err());
        let mut third = queue.receive();
        assert!(third.admit().is_err());
        drop(third);
        assert_eq!((queue.requests(), queue.bytes()), (2, 100));
        drop((first, second));
        assert_eq!((queue.requests(), queue.bytes()), (0, 0));
    }

    #[test]
    fn the_time_to_wait_follows_how_long_requests_take() {
        let queue = Queue::new(0, 0);
        assert_eq!(queue.check().expect_err("full").retry_after, Some(1));
        for _ in 0..100 {
            queue.took(Duration::from_secs(3));
        }
        assert_eq!(queue.check().expect_err("full").retry_after, Some(3));
    }
}
