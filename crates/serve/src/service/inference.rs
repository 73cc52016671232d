//! Inference requests, from their heads to their ends.
//!
//! A transport calls [`Inference::choose`] and [`Model::signature`], then [`memory`] and [`array`]
//! for each input, then [`Inference::compute`], and [`Inference::end`] when it has the response. It
//! charges the bytes it keeps to [`Inference::account`].

use super::Service;
use crate::account::Account;
use crate::background::{JobKind, LONG_COPY};
use crate::batch::Calls;
use crate::begun::Begun;
use crate::holds::Holds;
use crate::log::Ended;
use crate::model::Model;
use crate::protocol::short;
use crate::refusal::{Cause, Outcome, Refusal};
use crate::traces::{Times, Traced};
use hyper::HeaderMap;
use mxrt_engine::memory::Block;
use mxrt_graph::CallOptions;
use mxrt_tensor::{Context, DType, NDArray, TensorType};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// Priority of requests that give none, on the protocol's scale.
const USUAL_PRIORITY: i32 = 5;

/// Result of a request that has ended.
struct End {
    /// cause of its refusal; none: it has results
    cause: Option<Cause>,
    /// message of the refusal, if requests are logged
    reason: Option<String>,
}

/// Inference request that has begun, see [`Service::begin`].
pub(crate) struct Inference {
    service: Arc<Service>,
    /// guard of the request; none after its end
    begun: Option<Begun>,
    began: Instant,
    model: Option<Arc<Model>>,
    account: Account,
    ended: Option<End>,
    id: Option<String>,
    trace: Option<String>,
    /// data for its span, if spans are wanted and the client wants one
    traced: Option<Traced>,
    computed: Option<(Instant, Instant)>,
    /// rows of the inputs
    rows: usize,
}

/// Priority and timeout of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    /// priority from 1 to 9, where the lowest is served first; 0 stands for 5
    pub(crate) priority: u8,
    /// time for the request, from its start; none: the deadline of the model's settings
    pub(crate) timeout: Option<Duration>,
}

impl Inference {
    pub(super) fn new(service: Arc<Service>, began: Instant) -> Inference {
        // Counted before the draining flag is read, so that the shutdown waits for this request.
        let begun = Some(Begun::new(&service.begun));
        service.ever.fetch_add(1, Ordering::SeqCst);
        let account = Account::open(&service.queue);
        Inference {
            service,
            begun,
            began,
            model: None,
            account,
            ended: None,
            id: None,
            trace: None,
            traced: None,
            computed: None,
            rows: 1,
        }
    }

    /// Returns the account of the request.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Finds the model, in its highest version if none is named. Refuses the request now if the
    /// queue is full, before its body is read. A model that was unloaded to free memory is loaded
    /// first.
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

    /// Takes a place among the requests that wait or compute. Transports call this when the body is
    /// complete. A request that would miss its deadline is refused.
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

