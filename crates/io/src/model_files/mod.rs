//! Files of a model, found by a prefix, a symbol file, a folder, or an archive.

mod notes;
mod params;
mod search;

use super::archive::{self, Unpacked};
use std::path::{Path, PathBuf};

/// Ending of symbol files.
const SYMBOL: &str = "-symbol.json";
/// Name of a symbol file in a folder that is named after the model.
const LONE_SYMBOL: &str = "symbol.json";
/// Ending of parameter files.
const PARAMS: &str = ".params";

/// Symbol file and parameter file of a model.
#[derive(Debug)]
pub(crate) struct ModelFiles {
    pub(crate) symbol: PathBuf,
    /// parameter file; none for a graph without parameters
    pub(crate) params: Option<PathBuf>,
    /// folder of an unpacked archive, removed when this is dropped
    unpacked: Option<Unpacked>,
}

/// Returns the default name of a model: that of its files, or of the folder of a `symbol.json`.
pub fn own_name(path: &Path) -> Result<String, String> {
    check_is_local(path)?;
    if let Some(stem) = archive::stem(path) {
        return Ok(stem.to_owned());
    }
    let text = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(archive) = search::lone_archive(path) {
        return Ok(archive::stem(&archive).map_or_else(|| text(&archive), str::to_owned));
    }
    let (symbol, _) = search::symbol_file(path)?;
    let name = text(&symbol);
    if name == LONE_SYMBOL {
        let folder = symbol.canonicalize().ok().and_then(|symbol| symbol.parent().map(text));
        return Ok(folder.unwrap_or(name));
    }
    Ok(name.strip_suffix(SYMBOL).or_else(|| name.strip_suffix(".json")).unwrap_or(&name).to_owned())
}

/// Fails for a path that is an address, such as `s3://bucket/model`.
fn check_is_local(path: &Path) -> Result<(), String> {
    match path.to_str().and_then(|path| path.split_once("://")) {
        Some((scheme, _)) => Err(format!("addresses of {scheme} are not read: download the model, and name its files")),
        None => Ok(()),
    }
}

impl ModelFiles {
    /// Finds the files. An error names what was looked for. An archive is unpacked, up to
    /// `most_unpacked` bytes, and `params` is then a name inside it.
    pub(crate) fn find(path: &Path, params: Option<&Path>, most_unpacked: usize) -> Result<ModelFiles, String> {
        check_is_local(path)?;
        let archive = if archive::stem(path).is_some() { Some(path.to_owned()) } else { search::lone_archive(path) };
        let Some(archive) = archive else {
            let (symbol, numbered) = search::symbol_file(path)?;
            return ModelFiles::of(symbol, params.or(numbered.as_deref()));
        };
        let mut unpacked = archive::unpack(&archive, most_unpacked)?;
        // What SageMaker's linear learner and factorization machines write is an archive in an
        // archive.
        if let Some(inner) = search::lone_archive(unpacked.folder()) {
            let inside = archive::unpack(&inner, most_unpacked).map_err(|words| unpacked.shown(&words))?;
            unpacked = inside.named(&archive);
        }
        let symbol = search::symbol_in(unpacked.folder(), Some(&archive))?;
        let params = params.and_then(Path::file_name).map(|name| symbol.with_file_name(name));
        let found = ModelFiles::of(symbol, params.as_deref()).map_err(|words| unpacked.shown(&words))?;
        Ok(ModelFiles { unpacked: Some(unpacked), ..found })
    }

    /// A symbol file with the parameter file that is named, or else the one of its model.
    fn of(symbol: PathBuf, params: Option<&Path>) -> Result<ModelFiles, String> {
        let params = match params {
            Some(params) if !params.is_file() => {
                return Err(format!("there is no file '{}' (params)", params.display()));
            }
            Some(params) => Some(params.to_owned()),
            None => params::of_symbol(&symbol),
        };
        Ok(ModelFiles { symbol, params, unpacked: None })
    }

    /// Names the archive in words about an unpacked file.
    pub(crate) fn shown(&self, words: &str) -> String {
        self.unpacked.as_ref().map_or_else(|| words.to_owned(), |unpacked| unpacked.shown(words))
    }

    /// Reads the names and shapes of inputs from the notes next to the files, if there are any; -1
    /// is an extent that may be any.
    pub(crate) fn noted_shapes(&self) -> Result<Vec<(String, Vec<i64>)>, String> {
        notes::shapes(&self.symbol)
    }

    /// Returns the size of the parameter file, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.params.as_ref().and_then(|file| std::fs::metadata(file).ok()).map_or(0, |about| about.len())
    }
}
