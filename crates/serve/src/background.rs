//! Work that takes its time, in threads that may. See ACCOUNTING.md.

use crate::account::Account;
use crate::refusal::Refusal;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// More bytes than this are not read or written as numbers by a thread that reads and writes for
/// others.
pub(crate) const LONG: usize = 32 << 10;
/// More bytes than this are not copied by such a thread.
pub(crate) const LONG_COPY: usize = 1 << 20;

/// Kinds of work. Each has its own number of threads, so that none keeps those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// reading requests and writing answers
    Coding,
    /// hooks of users, which may wait
    Hook,
    /// loading and unloading models
    Change,
    /// plans and profiles for who runs the server
    Looking,
}

impl Work {
    const ALL: [Work; 4] = [Work::Coding, Work::Hook, Work::Change, Work::Looking];

    /// Threads that it has.
    const fn threads(self, cores: usize) -> usize {
        match self {
            Work::Coding => cores,
            Work::Hook => 2 * cores,
            Work::Change | Work::Looking => 1,
        }
    }
}

/// Threads of all kinds of work, with those that begin calls of models and copy for batches.
pub(crate) fn threads(cores: usize) -> usize {
    let of_work: usize = Work::ALL.iter().map(|work| work.threads(cores)).sum();
    of_work + 2 * cores + 2
}

/// Places of work.
pub(crate) struct Background([Arc<Semaphore>; Work::ALL.len()]);

impl Background {
    pub(crate) fn new(cores: usize) -> Background {
        Background(Work::ALL.map(|work| Arc::new(Semaphore::new(work.threads(cores)))))
    }

    /// Runs a job when there is a thread for its kind. The job holds the account, and its thread, to
    /// its end; one whose result nobody waits for any more is taken back if it has not begun.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: Work,
        account: Option<Account>,
        job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = self.0[work as usize].clone().acquire_owned().await.map_err(|_| Refusal::draining())?;
        let running = tokio::task::spawn_blocking(move || {
            let done = job();
            drop((account, place));
            done
        });
        Running(running).await
    }
}

/// A job that is taken back where it has not begun when this is dropped.
struct Running<T>(JoinHandle<Result<T, Refusal>>);

impl<T> std::future::Future for Running<T> {
    type Output = Result<T, Refusal>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0)
            .poll(cx)
            .map(|done| done.unwrap_or_else(|error| Err(Refusal::failed(error.to_string()))))
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
