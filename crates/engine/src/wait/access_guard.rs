//! Guards: the right to read what a variable stands for, held by a thread outside of the engine.
//!
//! A wait only says that the value was there; the next writer may run at once. A guard is an op
//! that is complete when the guard is dropped. It is granted in whichever thread makes it ready,
//! like a waiter, and is not counted by `wait_all`: a thread that holds a guard may call that.

use crate::engine::Engine;
use crate::failure::WaitError;
use crate::var::Var;
use crate::wait::WaitCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An access that this thread holds. Dropping it gives the variable back. It stays in its thread: a
/// forked child gives back what threads held that do not exist there.
pub(crate) struct Grant(Arc<WaitCell>, PhantomData<*const ()>);

impl Grant {
    pub fn new(cell: Arc<WaitCell>) -> Self {
        Grant(cell, PhantomData)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// The right to read: writers wait until it is dropped.
#[must_use = "the value may be overwritten as soon as the guard is dropped"]
pub struct ReadGuard(Grant);

impl ReadGuard {
    /// Ends the read, as dropping does.
    pub fn release(self) {
        drop(self.0);
    }
}

impl fmt::Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadGuard")
    }
}

impl Engine {
    /// Waits until every write pushed before is complete, and keeps later ones away until the guard
    /// is dropped. A failed variable has no value to read: then the failure is returned, and
    /// nothing is held.
    pub fn read_guard(&'static self, var: &Var) -> Result<ReadGuard, WaitError> {
        self.guard_for(var, None)
    }

    /// Waits for a guard like [`read_guard`](Engine::read_guard); `poll` is called in this thread
    /// about every 50 ms, and the wait is abandoned when it returns false.
    pub fn read_guard_with(&'static self, var: &Var, poll: &mut dyn FnMut() -> bool) -> Result<ReadGuard, WaitError> {
        self.guard_for(var, Some(poll))
    }

    fn guard_for(&'static self, var: &Var, poll: Option<&mut dyn FnMut() -> bool>) -> Result<ReadGuard, WaitError> {
        let (failure, grant) = self.await_grant(var, poll)?;
        match failure {
            None => Ok(ReadGuard(grant)),
            Some(failure) => {
                failure.mark_observed();
                Err(WaitError::Failed(failure))
            }
        }
    }
}
