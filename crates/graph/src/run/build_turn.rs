//! The turn to build plans of an op.
//!
//! A plan of a large graph takes seconds to build. Meanwhile the process may fork, and handlers of
//! signals run in the thread that builds. So that thread holds no lock: it holds the turn, and
//! other threads wait for the end of it. In a forked child nobody holds the turn.

use crate::compile::interrupt::{Interrupter, PAUSE};
use mxrt_engine::{ForkSafeMutex, OpError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

/// The turn to build, held by one thread at a time.
#[derive(Default)]
pub(super) struct BuildTurn {
    current: ForkSafeMutex<Option<Arc<BuilderTurn>>>,
}

struct BuilderTurn {
    process: u32,
    thread: ThreadId,
    over: Mutex<bool>,
    ended: Condvar,
}

/// The turn, until it is dropped.
pub(super) struct HeldTurn<'a> {
    of: &'a BuildTurn,
    turn: Arc<BuilderTurn>,
}

impl BuildTurn {
    /// Waits for the turn. Returns `None` in a signal handler that runs in the thread that holds
    /// it.
    pub fn take(&self, interrupter: &mut Interrupter<'_>) -> Result<Option<HeldTurn<'_>>, OpError> {
        mxrt_engine::prepare_thread();
        loop {
            let turn = {
                let mut current = self.current.lock();
                match current.as_ref().filter(|turn| turn.is_of_this_process()) {
                    None => {
                        let turn = Arc::new(BuilderTurn::new());
                        *current = Some(turn.clone());
                        return Ok(Some(HeldTurn { of: self, turn }));
                    }
                    Some(turn) if turn.thread == std::thread::current().id() => return Ok(None),
                    Some(turn) => turn.clone(),
                }
            };
            turn.wait(interrupter)?;
        }
    }
}

impl BuilderTurn {
    fn new() -> BuilderTurn {
        let (process, thread) = (std::process::id(), std::thread::current().id());
        BuilderTurn { process, thread, over: Mutex::new(false), ended: Condvar::new() }
    }

    /// Whether the turn belongs to this process. A forked child has copies of turns, but not the
    /// threads that hold them or wait for them.
    fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    fn wait(&self, interrupter: &mut Interrupter<'_>) -> Result<(), OpError> {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            if interrupter.asks() {
                over = self.ended.wait_timeout(over, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
                if *over {
                    break;
                }
                drop(over);
                interrupter.check()?;
                over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
            } else {
                over = self.ended.wait(over).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        let mut current = self.of.current.lock();
        if current.as_ref().is_some_and(|turn| Arc::ptr_eq(turn, &self.turn)) {
            *current = None;
        }
        drop(current);
        // A handler may have forked in the middle of the turn.
        if self.turn.is_of_this_process() {
            *self.turn.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.turn.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_thread_has_the_turn_and_the_others_come_next() {
        let (turn, inside, most) = (BuildTurn::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for polls in [false, true, false, true] {
                let (turn, inside, most) = (&turn, &inside, &most);
                scope.spawn(move || {
                    let mut go_on = || true;
                    let mut interrupter = if polls { Interrupter::by(&mut go_on) } else { Interrupter::never() };
                    let held = turn.take(&mut interrupter).expect("it is not given up");
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(PAUSE / 5);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    assert!(held.is_some());
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn a_handler_in_the_thread_that_builds_does_not_wait_for_it() {
        let turn = BuildTurn::default();
        let held = turn.take(&mut Interrupter::never()).expect("it is not given up");
        assert!(turn.take(&mut Interrupter::never()).expect("it is not given up").is_none());
        drop(held);
        assert!(turn.take(&mut Interrupter::never()).expect("it is not given up").is_some());
    }

    #[test]
    fn a_thread_that_waits_for_the_turn_may_give_up() {
        let turn = BuildTurn::default();
        let held = turn.take(&mut Interrupter::never()).expect("it is not given up");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut stop = || false;
                turn.take(&mut Interrupter::by(&mut stop)).map(drop).expect_err("it gives up").message.clone()
            });
            assert!(waiting.join().expect("no panic").contains("interrupted"));
        });
        drop(held);
    }
}
