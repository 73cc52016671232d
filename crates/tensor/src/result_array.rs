//! Results of calls: arrays, also such whose shape is known when the operation that makes them has run.
//!
//! The shape of a boolean mask's result follows from the content of the mask, so that no array can
//! be made when the operation is pushed. The call returns a deferred [`ResultArray`] instead. The
//! operation writes its `done` variable, as any output, and leaves the array in its place. Who needs
//! the shape waits for that variable, and receives the failure of the operation if it has one.

use crate::{Context, DType, NDArray, Ready, TensorType};
use mxrt_engine::{Engine, FailureKind, OpError, Var, WaitError};
use std::sync::{Arc, OnceLock};

/// An array that a call returns. Clones are handles of the same array.
#[derive(Clone)]
pub struct ResultArray(ResultForm);

#[derive(Clone)]
enum ResultForm {
    Known(NDArray),
    /// The operation makes the array, shape and all.
    Deferred {
        /// an array without elements that the operation writes
        done: NDArray,
        context: Context,
        made: Arc<OnceLock<NDArray>>,
    },
}

/// A result whose shape is to come, and what the operation that makes it needs.
pub struct DeferredResult {
    /// the result
    pub array: ResultArray,
    /// an array without elements that stands for the result among the outputs of the operation
    pub done: NDArray,
    /// the place where the operation stores the array
    pub place: ResultPlace,
}

/// The place where an operation stores an array that it makes.
#[derive(Clone)]
pub struct ResultPlace(Arc<OnceLock<NDArray>>);

impl DeferredResult {
    /// An array on a context that is to come. The operation runs on the host. With `cancel_on_drop` it
    /// is cancelled when all handles are gone before it has started.
    pub fn new(engine: &'static Engine, context: Context, cancel_on_drop: bool) -> Result<DeferredResult, OpError> {
        let home = if context.device().is_some() { Context::cpu(0) } else { context };
        let done = NDArray::new(engine, home, TensorType::new(DType::U8, &[0][..]))?;
        let done = if cancel_on_drop { done.cancel_on_drop() } else { done };
        let made: Arc<OnceLock<NDArray>> = Arc::default();
        let array = ResultArray(ResultForm::Deferred { done: done.clone(), context, made: made.clone() });
        Ok(DeferredResult { array, done, place: ResultPlace(made) })
    }
}

impl ResultPlace {
    /// Leaves the array. Called by the operation, before it ends.
    pub fn put(&self, array: NDArray) {
        // An operation runs once.
        let _ = self.0.set(array);
    }
}

impl ResultArray {
    /// The array, if its shape is known by now.
    pub fn get(&self) -> Option<&NDArray> {
        match &self.0 {
            ResultForm::Known(array) => Some(array),
            ResultForm::Deferred { made, .. } => made.get(),
        }
    }

    /// The array, or until its shape is known the one that stands for it.
    fn present(&self) -> &NDArray {
        match &self.0 {
            ResultForm::Known(array) => array,
            ResultForm::Deferred { done, made, .. } => made.get().unwrap_or(done),
        }
    }

    /// The variable to wait for: that of the array, or as long as there is none that of the
    /// operation.
    pub fn var(&self) -> &Var {
        self.present().var()
    }

    /// The engine that orders work on the array.
    pub fn engine(&self) -> &'static Engine {
        self.present().engine()
    }

    /// The context of the array.
    pub fn context(&self) -> Context {
        match &self.0 {
            ResultForm::Known(array) => array.context(),
            ResultForm::Deferred { context, .. } => *context,
        }
    }

    /// Whether waiting would return at once.
    pub fn is_ready(&self) -> bool {
        self.present().is_ready()
    }

    /// A future that is complete when the operation that makes the array has run.
    pub fn ready(&self) -> Ready {
        self.present().ready()
    }

    /// Waits until the shape is known, and returns the array; raises the failure of the operation.
    /// `poll` is called periodically while waiting, and abandons the wait by returning false.
    pub fn wait(&self, poll: Option<&mut dyn FnMut() -> bool>) -> Result<&NDArray, WaitError> {
        let (done, made) = match &self.0 {
            ResultForm::Known(array) => return Ok(array),
            ResultForm::Deferred { done, made, .. } => (done, made),
        };
        match (made.get(), poll) {
            (Some(_), _) => {}
            (None, Some(poll)) => done.engine().wait_to_read_with(done.var(), poll)?,
            (None, None) => done.engine().wait_to_read(done.var())?,
        }
        made.get().ok_or_else(|| {
            let error = OpError::new(FailureKind::NotCompleted, "the operation ended without its result");
            WaitError::Failed(error.to_failure())
        })
    }

    /// Waits as [`ResultArray::wait`], and returns the handle of the array.
    pub fn into_array(self, poll: Option<&mut dyn FnMut() -> bool>) -> Result<NDArray, WaitError> {
        match self.0 {
            ResultForm::Known(array) => Ok(array),
            ResultForm::Deferred { .. } => self.wait(poll).cloned(),
        }
    }
}

impl From<NDArray> for ResultArray {
    fn from(array: NDArray) -> ResultArray {
        ResultArray(ResultForm::Known(array))
    }
}

impl std::fmt::Debug for ResultArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(array) => array.fmt(f),
            None => write!(f, "<NDArray of a shape to come @{}>", self.context()),
        }
    }
}
