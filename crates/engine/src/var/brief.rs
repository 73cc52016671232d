//! Brief accesses: a thread outside of the engine reads or writes what a variable stands for at
//! once, without an op, where no other access is in the way. Everything else takes a guard or
//! pushes an op.

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, OpError};
use crate::op::block::{Chain, Mode};
use crate::process::slot::{self, Slot};
use crate::profile;
use crate::var::{Var, VarInner};
use std::sync::atomic::Ordering;

impl Engine {
    /// Runs `read` while no op writes the variable, whose value has not failed. `None`: that cannot
    /// be had without waiting, or something is to be noted about it.
    ///
    /// `read` is short and waits for nothing: a fork of the process waits for it.
    pub fn read_briefly<R>(&'static self, var: &Var, read: impl FnOnce() -> R) -> Option<R> {
        self.briefly(var, Mode::Read, read)
    }

    /// Runs `write`, which writes the whole value, while no op reads or writes the variable. `None`
    /// as for [`read_briefly`](Engine::read_briefly); `write` is as short.
    pub fn write_briefly<R>(&'static self, var: &Var, write: impl FnOnce() -> R) -> Option<R> {
        if self.closed.load(Ordering::Relaxed) || profile::is_on() {
            return None;
        }
        self.briefly(var, Mode::Write, write)
    }

    fn briefly<R>(&'static self, var: &Var, mode: Mode, body: impl FnOnce() -> R) -> Option<R> {
        let slot = slot::current();
        if slot.op_depth.get() != 0 {
            return None;
        }
        slot.enter();
        if !begin(var.inner(), mode) {
            slot.exit();
            return None;
        }
        let _access = BriefAccess { engine: self, slot, var, mode };
        Some(body())
    }
}

/// Takes the access if it can be had now. What devices, deadlines or cancelled writes have to do
/// with the variable is not looked at here.
pub(crate) fn begin(var: &VarInner, mode: Mode) -> bool {
    var.lock.lock();
    // SAFETY: the lock is held until after the last use.
    let granted = unsafe {
        let state = &mut *var.state.get();
        let plain = var.extra().is_none() && (mode != Mode::Read || (*var.failure.get()).is_none());
        let granted = plain && state.open_to(mode);
        match mode {
            _ if !granted => {}
            Mode::Read => state.reads += 1,
            _ => state.writing = true,
        }
        granted
    };
    var.lock.unlock();
    granted
}

/// Gives an access back that was begun; a write leaves this failure, or none. Ops that become ready
/// are appended to `ready`.
pub(crate) fn end(var: &VarInner, mode: Mode, failure: Option<Failure>, ready: &mut Chain) {
    let mut old = None;
    var.lock.lock();
    // SAFETY: the lock is held until after the last use; the access was granted.
    unsafe {
        let state = &mut *var.state.get();
        if mode == Mode::Read {
            state.reads -= 1;
        } else {
            *var.version.get() += 1;
            old = std::mem::replace(&mut *var.failure.get(), failure);
            state.writing = false;
        }
        if state.reads == 0 {
            state.grant_next(ready);
        }
    }
    var.lock.unlock();
    drop(old);
}

/// An access that is given back when it is dropped, by the thread that took it, which leaves the
/// gate then.
struct BriefAccess<'a> {
    engine: &'static Engine,
    slot: &'static Slot,
    var: &'a Var,
    mode: Mode,
}

impl Drop for BriefAccess<'_> {
    fn drop(&mut self) {
        let var = self.var.inner();
        let panicked = (self.mode != Mode::Read && std::thread::panicking()).then(|| {
            let message = "the thread that was writing this value panicked before it had finished";
            let failure = OpError::new(FailureKind::Panic, message).to_failure();
            self.engine.record_failure(&failure);
            failure
        });
        let mut ready = Chain::new();
        end(var, self.mode, panicked, &mut ready);
        // SAFETY: what has become ready belongs to the thread that made it so, which is inside the
        // gate.
        unsafe { self.engine.hand_on(self.slot, ready) };
        self.slot.exit();
    }
}
