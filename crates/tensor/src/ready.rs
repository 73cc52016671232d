//! Being notified of an array instead of waiting for it: callbacks, and futures for programs that
//! are asynchronous.

use crate::NDArray;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Engine, Failure, Var, WaitError};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

impl NDArray {
    /// Whether a read would return at once: with the content, or with a failure.
    pub fn is_ready(&self) -> bool {
        self.engine().is_ready(self.var())
    }

    /// Calls `f` when the array is computed or has failed: now if it is, else in the thread that
    /// computes it. `f` must be short and may not wait. A failure that it gets still counts as one
    /// that no thread has seen, until [`Failure::mark_observed`].
    pub fn on_ready(&self, f: impl FnOnce(Result<(), Failure>) + Send + 'static) {
        self.engine().on_ready(self.var(), f);
    }

    /// A future that is complete when the array is computed, or has failed. It holds no handle of
    /// the array.
    ///
    /// ```
    /// # use mxrt_tensor::{NDArray, Context};
    /// # async fn read(y: NDArray) -> Result<f32, Box<dyn std::error::Error>> {
    /// y.ready().await?;
    /// Ok(y.read()?.tensor().as_slice::<f32>()?[0])
    /// # }
    /// ```
    pub fn ready(&self) -> Ready {
        Ready::new(self.engine(), self.var())
    }
}

/// Completes when an array is ready. No thread waits meanwhile: what computes the array wakes the
/// task that polled last.
#[must_use = "futures do nothing unless they are polled"]
pub struct Ready {
    engine: &'static Engine,
    var: Var,
    /// none before the first poll
    notice: Option<Arc<Mutex<Notice>>>,
}

/// The state that the future and the engine share.
enum Notice {
    Waiting(Waker),
    Arrived(Result<(), Failure>),
}

impl Ready {
    fn new(engine: &'static Engine, var: &Var) -> Ready {
        Ready { engine, var: var.clone(), notice: None }
    }

    fn ask(&self, waker: &Waker) -> Arc<Mutex<Notice>> {
        let notice = Arc::new(Mutex::new(Notice::Waiting(waker.clone())));
        let there = notice.clone();
        self.engine.on_ready(&self.var, move |result| {
            let before = std::mem::replace(&mut *there.lock(), Notice::Arrived(result));
            if let Notice::Waiting(waker) = before {
                waker.wake();
            }
        });
        notice
    }
}

impl Future for Ready {
    type Output = Result<(), WaitError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let known = self.notice.clone();
        let notice = known.unwrap_or_else(|| self.ask(task.waker()));
        self.notice = Some(notice.clone());
        let mut notice = notice.lock();
        let before = match &mut *notice {
            Notice::Arrived(Ok(())) => return Poll::Ready(Ok(())),
            Notice::Arrived(Err(failure)) => {
                failure.mark_observed();
                return Poll::Ready(Err(WaitError::Failed(failure.clone())));
            }
            Notice::Waiting(waker) if waker.will_wake(task.waker()) => return Poll::Pending,
            Notice::Waiting(waker) => std::mem::replace(waker, task.waker().clone()),
        };
        // Code of the executor runs without the lock.
        drop(notice);
        drop(before);
        Poll::Pending
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ready({})", if self.engine.is_ready(&self.var) { "now" } else { "not yet" })
    }
}
