//! Jobs in background threads, which may take long. See ACCOUNTING.md.

use crate::account::Account;
use crate::refusal::{Refusal, no_memory};
use mxrt_engine::{OutOfMemory, reserve};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Number of bytes above which an I/O thread does not parse or format numbers itself.
pub(crate) const LONG: usize = 32 << 10;
/// Number of bytes above which an I/O thread does not copy them itself.
pub(crate) const LONG_COPY: usize = 1 << 20;

/// Memory that a new thread needs at its start, with some to spare.
const OF_THREAD: usize = 64 << 10;

/// Checks that the system has memory for the start of that many threads. Those of a runtime are the
/// standard library's, which end the process where they find none: see
/// [`mxrt_engine::start_thread`].
pub(crate) fn room_for(threads: usize) -> Result<(), OutOfMemory> {
    reserve::check_room(threads.saturating_mul(OF_THREAD))
}

/// Runs work in a thread of the runtime that may wait, if there is memory for another thread.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, OutOfMemory> {
    room_for(1)?;
    Ok(tokio::task::spawn_blocking(work))
}

/// Kinds of jobs. Each has its own number of threads, so that no kind occupies those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// decoding requests and encoding responses
    Coding,
    /// hooks of users, which may wait
    Hook,
    /// loading and unloading models
    Change,
    /// plans and profiles for operators
    Looking,
}

impl JobKind {
    const ALL: [JobKind; 4] = [JobKind::Coding, JobKind::Hook, JobKind::Change, JobKind::Looking];

    /// Returns the number of threads for this kind.
    const fn threads(self, cores: usize) -> usize {
        match self {
            JobKind::Coding => cores,
            JobKind::Hook => 2 * cores,
            JobKind::Change | JobKind::Looking => 1,
        }
    }
}

/// Returns the number of threads of all kinds, plus those that start calls of models and copy
/// batches.
pub(crate) fn threads(cores: usize) -> usize {
    let of_work: usize = JobKind::ALL.iter().map(|work| work.threads(cores)).sum();
    of_work + 2 * cores + 2
}

/// Permits for jobs of each kind.
pub(crate) struct Background([Arc<Semaphore>; JobKind::ALL.len()]);

impl Background {
    pub(crate) fn new(cores: usize) -> Background {
        Background(JobKind::ALL.map(|work| Arc::new(Semaphore::new(work.threads(cores)))))
    }

    /// Runs a job when there is a thread for its kind, or refuses it where a new thread would find
    /// no memory. The job holds the account and its permit until it ends. If the future is dropped,
    /// a job that has not begun does not run.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: JobKind,
        account: Option<Account>,
        job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = self.0[work as usize].clone().acquire_owned().await.map_err(|_| Refusal::draining())?;
        let running = spawn(move || {
            let done = job();
            drop((account, place));
            done
        });
        RunningJob(running.map_err(|e| no_memory(e.asked))?).await
    }
}

/// Handle of a job. If it is dropped, a job that has not begun does not run.
struct RunningJob<T>(JoinHandle<Result<T, Refusal>>);

impl<T> std::future::Future for RunningJob<T> {
    type Output = Result<T, Refusal>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0)
            .poll(cx)
            .map(|done| done.unwrap_or_else(|error| Err(Refusal::failed(error.to_string()))))
    }
}

impl<T> Drop for RunningJob<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
