//! How many requests, and how many bytes of them, may be held: of all models, and of each.

use crate::refusal::{Outcome, Refusal};
use hyper::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The bounds, and what is held now.
#[derive(Debug)]
pub(crate) struct Queue {
    /// what messages call it
    name: String,
    max_requests: usize,
    max_bytes: usize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
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
        Held { queue: self.clone(), of_model: None, bytes: 0, place: false }
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

/// What one request holds of the queues, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    queue: Arc<Queue>,
    of_model: Option<Arc<Queue>>,
    bytes: usize,
    place: bool,
}

impl Queue {
    fn add_bytes(&self, bytes: usize) -> Result<(), Refusal> {
        if add(&self.bytes, bytes, self.max_bytes) { Ok(()) } else { Err(self.full("bytes", self.max_bytes)) }
    }

    fn admit(&self) -> Result<(), Refusal> {
        if add(&self.requests, 1, self.max_requests) { Ok(()) } else { Err(self.full("requests", self.max_requests)) }
    }
}

impl Held {
    /// Holds of the model's queue too from now on, and there what is held already.
    pub(crate) fn of_model(&mut self, queue: &Arc<Queue>) -> Result<(), Refusal> {
        queue.add_bytes(self.bytes)?;
        self.of_model = Some(queue.clone());
        Ok(())
    }

    /// Holds more bytes.
    pub(crate) fn add_bytes(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.queue.add_bytes(bytes)?;
        if let Some(Err(refusal)) = self.of_model.as_ref().map(|queue| queue.add_bytes(bytes)) {
            self.queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(refusal);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Takes a place among those that wait or compute.
    pub(crate) fn admit(&mut self) -> Result<(), Refusal> {
        self.queue.admit()?;
        if let Some(Err(refusal)) = self.of_model.as_ref().map(|queue| queue.admit()) {
            self.queue.requests.fetch_sub(1, Ordering::Relaxed);
            return Err(refusal);
        }
        self.place = true;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for queue in [Some(&self.queue), self.of_model.as_ref()].into_iter().flatten() {
            queue.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            if self.place {
                queue.requests.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_bytes_are_bounded_and_come_back() {
        let queue = Queue::new("the queue", 2, 100);
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
        let queue = Queue::new("the queue", 0, 0);
        assert_eq!(queue.check().expect_err("full").retry_after, Some(1));
        for _ in 0..100 {
            queue.took(Duration::from_secs(3));
        }
        assert_eq!(queue.check().expect_err("full").retry_after, Some(3));
    }

    #[test]
    fn a_model_has_bounds_of_its_own() {
        let (all, model) = (Queue::new("the queue", 10, 1000), Queue::new("the queue of 'm'", 1, 50));
        let mut first = all.receive();
        first.add_bytes(30).expect("room");
        first.of_model(&model).expect("room");
        first.admit().expect("a place");
        let refused = first.add_bytes(21).expect_err("more than the model may have");
        assert!(refused.message.starts_with("the queue of 'm' is full (50 bytes)"), "{}", refused.message);
        let mut second = all.receive();
        second.of_model(&model).expect("room");
        assert!(second.admit().is_err());
        assert_eq!((all.requests(), all.bytes(), model.requests(), model.bytes()), (1, 30, 1, 30));
        let mut late = all.receive();
        late.add_bytes(21).expect("room");
        assert!(late.of_model(&model).is_err(), "what is held already counts");
        drop((first, second, late));
        assert_eq!((all.requests(), all.bytes(), model.requests(), model.bytes()), (0, 0, 0, 0));
    }
}
