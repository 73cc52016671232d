//! A version is loaded beside what serves, and memory for it is found.

use super::folder::{self, FoundVersion};
use super::{Changes, ModelFiles, Repository, Trouble};
use crate::model::{Loading, Model, ModelSpec};
use mxrt_engine::{CoreLimit, FailureKind, OpError};
use mxrt_graph::BuildOptions;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// What a model takes of memory for each byte of its parameter file: the parameters, and as much
/// again for those that are rearranged for the kernels.
const MEMORY_PER_BYTE: u64 = 2;
/// The memory of a model that is unloaded comes back when its last request has ended.
const PATIENCE: Duration = Duration::from_secs(5);

impl Repository {
    /// Loads a version beside what serves. Files that change meanwhile are no version.
    pub(super) fn prepare(
        &self,
        spec: &ModelSpec,
        version: &str,
        found: Option<&FoundVersion>,
        changes: &mut Changes,
    ) -> Result<Arc<Model>, Trouble> {
        let mut metrics = None;
        self.publish(|catalog| {
            let of = catalog.models.entry(spec.name.clone()).or_default().version(version);
            of.loading = true;
            metrics = Some(of.metrics.clone());
        });
        let path = spec.settings.path.as_deref().ok_or("it has no path".to_owned())?;
        let files = ModelFiles::find(path, spec.settings.params.as_deref(), self.most_unpacked)?;
        self.make_room(&spec.name, files.bytes().saturating_mul(MEMORY_PER_BYTE), changes)?;
        let loading = Loading {
            engine: self.engine,
            plans: BuildOptions {
                cores: spec.settings.cores.map(|most| self.core_limit(&spec.name, most)),
                ..self.plans
            },
            spec,
            files: &files,
            metrics: metrics.unwrap_or_default(),
            turns: &self.turns,
            hooks: self.hooks.as_ref(),
            max_nodes: self.max_nodes,
        };
        let trouble = |error: OpError| Trouble { kind: error.kind, words: error.message.clone() };
        let model = Model::load(&loading).map_err(trouble)?;
        if found.is_some_and(|found| !self.is_still(&spec.name, found)) {
            return Err("its files changed while they were read".to_owned().into());
        }
        Ok(Arc::new(model))
    }

    /// The bound of the cores of a model, which its versions share. It stays for ever, as ops that
    /// have begun may use it.
    fn core_limit(&self, name: &str, most: usize) -> &'static CoreLimit {
        let mut limits = self.core_limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.entry((name.to_owned(), most)).or_insert_with(|| Box::leak(Box::new(CoreLimit::new(most))))
    }

    /// Without the folders of the server, which clients need not know.
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

    fn is_still(&self, name: &str, version: &FoundVersion) -> bool {
        let found = self.folder.as_deref().and_then(|folder| folder::scan(folder).ok()).unwrap_or_default();
        let versions = found.into_iter().find(|model| model.name == name).and_then(|model| model.versions.ok());
        versions.is_some_and(|versions| {
            versions.iter().any(|now| now.version == version.version && now.stamp == version.stamp)
        })
    }

    /// Sees to it that so many bytes fit into the limit of memory.
    fn make_room(&self, name: &str, bytes: u64, changes: &mut Changes) -> Result<(), Trouble> {
        loop {
            let stats = self.engine.memory().stats();
            let Some(limit) = stats.limit.map(|limit| limit as u64) else { return Ok(()) };
            if (stats.in_use as u64).saturating_add(bytes) <= limit {
                return Ok(());
            }
            let words = format!(
                "about {bytes} bytes for it do not fit: {} of {limit} bytes are in use (MXRT_MEMORY_LIMIT_MB)",
                stats.in_use
            );
            let no_room = |words| Trouble { words, kind: FailureKind::Memory };
            if !self.evicts {
                return Err(no_room(format!("{words}; with evict = \"lru\" others would make room")));
            }
            // It is not held on to here: that would keep its memory.
            let victim = self.least_used(name).map(|victim| (victim.name.clone(), Arc::downgrade(&victim)));
            let (victim, held) = victim.ok_or_else(|| no_room(words))?;
            let before = stats.in_use;
            self.take_out(&victim, "it was unused for longest when memory was wanted", changes);
            self.publish(|catalog| catalog.models.entry(victim).or_default().evicted = true);
            let began = Instant::now();
            while held.strong_count() > 0 && self.engine.memory().stats().in_use >= before && began.elapsed() < PATIENCE
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// The model of the repository that was unused for longest, beside this one.
    fn least_used(&self, name: &str) -> Option<Arc<Model>> {
        let (told, serving) = (self.told(), self.catalog().serving());
        let models = serving.into_iter().filter(|model| model.name != name && told.given(&model.name).is_none());
        models.min_by_key(|model| model.metrics.last())
    }
}
