//! Cores that are kept free for a moment for the next request of a caller that has just had its answer.
//!
//! A core that ended a request while others run could help those. But the caller mostly asks again at once, and its thread
//! needs that core to do so: the system takes it from the helper in the middle of a chunk, for which the helped one waits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longer than a caller takes from one answer to its next request (about 0.1 ms through Python), shorter than what a
/// request notices that could have been helped.
const KEEP: Duration = Duration::from_micros(300);

/// When each of the kept cores may help, earliest first. Which cores those are does not matter.
#[derive(Default)]
pub(crate) struct Kept(VecDeque<Instant>);

impl Kept {
    /// A core has become free.
    pub fn keep(&mut self) {
        self.count();
        self.0.push_back(Instant::now() + KEEP);
    }

    /// A request begins on one of them.
    pub fn use_one(&mut self) {
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
    pub fn left(&mut self) -> Option<Duration> {
        self.count();
        self.0.front().map(|until| until.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_kept_until_a_request_begins_or_its_time_has_passed() {
        let mut kept = Kept::default();
        kept.keep();
        assert_eq!(kept.0.len(), 1);
        kept.use_one();
        assert_eq!((kept.0.len(), kept.left()), (0, None));
        kept.keep();
        std::thread::sleep(KEEP);
        // Who sleeps for what is left must not find that it is nothing, again and again.
        assert_eq!(kept.left(), None);
        kept.keep();
        std::thread::sleep(KEEP);
        assert_eq!(kept.count(), 0);
    }
}
