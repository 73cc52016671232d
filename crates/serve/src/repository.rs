//! Models by name and version.

use crate::model::{Model, TensorInfo};
use crate::protocol::{datatype_of, short};
use crate::refusal::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<&Arc<Model>, Refusal> {
        let versions = self.versions(name)?;
        let found = match version {
            None => versions.last(),
            Some(version) => versions.iter().find(|model| model.version == version),
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = versions.iter().map(|model| model.version.as_str()).collect();
            let version = version.map(short).unwrap_or_default();
            let known = known.join(", ");
            Refusal::not_found(format!("the model '{name}' has no version '{version}'; it has {known}"))
        })
    }

    /// All versions of a model, the highest last.
    pub(crate) fn versions(&self, name: &str) -> Result<&[Arc<Model>], Refusal> {
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
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Model>> + Clone {
        self.models.values().flatten()
    }

    /// The metadata of all versions of all models: a list in JSON.
    pub fn describe(&self) -> String {
        Value::from(self.all().map(|model| self.metadata(model)).collect::<Vec<_>>()).to_string()
    }

    /// The protocol's metadata of a model.
    pub(crate) fn metadata(&self, model: &Model) -> Value {
        let versions = self.models.get(&model.name).map(Vec::as_slice).unwrap_or_default();
        let versions: Vec<&str> = versions.iter().map(|model| model.version.as_str()).collect();
        let tensor = |info: &TensorInfo| json!({ "name": info.name, "datatype": datatype_of(info.dtype), "shape": info.extents() });
        json!({
            "name": model.name,
            "versions": versions,
            "platform": "mxnet_mxrt",
            "inputs": model.inputs.iter().map(tensor).collect::<Vec<_>>(),
            "outputs": model.outputs.iter().map(tensor).collect::<Vec<_>>(),
        })
    }
}
