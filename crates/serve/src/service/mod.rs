//! What a server does, whatever the protocol of its clients: transports translate to this.
//!
//! | call | of the protocol |
//! | --- | --- |
//! | [`Service::check_ready`], [`Service::model_ready`] | health |
//! | [`Service::metadata`], [`Service::statistics`], [`Service::index`] | metadata, statistics, repository |
//! | [`Service::begin`] | inference, from the head of a request to its end |

mod inference;
mod statistics;

pub(crate) use inference::{Inference, Schedule, array, memory};
pub(crate) use statistics::ModelStatistics;

use crate::config::Config;
use crate::metrics::ModelMetrics;
use crate::model::Model;
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::repository::{IndexEntry, Repository};
use mxrt_engine::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// The extensions of the protocol that work here, and no others.
pub(crate) const EXTENSIONS: &[&str] = &["binary_tensor_data", "schedule_policy", "statistics", "metrics"];
/// Name of the server in its metadata.
pub(crate) const NAME: &str = "mxrt";
/// Version of the server in its metadata.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Models, their queue, and what is counted.
pub(crate) struct Service {
    pub(crate) engine: &'static Engine,
    pub(crate) config: Config,
    pub(crate) repository: Repository,
    pub(crate) queue: Arc<Queue>,
    /// requests that name no model that there is
    pub(crate) nameless: ModelMetrics,
    draining: AtomicBool,
    /// inference requests whose head has come and whose answer has not been made
    begun: AtomicUsize,
}

impl Service {
    pub(crate) fn new(engine: &'static Engine, repository: Repository, config: Config) -> Arc<Service> {
        Arc::new(Service {
            engine,
            queue: Queue::new(config.queue_requests, config.queue_bytes),
            config,
            repository,
            nameless: ModelMetrics::default(),
            draining: AtomicBool::new(false),
            begun: AtomicUsize::new(0),
        })
    }

    /// Refuses new requests from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Whether new requests are refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Requests that have begun and have not ended.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Whether requests are taken now.
    pub(crate) fn check_ready(&self) -> Result<(), Refusal> {
        if self.is_draining() {
            return Err(Refusal::draining());
        }
        self.queue.check()
    }

    /// Whether requests for this model are taken now.
    pub(crate) fn model_ready(&self, name: &str, version: Option<&str>) -> Result<(), Refusal> {
        self.repository.find(name, version)?;
        self.check_ready()
    }

    /// A version of a model, the highest if none is named, and the versions that there are.
    pub(crate) fn metadata(&self, name: &str, version: Option<&str>) -> Result<(Arc<Model>, Vec<String>), Refusal> {
        let model = self.repository.find(name, version)?;
        let versions = self.repository.versions(name)?.iter().map(|model| model.version.clone()).collect();
        Ok((model, versions))
    }

    /// What was counted: for a version, all versions of a model, or all models.
    pub(crate) fn statistics(
        &self,
        name: Option<&str>,
        version: Option<&str>,
    ) -> Result<Vec<ModelStatistics>, Refusal> {
        let models = match (name, version) {
            (None, _) => self.repository.all(),
            (Some(name), None) => self.repository.versions(name)?,
            (Some(name), version) => vec![self.repository.find(name, version)?],
        };
        Ok(models.iter().map(|model| ModelStatistics::of(model)).collect())
    }

    /// All models that there are, with their state.
    pub(crate) fn index(&self) -> Vec<IndexEntry> {
        self.repository.index()
    }

    /// An inference whose head has come. It is counted when it ends; one that is dropped before has
    /// lost its client.
    pub(crate) fn begin(self: &Arc<Service>, began: Instant) -> Inference {
        Inference::new(self.clone(), began)
    }
}
