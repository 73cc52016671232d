//! Accounts: the bytes and the place in the queues that one request holds. See ACCOUNTING.md.

use crate::holds::Kept;
use crate::queue::Queue;
use crate::refusal::Refusal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Account of one request. Everything that works for the request, or keeps bytes of it, holds a
/// clone. The last clone that is dropped returns all bytes and the place to the queues.
#[derive(Clone, Debug)]
pub(crate) struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: Arc<Queue>,
    held: Mutex<Charges>,
}

#[derive(Debug, Default)]
struct Charges {
    of_model: Option<Arc<Queue>>,
    bytes: usize,
    place: bool,
}

impl Inner {
    fn held(&self) -> MutexGuard<'_, Charges> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let held = std::mem::take(self.held.get_mut().unwrap_or_else(PoisonError::into_inner));
        for queue in [Some(&self.queue), held.of_model.as_ref()].into_iter().flatten() {
            queue.remove_bytes(held.bytes);
            if held.place {
                queue.leave();
            }
        }
    }
}

impl Kept for Account {}

impl Account {
    /// Opens an account that holds nothing yet.
    pub(crate) fn open(queue: &Arc<Queue>) -> Account {
        Account(Arc::new(Inner { queue: queue.clone(), held: Mutex::default() }))
    }

    /// Charges the model's queue as well from now on, beginning with what the account holds
    /// already.
    pub(crate) fn of_model(&self, queue: &Arc<Queue>) -> Result<(), Refusal> {
        let mut held = self.0.held();
        if held.of_model.is_some() {
            return Ok(());
        }
        queue.add_bytes(held.bytes)?;
        if held.place
            && let Err(refusal) = queue.enter()
        {
            queue.remove_bytes(held.bytes);
            return Err(refusal);
        }
        held.of_model = Some(queue.clone());
        Ok(())
    }

    /// Charges bytes that the request keeps until it ends.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), Refusal> {
        let mut held = self.0.held();
        self.0.queue.add_bytes(bytes)?;
        if let Some(Err(refusal)) = held.of_model.as_ref().map(|queue| queue.add_bytes(bytes)) {
            self.0.queue.remove_bytes(bytes);
            return Err(refusal);
        }
        held.bytes += bytes;
        Ok(())
    }

    /// Charges bytes until the returned [`Charge`] is dropped.
    pub(crate) fn charge(&self, bytes: usize) -> Result<Charge, Refusal> {
        self.add(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Takes a place among the requests that wait or compute, unless the account has one already.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        let mut held = self.0.held();
        if held.place {
            return Ok(());
        }
        self.0.queue.enter()?;
        if let Some(Err(refusal)) = held.of_model.as_ref().map(|queue| queue.enter()) {
            self.0.queue.leave();
            return Err(refusal);
        }
        held.place = true;
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        let mut held = self.0.held();
        held.bytes -= bytes;
        for queue in [Some(&self.0.queue), held.of_model.as_ref()].into_iter().flatten() {
            queue.remove_bytes(bytes);
        }
    }
}

/// Bytes that an account holds until this charge is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Account,
    bytes: usize,
}

impl Charge {
    /// Returns the account that pays.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Charges more bytes.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.account.add(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Moves this many bytes to the account, which holds them until the request ends: an array has
    /// them now.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Returns all bytes except this many.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let left = self.bytes.min(bytes);
        self.account.give_back(self.bytes - left);
        self.bytes = left;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::{Cause, Outcome};

    fn open(queue: &Arc<Queue>) -> Account {
        Account::open(queue)
    }

    #[test]
    fn places_and_bytes_are_bounded_and_come_back() {
        let queue = Queue::new("the queue", 2, 100);
        let first = open(&queue);
        first.add(60).expect("room");
        first.admit().expect("a place");
        first.admit().expect("it has one");
        let second = open(&queue);
        let refused = second.add(41).expect_err("more than there is");
        assert_eq!((refused.cause, refused.outcome()), (Cause::Full, Outcome::Rejected));
        assert!(second.add(usize::MAX).is_err(), "the sum does not wrap");
        second.add(40).expect("room");
        second.admit().expect("a place");
        assert!(queue.check().is_err());
        let third = open(&queue);
        assert!(third.admit().is_err());
        drop(third);
        assert_eq!((queue.requests(), queue.bytes()), (2, 100));
        drop((first, second));
        assert_eq!((queue.requests(), queue.bytes()), (0, 0));
    }

    #[test]
    fn a_model_has_bounds_of_its_own() {
        let (all, model) = (Queue::new("the queue", 10, 1000), Queue::new("the queue of 'm'", 1, 50));
        let first = open(&all);
        first.add(30).expect("room");
        first.admit().expect("a place");
        first.of_model(&model).expect("room");
        first.of_model(&model).expect("it is the same");
        let refused = first.add(21).expect_err("more than the model may have");
        assert!(refused.message.starts_with("the queue of 'm' is full (50 bytes)"), "{}", refused.message);
        let second = open(&all);
        second.of_model(&model).expect("room");
        assert!(second.admit().is_err());
        assert_eq!((all.requests(), all.bytes(), model.requests(), model.bytes()), (1, 30, 1, 30));
        let late = open(&all);
        late.add(21).expect("room");
        assert!(late.of_model(&model).is_err(), "what is held already counts");
        let placed = open(&all);
        placed.admit().expect("a place");
        assert!(placed.of_model(&model).is_err(), "and so does its place");
        drop((first, second, late, placed));
        assert_eq!((all.requests(), all.bytes(), model.requests(), model.bytes()), (0, 0, 0, 0));
    }

    #[test]
    fn the_last_holder_pays() {
        let queue = Queue::new("the queue", 2, 100);
        let account = open(&queue);
        account.admit().expect("a place");
        let mut text = account.charge(30).expect("room");
        text.grow(30).expect("room");
        text.keep(20);
        let worker = account.clone();
        drop(account);
        assert_eq!((queue.requests(), queue.bytes()), (1, 60));
        drop(text);
        assert_eq!((queue.requests(), queue.bytes()), (1, 20), "what an array has stays");
        drop(worker);
        assert_eq!((queue.requests(), queue.bytes()), (0, 0));
    }
}
