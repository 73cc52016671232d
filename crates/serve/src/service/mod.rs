//! Service of a server, independent of the protocol: transports translate requests to its methods.
//!
//! | call | of the protocol |
//! | --- | --- |
//! | [`Service::check_ready`], [`Service::model_ready`] | health |
//! | [`Service::metadata`], [`Service::statistics`], [`Service::index`] | metadata, statistics, repository |
//! | [`Service::change`] | load and unload |
//! | [`Service::begin`] | inference, from the head of a request to its end |

pub(crate) mod hooked;
mod inference;
mod statistics;

pub(crate) use inference::{Inference, Schedule, array, memory};
pub(crate) use statistics::ModelStatistics;

use crate::account::Account;
use crate::answers::Answers;
use crate::background::{Background, JobKind};
use crate::metrics::ModelMetrics;
use crate::model::Model;
use crate::queue::Queue;
use crate::refusal::{Cause, Refusal};
use crate::repository::{IndexEntry, Repository, Version};
use crate::settings::{Config, Control};
use crate::traces::Traces;
use mxrt_engine::Engine;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Protocol extensions that the server always supports.
const EXTENSIONS: &[&str] = &["binary_tensor_data", "schedule_policy", "model_configuration", "statistics", "metrics"];
/// Protocol extension for servers whose clients may load and unload models.
const MODEL_REPOSITORY: &str = "model_repository";
/// Largest number of calls that may load a model, unload one, or wait to do so.
const CHANGES: usize = 64;
/// Bounds on calls other than inference: their number, and below it the bytes of their messages.
const SMALL_CALLS: usize = 1 << 16;
const SMALL_BYTES: usize = 16 << 20;
/// Name of the server in its metadata.
pub(crate) const NAME: &str = "mxrt";
/// Version of the server in its metadata.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Change of a model in the repository.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Load,
    Unload,
    /// loads a model that the repository does not have, from its folder
    Take(PathBuf),
    /// unloads such a model
    Forget,
}

/// Guard that counts a call while it waits to load or unload a model, and while it does so.
struct Waits<'a>(&'a AtomicUsize);

impl Waits<'_> {
    fn new(all: &AtomicUsize) -> Result<Waits<'_>, Refusal> {
        let waits = Waits(all);
        if all.fetch_add(1, Ordering::SeqCst) < CHANGES {
            return Ok(waits);
        }
        let message = format!("{CHANGES} calls wait to load or unload a model: try again in 1 s");
        Err(Refusal::new(Cause::Full, message).retry_after(1))
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Models, their queues, and their metrics.
pub(crate) struct Service {
    pub(crate) engine: &'static Engine,
    pub(crate) config: Config,
    pub(crate) repository: Repository,
    pub(crate) queue: Arc<Queue>,
    /// queue of calls other than inference
    pub(crate) small: Arc<Queue>,
    /// responses that clients have not taken
    pub(crate) answers: Arc<Answers>,
    pub(crate) background: Background,
    /// number of calls that load or unload a model, or wait to do so
    changes: AtomicUsize,
    /// metrics of requests that name no existing model
    pub(crate) unknown_model_metrics: ModelMetrics,
    pub(crate) traces: Traces,
    draining: AtomicBool,
    /// number of inference requests that have begun, and whose responses have not been passed on
    begun: Arc<AtomicUsize>,
    /// number of inference requests that have begun since the start
    ever: AtomicUsize,
}

impl Service {
    pub(crate) fn new(engine: &'static Engine, repository: Repository, config: Config) -> Arc<Service> {
        Arc::new(Service {
            engine,
            queue: Queue::new("the queue", config.queue_requests, config.queue_bytes),
            small: Queue::new("the queue of calls other than inference", SMALL_CALLS, SMALL_BYTES),
            answers: Answers::new(config.answer_bytes),
            background: Background::new(engine.cores()),
            changes: AtomicUsize::new(0),
            repository,
            unknown_model_metrics: ModelMetrics::default(),
            traces: Traces::new(config.traces.is_some()),
            draining: AtomicBool::new(false),
            begun: Arc::default(),
            ever: AtomicUsize::new(0),
            config,
        })
    }

    /// Refuses new requests from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Returns whether new requests are refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Returns the number of inference requests that have begun, and whose responses have not been
    /// passed on.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Returns the number of requests that have begun since the start.
    pub(crate) fn ever_begun(&self) -> usize {
        self.ever.load(Ordering::SeqCst)
    }

    /// Refuses a request that any model would refuse now. It is for requests whose model is not
    /// known yet.
    pub(crate) fn check_open(&self) -> Result<(), Refusal> {
        if self.is_draining() { Err(Refusal::draining()) } else { self.queue.check() }
    }

