//! Guards: the right to read or write what a variable stands for, held by a thread outside of the
//! engine.
//!
//! A wait only says that the value was there; the next writer may run at once. A guard is an op
//! that is complete when the guard is dropped. It is granted in whichever thread makes it ready,
//! like a waiter, and is not counted by `wait_all`: a thread that holds a guard may call that.

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, OpError, WaitError};
use crate::op::spec::Access;
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
        self.0.give_back(Ok(()));
    }
}

/// The right to read: writers wait until it is dropped.
#[must_use = "the value may be overwritten as soon as the guard is dropped"]
pub struct ReadGuard(Grant);

/// The right to write the whole value: readers and other writers wait until it is dropped. Dropping
/// it completes the write and heals the variable; dropping it in a panic fails the variable,
/// because no thread knows what was written.
#[must_use = "the write ends when the guard is dropped"]
pub struct WriteGuard(Grant);

impl ReadGuard {
    /// Ends the read, as dropping does.
    pub fn release(self) {
        drop(self.0);
    }
}

impl WriteGuard {
    /// Ends the write without a value: the thread that reads the variable gets this error.
    pub fn fail(self, error: OpError) {
        self.0.0.give_back(Err(error));
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let message = "the thread that was writing this value panicked before it had finished";
            self.0.0.give_back(Err(OpError::new(FailureKind::Panic, message)));
        }
    }
}

impl fmt::Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadGuard")
    }
}

impl fmt::Debug for WriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteGuard")
    }
}

impl Engine {
    /// Waits until every write pushed before is complete, and keeps later ones away until the guard
    /// is dropped. A failed variable has no value to read: then the failure is returned, and
    /// nothing is held.
    pub fn read_guard(&'static self, var: &Var) -> Result<ReadGuard, WaitError> {
        self.guard_for(var, Access::Read, None).map(ReadGuard)
    }

    /// Waits for a guard like [`read_guard`](Engine::read_guard); `poll` is called in this thread
    /// about every 50 ms, and the wait is abandoned when it returns false.
    pub fn read_guard_with(&'static self, var: &Var, poll: &mut dyn FnMut() -> bool) -> Result<ReadGuard, WaitError> {
        self.guard_for(var, Access::Read, Some(poll)).map(ReadGuard)
    }

    /// Waits until every read and write pushed before is complete, and keeps later ones away until
    /// the guard is dropped.
    pub fn write_guard(&'static self, var: &Var) -> Result<WriteGuard, WaitError> {
        self.guard_for(var, Access::Write, None).map(WriteGuard)
    }

    /// Waits for a guard like [`write_guard`](Engine::write_guard), with a poll hook.
    pub fn write_guard_with(&'static self, var: &Var, poll: &mut dyn FnMut() -> bool) -> Result<WriteGuard, WaitError> {
        self.guard_for(var, Access::Write, Some(poll)).map(WriteGuard)
    }

    fn guard_for(
        &'static self,
        var: &Var,
        access: Access,
        poll: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<Grant, WaitError> {
        let (failure, grant) = self.await_grant(var, access, poll)?;
        match failure.filter(|_| access == Access::Read) {
            None => Ok(grant),
            Some(failure) => Err(notified(failure)),
        }
    }
}

fn notified(failure: Failure) -> WaitError {
    failure.mark_observed();
    WaitError::Failed(failure)
}
