//! The failures that `wait_all` returns: those that no thread has observed.

use super::{Failure, take_observed_since_sweep};

/// Failures the engine remembers for `wait_all`; beyond, it counts.
const MAX_ORIGINS: usize = 1024;
/// Number of failures from which observed ones are looked for.
const SWEEP_FROM: usize = 16;

/// Failures that no thread had observed when they were added: a bounded number of them, and how
/// many more there were.
pub(crate) struct Unobserved {
    list: Vec<Failure>,
    more: u64,
    /// length of the list from which it is swept
    sweep_at: usize,
}

impl Unobserved {
    pub fn new() -> Unobserved {
        Unobserved { list: Vec::with_capacity(MAX_ORIGINS), more: 0, sweep_at: SWEEP_FROM }
    }

    /// Adds a failure. Returns observed ones, which the caller drops under no lock: their causes
    /// keep objects of the program alive, such as the arrays of a request.
    pub fn add(&mut self, failure: &Failure) -> Vec<Failure> {
        let mut gone = Vec::new();
        // A caller that gets its failures one by one leaves the last one here.
        gone.extend(self.list.pop_if(|last| last.is_observed()));
        // Otherwise the list is walked only when it has doubled, or is full, and only if a thread
        // has observed something: a failure must not cost a walk.
        if self.list.len() >= self.sweep_at && take_observed_since_sweep() {
            gone.extend(self.list.extract_if(.., |failure| failure.is_observed()));
            self.sweep_at = (self.list.len() * 2).clamp(SWEEP_FROM, MAX_ORIGINS);
        }
        if self.list.len() < MAX_ORIGINS {
            self.list.push(failure.clone())
        } else {
            self.more += 1
        }
        gone
    }

    /// Takes the failures, and how many more there were.
    pub fn take(&mut self) -> (Vec<Failure>, u64) {
        self.sweep_at = SWEEP_FROM;
        (std::mem::take(&mut self.list), std::mem::take(&mut self.more))
    }
}
