//! Settings of servers and models. Each setting is one row of a table. The row gives its key in
//! files, its option `--key`, its variable `MXRT_SERVE_KEY`, its argument in Python, its help, and
//! the field that holds its value, with its default.
//!
//! | module | does |
//! | --- | --- |
//! | `server`, `model` | the tables |
//! | `row` | a row, and the macro that makes a structure and its table of rows |
//! | `kinds`, `inputs` | kinds of values: how they are read and shown |
//! | `value` | values before and after their types are checked |
//! | `file` | TOML |
//!
//! Later sources override earlier ones: the file, then the environment, then options. A setting of
//! one model overrides a setting of all models.

mod file;
mod inputs;
mod kinds;
mod model;
mod row;
mod server;
mod value;

pub use model::{BatchChoice, MODEL, ModelSettings, ModelSpec, VersionChoice};
pub use row::{Scope, Setting};
pub use server::{Config, Control, GrpcPort, SERVER, SageMaker};
pub use value::{Given, Value};

use crate::hooks::HookLoader;
use file::{EntryValue, FileEntry};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Prefix of environment variables.
pub const VARIABLES: &str = "MXRT_SERVE_";
/// Key of the section in which each model has a section of its own.
const MODELS: &str = "models";
/// Name of the settings file next to the files of a model or version.
pub(crate) const OF_MODEL: &str = "mxrt.toml";
/// Name of the variable, without the prefix, that names the file.
const FILE: &str = "config";

/// Source of a value.
#[derive(Clone, Debug)]
pub enum Origin {
    /// file, and the line in it
    File(PathBuf, usize),
    /// environment variable
    Environment,
    /// option of the command
    Option,
    /// program that uses this crate
    Program,
}

impl Origin {
    /// Returns the name of a setting in the form of this source.
    fn name(&self, key: &str) -> String {
        match self {
            Origin::File(file, line) => format!("{}:{line}: {key}", file.display()),
            Origin::Environment => format!("{VARIABLES}{}", key.to_ascii_uppercase()),
            // Options give these one by one.
            Origin::Option if matches!(key, "shapes" | "dtypes") => format!("--{}", key.trim_end_matches('s')),
            Origin::Option => format!("--{}", key.replace('_', "-")),
            Origin::Program => key.to_owned(),
        }
    }

    /// Returns the folder of relative paths.
    fn base(&self) -> Option<&Path> {
        match self {
            Origin::File(file, _) => file.parent().filter(|folder| !folder.as_os_str().is_empty()),
            _ => None,
        }
    }
}

/// Value of a setting, with its source.
#[derive(Clone, Debug)]
struct GivenSetting {
    origin: Origin,
    key: &'static str,
    given: Given,
}

/// Settings of models, kept in the form in which they were given until a model is loaded.
#[derive(Clone, Debug, Default)]
pub struct OfModels {
    all: Vec<GivenSetting>,
    one: Vec<(String, Vec<GivenSetting>)>,
}

impl OfModels {
    /// Returns the settings of a model.
    pub fn settings(&self, name: &str) -> Result<ModelSettings, String> {
        self.settings_with(name, &[])
    }

    /// Returns whether the settings of a model are equal here and in `other`.
    pub(crate) fn says_as(&self, other: &OfModels, name: &str) -> bool {
        let of = |models: &OfModels| -> Vec<(&'static str, Given)> {
            let own = models.one.iter().filter(|(other, _)| other == name).flat_map(|(_, said)| said);
            models.all.iter().chain(own).map(|said| (said.key, said.given.clone())).collect()
        };
        of(self) == of(other)
    }

    /// Returns the settings of a model of a repository. Settings files next to the model override
    /// the settings of all models.
    pub(crate) fn settings_with(&self, name: &str, files: &[PathBuf]) -> Result<ModelSettings, String> {
        let mut settings = ModelSettings::default();
        let mut take = |said: &GivenSetting| {
            apply(MODEL, &mut settings, said)?;
            settings.said_by.push((said.key, said.origin.name(said.key)));
            Ok::<_, String>(())
        };
        self.all.iter().try_for_each(&mut take)?;
        for file in files {
            for entry in file::read(file)? {
                let origin = Origin::File(file.clone(), entry.line);
                let of_files = MODEL.iter().filter(|row| row.key != "path" && row.key != "version");
                let row = of_files.clone().find(|row| row.key == entry.key);
                let row = row.ok_or_else(|| unknown(&origin, &entry.key, of_files.map(|row| row.key)))?;
                take(&GivenSetting { origin, key: row.key, given: entry.given() })?;
            }
        }
        let own = self.one.iter().find(|(other, _)| other == name).map(|(_, said)| said.as_slice());
        own.unwrap_or_default().iter().try_for_each(take)?;
        Ok(settings)
    }

