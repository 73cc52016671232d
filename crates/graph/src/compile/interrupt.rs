//! Interruption of calls and builds that take long.

use mxrt_engine::{FailureKind, OpError};
use std::time::{Duration, Instant};

/// Time between two calls of a hook.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Limits how long a call may take in the calling thread. It may ask a hook periodically whether to
/// continue. The asking thread holds no lock, so the hook may run code of the user.
pub struct Interrupter<'a> {
    patience: Patience<'a>,
    asked: Option<Instant>,
    gave_up: bool,
}

enum Patience<'a> {
    Endless,
    /// the call returns within microseconds
    Quick,
    Hook {
        poll: &'a mut dyn FnMut() -> bool,
        pause: Duration,
    },
}

impl<'a> Interrupter<'a> {
    fn new(patience: Patience<'a>) -> Interrupter<'a> {
        Interrupter { patience, asked: None, gave_up: false }
    }

    /// Never gives up.
    pub fn never() -> Interrupter<'a> {
        Interrupter::new(Patience::Endless)
    }

    /// Gives up before anything that takes longer than some microseconds in the calling thread. The
    /// call has not begun then ([`Interrupter::gave_up`]).
    pub fn quick() -> Interrupter<'a> {
        Interrupter::new(Patience::Quick)
    }

    /// Gives up when the hook returns false. It is called about twenty times a second.
    pub fn by(poll: &'a mut dyn FnMut() -> bool) -> Interrupter<'a> {
        Interrupter::every(PAUSE, poll)
    }

    /// Gives up when the hook returns false. The hook is called whenever `pause` has passed since
    /// its last call.
    pub fn every(pause: Duration, poll: &'a mut dyn FnMut() -> bool) -> Interrupter<'a> {
        Interrupter { asked: Some(Instant::now()), ..Interrupter::new(Patience::Hook { poll, pause }) }
    }

    /// Whether it has given up.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether there is a hook.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.patience, Patience::Hook { .. })
    }

    /// Whether the call must return within microseconds.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(self.patience, Patience::Quick)
    }

    /// Gives up.
    pub(crate) fn give_up(&mut self) -> OpError {
        self.gave_up = true;
        OpError::new(FailureKind::Cancelled, "the call was interrupted before it began")
    }

    /// An error of kind `Cancelled` when it is time to give up.
    pub(crate) fn check(&mut self) -> Result<(), OpError> {
        let Patience::Hook { poll, pause } = &mut self.patience else { return Ok(()) };
        if self.asked.is_some_and(|asked| asked.elapsed() < *pause) {
            return Ok(());
        }
        let go_on = poll();
        self.asked = Some(Instant::now());
        if go_on {
            return Ok(());
        }
        self.gave_up = true;
        Err(OpError::new(FailureKind::Cancelled, "the compilation was interrupted"))
    }
}
