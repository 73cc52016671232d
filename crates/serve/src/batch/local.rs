//! Joined calls inside of a program: no server, no socket.

use super::{Answer, Batcher, Calls, Holds, Joining};
use crate::model::run;
use crate::refusal::{Outcome, Refusal};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BoundOp, CallOptions};
use mxrt_tensor::NDArray;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::runtime::Runtime;

/// A level of priority is worth so many microseconds of waiting.
const LEVEL: i64 = 1_000_000;

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

    async fn call(&self, inputs: Vec<NDArray>, options: CallOptions, holds: Holds) -> Answer {
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
    /// none after its end; a forked child has none of its threads
    runtime: Option<Runtime>,
    process: u32,
}

impl LocalBatcher {
    /// For a graph whose rows do not depend on each other.
    pub fn new(engine: &'static Engine, bound: Arc<BoundOp>, joining: Joining) -> std::io::Result<LocalBatcher> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
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

    /// Calls it, alone or with the calls of others, and waits for the results.
    pub fn call(&self, inputs: Vec<NDArray>, options: CallOptions) -> Result<Vec<NDArray>, OpError> {
        let Some(runtime) = self.runtime.as_ref().filter(|_| self.process == std::process::id()) else {
            let words = "this batcher belongs to another process: make one after the fork";
            return Err(OpError::new(FailureKind::Value, words));
        };
        let calls = &self.calls;
        runtime.block_on(calls.batcher.call(calls, inputs, options, Arc::new(()))).map_err(|refusal| error(&refusal))
    }

    /// Calls with the rows of several callers, and these rows.
    pub fn counts(&self) -> (u64, u64) {
        (self.calls.batches.load(Ordering::Relaxed), self.calls.rows.load(Ordering::Relaxed))
    }
}

impl Drop for LocalBatcher {
    fn drop(&mut self) {
        match self.runtime.take() {
            Some(runtime) if self.process == std::process::id() => runtime.shutdown_background(),
            // Its threads do not exist here.
            Some(runtime) => std::mem::forget(runtime),
            None => {}
        }
    }
}

fn error(refusal: &Refusal) -> OpError {
    let kind = match refusal.outcome {
        Outcome::Invalid => FailureKind::Value,
        Outcome::Late => FailureKind::Deadline,
        Outcome::Memory => FailureKind::Memory,
        Outcome::Device => FailureKind::Device,
        Outcome::Unavailable => FailureKind::Shutdown,
        _ => FailureKind::Operator,
    };
    OpError::new(kind, refusal.message.clone())
}
