//! Models by name and version.

use crate::model::Model;
use crate::protocol::short;
use crate::refusal::Refusal;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model of the repository, as its index has it.
#[derive(Clone, Debug, Serialize)]
pub struct IndexEntry {
    /// name of the model
    pub name: String,
    /// its version
    pub version: String,
    /// `READY` or `UNAVAILABLE`
    pub state: &'static str,
    /// why it is in this state
    pub reason: String,
}

/// The models that a server answers for.
#[derive(Debug, Default)]
pub struct Repository {
    models: BTreeMap<String, Vec<Arc<Model>>>,
}

impl Repository {
    /// Adds a model. An error says what is wrong with its name, or that there is such a version.
    pub fn add(&mut self, model: Model) -> Result<(), String> {
        let (name, version) = (&model.name, &model.version);
        for (what, text) in [("name", name), ("version", version)] {
            if text.is_empty() || text.chars().any(|c| c == '/' || c.is_control()) {
                return Err(format!("'{text}' is no {what} of a model: it needs letters, and no '/'"));
            }
        }
        let versions = self.models.entry(name.clone()).or_default();
        if versions.iter().any(|other| other.version == *version) {
            return Err(format!("there are two models '{name}' of version {version}: give one another name"));
        }
        versions.push(Arc::new(model));
        versions.sort_by_key(|model| (model.version.parse::<u64>().ok(), model.version.clone()));
        Ok(())
    }

    /// A version of a model; the highest if none is named.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<Arc<Model>, Refusal> {
        let versions = self.versions_of(name)?;
        let found = match version {
            None => versions.last(),
            Some(version) => versions.iter().find(|model| model.version == version),
        };
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = versions.iter().map(|model| model.version.as_str()).collect();
            let version = version.map(short).unwrap_or_default();
            let known = known.join(", ");
            Refusal::not_found(format!("the model '{name}' has no version '{version}'; it has {known}"))
        })
    }

    /// All versions of a model, the highest last.
    pub(crate) fn versions(&self, name: &str) -> Result<Vec<Arc<Model>>, Refusal> {
        self.versions_of(name).map(<[Arc<Model>]>::to_vec)
    }

    fn versions_of(&self, name: &str) -> Result<&[Arc<Model>], Refusal> {
        const SHOWN: usize = 8;
        self.models.get(name).map(Vec::as_slice).ok_or_else(|| {
            let mut known: Vec<&str> = self.models.keys().map(String::as_str).take(SHOWN).collect();
            if self.models.len() > SHOWN {
                known.push("...");
            }
            Refusal::not_found(format!("there is no model '{}'; there are {}", short(name), known.join(", ")))
        })
    }

    /// All versions of all models.
    pub(crate) fn all(&self) -> Vec<Arc<Model>> {
        self.models.values().flatten().cloned().collect()
    }

    /// All models that there are, with their state.
    pub(crate) fn index(&self) -> Vec<IndexEntry> {
        let entry = |model: &Arc<Model>| IndexEntry {
            name: model.name.clone(),
            version: model.version.clone(),
            state: "READY",
            reason: String::new(),
        };
        self.models.values().flatten().map(entry).collect()
    }

    /// The metadata of all versions of all models: a list in JSON.
    pub fn describe(&self) -> String {
        let of_name = |models: &Vec<Arc<Model>>| {
            let versions: Vec<String> = models.iter().map(|model| model.version.clone()).collect();
            models.iter().map(|model| model.metadata(&versions)).collect::<Vec<_>>()
        };
        Value::from(self.models.values().flat_map(of_name).collect::<Vec<_>>()).to_string()
    }
}