    /// Returns the settings of a model of SageMaker, whose folder may have a settings file.
    pub(crate) fn settings_in(&self, name: &str, folder: &Path) -> Result<ModelSettings, String> {
        let file = folder.join(OF_MODEL);
        let files = if file.is_file() { std::slice::from_ref(&file) } else { &[] };
        check_artifact(folder, files)?;
        let mut settings = self.settings_with(name, files)?;
        settings.path = Some(folder.to_owned());
        Ok(settings)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.one.iter().map(|(name, _)| name.as_str())
    }
}

/// Fails if the settings files of an artifact name code, or files outside of its folder: whoever
/// made the artifact may not be the one who runs the server.
fn check_artifact(folder: &Path, files: &[PathBuf]) -> Result<(), String> {
    let named = OfModels::default().settings_with("", files)?;
    if let (Some(hooks), [file, ..]) = (&named.hooks, files) {
        let (file, hooks) = (file.display(), hooks.display());
        return Err(format!(
            "'{file}' names hooks, '{hooks}', whose code would run in the server: name them by --hooks, or put their \
             functions into code/inference.py and start the server with --sagemaker-code"
        ));
    }
    named.check_inside(folder, "the folder of the model")
}

fn apply<C>(table: &'static [Setting<C>], to: &mut C, said: &GivenSetting) -> Result<(), String> {
    let Some(row) = table.iter().find(|row| row.key == said.key) else { return Ok(()) };
    (row.read)(to, Value { given: &said.given, base: said.origin.base() })
        .map_err(|expected| format!("{} is {}; expected {expected}", said.origin.name(said.key), said.given.words()))
}

/// Settings of a server and of its models, collected from all sources.
#[derive(Clone, Default)]
pub struct Configuration {
    /// settings of the server
    pub server: Config,
    /// loader of hooks; none: models cannot have hooks
    pub hooks: Option<HookLoader>,
    /// largest number of nodes in a symbol file; none: any number
    pub max_nodes: Option<usize>,
    /// whether the program that starts the server prints the warnings about its models itself
    pub quiet: bool,
    models: OfModels,
    /// values for the server with their sources, for `print`
    said: Vec<GivenSetting>,
}

impl std::fmt::Debug for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Configuration({:?}, {:?})", self.server, self.models)
    }
}

impl Configuration {
    /// Reads a TOML file. An unknown key is an error that names the nearest known one.
    pub fn file(&mut self, path: &Path) -> Result<(), String> {
        self.entries(path, file::read(path)?)
    }

    /// Reads the text of a TOML file. Errors name it by `path`.
    pub fn text(&mut self, path: &Path, text: &str) -> Result<(), String> {
        let entries = file::parse(text).map_err(|(line, words)| format!("{}:{line}: {words}", path.display()))?;
        self.entries(path, entries)
    }

    fn entries(&mut self, path: &Path, entries: Vec<FileEntry>) -> Result<(), String> {
        let origin = |line| Origin::File(path.to_owned(), line);
        for entry in entries {
            let EntryValue::Section(models) = &entry.value else {
                if entry.key == MODELS {
                    let name = origin(entry.line).name(&entry.key);
                    return Err(format!("{name}: expected a section for each model, [{MODELS}.NAME]"));
                }
                self.set(origin(entry.line), &entry.key, entry.given())?;
                continue;
            };
            if entry.key != MODELS {
                self.set(origin(entry.line), &entry.key, entry.given())?;
                continue;
            }
            for model in models {
                let EntryValue::Section(keys) = &model.value else {
                    let name = origin(model.line).name(&model.key);
                    return Err(format!("{name}: expected a section, [{MODELS}.{}]", model.key));
                };
                self.add_model(&model.key).map_err(|error| format!("{}:{}: {error}", path.display(), model.line))?;
                for key in keys {
                    self.set_model(origin(key.line), &model.key, &key.key, key.given())?;
                }
            }
        }
        Ok(())
    }

