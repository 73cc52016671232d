//! Folder of a repository: `NAME/VERSION/{files, mxrt.toml}`, or `NAME/{files, mxrt.toml}` or an
//! archive `NAME.zip` for version 1. Nothing outside the folder is read.

use crate::settings::{OF_MODEL, check_name};
use mxrt_io::model_files::archive_stem;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Largest number of files of a version.
const MOST_FILES: usize = 1000;
/// Version of a model whose files are not in a folder for a version.
const ONLY: &str = "1";

/// Paths, sizes and times of the files of a version: equal while none of them has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Vec<(PathBuf, u64, Option<SystemTime>)>);

/// Version that the folder has.
#[derive(Clone, Debug)]
pub(super) struct FoundVersion {
    pub(super) version: String,
    /// folder or archive of the model
    model: PathBuf,
    pub(super) path: PathBuf,
    /// settings files; later ones override earlier ones
    pub(super) settings: Vec<PathBuf>,
    pub(super) stamp: Stamp,
}

/// Model that the folder has, or the error of reading its versions.
#[derive(Clone, Debug)]
pub(super) struct FoundModel {
    pub(super) name: String,
    pub(super) versions: Result<Vec<FoundVersion>, String>,
}

/// Finds all models of a repository, sorted by name.
pub(super) fn scan(root: &Path) -> Result<Vec<FoundModel>, String> {
    let named = |error: std::io::Error| format!("the repository '{}': {error}", root.display());
    let root = root.canonicalize().map_err(named)?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&root).map_err(named)? {
        let path = entry.map_err(named)?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let name = if path.is_dir() { Some(file) } else { archive_stem(&path) };
        let Some(name) = name.filter(|name| !name.starts_with('.')) else { continue };
        let versions = check_name("name", name).and_then(|()| versions(&root, &path));
        found.push(FoundModel { name: name.to_owned(), versions });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    // The error is that of the model, so that the others are served.
    found.dedup_by(|later, kept| {
        let is_same = later.name == kept.name;
        if is_same {
            kept.versions = Err(format!("the repository has two models '{}'", kept.name));
        }
        is_same
    });
    Ok(found)
}

/// Returns the present stamp of a version.
pub(super) fn stamp_now(root: &Path, version: &FoundVersion) -> Result<Stamp, String> {
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    version_at(&root, &version.model, &version.version, &version.path).map(|now| now.stamp)
}

fn version_at(root: &Path, model: &Path, version: &str, path: &Path) -> Result<FoundVersion, String> {
    let settings = [model.join(OF_MODEL), path.join(OF_MODEL)];
    let mut settings: Vec<PathBuf> = settings.into_iter().filter(|file| file.is_file()).collect();
    settings.dedup();
    let mut stamp = stamp(root, path)?;
    // Settings of the whole model are in another folder than the version.
    for file in settings.iter().filter(|file| !file.starts_with(path)) {
        add(root, file, &mut stamp)?;
    }
    Ok(FoundVersion { version: version.to_owned(), model: model.to_owned(), path: path.to_owned(), settings, stamp })
}

fn versions(root: &Path, model: &Path) -> Result<Vec<FoundVersion>, String> {
    inside(root, model)?;
    let version = |version: &str, path: &Path| version_at(root, model, version, path);
    let mut found = Vec::new();
    if model.is_dir() {
        for entry in std::fs::read_dir(model).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && path.is_dir() {
                inside(root, &path)?;
                found.push(version(name, &path)?);
            }
        }
    }
    if found.is_empty() {
        found.push(version(ONLY, model)?);
    }
    found.sort_by_key(|version| version.version.parse::<u64>().unwrap_or(u64::MAX));
    Ok(found)
}

/// Fails if a path leads out of the repository.
fn inside(root: &Path, path: &Path) -> Result<(), String> {
    let real = path.canonicalize().map_err(|error| format!("'{}': {error}", relative(root, path)))?;
    if real.starts_with(root) {
        return Ok(());
    }
    Err(format!("'{}' leads out of the repository", relative(root, path)))
}

/// Removes the repository's folder from a path, as clients need not know it.
fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn stamp(root: &Path, path: &Path) -> Result<Stamp, String> {
    let mut stamp = Stamp(Vec::new());
    add(root, path, &mut stamp)?;
    stamp.0.sort();
    Ok(stamp)
}

/// Adds a file, or the files of a folder, to a stamp.
fn add(root: &Path, path: &Path, stamp: &mut Stamp) -> Result<(), String> {
    let words = |error: std::io::Error| format!("'{}': {error}", relative(root, path));
    inside(root, path)?;
    if stamp.0.len() >= MOST_FILES {
        return Err(format!("it has more than {MOST_FILES} files"));
    }
    let about = std::fs::metadata(path).map_err(words)?;
    if !about.is_dir() {
        stamp.0.push((path.to_owned(), about.len(), about.modified().ok()));
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(words)? {
        let entry = entry.map_err(words)?.path();
        let hidden = entry.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden {
            add(root, &entry, stamp)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn two_models_of_a_name_are_an_error_of_that_model_alone() {
        let root = std::env::temp_dir().join(format!("mxrt-twice-{}", std::process::id()));
        for folder in ["faces/1", "scores/2"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        std::fs::write(root.join("faces.zip"), "").expect("a file");
        std::fs::write(root.join("faces.mar"), "").expect("a file");
        // A hidden link is no file of the model, so that it may lead anywhere.
        symlink("/etc/hostname", root.join("scores/2/.m-symbol.json")).expect("a link");
        let found = scan(&root).expect("a folder");
        std::fs::remove_dir_all(&root).expect("a folder");
        let said: Vec<_> = found
            .iter()
            .map(|model| (model.name.as_str(), model.versions.as_ref().map(|versions| versions[0].version.as_str())))
            .collect();
        let words = "the repository has two models 'faces'".to_owned();
        assert_eq!(said, [("faces", Err(&words)), ("scores", Ok("2"))]);
    }
}
