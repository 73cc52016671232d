//! Calls of a bound graph. The engine's callbacks complete them, so that no thread waits.

use crate::background::spawn;
use crate::holds::Holds;
use crate::refusal::Refusal;
use mxrt_engine::{Engine, Failure, FailureKind, OpError, Var};
use mxrt_graph::{BoundOp, CallOptions, Interrupter, Started};
use mxrt_tensor::NDArray;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinError;

/// Runs a graph. The results are complete when this returns. If the future is dropped first, a call
/// that has not started does not run. In any case `holds` is dropped when the engine has ended the
/// call.
pub(crate) async fn run(
    engine: &'static Engine,
    bound: &Arc<BoundOp>,
    arguments: Vec<NDArray>,
    mut options: CallOptions,
    holds: Holds,
) -> Result<Vec<NDArray>, Refusal> {
    options.cancel_on_drop = true;
    let quick = {
        let mut quick = Interrupter::quick();
        let begun = bound.call(&refs(&arguments), None, &options, &mut quick);
        (!quick.gave_up()).then_some(begun)
    };
    let started = if let Some(begun) = quick {
        begun.map(|started| watched(engine, started, &holds))
    } else {
        // The call has to build a plan, or computes for long in the calling thread.
        let bound = bound.clone();
        let work = move || {
            let started = bound.call(&refs(&arguments), None, &options, &mut Interrupter::never())?;
            // Watched in this thread, as nobody may wait any more when the call has started.
            Ok(watched(engine, started, &holds))
        };
        match spawn(work) {
            Ok(begun) => begun.await.unwrap_or_else(|error| Err(panicked(&error))),
            Err(error) => Err(error.into()),
        }
    };
    let (started, outcomes) = started.map_err(|e| Refusal::of_call(&e))?;
    for outcome in outcomes {
        ready(outcome).await?;
    }
    let results =
        started.arrays().map_err(|error| Refusal::of_failure(&OpError::new(FailureKind::Value, error.to_string())))?;
    // Results whose shapes were to come may still be copied to a device.
    for array in &results {
        ready(watch(engine, array.var(), None)).await?;
    }
    Ok(results.into_vec())
}

fn refs(arguments: &[NDArray]) -> Vec<&NDArray> {
    arguments.iter().collect()
}

/// Receiver of a variable's value or failure.
type Settled = oneshot::Receiver<Result<(), Failure>>;

/// Watches the results of a call. The request now owns their failures, even if it is given up: no
/// other wait reports them.
fn watched(engine: &'static Engine, started: Started, holds: &Holds) -> (Started, Vec<Settled>) {
    let outcomes = started.vars().into_iter().map(|var| watch(engine, var, Some(holds.clone()))).collect();
    (started, outcomes)
}

fn watch(engine: &'static Engine, var: &Var, holds: Option<Holds>) -> Settled {
    let (sender, outcome) = oneshot::channel();
    engine.on_ready(var, move |outcome: Result<(), Failure>| {
        if let Err(failure) = &outcome {
            failure.mark_observed();
        }
        if let Some(holds) = &holds {
            holds.ended(outcome.is_ok());
        }
        // Dropped before the request continues, so that its account is released when it ends.
        drop(holds);
        // The request may have been given up.
        let _ = sender.send(outcome);
    });
    outcome
}

/// Waits until the value is complete. Returns the failure if there is one.
async fn ready(outcome: Settled) -> Result<(), Refusal> {
    match outcome.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(Refusal::of_failure(failure.details())),
        Err(_) => Err(Refusal::draining()),
    }
}

pub(crate) fn panicked(error: &JoinError) -> OpError {
    OpError::new(FailureKind::Panic, error.to_string())
}
