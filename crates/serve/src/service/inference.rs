//! One inference, from the head of its request to its end.
//!
//! A transport calls [`Inference::choose`], [`Model::signature`], [`memory`] and [`array`] for each
//! input, [`Inference::compute`], and [`Inference::end`] when the answer is made. The bytes that it
//! keeps it holds in the queue ([`crate::queue::Queue::receive`]).

use super::Service;
use crate::batch::Calls;
use crate::log::Ended;
use crate::model::Model;
use crate::protocol::short;
use crate::queue::Held;
use crate::refusal::{Outcome, Refusal};
use crate::traces::{Times, Traced};
use hyper::{HeaderMap, StatusCode};
use mxrt_engine::memory::Block;
use mxrt_graph::CallOptions;
use mxrt_tensor::{Context, DType, NDArray, TensorType};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// The priority of requests that say none, in the protocol's order.
const USUAL_PRIORITY: i32 = 5;

/// See [`Service::begin`].
pub(crate) struct Inference {
    service: Arc<Service>,
    began: Instant,
    model: Option<Arc<Model>>,
    held: Held,
    outcome: Option<Outcome>,
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
        let held = service.queue.receive();
        Inference {
            service,
            began,
            model: None,
            held,
            outcome: None,
            id: None,
            trace: None,
            traced: None,
            computed: None,
        }
    }

    /// The model, the highest version if none is named. What would be refused when its body is here
    /// is refused now. A model that made room for others comes back first.
    pub(crate) async fn choose(&mut self, name: &str, version: Option<&str>) -> Result<Arc<Model>, Refusal> {
        if self.service.is_draining() {
            return Err(Refusal::draining());
        }
        let model = match self.service.repository.find(name, version) {
            Some(found) => found?,
            None => self.service.bring_back(name, version).await?,
        };
        self.model = Some(model.clone());
        self.service.queue.check()?;
        model.queue.check()?;
        self.held.of_model(&model.queue)?;
        Ok(model)
    }

    fn model(&self) -> Result<&Arc<Model>, Refusal> {
        self.model.as_ref().ok_or_else(|| Refusal::failed("the request has no model"))
    }

    /// Computes. `inputs` are those of the model in its order. All results are there when this
    /// returns. If it is dropped first, a call that has not started does not run.
    pub(crate) async fn compute(&mut self, inputs: Vec<NDArray>, schedule: Schedule) -> Result<Vec<NDArray>, Refusal> {
        let model = self.model()?.clone();
        let options = self.options(&model, schedule);
        if self.service.config.admission {
            model.check_deadline(options)?;
        }
        self.held.admit()?;
        let began = Instant::now();
        let running = async {
            match model.batcher() {
                Some(batcher) => batcher.call(&model, inputs, options).await,
                None => model.call(inputs, options).await,
            }
        };
        let results = match options.deadline {
            None => running.await,
            Some(deadline) => timeout_at(deadline.into(), running).await.unwrap_or_else(|_| Err(Refusal::late())),
        }?;
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

    /// The request has ended so.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        let metrics = self.model.as_ref().map_or(&self.service.nameless, |model| &*model.metrics);
        let (outcome, time) = (self.outcome.unwrap_or(Outcome::Cancelled), self.began.elapsed());
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
            time,
        });
        self.service.begun.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Memory for the elements of an input.
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
