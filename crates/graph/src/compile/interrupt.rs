//! Giving up what takes long.

use mxrt_engine::{FailureKind, OpError};
use std::time::{Duration, Instant};

/// Time between two calls of a hook.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Asks a hook now and then whether to go on. The thread that asks holds no lock: the hook may run
/// code of the user.
pub struct Interrupter<'a> {
    poll: Option<&'a mut dyn FnMut() -> bool>,
    pause: Duration,
    asked: Instant,
}

impl<'a> Interrupter<'a> {
    /// Never gives up.
    pub fn never() -> Interrupter<'a> {
        Interrupter { poll: None, pause: PAUSE, asked: Instant::now() }
    }

    /// Gives up when the hook returns false. It is called about twenty times a second.
    pub fn by(poll: &'a mut dyn FnMut() -> bool) -> Interrupter<'a> {
        Interrupter::every(PAUSE, poll)
    }

    /// Gives up when the hook returns false. It is called when so much time has passed since the
    /// last call.
    pub fn every(pause: Duration, poll: &'a mut dyn FnMut() -> bool) -> Interrupter<'a> {
        Interrupter { poll: Some(poll), pause, asked: Instant::now() }
    }

    /// Whether there is a hook.
    pub(crate) fn asks(&self) -> bool {
        self.poll.is_some()
    }

    /// An error of kind `Cancelled` when it is time to give up.
    pub(crate) fn check(&mut self) -> Result<(), OpError> {
        let Some(poll) = &mut self.poll else { return Ok(()) };
        if self.asked.elapsed() < self.pause {
            return Ok(());
        }
        let go_on = poll();
        self.asked = Instant::now();
        if go_on { Ok(()) } else { Err(OpError::new(FailureKind::Cancelled, "the compilation was interrupted")) }
    }
}
