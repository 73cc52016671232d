//! One inference, from the head of its request to its end.
//!
//! A transport calls [`Inference::choose`], [`Model::signature`], [`memory`] and [`array`] for each
//! input, [`Inference::compute`], and [`Inference::end`] when the answer is made. What it keeps or
//! computes it charges to [`Inference::account`].

use super::Service;
use crate::account::Account;
use crate::background::Work;
use crate::batch::{Calls, Holds};
use crate::log::Ended;
use crate::model::Model;
use crate::protocol::short;
use crate::refusal::{Outcome, Refusal};
use crate::traces::{Times, Traced};
use hyper::{HeaderMap, StatusCode};
use mxrt_engine::memory::Block;
use mxrt_graph::CallOptions;
use mxrt_tensor::{Context, DType, NDArray, TensorType};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// The priority of requests that say none, in the protocol's order.
const USUAL_PRIORITY: i32 = 5;

/// How a request ended.
struct End {
    outcome: Outcome,
    /// status and text of a refusal
    refused: Option<(u16, String)>,
}

/// See [`Service::begin`].
pub(crate) struct Inference {
    service: Arc<Service>,
    began: Instant,
    model: Option<Arc<Model>>,
    account: Account,
    ended: Option<End>,
    id: Option<String>,
    trace: Option<String>,
    /// its span, if one is wanted
    traced: Option<Traced>,
    computed: Option<(Instant, Instant)>,
}

/// What a request says of its place in the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    /// 1 to 9, lower is served first; 0 stands for 5
    pub(crate) priority: u8,
    /// time for the request, from when it began; none: as the server is set
    pub(crate) timeout: Option<Duration>,
}

impl Inference {
    pub(super) fn new(service: Arc<Service>, began: Instant) -> Inference {
        // Before it is looked at whether the server drains, so that the end waits for what goes on.
        service.begun.fetch_add(1, Ordering::SeqCst);
        service.ever.fetch_add(1, Ordering::SeqCst);
        let account = Account::open(&service.queue);
        Inference {
            service,
            began,
            model: None,
            account,
            ended: None,
            id: None,
            trace: None,
            traced: None,
            computed: None,
        }
    }

    /// What the request costs.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// The model, the highest version if none is named. What would be refused when its body is here
    /// is refused now. A model that made room for others comes back first.
    pub(crate) async fn choose(&mut self, name: &str, version: Option<&str>) -> Result<Arc<Model>, Refusal> {
        if self.service.is_draining() {
            return Err(Refusal::draining());
        }
        let model = match self.service.repository.find(name, version) {
            Some(found) => found?,
            None => {
                self.account.admit()?;
                self.service.bring_back(self.account.clone(), name, version).await?
            }
        };
        self.model = Some(model.clone());
        self.service.queue.check()?;
        model.queue.check()?;
        self.account.of_model(&model.queue)?;
        Ok(model)
    }

    fn model(&self) -> Result<&Arc<Model>, Refusal> {
        self.model.as_ref().ok_or_else(|| Refusal::failed("the request has no model"))
    }

