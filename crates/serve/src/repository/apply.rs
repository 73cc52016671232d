//! Updating the versions of a model to those in its folder.

use super::folder::{FoundModel, FoundVersion};
use super::{Changes, Repository, Trouble, catalog};
use crate::log::Level;
use crate::model::Model;
use crate::settings::{ModelSettings, ModelSpec, VersionChoice};
use std::sync::Arc;
use std::time::Instant;

impl Repository {
    /// Loads new and changed versions of a model from its folder, and drops those that are gone.
    pub(super) fn apply(&self, found: &FoundModel, changes: &mut Changes) -> Result<(), Trouble> {
        let name = &found.name;
        if self.configured().given(name).is_some() {
            return Err(format!("a model '{name}' was named in addition to the repository, and serves").into());
        }
        let chosen = found.versions.clone().and_then(|versions| self.chosen(name, versions));
        let root = self.folder.as_ref().and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
        let chosen = chosen.map_err(|words| Trouble::from(words.replace(&format!("{}/", root.display()), "")));
        let (wanted, required) = chosen.inspect_err(|trouble| self.publish_trouble(name, &trouble.words, changes))?;
        self.withdraw_trouble(name, changes);
        self.publish(|catalog| catalog.models.entry(name.clone()).or_default().required = required);
        let mut first = Ok(());
        for (version, settings) in &wanted {
            let key = (name.clone(), version.version.clone());
            if changes.tried.get(&key) == Some(&version.stamp) {
                continue;
            }
            let made = self.prepare_version(name, version, settings, changes);
            changes.tried.insert(key, version.stamp.clone());
            let is_last = wanted.last().is_some_and(|(last, _)| last.version == version.version);
            self.publish(|catalog| {
                let of = catalog.models.entry(name.clone()).or_default();
                settle(of.version(&version.version), &made);
                of.evicted &= made.is_err();
                if is_last && made.is_ok() {
                    self.keep(of, found, &wanted);
                }
            });
            first = first.and(made.map(drop).map_err(|mut trouble| {
                trouble.words = format!("version {}: {}", version.version, trouble.words);
                trouble
            }));
        }
        self.drop_gone(found, &wanted);
        changes
            .tried
            .retain(|(model, version), _| model != name || wanted.iter().any(|(wanted, _)| wanted.version == *version));
        first
    }

    /// Takes versions out of service that have gone, even if none was loaded.
    fn drop_gone(&self, found: &FoundModel, wanted: &[(FoundVersion, ModelSettings)]) {
        self.publish(|catalog| {
            let Some(of) = catalog.models.get_mut(&found.name) else { return };
            let last = wanted.last().map(|(last, _)| last.version.as_str()).unwrap_or_default();
            if of.version(last).model.is_some() {
                self.keep(of, found, wanted);
            }
        });
    }

    /// Records why no version of a model can be chosen.
    fn publish_trouble(&self, name: &str, words: &str, changes: &mut Changes) {
        changes.unchosen.insert(name.to_owned(), words.to_owned());
        self.publish(|catalog| {
            let of = catalog.models.entry(name.to_owned()).or_default();
            match of.versions.last_mut() {
                Some(last) => last.trouble = Some(words.to_owned()),
                None => of.version("1").trouble = Some(words.to_owned()),
            }
        });
    }

    /// Removes the error that [`Repository::publish_trouble`] recorded. Versions that do not serve
    /// are tried again.
    fn withdraw_trouble(&self, name: &str, changes: &mut Changes) {
        let Some(words) = changes.unchosen.remove(name) else { return };
        let mut again = Vec::new();
        self.publish(|catalog| {
            let Some(of) = catalog.models.get_mut(name) else { return };
            for version in of.versions.iter_mut().filter(|version| version.trouble.as_ref() == Some(&words)) {
                version.trouble = None;
                if version.model.is_none() {
                    again.push(version.version.clone());
                }
            }
        });
        changes.tried.retain(|(model, version), _| model != name || !again.contains(version));
    }

    /// Loads one version, and logs how long that took.
    fn prepare_version(
        &self,
        name: &str,
        version: &FoundVersion,
        settings: &ModelSettings,
        changes: &mut Changes,
    ) -> Result<Arc<Model>, Trouble> {
        let spec = ModelSpec { name: name.to_owned(), settings: settings.clone() };
        let began = Instant::now();
        let made = self.prepare(&spec, &version.version, Some(version), changes);
        if made.is_ok() {
            let words = format!("version {} loaded in {:.2} s", version.version, began.elapsed().as_secs_f64());
            self.log.model(Level::Info, name, &words);
        }
        made.map_err(|trouble| self.for_clients(&spec, trouble))
    }

    /// Chooses the versions to serve. Returns them with their settings, and whether the server
    /// requires the model.
    #[allow(clippy::type_complexity)]
    fn chosen(
        &self,
        name: &str,
        versions: Vec<FoundVersion>,
    ) -> Result<(Vec<(FoundVersion, ModelSettings)>, bool), String> {
        let root = self.folder.as_ref().and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
        let mut all = Vec::with_capacity(versions.len());
        for version in versions {
            let mut settings = self.configured().of_models.settings_with(name, &version.settings)?;
            settings.check_inside(&root, "the repository")?;
            settings.path = Some(version.path.clone());
            settings.version.clone_from(&version.version);
            all.push((version, settings));
        }
        let Some((_, last)) = all.last() else { return Err("its folder has no version".to_owned()) };
        let (choice, required) = (last.versions.clone(), last.required);
        match choice {
            VersionChoice::All => {}
            VersionChoice::Latest => drop(all.drain(..all.len() - 1)),
            VersionChoice::These(these) => {
                all.retain(|(version, _)| these.contains(&version.version));
                if all.is_empty() {
                    return Err(format!("its folder has none of the versions {}", these.join(", ")));
                }
            }
        }
        Ok((all, required))
    }

    /// Takes unwanted versions out of service. Versions whose files exist keep their entries.
    fn keep(&self, of: &mut catalog::Versions, found: &FoundModel, wanted: &[(FoundVersion, ModelSettings)]) {
        let there = |name: &str| {
            found.versions.as_ref().is_ok_and(|versions| versions.iter().any(|version| version.version == name))
        };
        of.versions.retain(|version| there(&version.version));
        for version in found.versions.iter().flatten() {
            of.version(&version.version);
        }
        let is_wanted = |name: &str| wanted.iter().any(|(wanted, _)| wanted.version == name);
        for version in of.versions.iter_mut().filter(|version| !is_wanted(&version.version)) {
            version.model = None;
            version.trouble = Some("it is not among the versions that are to serve".to_owned());
        }
    }
}

/// Stores the result of loading a version. If loading failed, the present model continues to serve.
pub(super) fn settle(version: &mut catalog::Version, made: &Result<Arc<Model>, Trouble>) {
    version.loading = false;
    match made {
        Ok(model) => {
            version.model = Some(model.clone());
            version.trouble = None;
        }
        Err(trouble) => version.trouble = Some(trouble.words.clone()),
    }
}