    /// Reads the variables `MXRT_SERVE_...`, and ignores others.
    pub fn environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) -> Result<(), String> {
        for (variable, text) in variables {
            let Some(key) = variable.strip_prefix(VARIABLES) else { continue };
            if key != FILE.to_ascii_uppercase() {
                self.set(Origin::Environment, &key.to_ascii_lowercase(), Given::Text(text))?;
            }
        }
        Ok(())
    }

    /// Sets a value for the server, or for all models.
    pub fn set(&mut self, origin: Origin, key: &str, given: Given) -> Result<(), String> {
        let given = structured(&origin, given);
        let row = SERVER.iter().map(|row| row.key).find(|known| *known == key);
        if let Some(key) = row {
            let said = GivenSetting { origin, key, given };
            apply(SERVER, &mut self.server, &said)?;
            self.said.push(said);
            return Ok(());
        }
        match MODEL.iter().find(|row| row.key == key) {
            Some(row) if row.scope == Scope::Models => {
                let said = GivenSetting { origin, key: row.key, given };
                apply(MODEL, &mut ModelSettings::default(), &said)?;
                self.models.all.push(said);
                Ok(())
            }
            Some(row) => Err(format!("{} belongs to one model: say which one", origin.name(row.key))),
            None => {
                let of_models = MODEL.iter().filter(|row| row.scope == Scope::Models).map(|row| row.key);
                let tables = matches!(origin, Origin::File(..)).then_some("models");
                Err(unknown(&origin, key, SERVER.iter().map(|row| row.key).chain(of_models).chain(tables)))
            }
        }
    }

    /// Adds a model to be served.
    pub fn add_model(&mut self, name: &str) -> Result<(), String> {
        if self.models.names().any(|other| other == name) {
            return Ok(());
        }
        check_name("name", name)?;
        self.models.one.push((name.to_owned(), Vec::new()));
        Ok(())
    }

    /// Sets a value for one model, which must have been added.
    pub fn set_model(&mut self, origin: Origin, model: &str, key: &str, given: Given) -> Result<(), String> {
        let given = structured(&origin, given);
        let Some(row) = MODEL.iter().find(|row| row.key == key) else {
            return Err(unknown(&origin, key, MODEL.iter().map(|row| row.key)));
        };
        let known: Vec<String> = self.models.names().map(str::to_owned).collect();
        let Some((_, of_model)) = self.models.one.iter_mut().find(|(name, _)| name == model) else {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{}: there is no model '{model}'; there are {known}", origin.name(key)));
        };
        let said = GivenSetting { origin, key: row.key, given };
        apply(MODEL, &mut ModelSettings::default(), &said)?;
        of_model.push(said);
        Ok(())
    }

    /// Returns the names of the models, in the order in which they were added.
    pub fn models(&self) -> Vec<String> {
        self.models.names().map(str::to_owned).collect()
    }

    /// Returns the settings of a model.
    pub fn settings(&self, model: &str) -> Result<ModelSettings, String> {
        self.models.settings(model)
    }

    /// Returns the settings of all models.
    pub(crate) fn of_models(&self) -> &OfModels {
        &self.models
    }

    /// Returns the models that are served in addition to those of the repository. A model without a
    /// path is one of the repository, to which its settings apply.
    pub(crate) fn specs(&self) -> Result<Vec<ModelSpec>, String> {
        let mut specs = Vec::new();
        for name in self.models.names() {
            let mut settings = self.models.settings(name)?;
            if let (Some(folder), true) = (settings.path.clone(), self.server.sagemaker != SageMaker::Off) {
                settings = self.models.settings_in(name, &folder)?;
            }
            check_name("version", &settings.version)?;
            if settings.path.is_none() && self.server.repository.is_none() {
                return Err(format!("the model '{name}' has no path"));
            }
            if settings.path.is_some() {
                specs.push(ModelSpec { name: name.to_owned(), settings });
            }
        }
        let none_yet = self.server.repository.is_some() || self.server.sagemaker == SageMaker::Models;
        if specs.is_empty() && !none_yet {
            return Err("there is no model to be served: name one, or a repository".to_owned());
        }
        Ok(specs)
    }

    /// Returns the keys of the server's settings that differ from those of a running server.
    pub(crate) fn differs_from(&self, running: &Config) -> Vec<&'static str> {
        let differs = |row: &&Setting<Config>| (row.show)(&self.server) != (row.show)(running);
        SERVER.iter().filter(differs).map(|row| row.key).collect()
    }

    /// Formats all settings as an equivalent configuration file, with the source of each.
    pub fn print(&self) -> Result<String, String> {
        let mut to = String::new();
        for (part, rows) in self.shown()? {
            let _ = match part {
                SettingsPart::Server => Ok(()),
                SettingsPart::Models => writeln!(to, "\n# of all models"),
                SettingsPart::Model(name) => writeln!(to, "\n[{MODELS}.{}]", value::name(name)),
            };
            for ShownSetting { key, value, by } in rows {
                let _ = match value {
                    Some(given) => writeln!(to, "{key} = {}  # {by}", given.toml()),
                    None => writeln!(to, "# {key} is not set"),
                };
            }
        }
        Ok(to)
    }

    /// Formats all settings as JSON: `settings` of the server and of all models, and `models` by name.
    /// Each has its value, null where it is not set, and its source.
    pub fn print_json(&self) -> Result<String, String> {
        let (mut settings, mut models) = (serde_json::Map::new(), serde_json::Map::new());
        for (part, rows) in self.shown()? {
            let rows = rows.into_iter().map(|ShownSetting { key, value, by }| {
                let by = value.is_some().then_some(by);
                (key.to_owned(), json!({ "value": value.map(|given| given.json()), "by": by }))
            });
            match part {
                SettingsPart::Server | SettingsPart::Models => settings.extend(rows),
                SettingsPart::Model(name) => drop(models.insert(name.to_owned(), rows.collect())),
            }
        }
        Ok(json!({ "settings": settings, "models": models }).to_string())
    }

    /// Returns all settings with the source of each, part by part.
    fn shown(&self) -> Result<Vec<(SettingsPart<'_>, Vec<ShownSetting>)>, String> {
        let mut of_all = ModelSettings::default();
        for said in &self.models.all {
            apply(MODEL, &mut of_all, said)?;
        }
        let mut parts = vec![
            (SettingsPart::Server, shown(SERVER, &self.server, Scope::Server, &[&self.said])),
            (SettingsPart::Models, shown(MODEL, &of_all, Scope::Models, &[&self.models.all])),
        ];
        for (name, said) in &self.models.one {
            let rows = shown(MODEL, &self.models.settings(name)?, Scope::OneModel, &[&self.models.all, said]);
            parts.push((SettingsPart::Model(name), rows));
        }
        Ok(parts)
    }
}