    /// Takes its place among those that wait or compute, when its body is here. What would be late
    /// is refused.
    pub(crate) fn admit(&self, schedule: Schedule) -> Result<(), Refusal> {
        let model = self.model()?;
        let options = self.options(model, schedule);
        if options.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(Refusal::late());
        }
        if self.service.config.admission {
            model.check_deadline(options)?;
        }
        self.account.admit()
    }

    /// Runs a job of the request in the background, for which it has a place. It waits for it until
    /// its deadline; a job that has begun goes on, and the request is charged for it.
    pub(crate) async fn background<T: Send + 'static>(
        &self,
        work: Work,
        schedule: Schedule,
        job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let deadline = self.options(self.model()?, schedule).deadline;
        in_time(deadline, self.service.background.run(work, Some(self.account.clone()), job)).await
    }

    /// Waits for what is to be there by the deadline.
    pub(crate) async fn in_time<T>(
        &self,
        schedule: Schedule,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        in_time(self.options(self.model()?, schedule).deadline, work).await
    }

    /// Computes. `inputs` are those of the model in its order. All results are there when this
    /// returns. If it is dropped first, a call that has not started does not run.
    pub(crate) async fn compute(&mut self, inputs: Vec<NDArray>, schedule: Schedule) -> Result<Vec<NDArray>, Refusal> {
        let model = self.model()?.clone();
        let options = self.options(&model, schedule);
        self.admit(schedule)?;
        let began = Instant::now();
        let held: Holds = Arc::new(self.account.clone());
        let running = async {
            match model.batcher() {
                Some(batcher) => batcher.call(&model, inputs, options, held).await,
                None => model.call(inputs, options, held).await,
            }
        };
        let results = in_time(options.deadline, running).await?;
        self.computed = Some((began, Instant::now()));
        self.service.queue.took(began.elapsed());
        model.queue.took(began.elapsed());
        Ok(results)
    }

    fn options(&self, model: &Model, schedule: Schedule) -> CallOptions {
        let time = schedule.timeout.or(model.settings.deadline);
        let deadline = time.and_then(|time| self.began.checked_add(time));
        // In the protocol 1 is served first; in the engine the highest is.
        let priority = match schedule.priority {
            0 => 0,
            priority => USUAL_PRIORITY - i32::from(priority),
        };
        CallOptions { priority, deadline, ..CallOptions::default() }
    }

    /// What the client calls the request, for the log.
    pub(crate) fn named(&mut self, id: Option<&str>) {
        self.id = id.filter(|_| self.service.config.log_requests).map(short);
    }

    /// The header of its trace, for the log, and for its span.
    pub(crate) fn traced(&mut self, headers: &HeaderMap) {
        let header = headers.get("traceparent").and_then(|value| value.to_str().ok());
        self.trace = header.filter(|_| self.service.config.log_requests).map(short);
        self.traced = self.service.traces.of(header);
    }

    /// The request has ended: with a refusal, or else with results.
    pub(crate) fn end(mut self, refusal: Option<&Refusal>) {
        let wanted = self.service.config.log_requests;
        self.ended = Some(End {
            outcome: refusal.map_or(Outcome::Success, |refusal| refusal.outcome),
            refused: refusal.filter(|_| wanted).map(|refusal| (refusal.status.as_u16(), refusal.message.clone())),
        });
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        let metrics = self.model.as_ref().map_or(&self.service.nameless, |model| &*model.metrics);
        let time = self.began.elapsed();
        let (outcome, refused) = match self.ended.take() {
            Some(End { outcome, refused }) => (outcome, refused),
            None => (Outcome::Cancelled, Some((499, "the client has gone".to_owned()))),
        };
        metrics.ended(outcome, time);
        if let Some(traced) = self.traced {
            let times = Times { began: self.began, computed: self.computed };
            let model = self.model.as_ref().map(|model| (model.name.as_str(), model.version.as_str()));
            self.service.traces.end(traced, times, model, outcome);
        }
        self.service.repository.log().request(&Ended {
            model: self.model.as_ref().map_or("", |model| &model.name),
            version: self.model.as_ref().map_or("", |model| &model.version),
            id: self.id.as_deref(),
            trace: self.trace.as_deref(),
            outcome,
            status: refused.as_ref().map_or(200, |(status, _)| *status),
            reason: refused.as_ref().map(|(_, reason)| reason.as_str()),
            time,
        });
        self.service.begun.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What becomes of work that must be done by a time.
async fn in_time<T>(deadline: Option<Instant>, work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    match deadline {
        None => work.await,
        Some(deadline) => timeout_at(deadline.into(), work).await.unwrap_or_else(|_| Err(Refusal::late())),
    }
}

/// Memory for the elements of an input. Who takes it charges the request.
pub(crate) fn memory(service: &Service, bytes: usize) -> Result<Block, Refusal> {
    service.engine.memory().alloc(bytes).map_err(|error| {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Outcome::Memory, error.to_string()).retry_after(1)
    })
}

/// An input whose elements are in `block`.
pub(crate) fn array(service: &Service, tensor: TensorType, block: Block) -> Result<NDArray, Refusal> {
    let bytes = tensor.bytes();
    if tensor.dtype == DType::Bool && block.as_slice()[..bytes].iter().any(|byte| *byte > 1) {
        return Err(Refusal::invalid("an input of type BOOL has a byte that is neither 0 nor 1"));
    }
    NDArray::from_block(service.engine, Context::cpu(0), tensor, block).map_err(|e| Refusal::of_call(&e))
}
