//! Batches of requests that wait while a model computes.
//!
//! A lone request is called as it is, at once. Those that come while it computes wait in a lane of
//! their signature. When it has ended, what waits is the next batch. There is no timer: load itself
//! makes batches.
//!
//! A batch that fails is computed again, each member alone and once, so that everyone gets an own
//! answer or error.

mod lane;
mod rows;

use crate::model::Model;
use crate::refusal::{Outcome, Refusal};
use lane::{Lane, Member, padded};
use mxrt_graph::CallOptions;
use mxrt_tensor::{NDArray, TensorType};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Batches have at most so many rows if nothing is said.
pub const USUAL_ROWS: usize = 16;

type Answer = Result<Vec<NDArray>, Refusal>;

/// What a member brings.
struct Work {
    inputs: Vec<NDArray>,
    options: CallOptions,
    answer: oneshot::Sender<Answer>,
}

/// The lanes of a model.
#[derive(Default)]
struct State {
    busy: bool,
    arrivals: u64,
    lanes: HashMap<Vec<TensorType>, Lane<Work>>,
}

/// Joins calls of one model.
pub(crate) struct Batcher {
    max: usize,
    state: Mutex<State>,
}

/// The right to compute. The next batch starts when it is dropped.
struct Turn {
    model: Arc<Model>,
}

impl Batcher {
    pub(crate) fn new(max: usize) -> Batcher {
        Batcher { max, state: Mutex::default() }
    }

    /// Rows of the largest batch.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes, alone or with others. The inputs fit the model.
    pub(crate) async fn call(&self, model: &Arc<Model>, inputs: Vec<NDArray>, options: CallOptions) -> Answer {
        let Some(rows) = rows::count(&inputs) else { return model.call(inputs, options).await };
        let inputs = match self.wait_or_take_turn(inputs, rows, options) {
            Ok(answered) => return answered.await.unwrap_or_else(|_| Err(Refusal::draining())),
            Err(inputs) => inputs,
        };
        let _turn = Turn { model: model.clone() };
        model.call(inputs, options).await
    }

    /// Joins those who wait; the inputs come back where nobody computes, and the caller has its turn.
    fn wait_or_take_turn(
        &self,
        inputs: Vec<NDArray>,
        rows: usize,
        options: CallOptions,
    ) -> Result<oneshot::Receiver<Answer>, Vec<NDArray>> {
        let mut state = self.state();
        if !state.busy {
            state.busy = true;
            return Err(inputs);
        }
        let (answer, answered) = oneshot::channel();
        let signature = inputs.iter().map(rows::of_row).collect();
        let (priority, deadline, arrived) = (options.priority, options.deadline, state.arrivals);
        state.arrivals += 1;
        let lane = state.lanes.entry(signature).or_insert_with(Lane::new);
        lane.join(Member { work: Work { inputs, options, answer }, rows, priority, deadline, arrived });
        Ok(answered)
    }

    /// The next batch; none if nobody waits, and then nobody computes.
    fn next(&self, now: Instant) -> Option<Vec<Member<Work>>> {
        let mut state = self.state();
        loop {
            let Some(lane) = state.lanes.values_mut().min_by_key(|lane| lane.first()) else {
                state.busy = false;
                return None;
            };
            let taken = lane.take(now, self.max, |work| work.answer.is_closed());
            state.lanes.retain(|_, lane| !lane.is_empty());
            for late in taken.late {
                // Its client may have gone.
                let _ = late.work.answer.send(Err(Refusal::late()));
            }
            if !taken.batch.is_empty() {
                return Some(taken.batch);
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(batcher) = self.model.batcher() else { return };
        // Where there is no runtime the server has ended.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if let Some(batch) = batcher.next(Instant::now()) {
            runtime.spawn(run(self.model.clone(), batch));
        }
    }
}

async fn run(model: Arc<Model>, batch: Vec<Member<Work>>) {
    let turn = Turn { model: model.clone() };
    if batch.len() == 1 {
        for member in batch {
            alone(&model, member).await;
        }
        return;
    }
    match together(&model, &batch).await {
        Ok(answers) => {
            for (member, answer) in batch.into_iter().zip(answers) {
                let _ = member.work.answer.send(answer);
            }
        }
        Err(refusal) if matches!(refusal.outcome, Outcome::Device | Outcome::Unavailable) => {
            for member in batch {
                let _ = member.work.answer.send(Err(refusal.clone()));
            }
        }
        Err(_) => {
            for member in batch {
                alone(&model, member).await;
            }
        }
    }
    drop(turn);
}

/// One member by itself. A member that is gone or late is not computed.
async fn alone(model: &Model, member: Member<Work>) {
    let Work { inputs, options, answer } = member.work;
    if answer.is_closed() {
        return;
    }
    let late = options.deadline.is_some_and(|deadline| deadline <= Instant::now());
    let result = if late { Err(Refusal::late()) } else { model.call(inputs, options).await };
    let _ = answer.send(result);
}

/// All members in one call: an answer for each, or the failure of the whole.
async fn together(model: &Model, batch: &[Member<Work>]) -> Result<Vec<Answer>, Refusal> {
    let engine = model.engine();
    let wanted: usize = batch.iter().map(|member| member.rows).sum();
    let all = padded(wanted, model.batcher().map_or(wanted, Batcher::max));
    let inputs = model.inputs.len();
    let joined = (0..inputs).map(|i| {
        let parts: Vec<&NDArray> = batch.iter().map(|member| &member.work.inputs[i]).collect();
        rows::join(engine, &parts, all)
    });
    let joined = joined.collect::<Result<Vec<_>, _>>().map_err(|e| Refusal::of_call(&e))?;
    let priority = batch.iter().map(|member| member.priority).max().unwrap_or(0);
    let results = model.call(joined, CallOptions { priority, ..CallOptions::default() }).await?;
    model.metrics.batch_rows(wanted);
    let mut first = 0;
    let mut answers = Vec::with_capacity(batch.len());
    for member in batch {
        let part = results.iter().map(|result| rows::cut(engine, result, first, member.rows));
        answers.push(part.collect::<Result<Vec<_>, _>>().map_err(|e| Refusal::of_call(&e)));
        first += member.rows;
    }
    Ok(answers)
}
