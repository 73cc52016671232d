//! [`Pending`]: a call that has begun.

use super::{Model, Outputs};
use crate::trace::RequestSpan;
use crate::{Error, NDArray};
use mxrt_tensor::{LateArray, Ready};
use smallvec::SmallVec;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The results of a call that has begun.
pub(super) enum Started {
    Known(SmallVec<[NDArray; 2]>),
    /// arrays whose shapes depend on contents
    Late(SmallVec<[LateArray; 2]>),
}

impl Started {
    fn ready(&self) -> SmallVec<[Ready; 2]> {
        match self {
            Started::Known(arrays) => arrays.iter().map(NDArray::ready).collect(),
            Started::Late(arrays) => arrays.iter().map(LateArray::ready).collect(),
        }
    }

    /// Waits for all results; the error of the first that has one.
    pub fn wait(&self) -> Result<SmallVec<[NDArray; 2]>, Error> {
        match self {
            Started::Known(arrays) => {
                // All are looked at, so that no failure of this call is left for `wait_all`.
                arrays.iter().map(NDArray::wait_to_read).fold(Ok(()), Result::and)?;
                Ok(arrays.clone())
            }
            Started::Late(arrays) => {
                let one = |array: &LateArray| Ok(array.wait()?.clone());
                arrays.iter().map(one).collect()
            }
        }
    }
}

/// A call of a model that has begun: a future of its results.
///
/// Dropped before the call has started, it cancels it; a call that runs is given up at its next
/// step. No thread waits for it: what computes the last result wakes the task.
#[must_use = "dropping it cancels the call"]
pub struct Pending {
    model: Model,
    started: Started,
    /// futures of the results, the next one last
    open: Option<SmallVec<[Ready; 2]>>,
    span: RequestSpan,
}

impl Pending {
    pub(super) fn new(model: Model, started: Started, span: RequestSpan) -> Pending {
        Pending { model, started, open: None, span }
    }

    /// Whether waiting would return at once.
    pub fn is_ready(&self) -> bool {
        match &self.started {
            Started::Known(arrays) => arrays.iter().all(NDArray::is_ready),
            Started::Late(arrays) => arrays.iter().all(|array| array.engine().is_ready(array.var())),
        }
    }

    /// Waits for the results in this thread.
    pub fn wait(self) -> Result<Outputs, Error> {
        self.outputs()
    }

    fn outputs(&self) -> Result<Outputs, Error> {
        let done = self.started.wait().map(|arrays| self.model.name_outputs(arrays));
        self.span.end(&done);
        done
    }
}

impl Future for Pending {
    type Output = Result<Outputs, Error>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let open = this.open.get_or_insert_with(|| {
            let mut ready = this.started.ready();
            ready.reverse();
            ready
        });
        while let Some(next) = open.last_mut() {
            // Failures are returned below, where they have a model.
            if Pin::new(next).poll(task).is_pending() {
                return Poll::Pending;
            }
            open.pop();
        }
        // Nothing is waited for any more.
        Poll::Ready(this.outputs())
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pending({:?}, {})", self.model, if self.is_ready() { "ready" } else { "not ready" })
    }
}
