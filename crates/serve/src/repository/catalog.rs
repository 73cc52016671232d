//! Catalog of the models that are served now. A catalog does not change. Each change publishes a
//! new one, so that a request sees one consistent state, and a version takes over in one step.

use crate::metrics::ModelMetrics;
use crate::model::Model;
use crate::protocol::short;
use crate::refusal::{Cause, Refusal};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entry of the repository's index.
#[derive(Clone, Debug, Serialize)]
pub struct IndexEntry {
    /// name of the model
    pub name: String,
    /// version of the model
    pub version: String,
    /// `READY`, `LOADING` or `UNAVAILABLE`
    pub state: &'static str,
    /// reason for the state, or the error of its changed files while the earlier ones serve
    pub reason: String,
}

/// Version of a model. It may serve, be loading, or have failed. A version that serves has failed
/// too if its files have changed and cannot be loaded.
#[derive(Clone, Default)]
pub(crate) struct Version {
    pub(crate) version: String,
    /// metrics of this version name, kept when other files are loaded for it
    pub(crate) metrics: Arc<ModelMetrics>,
    /// serving model; requests that have begun hold it too, so its memory is freed with the last of
    /// them
    pub(crate) model: Option<Arc<Model>>,
    pub(crate) loading: bool,
    pub(crate) trouble: Option<String>,
}

/// All versions of a model, the highest last.
#[derive(Clone, Default)]
pub(crate) struct Versions {
    pub(crate) versions: Vec<Version>,
    /// whether the server is ready only while the model serves
    pub(crate) required: bool,
    /// whether it was unloaded to free memory; the next request loads it again
    pub(crate) evicted: bool,
}

/// All models by name.
#[derive(Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) models: BTreeMap<String, Versions>,
}

/// Returns the sort key of a version: numbers come first, by their value.
fn order(version: &str) -> (bool, u64, String) {
    let number = version.parse::<u64>().ok();
    (number.is_none(), number.unwrap_or(0), version.to_owned())
}

impl Version {
    fn state(&self) -> &'static str {
        match (&self.model, self.loading) {
            (Some(_), _) => "READY",
            (None, true) => "LOADING",
            (None, false) => "UNAVAILABLE",
        }
    }
}

impl Versions {
    /// Returns the version of this name, and adds it if it does not exist.
    pub(crate) fn version(&mut self, name: &str) -> &mut Version {
        let place = match self.versions.iter().position(|version| version.version == name) {
            Some(place) => place,
            None => {
                let place = self.versions.partition_point(|other| order(&other.version) < order(name));
                self.versions.insert(place, Version { version: name.to_owned(), ..Version::default() });
                place
            }
        };
        &mut self.versions[place]
    }

    /// Returns the highest version that serves.
    pub(crate) fn serving(&self) -> Option<&Arc<Model>> {
        self.versions.iter().rev().find_map(|version| version.model.as_ref())
    }

    /// Returns the names of the versions that serve.
    pub(crate) fn serving_versions(&self) -> Vec<String> {
        let serving = self.versions.iter().filter(|version| version.model.is_some());
        serving.map(|version| version.version.clone()).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.versions.iter().map(|version| version.version.as_str()).collect()
    }
}

impl Catalog {
    /// Finds a version that serves, the highest if none is named.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<Arc<Model>, Refusal> {
        let versions = self.versions(name)?;
        let Some(version) = version else {
            let last = || versions.versions.iter().rev().find(|version| version.loading || version.trouble.is_some());
            return versions.serving().cloned().ok_or_else(|| unavailable(name, last().or(versions.versions.last())));
        };
        let found = versions.versions.iter().find(|other| other.version == version);
        let found = found.ok_or_else(|| {
            let known = versions.names().join(", ");
            let version = short(version);
            Refusal::not_found(format!("the model '{name}' has no version '{version}'; it has {known}"))
        })?;
        found.model.clone().ok_or_else(|| unavailable(name, Some(found)))
    }

    /// Returns whether a model was unloaded to free memory, so that its next request loads it
    /// again.
    pub(crate) fn is_evicted(&self, name: &str) -> bool {
        self.models.get(name).is_some_and(|of| of.evicted)
    }

    /// Returns all versions of a model.
    pub(crate) fn versions(&self, name: &str) -> Result<&Versions, Refusal> {
        const SHOWN: usize = 8;
        self.models.get(name).ok_or_else(|| {
            let mut known: Vec<&str> = self.models.keys().map(String::as_str).take(SHOWN).collect();
            if self.models.len() > SHOWN {
                known.push("...");
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Refusal::not_found(format!("there is no model '{}'; there are {known}", short(name)))
        })
    }

    /// Returns all models that serve, each version by itself.
    pub(crate) fn serving(&self) -> Vec<Arc<Model>> {
        self.versions_of_all().filter_map(|(_, version)| version.model.clone()).collect()
    }

    /// Iterates over all versions, with the names of their models.
    pub(crate) fn versions_of_all(&self) -> impl Iterator<Item = (&str, &Version)> + Clone {
        self.models.iter().flat_map(|(name, of)| of.versions.iter().map(move |version| (name.as_str(), version)))
    }

    /// Returns all models and versions with their state.
    pub(crate) fn index(&self) -> Vec<IndexEntry> {
        let entry = |(name, version): (&str, &Version)| IndexEntry {
            name: name.to_owned(),
            version: version.version.clone(),
            state: version.state(),
            reason: version.trouble.clone().unwrap_or_default(),
        };
        self.versions_of_all().map(entry).collect()
    }

    /// Returns the name of a required model that does not serve.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.models.iter().find(|(_, of)| of.required && of.serving().is_none()).map(|(name, _)| name.as_str())
    }
}

fn unavailable(name: &str, version: Option<&Version>) -> Refusal {
    let why = match version {
        Some(version) if version.loading => "is being loaded".to_owned(),
        Some(Version { trouble: Some(trouble), .. }) => format!("does not serve: {trouble}"),
        _ => "does not serve".to_owned(),
    };
    let message = format!("the model '{name}' {why}");
    Refusal::new(Cause::Unavailable, message).retry_after(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let mut of = Versions::default();
        for version in ["10", "b", "9", "a", "9"] {
            of.version(version);
        }
        assert_eq!(of.names(), ["9", "10", "a", "b"]);
    }

    #[test]
    fn what_does_not_serve_says_why() {
        let mut catalog = Catalog::default();
        let of = catalog.models.entry("m".to_owned()).or_default();
        of.required = true;
        of.version("1").trouble = Some("no file".to_owned());
        of.version("2").loading = true;
        assert_eq!(catalog.missing(), Some("m"));
        let refused = |name, version| {
            let refusal = catalog.find(name, version).expect_err("it does not serve");
            (refusal.cause, refusal.message)
        };
        assert_eq!(refused("m", Some("1")), (Cause::Unavailable, "the model 'm' does not serve: no file".to_owned()));
        assert_eq!(refused("m", None), (Cause::Unavailable, "the model 'm' is being loaded".to_owned()));
        assert_eq!(refused("m", Some("3")).0, Cause::NotFound);
        assert_eq!(refused("n", None), (Cause::NotFound, "there is no model 'n'; there are m".to_owned()));
        let states: Vec<_> = catalog.index().iter().map(|entry| entry.state).collect();
        assert_eq!(states, ["UNAVAILABLE", "LOADING"]);
    }
}
