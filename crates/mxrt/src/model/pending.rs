//! [`Pending`]: a call that has begun.

use super::{Model, Outputs};
use crate::Error;
use crate::trace::RequestSpan;
use mxrt_graph::Started;
use mxrt_tensor::Ready;
use smallvec::SmallVec;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

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
        self.started.is_ready()
    }

    /// Waits for the results in this thread.
    pub fn wait(self) -> Result<Outputs, Error> {
        self.outputs()
    }

    fn outputs(&self) -> Result<Outputs, Error> {
        let done = self.started.wait().map(|arrays| self.model.name_outputs(arrays)).map_err(Error::from);
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
