//! Joined calls inside a program, without a server or a socket.

use super::{BatchAnswer, Batcher, Calls, Joining};
use crate::background::room_for;
use crate::graph_call::run;
use crate::holds::Holds;
use crate::refusal::{Outcome, Refusal};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BoundOp, CallOptions};
use mxrt_tensor::NDArray;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Waiting time that one level of priority is worth, in microseconds.
const LEVEL: i64 = 1_000_000;

/// Interval between two calls of a hook.
const TICK: Duration = Duration::from_millis(50);

struct Local {
    engine: &'static Engine,
    bound: Arc<BoundOp>,
    batcher: Batcher,
    began: Instant,
    batches: AtomicU64,
    rows: AtomicU64,
}

impl Calls for Local {
    fn batcher(&self) -> Option<&Batcher> {
        Some(&self.batcher)
    }

    fn engine(&self) -> &'static Engine {
        self.engine
    }

    async fn call(&self, inputs: Vec<NDArray>, options: CallOptions, holds: Holds) -> BatchAnswer {
        run(self.engine, &self.bound, inputs, options, holds).await
    }

    fn rank(&self, priority: i32) -> i64 {
        let now = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        now.saturating_sub(i64::from(priority).saturating_mul(LEVEL))
    }

    fn joined(&self, rows: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}

/// Joins calls of a graph from any number of threads.
pub struct LocalBatcher {
    calls: Arc<Local>,
    /// none after the drop; a forked child has none of its threads
    runtime: Option<Runtime>,
    process: u32,
}

impl LocalBatcher {
    /// Makes a batcher for a graph whose rows do not depend on each other.
    pub fn new(engine: &'static Engine, bound: Arc<BoundOp>, joining: Joining) -> std::io::Result<LocalBatcher> {
        room_for(1).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .on_thread_start(mxrt_engine::prepare_thread)
            .thread_name("mxrt-batch")
            .enable_time()
            .build()?;
        let calls = Local {
            engine,
            bound,
            batcher: Batcher::new(joining),
            began: Instant::now(),
            batches: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        };
        Ok(LocalBatcher { calls: Arc::new(calls), runtime: Some(runtime), process: std::process::id() })
    }

    /// Calls the graph, alone or joined with calls of other threads. Waits for the results, at most
    /// until the deadline. Calls the hook several times a second. Gives up the call and returns
    /// `None` when the hook returns false.
    pub fn call(
        &self,
        inputs: Vec<NDArray>,
        options: CallOptions,
        mut hook: Option<&mut dyn FnMut() -> bool>,
    ) -> Option<Result<Vec<NDArray>, OpError>> {
        mxrt_engine::prepare_thread();
        let Some(runtime) = self.runtime.as_ref().filter(|_| self.process == std::process::id()) else {
            let words = "this batcher belongs to another process: make one after the fork";
            return Some(Err(OpError::new(FailureKind::Value, words)));
        };
        let (calls, deadline) = (&self.calls, options.deadline);
        runtime.block_on(async {
            let end = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                    None => std::future::pending().await,
                }
            };
            let answer = calls.batcher.call(calls, inputs, options, Arc::new(()));
            tokio::pin!(end, answer);
            let mut ticks = tokio::time::interval(TICK);
            loop {
                // If this future is dropped, the call leaves its lane, or does not run if it has
                // not started.
                tokio::select! {
                    biased;
                    answer = answer.as_mut() => return Some(answer.map_err(|refusal| error(&refusal))),
                    () = end.as_mut() => return Some(Err(error(&Refusal::late()))),
                    _ = ticks.tick(), if hook.is_some() => {
                        if hook.as_mut().is_some_and(|hook| !hook()) {
                            return None;
                        }
                    }
                }
            }
        })
    }

    /// Returns the number of calls that joined rows of several callers, and the number of these
    /// rows.
    pub fn counts(&self) -> (u64, u64) {
        (self.calls.batches.load(Ordering::Relaxed), self.calls.rows.load(Ordering::Relaxed))
    }
}

impl Drop for LocalBatcher {
    fn drop(&mut self) {
        match self.runtime.take() {
            Some(runtime) if self.process == std::process::id() => runtime.shutdown_background(),
            // A forked child does not have the threads of the runtime.
            Some(runtime) => std::mem::forget(runtime),
            None => {}
        }
    }
}

fn error(refusal: &Refusal) -> OpError {
    if refusal.outcome() == Outcome::Late {
        return OpError::new(FailureKind::Deadline, "the deadline passed before the result was there");
    }
    let kind = match refusal.outcome() {
        Outcome::Invalid => FailureKind::Value,
        Outcome::Memory => FailureKind::Memory,
        Outcome::Device => FailureKind::Device,
        Outcome::Unavailable => FailureKind::Shutdown,
        _ => FailureKind::Operator,
    };
    OpError::new(kind, refusal.message.clone())
}
