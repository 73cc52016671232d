//! The symbol file that a path means.

use super::{EXPECTED, FindError, LONE_SYMBOL, PARAMS, SYMBOL, archive, params};
use crate::error::reason;
use crate::foreign::recognise;
use std::path::{Path, PathBuf};

/// Largest number of names that a message lists.
const SHOWN: usize = 8;
/// Depth of folders that are searched.
const DEPTH: usize = 4;
/// Largest number of entries of folders that are searched.
const MOST_ENTRIES: usize = 20_000;
/// Folder that macOS adds to archives.
const MACOS: &str = "__MACOSX";
/// Ending of the symbol file of a predictor of GluonTS that is no model.
const NETWORK: &str = "-network.json";
/// Ending of models of ONNX.
const ONNX: &str = ".onnx";

/// Parameter file that a path names besides the symbol file: as a file, or by its number.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) params: Option<PathBuf>,
    pub(super) epoch: Option<u64>,
}

/// Finds the symbol file of a path that is no folder, and what it says of the parameter file.
pub(super) fn symbol_file(path: &Path) -> Result<(PathBuf, Chosen), FindError> {
    let name = name_of(path);
    let symbol = if name.ends_with(".json") { path.to_owned() } else { with_ending(path, SYMBOL) };
    if symbol.is_file() && !name.is_empty() {
        return Ok((symbol, Chosen::default()));
    }
    match of_params(path) {
        Some(files) => Ok(files),
        None if path.is_file() || name.ends_with(ONNX) => Err(no_model(path, &name)),
        None => {
            // A link whose target is gone is in the list of what is there.
            if let (Ok(target), false) = (std::fs::read_link(&symbol), symbol.exists()) {
                let (symbol, target) = (symbol.display(), target.display());
                return Err(FindError::Path(format!("'{symbol}' is a link to '{target}', which is not there")));
            }
            let nearby = nearby(symbol.parent().filter(|folder| !folder.as_os_str().is_empty()));
            Err(FindError::Path(format!("there is no file '{}'; {EXPECTED} ({nearby})", symbol.display())))
        }
    }
}

/// Says what is wrong with a file that is no symbol file, and has none.
fn no_model(path: &Path, name: &str) -> FindError {
    let shown = path.display();
    if let Some(stem) = name.strip_suffix(PARAMS).or((name == "params").then_some(name)) {
        let stem = params::numbered(stem).map_or(stem, |(prefix, _)| prefix);
        return FindError::Path(format!(
            "'{shown}' holds parameters, and there is no '{stem}{SYMBOL}' next to it; a model is both files, as \
             net.export() of Gluon and save_checkpoint write them"
        ));
    }
    if name.ends_with(ONNX) {
        return FindError::Content(format!(
            "'{shown}' is a model of ONNX, which mxrt does not read: convert it with MXNet's \
             mxnet.contrib.onnx.import_model, and save it with mxnet.model.save_checkpoint"
        ));
    }
    match archive::head(path) {
        Err(error) => FindError::Path(format!("'{shown}' cannot be read: {}; {EXPECTED}", reason(&error))),
        Ok(head) => {
            let advice = recognise(&head).map(|words| format!(". {words}")).unwrap_or_default();
            FindError::Content(format!("'{shown}' is no model: {EXPECTED}{advice}"))
        }
    }
}

/// Says which symbol files a folder has.
fn nearby(folder: Option<&Path>) -> String {
    let folder = folder.unwrap_or(Path::new("."));
    let (shown, names) = (folder.display(), named(folder, SYMBOL));
    match names.is_empty() {
        _ if !folder.is_dir() => format!("there is no folder '{shown}'"),
        true => format!("no *{SYMBOL} in '{shown}'"),
        false => format!("in '{shown}' there are {}", listed(&names)),
    }
}

/// Returns the symbol file of `PREFIX-NNNN`, or of a parameter file, if there is one.
fn of_params(path: &Path) -> Option<(PathBuf, Chosen)> {
    let name = path.file_name()?.to_str()?;
    let (stem, is_file) = name.strip_suffix(PARAMS).map_or((name, name == "params"), |stem| (stem, true));
    let numbered = params::numbered(stem);
    if numbered.is_none() && !is_file {
        return None;
    }
    let prefix = numbered.map_or(stem, |(prefix, _)| prefix);
    let symbols = [format!("{prefix}{SYMBOL}"), LONE_SYMBOL.to_owned()];
    let symbol = symbols.into_iter().map(|name| path.with_file_name(name)).find(|symbol| symbol.is_file())?;
    let named = if is_file { path.to_owned() } else { path.with_file_name(format!("{stem}{PARAMS}")) };
    let chosen = match is_file || named.is_file() {
        true => Chosen { params: Some(named), epoch: None },
        // It may be written with another number of digits.
        false => Chosen { params: None, epoch: numbered.map(|(_, number)| number) },
    };
    Some((symbol, chosen))
}