    /// Runs a job of the request in the background, and waits for it until the deadline. A job that
    /// has begun continues, and remains charged to the request.
    pub(crate) async fn background<T: Send + 'static>(
        &self,
        work: JobKind,
        schedule: Schedule,
        job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let deadline = self.options(self.model()?, schedule).deadline;
        in_time(deadline, self.service.background.run(work, Some(self.account.clone()), job)).await
    }

    /// Waits for a result until the deadline of the request.
    pub(crate) async fn in_time<T>(
        &self,
        schedule: Schedule,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        in_time(self.options(self.model()?, schedule).deadline, work).await
    }

    /// Computes the results. `tensors` are the inputs of the model, in its order. All results are
    /// complete when this returns. If the future is dropped first, a call that has not started does
    /// not run.
    pub(crate) async fn compute(&mut self, tensors: Vec<NDArray>, schedule: Schedule) -> Result<Vec<NDArray>, Refusal> {
        let model = self.model()?.clone();
        let options = self.options(&model, schedule);
        self.admit(schedule)?;
        let inputs = self.feed(&model, tensors, schedule).await?;
        self.rows = model.rows(&inputs);
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

    /// Makes the inputs of the graph from the tensors of the request.
    async fn feed(
        &self,
        model: &Arc<Model>,
        tensors: Vec<NDArray>,
        schedule: Schedule,
    ) -> Result<Vec<NDArray>, Refusal> {
        let bytes: usize = tensors.iter().map(NDArray::nbytes).sum();
        if !model.has_csr() || bytes <= LONG_COPY {
            return model.feed(tensors, &self.account);
        }
        let (model, account) = (model.clone(), self.account.clone());
        self.background(JobKind::Coding, schedule, move || model.feed(tensors, &account)).await
    }

    fn options(&self, model: &Model, schedule: Schedule) -> CallOptions {
        let time = schedule.timeout.or(model.settings.deadline);
        let deadline = time.and_then(|time| self.began.checked_add(time));
        // The protocol serves 1 first, and the engine serves the highest number first.
        let priority = match schedule.priority {
            0 => 0,
            priority => USUAL_PRIORITY - i32::from(priority),
        };
        CallOptions { priority, deadline, ..CallOptions::default() }
    }

    /// Sets the client's id of the request, for the log.
    pub(crate) fn named(&mut self, id: Option<&str>) {
        self.id = id.filter(|_| self.service.config.log_requests).map(short);
    }

    /// Reads the header `traceparent`, for the log and for the span.
    pub(crate) fn traced(&mut self, headers: &HeaderMap) {
        let header = headers.get("traceparent").and_then(|value| value.to_str().ok());
        self.trace = header.filter(|_| self.service.config.log_requests).map(short);
        self.traced = self.service.traces.of(header);
    }

    /// Ends the request: with this refusal, or with results if there is none. The shutdown waits
    /// until the returned guard is dropped.
    pub(crate) fn end(mut self, refusal: Option<&Refusal>) -> Option<Begun> {
        let wanted = self.service.config.log_requests;
        self.ended = Some(End {
            cause: refusal.map(|refusal| refusal.cause),
            reason: refusal.filter(|_| wanted).map(|refusal| refusal.message.clone()),
        });
        self.begun.take()
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        let metrics = self.model.as_ref().map_or(&self.service.unknown_model_metrics, |model| &*model.metrics);
        let time = self.began.elapsed();
        let End { cause, reason } = self
            .ended
            .take()
            .unwrap_or_else(|| End { cause: Some(Cause::ClientGone), reason: Some("the client has gone".to_owned()) });
        let outcome = cause.map_or(Outcome::Success, Cause::outcome);
        metrics.ended(outcome, self.rows, time);
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
            cause,
            reason: reason.as_deref(),
            time,
        });
    }
}

/// Waits for work until a deadline, if there is one. Refuses the request as late after it.
async fn in_time<T>(deadline: Option<Instant>, work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    match deadline {
        None => work.await,
        Some(deadline) => timeout_at(deadline.into(), work).await.unwrap_or_else(|_| Err(Refusal::late())),
    }
}

/// Allocates memory for the elements of an input. The caller charges it to the request.
pub(crate) fn memory(service: &Service, bytes: usize) -> Result<Block, Refusal> {
    service.engine.memory().alloc(bytes).map_err(|error| Refusal::new(Cause::Memory, error.to_string()).retry_after(1))
}

/// Makes an input whose elements are in `block`.
pub(crate) fn array(service: &Service, tensor: TensorType, block: Block) -> Result<NDArray, Refusal> {
    let bytes = tensor.bytes();
    if tensor.dtype == DType::Bool && block.as_slice()[..bytes].iter().any(|byte| *byte > 1) {
        return Err(Refusal::invalid("an input of type BOOL has a byte that is neither 0 nor 1"));
    }
    NDArray::from_block(service.engine, Context::cpu(0), tensor, block).map_err(|e| Refusal::of_call(&e))
}
