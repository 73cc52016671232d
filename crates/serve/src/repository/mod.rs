//! Repository of models, which are loaded and unloaded while the server runs.
//!
//! | module | does |
//! | --- | --- |
//! | `catalog` | the models that are served now, for requests |
//! | `folder` | the models in a repository's folder |
//! | `apply`, `prepare` | loading while others serve, and taking over |
//!
//! Requests read a [`Catalog`], which never changes, and hold the model that they found in it until
//! they end. One change at a time is prepared in a background thread, and then published at once.
//! A version that does not load, does not agree with its golden file, or does not fit into memory
//! does not affect the models that serve.

mod apply;
mod catalog;
mod folder;
mod prepare;

pub use catalog::IndexEntry;
pub(crate) use catalog::{Catalog, Version};

use crate::hooks::HookLoader;
use crate::log::{Level, Log};
use crate::model::Model;
use crate::refusal::{Cause, Refusal, bounded};
use crate::settings::{Configuration, ModelSpec, OfModels, check_name};
use crate::settings::{Control, SageMaker};
use crate::turns::Turns;
use apply::settle;
use folder::{FoundModel, FoundVersion, Stamp};
use mxrt_engine::{CoreLimit, Engine, FailureKind, OpError};
use mxrt_graph::BuildOptions;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls per core that the engine gets concurrently, so that a core that becomes free has the next
/// one.
const CALLS_PER_CORE: usize = 2;
/// Error of loading a model. Its words may quote files, so they are bounded like those of a
/// refusal.
#[derive(Clone, Debug)]
struct Trouble {
    words: String,
    kind: FailureKind,
}

impl Trouble {
    fn new(kind: FailureKind, words: String) -> Trouble {
        Trouble { words: bounded(words), kind }
    }
}

impl From<String> for Trouble {
    fn from(words: String) -> Trouble {
        Trouble::new(FailureKind::Value, words)
    }
}

/// State of earlier changes of the catalog.
#[derive(Default)]
struct Changes {
    /// files of each version at the last attempt to load it
    tried: HashMap<(String, String), Stamp>,
    /// files of each version at the last scan of the folder
    seen: HashMap<(String, String), Stamp>,
    /// models whose versions could not be read at the last scan, with the error
    unread: HashMap<String, String>,
    /// models of which no version could be chosen at the last attempt, with the error
    unchosen: HashMap<String, String>,
    /// models unloaded by a call, or for lack of memory; scans do not load them
    unloaded: HashSet<String>,
    /// last error of each model; that of the folder itself has an empty name
    complaints: HashMap<String, String>,
}

/// Settings of models.
#[derive(Default)]
struct Configured {
    of_models: OfModels,
    /// models that were given by path
    given: Vec<ModelSpec>,
}

impl Configured {
    fn given(&self, name: &str) -> Option<&ModelSpec> {
        self.given.iter().find(|spec| spec.name == name)
    }
}

/// Models of a server.
pub(crate) struct Repository {
    engine: &'static Engine,
    plans: BuildOptions,
    folder: Option<PathBuf>,
    control: Control,
    /// whether models given by path come and go by calls
    by_calls: bool,
    evicts: bool,
    most_unpacked: usize,
    configured: Mutex<Arc<Configured>>,
    log: Log,
    turns: Arc<Turns>,
    core_limits: Mutex<HashMap<(String, usize), &'static CoreLimit>>,
    hooks: Option<HookLoader>,
    max_nodes: Option<usize>,
    catalog: Mutex<Arc<Catalog>>,
    changes: Mutex<Changes>,
    /// whether the server listens
    started: AtomicBool,
}

impl Repository {
    pub(crate) fn new(
        engine: &'static Engine,
        plans: BuildOptions,
        configuration: &Configuration,
        given: Vec<ModelSpec>,
        log: Log,
    ) -> Repository {
        let config = &configuration.server;
        Repository {
            engine,
            plans,
            folder: config.repository.clone(),
            control: config.control,
            by_calls: config.sagemaker == SageMaker::Models,
            evicts: config.evict,
            most_unpacked: config.max_unpacked,
            configured: Mutex::new(Arc::new(Configured { of_models: configuration.of_models().clone(), given })),
            log,
            hooks: configuration.hooks.clone(),
            max_nodes: configuration.max_nodes,
            turns: Turns::new(CALLS_PER_CORE * engine.cores(), config.ageing, config.admission),
            core_limits: Mutex::default(),
            catalog: Mutex::default(),
            changes: Mutex::default(),
            started: AtomicBool::new(false),
        }
    }

