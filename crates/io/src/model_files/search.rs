//! The symbol file that a path means.

use super::{LONE_SYMBOL, PARAMS, SYMBOL, archive, params};
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

/// Finds the symbol file, and the parameter file if the path names it or its number.
pub(super) fn symbol_file(path: &Path) -> Result<(PathBuf, Option<PathBuf>), String> {
    let shown = path.display();
    if path.is_dir() {
        return Ok((symbol_in(path, None)?, None));
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
    if let Some(files) = of_params(path) {
        return Ok(files);
    }
    let folder = symbol.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let nearby = match folder.is_dir() {
        true => format!("in '{}' there are: {}", folder.display(), listed(&named(folder, SYMBOL))),
        false => format!("there is no folder '{}'", folder.display()),
    };
    let expected = format!(
        "a model is PREFIX, PREFIX-NNNN, PREFIX{SYMBOL}, a folder with one, or a .zip, .mar, .tar or .tar.gz with one"
    );
    if path.is_file() && name.ends_with(PARAMS) {
        return Err(format!(
            "'{shown}' holds parameters, and there is no symbol file next to it; {expected} ({nearby})"
        ));
    }
    if path.is_file() {
        return Err(format!("'{shown}' is not a file of a model; {expected} ({nearby})"));
    }
    Err(format!("there is no file '{}'; {expected} ({nearby})", symbol.display()))
}

/// Returns both files of `PREFIX-NNNN`, or of a parameter file, if there is the symbol file.
fn of_params(path: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let name = path.file_name()?.to_str()?;
    let (stem, is_file) = name.strip_suffix(PARAMS).map_or((name, name == "params"), |stem| (stem, true));
    let prefix = params::numbered(stem).map(|(prefix, _)| prefix);
    if prefix.is_none() && !is_file {
        return None;
    }
    let symbols = [format!("{}{SYMBOL}", prefix.unwrap_or(stem)), LONE_SYMBOL.to_owned()];
    let symbol = symbols.into_iter().map(|name| path.with_file_name(name)).find(|symbol| symbol.is_file())?;
    let params = if is_file { path.to_owned() } else { path.with_file_name(format!("{stem}{PARAMS}")) };
    Some((symbol, Some(params)))
}

/// Finds the only symbol file in a folder, or else in the folders in it. The folder may be that of
/// an unpacked archive.
pub(super) fn symbol_in(folder: &Path, of_archive: Option<&Path>) -> Result<PathBuf, String> {
    let said = of_archive.unwrap_or(folder).display();
    let files = nearest_files(folder).map_err(|words| format!("'{said}': {words}"))?;
    let symbols: Vec<&PathBuf> = files.iter().filter(|file| is_symbol(&name_of(file))).collect();
    match &symbols[..] {
        [one] => Ok((*one).clone()),
        [] => Err(format!("'{said}' holds no model: {}", lacking(&files))),
        _ => {
            let names: Vec<String> = symbols
                .iter()
                .map(|file| file.strip_prefix(folder).unwrap_or(file).to_string_lossy().into_owned())
                .collect();
            let remedy = if of_archive.is_some() { "unpack it, and name" } else { "name" };
            let (count, names) = (names.len(), listed(&names));
            Err(format!("'{said}' holds {count} models ({names}): {remedy} the symbol file of one of them"))
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
    format!("expected a file *{SYMBOL}, found {}", listed(&names))
}

/// The files of a folder, or of the folders nearest to it that have files of a model. Links to
/// folders are not followed.
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
                let is_hidden = name.starts_with('.') || name.starts_with(MACOS);
                if path.is_file() {
                    files.push(path);
                } else if path.is_dir() && !path.is_symlink() && !is_hidden {
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

fn is_symbol(name: &str) -> bool {
    name == LONE_SYMBOL || name.ends_with(SYMBOL)
}

fn is_of_model(name: &str) -> bool {
    is_symbol(name) || name.ends_with(NETWORK) || name.ends_with(PARAMS)
}

/// Returns the only archive in a folder without files of a model.
pub(super) fn lone_archive(folder: &Path) -> Option<PathBuf> {
    let names = if folder.is_dir() { named(folder, "") } else { return None };
    if names.iter().any(|name| is_of_model(name)) {
        return None;
    }
    let mut archives = names.into_iter().map(|name| folder.join(name)).filter(|path| archive::is_one(path));
    archives.next().filter(|_| archives.next().is_none())
}

/// Returns the sorted names in a folder that have this ending.
pub(super) fn named(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{}, ...", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}
