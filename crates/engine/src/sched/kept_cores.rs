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

/// The kept cores, by their tokens, and the times from which they may help, earliest first.
#[derive(Default)]
pub(crate) struct KeptCores(VecDeque<(usize, Instant)>);

impl KeptCores {
    /// A core has become free. It is kept once, although the op that ran on it since it was kept
    /// before may have begun in its pusher, which releases none.
    pub fn keep(&mut self, token: usize) {
        self.count();
        self.0.retain(|(kept, _)| *kept != token);
        self.0.push_back((token, Instant::now() + KEPT_FOR));
    }

    /// A request begins on one of them; it does not matter on which.
    pub fn release_one(&mut self) {
        self.0.pop_front();
    }

    /// How many there are now.
    pub fn count(&mut self) -> usize {
        if !self.0.is_empty() {
            let now = Instant::now();
            self.0.retain(|(_, until)| *until > now);
        }
        self.0.len()
    }

    /// How long it is until the first of them may help.
    pub fn next_release(&mut self) -> Option<Duration> {
        self.count();
        self.0.front().map(|(_, until)| until.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_kept_until_a_request_begins_or_its_time_has_passed() {
        let mut kept = KeptCores::default();
        kept.keep(0);
        assert_eq!(kept.0.len(), 1);
        kept.release_one();
        assert_eq!((kept.0.len(), kept.next_release()), (0, None));
        kept.keep(0);
        std::thread::sleep(KEPT_FOR);
        // A thread that sleeps for what is left must not find that it is nothing, again and again.
        assert_eq!(kept.next_release(), None);
        kept.keep(0);
        std::thread::sleep(KEPT_FOR);
        assert_eq!(kept.count(), 0);
    }

    #[test]
    fn a_core_whose_ops_begin_in_their_pusher_is_kept_once() {
        let mut kept = KeptCores::default();
        (0..100).for_each(|_| kept.keep(1));
        kept.keep(0);
        assert!(kept.0.len() <= 2, "{} kept of 2 cores", kept.0.len());
    }
}