    fn configured(&self) -> Arc<Configured> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings of models. They apply when a model is next loaded. Models that are no
    /// longer given by path go out of service.
    pub(crate) fn tell(&self, of_models: OfModels, given: Vec<ModelSpec>) {
        let mut changes = self.changes();
        let given = if self.by_calls { self.configured().given.clone() } else { given };
        let next = Arc::new(Configured { of_models, given });
        let before =
            std::mem::replace(&mut *self.configured.lock().unwrap_or_else(PoisonError::into_inner), next.clone());
        changes.tried.retain(|(model, _), _| next.of_models.says_as(&before.of_models, model));
        for spec in before.given.iter().filter(|spec| next.given(&spec.name).is_none()) {
            self.publish(|catalog| drop(catalog.models.remove(&spec.name)));
            self.log.model(Level::Info, &spec.name, "it is not named any more");
        }
    }

    /// Returns the models that are served now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finds a version that serves. Returns `None` if its model was unloaded to free memory. A
    /// caller that waits until it is loaded again must hold no catalog, which would keep the memory
    /// of others.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Option<Result<Arc<Model>, Refusal>> {
        let catalog = self.catalog();
        match catalog.find(name, version) {
            Err(refusal) if refusal.cause != Cause::NotFound && catalog.is_evicted(name) => None,
            found => Some(found),
        }
    }

    /// Returns the setting that says when models are loaded after the start.
    pub(crate) fn control(&self) -> Control {
        self.control
    }

    /// Returns the log of the server.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the number of requests that wait for a permit to compute.
    pub(crate) fn waiting(&self) -> usize {
        self.turns.waiting()
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, change: impl FnOnce(&mut Catalog)) {
        let mut published = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        // The catalog is copied only if requests read it now. Freeing a model takes long, so the
        // old models are dropped after the lock is released.
        let before = published.serving();
        change(Arc::make_mut(&mut published));
        drop(published);
        drop(before);
    }

    /// Loads all models at the start. Models that were given by path must load. The index gives the
    /// errors of those in the folder.
    pub(crate) fn start(&self) -> Result<(), OpError> {
        let mut changes = self.changes();
        for spec in &self.configured().given {
            let error =
                |trouble: Trouble| OpError::new(trouble.kind, format!("model '{}': {}", spec.name, trouble.words));
            self.load_given(spec, &mut changes).map_err(error)?;
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        for found in folder::scan(folder).map_err(|words| OpError::new(FailureKind::Data, words))? {
            let done = self.apply(&found, &mut changes);
            self.complain(&found.name, done, &mut changes);
        }
        Ok(())
    }

    /// Loads a model on request: the present versions of its folder, or its files again.
    pub(crate) fn load(&self, name: &str) -> Result<(), Refusal> {
        self.load_tried(name, true)
    }

    /// Loads a model that was unloaded to free memory. Files that failed before are not tried again
    /// unless memory was lacking: all requests that wait for the model come here, one by one.
    pub(crate) fn load_evicted(&self, name: &str) -> Result<(), Refusal> {
        self.load_tried(name, false)
    }

    fn load_tried(&self, name: &str, again: bool) -> Result<(), Refusal> {
        let mut changes = self.changes();
        let configured = self.configured();
        let done = match (configured.given(name), &self.folder) {
            (Some(spec), _) => self.load_given(spec, &mut changes),
            (None, None) => return Err(self.unknown(name)),
            (None, Some(folder)) => {
                let found = folder::scan(folder).map_err(Refusal::failed)?;
                let found = found.into_iter().find(|found| found.name == name);
                let found = found.ok_or_else(|| self.unknown(name))?;
                changes.unloaded.remove(name);
                // Versions that failed before are tried again too.
                changes.tried.retain(|(model, version), _| {
                    let catalog = self.catalog();
                    !again || model != name || catalog.find(model, Some(version)).is_ok()
                });
                let done = self.apply(&found, &mut changes);
                if done.as_ref().is_err_and(|trouble| trouble.kind == FailureKind::Memory) {
                    changes.tried.retain(|(model, _), _| model != name);
                }
                done
            }
        };
        done.map_err(|trouble| {
            let message = format!("the model '{name}' was not loaded: {}", trouble.words);
            match trouble.kind {
                FailureKind::Memory => Refusal::new(Cause::Memory, message).retry_after(1),
                kind => Refusal { code: kind.code(), ..Refusal::failed(message) },
            }
        })
    }

    /// Returns names and paths of the models that were given by path.
    pub(crate) fn given_paths(&self) -> Vec<(String, PathBuf)> {
        let configured = self.configured();
        configured.given.iter().filter_map(|spec| Some((spec.name.clone(), spec.settings.path.clone()?))).collect()
    }

    /// Serves a model of a folder from now on.
    pub(crate) fn take(&self, name: &str, folder: &Path) -> Result<(), Refusal> {
        check_name("name", name).map_err(Refusal::invalid)?;
        let mut changes = self.changes();
        let configured = self.configured();
        if configured.given(name).is_some() {
            let message = format!("the model '{}' is loaded already", crate::protocol::short(name));
            return Err(Refusal::new(Cause::Conflict, message));
        }
        let settings = configured.of_models.settings_in(name, folder).map_err(Refusal::invalid)?;
        let spec = ModelSpec { name: name.to_owned(), settings };
        if let Err(trouble) = self.load_given(&spec, &mut changes) {
            self.publish(|catalog| drop(catalog.models.remove(name)));
            let message = format!("the model '{name}' was not loaded: {}", trouble.words);
            return Err(match trouble.kind {
                // The platform unloads another model and tries again.
                FailureKind::Memory => Refusal::new(Cause::NoRoom, message),
                _ if !folder.exists() => Refusal::not_found(message),
                kind => Refusal { code: kind.code(), ..Refusal::invalid(message) },
            });
        }
        self.give(|given| given.push(spec));
        Ok(())
    }

    /// Takes a model of a folder out of service and forgets it. Requests that have begun still
    /// complete.
    pub(crate) fn forget(&self, name: &str) -> Result<(), Refusal> {
        let _changes = self.changes();
        if self.configured().given(name).is_none() {
            return Err(Refusal::not_found(format!("the model '{}' is not loaded", crate::protocol::short(name))));
        }
        self.give(|given| given.retain(|spec| spec.name != name));
        self.publish(|catalog| drop(catalog.models.remove(name)));
        self.log.model(Level::Info, name, "it was unloaded");
        Ok(())
    }

    fn give(&self, change: impl FnOnce(&mut Vec<ModelSpec>)) {
        let mut configured = self.configured.lock().unwrap_or_else(PoisonError::into_inner);
        let mut given = configured.given.clone();
        change(&mut given);
        *configured = Arc::new(Configured { of_models: configured.of_models.clone(), given });
    }

    fn unknown(&self, name: &str) -> Refusal {
        self.catalog().versions(name).err().unwrap_or_else(|| {
            Refusal::not_found(format!("the repository has no model '{}' any more", crate::protocol::short(name)))
        })
    }

    /// Takes a model out of service. Requests that have begun still complete.
    pub(crate) fn unload(&self, name: &str) -> Result<(), Refusal> {
        let mut changes = self.changes();
        self.catalog().versions(name)?;
        self.take_out(name, "it was unloaded", &mut changes);
        Ok(())
    }

    fn take_out(&self, name: &str, why: &str, changes: &mut Changes) {
        changes.unloaded.insert(name.to_owned());
        changes.tried.retain(|(model, _), _| model != name);
        self.publish(|catalog| {
            let Some(of) = catalog.models.get_mut(name) else { return };
            (of.required, of.evicted) = (false, false);
            for version in &mut of.versions {
                version.model = None;
                version.trouble = Some(why.to_owned());
            }
        });
        self.log.model(Level::Info, name, why);
    }

    /// Scans the folder: loads new and changed versions, and takes models out of service whose
    /// files are gone. Files that changed since the last scan may still be incomplete, so they wait
    /// for the next one.
    pub(crate) fn look(&self) {
        self.follow_folder(true);
    }

    /// Loads again all models that have changed, and every model that was given by path.
    pub(crate) fn reload(&self) {
        {
            let mut changes = self.changes();
            for spec in &self.configured().given {
                match self.load_given(spec, &mut changes) {
                    Ok(()) => self.log.model(Level::Info, &spec.name, "loaded again"),
                    Err(trouble) => {
                        self.log.model(Level::Error, &spec.name, &format!("not loaded again: {}", trouble.words))
                    }
                }
            }
        }
        self.follow_folder(false);
    }

    fn follow_folder(&self, patient: bool) {
        let Some(folder) = &self.folder else { return };
        let found = match folder::scan(folder) {
            Ok(found) => found,
            Err(words) => {
                // The empty name stands for the folder itself.
                return self.complain("", Err(words.into()), &mut self.changes());
            }
        };
        let mut changes = self.changes();
        self.complain("", Ok(()), &mut changes);
        let seen = found.iter().filter_map(|model| Some((model, model.versions.as_ref().ok()?)));
        let seen: HashMap<(String, String), Stamp> = seen
            .flat_map(|(model, versions)| {
                versions.iter().map(|version| ((model.name.clone(), version.version.clone()), version.stamp.clone()))
            })
            .collect();
        let before = std::mem::replace(&mut changes.seen, seen);
        let unread =
            found.iter().filter_map(|model| Some((model.name.clone(), model.versions.as_ref().err()?.clone())));
        let unread_before = std::mem::replace(&mut changes.unread, unread.collect());
        for model in &found {
            let still = |version: &FoundVersion| {
                let key = (model.name.clone(), version.version.clone());
                changes.tried.get(&key) == Some(&version.stamp) || before.get(&key) == Some(&version.stamp)
            };
            let rests = match &model.versions {
                Ok(versions) => versions.iter().all(still),
                Err(words) => unread_before.get(&model.name) == Some(words),
            };
            if (patient && !rests) || changes.unloaded.contains(&model.name) {
                continue;
            }
            let done = self.apply(model, &mut changes);
            self.complain(&model.name, done, &mut changes);
        }
        self.drop_missing(&found, &mut changes);
    }

    /// Logs the error of a model, unless it is the one that was logged last.
    fn complain(&self, name: &str, done: Result<(), Trouble>, changes: &mut Changes) {
        match done {
            Ok(()) => drop(changes.complaints.remove(name)),
            Err(trouble) if changes.complaints.get(name) == Some(&trouble.words) => {}
            Err(trouble) => {
                match name {
                    "" => self.log.line(Level::Error, &trouble.words),
                    name => self.log.model(Level::Error, name, &trouble.words),
                }
                changes.complaints.insert(name.to_owned(), trouble.words);
            }
        }
    }

    /// Takes models out of service whose folders are gone.
    fn drop_missing(&self, found: &[FoundModel], changes: &mut Changes) {
        let (configured, catalog) = (self.configured(), self.catalog());
        let there: HashSet<&str> = found.iter().map(|model| model.name.as_str()).collect();
        let missing = |name: &&String| configured.given(name).is_none() && !there.contains(name.as_str());
        for name in catalog.models.keys().filter(missing) {
            changes.tried.retain(|(model, _), _| model != name);
            changes.unloaded.remove(name);
            changes.complaints.remove(name);
            changes.unchosen.remove(name);
            self.publish(|catalog| drop(catalog.models.remove(name)));
            self.log.model(Level::Info, name, "its folder is gone");
        }
    }

    fn load_given(&self, spec: &ModelSpec, changes: &mut Changes) -> Result<(), Trouble> {
        let version = spec.settings.version.clone();
        let made = self.prepare(spec, &version, None, changes).map_err(|trouble| self.for_clients(spec, trouble));
        self.publish(|catalog| {
            let of = catalog.models.entry(spec.name.clone()).or_default();
            of.required = spec.settings.required;
            settle(of.version(&version), &made);
        });
        changes.unloaded.remove(&spec.name);
        made.map(drop)
    }

    /// Returns the metadata of all models that serve, as a JSON list.
    pub(crate) fn describe(&self) -> String {
        let catalog = self.catalog();
        let described = catalog.models.values().flat_map(|of| {
            let versions: Vec<String> = of.serving_versions();
            let models = of.versions.iter().filter_map(|version| version.model.clone());
            models.map(move |model| model.metadata(&versions)).collect::<Vec<_>>()
        });
        Value::from(described.collect::<Vec<_>>()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_quotes_a_file_is_shortened() {
        let trouble = Trouble::new(FailureKind::Data, "é".repeat(1 << 20));
        assert!(trouble.words.len() < 5000 && trouble.words.ends_with("é..."));
    }
}