/// Part of a configuration.
enum SettingsPart<'a> {
    Server,
    /// settings of all models
    Models,
    /// settings of the model with this name
    Model(&'a str),
}

/// Setting as it is printed.
struct ShownSetting {
    key: &'static str,
    /// none if it is not set
    value: Option<Given>,
    /// source of the value
    by: String,
}

/// Parses lists and tables in TOML syntax that the environment or an option gives as one text.
fn structured(origin: &Origin, given: Given) -> Given {
    match (origin, &given) {
        (Origin::Environment | Origin::Option, Given::Text(text)) if text.starts_with(['[', '{']) => {
            let parsed = file::parse(&format!("value = {text}")).ok();
            parsed.and_then(|entries| entries.first().map(FileEntry::given)).unwrap_or(given)
        }
        _ => given,
    }
}

/// Returns the settings of this scope. The section of a model has all settings of models.
fn shown<C>(table: &'static [Setting<C>], of: &C, scope: Scope, said: &[&[GivenSetting]]) -> Vec<ShownSetting> {
    let rows = table.iter().filter(|row| row.scope == scope || scope == Scope::OneModel);
    rows.map(|row| {
        let by = said.iter().flat_map(|said| said.iter()).rfind(|said| said.key == row.key);
        let by = match by.map(|said| &said.origin) {
            None => "default".to_owned(),
            Some(Origin::File(file, line)) => format!("{}:{line}", file.display()),
            Some(Origin::Program) => "program".to_owned(),
            Some(origin) => origin.name(row.key),
        };
        ShownSetting { key: row.key, value: (row.show)(of), by }
    })
    .collect()
}

/// Checks a name or version of a model, which is a segment of URLs.
pub(crate) fn check_name(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.starts_with('.') || text.chars().any(|c| c == '/' || c.is_control()) {
        return Err(format!("'{text}' is no {what} of a model: it needs letters, no '/', and no '.' in front"));
    }
    Ok(())
}

fn unknown(origin: &Origin, key: &str, known: impl Iterator<Item = &'static str>) -> String {
    let name = match origin {
        Origin::File(file, line) => format!("{}:{line}: there is no key '{key}'", file.display()),
        Origin::Program => format!("there is no setting '{key}'"),
        origin => format!("there is no {}", origin.name(key)),
    };
    let nearest = nearest(key, known).map(|key| match origin {
        Origin::File(..) | Origin::Program => format!("'{key}'"),
        origin => origin.name(key),
    });
    nearest.map_or(name.clone(), |nearest| format!("{name}; did you mean {nearest}?"))
}

/// Returns the known word that differs least from this one.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Length, in bytes, beyond which a word is hardly a misspelling.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    known.min_by_key(|other| distance(word, other))
}

/// Returns the least number of letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, of_a) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, of_b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(of_a != *of_b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