    /// Checks that the server accepts requests, and that all required models serve.
    pub(crate) fn check_ready(&self) -> Result<(), Refusal> {
        if self.is_draining() {
            return Err(Refusal::draining());
        }
        if let Some(name) = self.repository.catalog().missing() {
            let message = format!("the model '{name}', which the server needs, does not serve");
            return Err(Refusal::new(Cause::Unavailable, message).retry_after(1));
        }
        self.queue.check()
    }

    /// Returns the protocol extensions that the server supports.
    pub(crate) fn extensions(&self) -> Vec<&'static str> {
        let repository = Some(MODEL_REPOSITORY).filter(|_| self.repository.control() == Control::Explicit);
        EXTENSIONS.iter().copied().chain(repository).collect()
    }

    /// Loads or unloads a model, if clients may do that, and waits for it. One change runs at a
    /// time, to its end even if its client goes away.
    pub(crate) async fn change(self: &Arc<Service>, name: String, change: Change) -> Result<(), Refusal> {
        let of_sagemaker = matches!(change, Change::Take(_) | Change::Forget);
        if !of_sagemaker && self.repository.control() != Control::Explicit {
            let message =
                "this server does not load and unload models by calls: its setting 'control' is not 'explicit'";
            return Err(Refusal::invalid(message));
        }
        let _waits = Waits::new(&self.changes)?;
        let service = self.clone();
        let job = move || match change {
            Change::Load => service.repository.load(&name),
            Change::Unload => service.repository.unload(&name),
            Change::Take(folder) => service.repository.take(&name, &folder),
            Change::Forget => service.repository.forget(&name),
        };
        self.background.run(JobKind::Change, None, job).await
    }

    /// Loads a model that was unloaded to free memory, once for all requests that wait for it.
    async fn bring_back(
        self: &Arc<Service>,
        account: Account,
        name: &str,
        version: Option<&str>,
    ) -> Result<Arc<Model>, Refusal> {
        let (service, of, wanted) = (self.clone(), name.to_owned(), version.map(str::to_owned));
        let job = move || match service.repository.find(&of, wanted.as_deref()) {
            None => service.repository.load_evicted(&of),
            Some(_) => Ok(()),
        };
        match self.background.run(JobKind::Change, Some(account), job).await {
            Err(refusal) if matches!(refusal.cause, Cause::Memory | Cause::Unavailable) => Err(refusal),
            // The catalog says why it does not serve.
            _ => self.repository.catalog().find(name, version),
        }
    }

    /// Checks that a model serves, and that the server accepts requests.
    pub(crate) fn model_ready(&self, name: &str, version: Option<&str>) -> Result<(), Refusal> {
        self.repository.catalog().find(name, version)?;
        if self.is_draining() {
            return Err(Refusal::draining());
        }
        self.queue.check()
    }

    /// Returns the result of [`Service::model_ready`]. Fails if there is no such model or version.
    pub(crate) fn is_model_ready(&self, name: &str, version: Option<&str>) -> Result<bool, Refusal> {
        match self.model_ready(name, version) {
            Err(refusal) if refusal.cause == Cause::NotFound => Err(refusal),
            ready => Ok(ready.is_ok()),
        }
    }

    /// Returns a version of a model, the highest if none is named, and the names of all its serving
    /// versions.
    pub(crate) fn metadata(&self, name: &str, version: Option<&str>) -> Result<(Arc<Model>, Vec<String>), Refusal> {
        let catalog = self.repository.catalog();
        let model = catalog.find(name, version)?;
        Ok((model, catalog.versions(name)?.serving_versions()))
    }

    /// Returns statistics of a version, of all versions of a model, or of all models.
    pub(crate) fn statistics(
        &self,
        name: Option<&str>,
        version: Option<&str>,
    ) -> Result<Vec<ModelStatistics>, Refusal> {
        let catalog = self.repository.catalog();
        if let Some(name) = name {
            catalog.versions(name)?;
            if version.is_some() {
                catalog.find(name, version)?;
            }
        }
        let wanted = |(model, of): &(&str, &Version)| {
            name.is_none_or(|name| *model == name) && version.is_none_or(|version| of.version == version)
        };
        let of = catalog.versions_of_all().filter(wanted);
        Ok(of.map(|(model, of)| ModelStatistics::of(model, &of.version, &of.metrics)).collect())
    }

    /// Returns all models and versions with their state.
    pub(crate) fn index(&self) -> Vec<IndexEntry> {
        self.repository.catalog().index()
    }

    /// Begins an inference request whose head has arrived. It is counted when it ends. A request
    /// that is dropped without [`Inference::end`] has lost its client.
    pub(crate) fn begin(self: &Arc<Service>, began: Instant) -> Inference {
        Inference::new(self.clone(), began)
    }
}
