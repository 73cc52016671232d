//! Loading a version while others serve, and finding memory for it.

use super::folder::{self, FoundVersion};
use super::{Changes, Repository, Trouble};
use crate::log::Level;
use crate::metrics::ModelMetrics;
use crate::model::{Loading, Model};
use crate::settings::ModelSpec;
use mxrt_engine::{CoreLimit, FailureKind, OpError};
use mxrt_graph::BuildOptions;
use mxrt_io::model_files::{ModelFiles, Wanted};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of memory that a model takes for each byte of its parameter file: one for the parameters,
/// and one for those that are rearranged for the kernels.
const MEMORY_PER_BYTE: u64 = 2;
/// Longest time to wait for the memory of an unloaded model, which its last request frees.
const PATIENCE: Duration = Duration::from_secs(5);

fn trouble(error: OpError) -> Trouble {
    Trouble::new(error.kind, error.message.clone())
}

impl Repository {
    /// Loads a version while others serve. Fails if its files change meanwhile.
    pub(super) fn prepare(
        &self,
        spec: &ModelSpec,
        version: &str,
        found: Option<&FoundVersion>,
        changes: &mut Changes,
    ) -> Result<Arc<Model>, Trouble> {
        let metrics = self.mark_loading(&spec.name, version);
        let path = spec.settings.path.as_deref().ok_or("it has no path".to_owned())?;
        let wanted = Wanted {
            params: spec.settings.params.as_deref(),
            epoch: None,
            most_unpacked: self.most_unpacked,
            folder: None,
        };
        let files = ModelFiles::find(path, &wanted, &mut || true).map_err(|error| trouble(error.into()))?;
        self.make_room(&spec.name, files.bytes().saturating_mul(MEMORY_PER_BYTE), changes)?;
        let model = self.load_files(spec, &files, metrics)?;
        if found.is_some_and(|found| !self.is_still(found)) {
            return Err("its files changed while they were read".to_owned().into());
        }
        if self.started.load(Ordering::Relaxed) {
            self.warn(&model);
        }
        Ok(Arc::new(model))
    }

    /// Loads the model and notes how much memory it takes.
    fn load_files(&self, spec: &ModelSpec, files: &ModelFiles, metrics: Arc<ModelMetrics>) -> Result<Model, Trouble> {
        let loading = Loading {
            engine: self.engine,
            plans: BuildOptions {
                cores: spec.settings.cores.map(|most| self.core_limit(&spec.name, most)),
                ..self.plans
            },
            spec,
            files,
            metrics,
            turns: &self.turns,
            hooks: self.hooks.as_ref(),
            max_nodes: self.max_nodes,
        };
        let before = self.engine.memory().stats().in_use as u64;
        let mut model = Model::load(&loading).map_err(trouble)?;
        // Requests to other models take memory meanwhile, so the growth is capped at the estimate.
        let grown = (self.engine.memory().stats().in_use as u64).saturating_sub(before);
        model.memory = grown.clamp(files.bytes(), files.bytes().saturating_mul(MEMORY_PER_BYTE));
        Ok(model)
    }

    /// Shows in the catalog that a version is being loaded. Returns its metrics.
    fn mark_loading(&self, name: &str, version: &str) -> Arc<ModelMetrics> {
        let mut metrics = None;
        self.publish(|catalog| {
            let of = catalog.models.entry(name.to_owned()).or_default().version(version);
            of.loading = true;
            metrics = Some(of.metrics.clone());
        });
        metrics.unwrap_or_default()
    }

    /// Logs a warning if the model was not called when it was loaded.
    fn warn(&self, model: &Model) {
        if let Some(words) = &model.untried {
            self.log.model(Level::Warning, &model.name, words);
        }
    }

    /// Marks that the server listens, and logs the warnings of the models that were loaded before.
    pub(crate) fn started(&self) {
        self.started.store(true, Ordering::Relaxed);
        self.catalog().serving().iter().for_each(|model| self.warn(model));
    }

    /// Returns the limit of cores of a model, which all its versions share. It is never freed, as
    /// ops that have begun may use it.
    fn core_limit(&self, name: &str, most: usize) -> &'static CoreLimit {
        let mut limits = self.core_limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.entry((name.to_owned(), most)).or_insert_with(|| Box::leak(Box::new(CoreLimit::new(most))))
    }

    /// Removes the folders of the server from an error, as clients need not know them.
    pub(super) fn for_clients(&self, spec: &ModelSpec, mut trouble: Trouble) -> Trouble {
        let real = self.folder.as_ref().and_then(|folder| folder.canonicalize().ok());
        let of_model = spec.settings.path.as_ref().and_then(|path| path.parent()).map(PathBuf::from);
        for folder in [real, self.folder.clone(), of_model].into_iter().flatten() {
            let folder = format!("{}/", folder.display());
            if folder.len() > 1 {
                trouble.words = trouble.words.replace(&folder, "");
            }
        }
        trouble
    }

    fn is_still(&self, version: &FoundVersion) -> bool {
        let now = self.folder.as_deref().and_then(|folder| folder::stamp_now(folder, version).ok());
        now.is_some_and(|now| now == version.stamp)
    }

    /// Frees memory until this many bytes fit into the limit. Unloads nothing if unloading all
    /// candidates would not suffice.
    fn make_room(&self, name: &str, bytes: u64, changes: &mut Changes) -> Result<(), Trouble> {
        let mut decided = false;
        loop {
            let stats = self.engine.memory().stats();
            let Some(limit) = stats.limit.map(|limit| limit as u64) else { return Ok(()) };
            let used = stats.in_use as u64;
            if used.saturating_add(bytes) <= limit {
                return Ok(());
            }
            let words = format!(
                "about {bytes} bytes for it do not fit: {used} of {limit} bytes are in use (MXRT_MEMORY_LIMIT_MB)"
            );
            let no_room = |words| Trouble::new(FailureKind::Memory, words);
            if !self.evicts {
                return Err(no_room(format!("{words}; with evict = \"lru\" others would make room")));
            }
            let victims = self.victims(name);
            let freed: u64 = victims.iter().map(|victim| victim.memory).sum();
            if !decided && used.saturating_sub(freed).saturating_add(bytes) > limit {
                return Err(no_room(format!("{words}, and all models that may make room have about {freed} bytes")));
            }
            decided = true;
            // A strong reference here would keep the victim's memory.
            let victim = victims.first().map(|victim| (victim.name.clone(), Arc::downgrade(victim)));
            drop(victims);
            let (victim, held) = victim.ok_or_else(|| no_room(words))?;
            self.take_out(&victim, "it was unused for longest when memory was wanted", changes);
            self.publish(|catalog| catalog.models.entry(victim).or_default().evicted = true);
            let began = Instant::now();
            while held.strong_count() > 0
                && self.engine.memory().stats().in_use >= stats.in_use
                && began.elapsed() < PATIENCE
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Returns the models of the repository that may be unloaded for this one, the longest unused
    /// first.
    fn victims(&self, name: &str) -> Vec<Arc<Model>> {
        let (configured, mut models) = (self.configured(), self.catalog().serving());
        models.retain(|model| model.name != name && configured.given(&model.name).is_none());
        models.sort_by_key(|model| model.metrics.last());
        models
    }
}
