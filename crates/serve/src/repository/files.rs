//! Files of a model, found by a prefix, a symbol file, a folder, or an archive.

use super::archive::{self, Unpacked};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Endings of symbol files and, below, of parameter files.
const SYMBOL: &str = "-symbol.json";
const PARAMS: &str = ".params";
/// Largest number of names that a message lists.
const SHOWN: usize = 8;

/// Symbol file and parameter file of a model.
#[derive(Debug)]
pub(crate) struct ModelFiles {
    pub(crate) symbol: PathBuf,
    /// parameter file; none for a graph without parameters
    pub(crate) params: Option<PathBuf>,
    /// folder of an unpacked archive, removed when this is dropped
    unpacked: Option<Unpacked>,
}

/// Returns the default name of a model: that of its files.
pub fn own_name(path: &Path) -> Result<String, String> {
    if let Some(stem) = archive::stem(path) {
        return Ok(stem.to_owned());
    }
    if let Some(archive) = lone_archive(path) {
        return own_name(&archive);
    }
    let (symbol, _) = symbol_file(path)?;
    let name = symbol.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(name.strip_suffix(SYMBOL).or_else(|| name.strip_suffix(".json")).unwrap_or(name).to_owned())
}

impl ModelFiles {
    /// Finds the files. An error names what was looked for. An archive is unpacked, up to
    /// `most_unpacked` bytes, and `params` is then a name inside it.
    pub(crate) fn find(path: &Path, params: Option<&Path>, most_unpacked: usize) -> Result<ModelFiles, String> {
        if let Some((scheme, _)) = path.to_str().and_then(|path| path.split_once("://")) {
            return Err(format!("addresses of {scheme} are not read: download the model, and name its files"));
        }
        let archive = if archive::stem(path).is_some() { Some(path.to_owned()) } else { lone_archive(path) };
        let Some(archive) = archive else { return ModelFiles::among(path, params) };
        let unpacked = archive::unpack(&archive, most_unpacked)?;
        let folder = model_folder(unpacked.folder()).map_err(|words| format!("{}: {words}", archive.display()))?;
        let params = params.and_then(Path::file_name).map(|name| folder.join(name));
        let found = ModelFiles::among(&folder, params.as_deref());
        let mut found = found.map_err(|words| unpacked.shown(&words))?;
        found.unpacked = Some(unpacked);
        Ok(found)
    }

    fn among(path: &Path, params: Option<&Path>) -> Result<ModelFiles, String> {
        let (symbol, numbered) = symbol_file(path)?;
        let params = match params.or(numbered.as_deref()) {
            Some(params) if !params.is_file() => {
                return Err(format!("there is no file '{}' (params)", params.display()));
            }
            Some(params) => Some(params.to_owned()),
            None => newest_params(&symbol),
        };
        Ok(ModelFiles { symbol, params, unpacked: None })
    }

    /// Names the archive in words about an unpacked file.
    pub(crate) fn shown(&self, words: &str) -> String {
        self.unpacked.as_ref().map_or_else(|| words.to_owned(), |unpacked| unpacked.shown(words))
    }

    /// Reads the names and shapes of inputs from the `signature.json` of MXNet Model Server, if
    /// there is one next to the files. In such a file 0 stands for any extent; here it becomes -1.
    pub(crate) fn signature(&self) -> Result<Vec<(String, Vec<i64>)>, String> {
        #[derive(Deserialize)]
        struct Signature {
            inputs: Vec<Input>,
        }
        #[derive(Deserialize)]
        struct Input {
            data_name: String,
            data_shape: Vec<i64>,
        }
        let file = self.symbol.with_file_name("signature.json");
        if !file.is_file() {
            return Ok(Vec::new());
        }
        let named = |words: String| format!("signature.json: {words}");
        let text = mxrt_io::read_text(&file).map_err(|error| named(error.to_string()))?;
        let signature: Signature = serde_json::from_str(&text).map_err(|error| named(error.to_string()))?;
        let shape = |extents: Vec<i64>| extents.into_iter().map(|e| if e >= 1 { e } else { -1 }).collect();
        Ok(signature.inputs.into_iter().map(|input| (input.data_name, shape(input.data_shape))).collect())
    }

    /// Returns the size of the parameter file, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.params.as_ref().and_then(|file| std::fs::metadata(file).ok()).map_or(0, |about| about.len())
    }
}

