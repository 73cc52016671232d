//! Arrays whose shape is known when the operation that makes them has run.
//!
//! The shape of a boolean mask's result follows from the content of the mask, so that no array can
//! be made when the operation is pushed. The call returns a [`LateArray`] instead. The operation
//! writes its `done` variable, as any output, and leaves the array in its place. Who needs the
//! shape waits for that variable, and receives the failure of the operation if it has one.

use crate::{Context, DType, NDArray, TensorType};
use mxrt_engine::{Engine, FailureKind, OpError, Var, WaitError};
use std::sync::{Arc, OnceLock};

/// An array that an operation makes, shape and all. Clones are handles of the same array.
#[derive(Clone)]
pub struct LateArray {
    /// an array without elements that the operation writes
    done: NDArray,
    context: Context,
    made: Arc<OnceLock<NDArray>>,
}

/// The place where the operation stores the array.
pub struct LatePlace(Arc<OnceLock<NDArray>>);

impl LateArray {
    /// An array that is to come. The operation, which runs on the host, lists [`LateArray::done`]
    /// among its outputs.
    pub fn new(engine: &'static Engine, context: Context) -> Result<LateArray, OpError> {
        let home = if context.device().is_some() { Context::cpu(0) } else { context };
        let done = NDArray::new(engine, home, TensorType::new(DType::U8, &[0][..]))?;
        Ok(LateArray { done, context, made: Arc::default() })
    }

    /// The context of the future array.
    pub fn context(&self) -> Context {
        self.context
    }

    /// The engine that orders work on the array.
    pub fn engine(&self) -> &'static Engine {
        self.done.engine()
    }

    /// Returns the array with a guard: when all handles are gone, an operation that has not started
    /// is cancelled.
    pub fn cancel_on_drop(mut self) -> LateArray {
        self.done = self.done.cancel_on_drop();
        self
    }

    /// An array without elements that stands for this one among the outputs of its operation.
    pub fn done(&self) -> &NDArray {
        &self.done
    }

    /// The place where the operation stores the array.
    pub fn place(&self) -> LatePlace {
        LatePlace(self.made.clone())
    }

    /// The array, if the operation has run.
    pub fn get(&self) -> Option<&NDArray> {
        self.made.get()
    }

    /// The variable to wait for: that of the array, or as long as there is none that of the
    /// operation.
    pub fn var(&self) -> &Var {
        self.get().unwrap_or(&self.done).var()
    }

    /// Waits for the operation and returns what it made; raises its failure.
    pub fn wait(&self) -> Result<&NDArray, WaitError> {
        self.wait_by(None)
    }

    /// Waits for the array; `poll` is called periodically while waiting, and abandons the wait by
    /// returning false.
    pub fn wait_with(&self, poll: &mut dyn FnMut() -> bool) -> Result<&NDArray, WaitError> {
        self.wait_by(Some(poll))
    }

    fn wait_by(&self, poll: Option<&mut dyn FnMut() -> bool>) -> Result<&NDArray, WaitError> {
        if let Some(made) = self.get() {
            return Ok(made);
        }
        let engine = self.done.engine();
        match poll {
            Some(poll) => engine.wait_to_read_with(self.done.var(), poll)?,
            None => engine.wait_to_read(self.done.var())?,
        }
        self.get().ok_or_else(|| {
            let error = OpError::new(FailureKind::NotCompleted, "the operation ended without its result");
            WaitError::Failed(error.to_failure())
        })
    }
}

impl LatePlace {
    /// Leaves the array. Called by the operation, before it ends.
    pub fn put(&self, array: NDArray) {
        // An operation runs once.
        let _ = self.0.set(array);
    }
}

impl std::fmt::Debug for LateArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(made) => made.fmt(f),
            None => write!(f, "<NDArray of a shape to come @{}>", self.context),
        }
    }
}
