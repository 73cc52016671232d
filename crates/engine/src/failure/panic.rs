//! Failures made of panics of the user's closures.

use super::{FailureKind, OpError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Drops the payload of a panic. It is user data, and so may panic itself; then it is leaked.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// The error that a panic of an op becomes. A payload that is an [`OpError`] is that error.
#[cold]
pub(crate) fn panic_error(op: &str, payload: Box<dyn Any + Send>) -> OpError {
    match payload.downcast::<OpError>() {
        Ok(error) => *error,
        Err(payload) => {
            let message = format!("operator {op} panicked: {}", panic_text(&*payload));
            discard(payload);
            OpError::new(FailureKind::Panic, message)
        }
    }
}