/// Returns the only archive in a folder without a symbol file.
fn lone_archive(folder: &Path) -> Option<PathBuf> {
    if !folder.is_dir() || !named(folder, SYMBOL).is_empty() {
        return None;
    }
    let archives: Vec<PathBuf> = named(folder, "")
        .into_iter()
        .map(|name| folder.join(name))
        .filter(|path| archive::stem(path).is_some())
        .collect();
    match &archives[..] {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// Finds the one folder with a symbol file in an unpacked archive, as near to the top as possible.
fn model_folder(folder: &Path) -> Result<PathBuf, String> {
    /// Depth of folders that are searched.
    const DEPTH: usize = 4;
    let mut found = Vec::new();
    let mut level = vec![folder.to_owned()];
    for _ in 0..DEPTH {
        found.extend(level.iter().filter(|folder| !named(folder, SYMBOL).is_empty()).cloned());
        if !found.is_empty() {
            break;
        }
        let inside = |folder: &PathBuf| named(folder, "").into_iter().map(|name| folder.join(name)).collect::<Vec<_>>();
        level = level.iter().flat_map(inside).filter(|path| path.is_dir()).collect();
    }
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(format!("it holds no *{SYMBOL}")),
        _ => Err(format!("it must hold one folder with a *{SYMBOL}")),
    }
}

/// Finds the symbol file, and the parameter file if the path names its number.
fn symbol_file(path: &Path) -> Result<(PathBuf, Option<PathBuf>), String> {
    let shown = path.display();
    if path.is_dir() {
        let found = named(path, SYMBOL);
        return match &found[..] {
            [one] => Ok((path.join(one), None)),
            _ => Err(format!("the folder '{shown}' must hold one *{SYMBOL}; found: {}", listed(&found))),
        };
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.ends_with(".onnx") {
        return Err(format!(
            "'{shown}' is a model of ONNX, which mxrt does not read: convert it with MXNet's \
             mxnet.contrib.onnx.import_model, and save it with mxnet.model.save_checkpoint"
        ));
    }
    let symbol = if name.ends_with(".json") { path.to_owned() } else { path.with_file_name(format!("{name}{SYMBOL}")) };
    if symbol.is_file() {
        return Ok((symbol, None));
    }
    if let Some((symbol, params)) = of_number(path).filter(|(symbol, _)| symbol.is_file()) {
        return Ok((symbol, Some(params)));
    }
    let folder = symbol.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let nearby = match folder.is_dir() {
        true => format!("in '{}' there are: {}", folder.display(), listed(&named(folder, SYMBOL))),
        false => format!("there is no folder '{}'", folder.display()),
    };
    let expected = format!("a model is PREFIX, PREFIX-NNNN, PREFIX{SYMBOL}, an archive, or a folder with one");
    if path.is_file() && of_number(path).is_none() {
        return Err(format!("'{shown}' is not a file of a model; {expected} ({nearby})"));
    }
    Err(format!("there is no file '{}'; {expected} ({nearby})", symbol.display()))
}

/// Returns both files of `PREFIX-NNNN` or `PREFIX-NNNN.params`.
fn of_number(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(PARAMS).unwrap_or(name);
    let (prefix, digits) = stem.rsplit_once('-')?;
    let is_number = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let files = || (path.with_file_name(format!("{prefix}{SYMBOL}")), path.with_file_name(format!("{stem}{PARAMS}")));
    is_number.then(files)
}

/// Finds the `PREFIX-NNNN.params` with the highest number.
fn newest_params(symbol: &Path) -> Option<PathBuf> {
    let name = symbol.file_name()?.to_str()?;
    let stem = name.strip_suffix(".json")?;
    let prefix = format!("{}-", stem.strip_suffix("-symbol").unwrap_or(stem));
    let folder = symbol.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let number = |file: &String| {
        let digits = file.strip_prefix(&prefix)?.strip_suffix(PARAMS)?;
        (digits.len() == 4).then(|| digits.parse::<u32>().ok())?
    };
    let newest = named(folder, PARAMS).into_iter().filter(|file| number(file).is_some()).max_by_key(number)?;
    Some(symbol.with_file_name(newest))
}

/// Returns the sorted names in a folder that have this ending.
fn named(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{}, ...", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}
