//! Cores that are kept for a moment for the next request of a caller that has just had its
//! answer.
//!
//! A core that ended a request while others run could help those. But the caller mostly asks again
//! at once, and its thread needs that core to do so: the system takes it from the helper in the
//! middle of a chunk, for which the helped one waits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longer than a caller takes from one answer to its next request (about 0.1 ms through Python),
/// shorter than what a request notices that could have been helped.
const KEPT_FOR: Duration = Duration::from_micros(300);

/// The times from which each of the kept cores may help, earliest first. It does not matter
/// which cores they are.
#[derive(Default)]
pub(crate) struct KeptCores(VecDeque<Instant>);

impl KeptCores {
    /// A core has become free.
    pub fn keep(&mut self) {
        self.count();
        self.0.push_back(Instant::now() + KEPT_FOR);
    }

    /// A request begins on one of them.
    pub fn release_one(&mut self) {
        self.0.pop_front();
    }

    /// How many there are now.
    pub fn count(&mut self) -> usize {
        if !self.0.is_empty() {
            let now = Instant::now();
            self.0.retain(|until| *until > now);
        }
        self.0.len()
    }

    /// How long it is until the first of them may help.
    pub fn next_release(&mut self) -> Option<Duration> {
        self.count();
        self.0.front().map(|until| until.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_kept_until_a_request_begins_or_its_time_has_passed() {
        let mut kept = KeptCores::default();
        kept.keep();
        assert_eq!(kept.0.len(), 1);
        kept.release_one();
        assert_eq!((kept.0.len(), kept.next_release()), (0, None));
        kept.keep();
        std::thread::sleep(KEPT_FOR);
        // A thread that sleeps for what is left must not find that it is nothing, again and again.
        assert_eq!(kept.next_release(), None);
        kept.keep();
        std::thread::sleep(KEPT_FOR);
        assert_eq!(kept.count(), 0);
    }
}
