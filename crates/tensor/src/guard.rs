//! Reading an array from outside the engine.

use crate::{NDArray, TensorRef};
use mxrt_engine::{Access, Cost, Failure, OnComplete, OpSpec, WaitError};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// How often a waiting thread looks whether it should give up.
const POLL: Duration = Duration::from_millis(50);

/// Where the engine leaves the read grant for the waiting thread.
#[derive(Default)]
struct Mailbox {
    state: Mutex<Letter>,
    arrived: Condvar,
}

#[derive(Default)]
enum Letter {
    #[default]
    Awaited,
    Granted(OnComplete),
    /// The operation was dropped without running: the array failed meanwhile.
    Refused,
    /// The reader has gone; a late grant is returned at once.
    Abandoned,
}

impl Mailbox {
    fn put(&self, letter: Letter) {
        let mut state = self.state.lock();
        match (&*state, letter) {
            (Letter::Awaited, letter) => *state = letter,
            (_, Letter::Granted(token)) => {
                drop(state);
                token.complete(Ok(()));
                return;
            }
            _ => {}
        }
        drop(state);
        self.arrived.notify_one();
    }

    fn take(&self, poll: &mut dyn FnMut() -> bool) -> Result<Option<OnComplete>, WaitError> {
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, Letter::Awaited) {
                Letter::Granted(token) => return Ok(Some(token)),
                Letter::Refused => return Ok(None),
                _ => {}
            }
            if self.arrived.wait_for(&mut state, POLL).timed_out() {
                // The hook may run foreign code, which must not find the mailbox locked.
                let go_on = parking_lot::MutexGuard::unlocked(&mut state, &mut *poll);
                if !go_on {
                    let late = std::mem::replace(&mut *state, Letter::Abandoned);
                    drop(state);
                    if let Letter::Granted(token) = late {
                        token.complete(Ok(()));
                    }
                    return Err(WaitError::Interrupted);
                }
            }
        }
    }
}

/// Tells the mailbox when the pushed operation is dropped without having run.
struct Sender(Option<Arc<Mailbox>>);

impl Sender {
    fn send(mut self, token: OnComplete) {
        if let Some(mailbox) = self.0.take() {
            mailbox.put(Letter::Granted(token));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if let Some(mailbox) = self.0.take() {
            mailbox.put(Letter::Refused);
        }
    }
}

/// The right to read an array: writers wait until it is dropped.
pub struct ReadGuard<'a> {
    array: &'a NDArray,
    token: Option<OnComplete>,
}

impl<'a> ReadGuard<'a> {
    pub(crate) fn acquire(array: &'a NDArray, poll: &mut dyn FnMut() -> bool) -> Result<ReadGuard<'a>, WaitError> {
        let engine = array.engine();
        loop {
            engine.wait_to_read_with(array.var(), poll)?;
            // Between that wait and this grant another writer may come, and fail: then the loop waits again and raises.
            let mailbox = Arc::new(Mailbox::default());
            let sender = Sender(Some(mailbox.clone()));
            let vars = [(array.var(), Access::Read)];
            let spec = OpSpec::new("read", &vars).cost(Cost::Small);
            engine.push_async(spec, move |_, token| sender.send(token));
            if let Some(token) = mailbox.take(poll)? {
                // Memory of an array that nobody ever wrote is made here.
                return match array.chunk.block() {
                    Ok(_) => Ok(ReadGuard { array, token: Some(token) }),
                    Err(error) => {
                        token.complete(Ok(()));
                        Err(WaitError::Failed(Failure::new((*error).clone())))
                    }
                };
            }
        }
    }

    /// The content.
    pub fn tensor(&self) -> TensorRef<'_> {
        let bytes = match self.array.chunk.block() {
            // SAFETY: the token in this guard holds a read grant of the array's variable, so no writer runs; the view
            // lies inside the block by construction of `NDArray`.
            Ok(block) => unsafe {
                std::slice::from_raw_parts(block.as_ptr().add(self.array.offset), self.array.nbytes())
            },
            Err(_) => unreachable!("acquire made sure that the block exists"),
        };
        TensorRef::new(self.array.dtype(), self.array.shape(), bytes)
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            token.complete(Ok(()));
        }
    }
}