/// Returns the files of a folder, or of the folders nearest to it that have files of a model. Errors
/// name `said`: the folder, or the archive that it was unpacked from.
pub(super) fn files_in(folder: &Path, said: &Path) -> Result<Vec<PathBuf>, FindError> {
    nearest_files(folder).map_err(|words| FindError::Path(format!("'{}': {words}", said.display())))
}

/// Finds the only symbol file among the files of a folder, which may be that of an unpacked archive.
pub(super) fn symbol_among(files: &[PathBuf], folder: &Path, of_archive: Option<&Path>) -> Result<PathBuf, FindError> {
    let said = of_archive.unwrap_or(folder).display();
    let symbols: Vec<&PathBuf> = files.iter().filter(|file| is_symbol(&name_of(file))).collect();
    match &symbols[..] {
        [one] => Ok((*one).clone()),
        [] => Err(FindError::Path(format!("'{said}' holds no model: {}", lacking(files)))),
        _ => {
            let names: Vec<String> = symbols
                .iter()
                .map(|file| file.strip_prefix(folder).unwrap_or(file).to_string_lossy().into_owned())
                .collect();
            let remedy = if of_archive.is_some() { "unpack it, and name" } else { "name" };
            let (count, names) = (names.len(), listed(&names));
            let words = format!("'{said}' holds {count} models ({names}); {remedy} the symbol file of one of them");
            Err(FindError::Path(words))
        }
    }
}

/// Says what is wrong with a folder without a symbol file.
fn lacking(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| name_of(file)).collect();
    let ends = |ending: &str| names.iter().find(|name| name.ends_with(ending));
    if let Some(network) = ends(NETWORK) {
        return format!(
            "'{network}' is a predictor of GluonTS whose network is Python code. Serialise it by \
             predictor.as_symbol_block_predictor(batch), which writes a {SYMBOL}"
        );
    }
    if let Some(params) = ends(PARAMS) {
        return format!(
            "'{params}' has parameters alone, as save_parameters writes them; expected a {SYMBOL} as well, which \
             net.export() writes"
        );
    }
    let found = if names.is_empty() { "nothing".to_owned() } else { listed(&names) };
    format!("expected a file *{SYMBOL}, found {found}")
}

/// The files of a folder, or of the folders nearest to it that have files of a model. Links to
/// folders are not followed, and what is hidden is not looked at.
fn nearest_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut level, mut entries) = (vec![folder.to_owned()], 0);
    let mut top = None;
    for _ in 0..DEPTH {
        let (mut files, mut below) = (Vec::new(), Vec::new());
        for folder in &level {
            let named = |error: std::io::Error| format!("the folder '{}' cannot be read: {error}", folder.display());
            for entry in std::fs::read_dir(folder).map_err(named)? {
                let path = entry.map_err(named)?.path();
                entries += 1;
                if entries > MOST_ENTRIES {
                    return Err(format!("it has more than {MOST_ENTRIES} entries; name the symbol file of a model"));
                }
                let name = name_of(&path);
                if is_hidden(&name) {
                    continue;
                }
                if path.is_file() {
                    files.push(path);
                } else if path.is_dir() && !path.is_symlink() && !name.starts_with(MACOS) {
                    below.push(path);
                }
            }
        }
        files.sort();
        let found = files.iter().map(|file| name_of(file)).any(|name| is_of_model(&name));
        if found || below.is_empty() {
            return Ok(if found { files } else { top.unwrap_or(files) });
        }
        top.get_or_insert(files);
        level = below;
    }
    Ok(top.unwrap_or_default())
}

/// Whether a name is one that programs do not list, such as those that macOS adds to archives.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn is_symbol(name: &str) -> bool {
    name == LONE_SYMBOL || name.ends_with(SYMBOL)
}

fn is_of_model(name: &str) -> bool {
    is_symbol(name) || name.ends_with(NETWORK) || name.ends_with(PARAMS)
}

/// Returns the only archive among files of which none is of a model.
pub(super) fn lone_archive(files: &[PathBuf]) -> Option<&Path> {
    if files.iter().any(|file| is_of_model(&name_of(file))) {
        return None;
    }
    let mut archives = files.iter().map(PathBuf::as_path).filter(|path| archive::is_one(path));
    archives.next().filter(|_| archives.next().is_none())
}

/// Returns the sorted names in a folder that have this ending and are not hidden.
pub(super) fn named(folder: &Path, ending: &str) -> Vec<String> {
    let mut names = all_named(folder, ending);
    names.retain(|name| !is_hidden(name));
    names
}

/// Returns the sorted names in a folder that have this ending.
pub(super) fn all_named(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

/// Adds an ending to the name of a path, in whatever encoding it is.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Lists names, the first of many.
pub(super) fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{}, ...", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}
