//! Files of a model, found by a prefix, a symbol file, a folder, or an archive.

mod archive;
mod params;
mod search;

use archive::Unpacked;
use mxrt_engine::{FailureKind, OpError};
use search::Chosen;
use std::path::{Path, PathBuf};

pub use archive::stem as archive_stem;

/// Ending of symbol files.
const SYMBOL: &str = "-symbol.json";
/// Name of a symbol file in a folder that is named after the model.
const LONE_SYMBOL: &str = "symbol.json";
/// Ending of parameter files.
const PARAMS: &str = ".params";
/// Names of a model, for messages.
const EXPECTED: &str =
    "a model is PREFIX, PREFIX-NNNN, PREFIX-symbol.json, a folder with one, or a .zip, .mar, .tar or .tar.gz with one";

/// Symbol file and parameter file of a model.
#[derive(Debug)]
pub struct ModelFiles {
    /// symbol file
    pub symbol: PathBuf,
    /// parameter file; none for a graph without parameters
    pub params: Option<PathBuf>,
    /// folder of an unpacked archive, removed when this is dropped
    unpacked: Option<Unpacked>,
}

/// Choices among the files of a model, and limits.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// parameter file, or the name of one in an archive; none: that of the symbol file
    pub params: Option<&'a Path>,
    /// number of the parameter file; none: the highest
    pub epoch: Option<u64>,
    /// largest number of bytes that an archive may unpack to
    pub most_unpacked: usize,
    /// new folder for the files of an archive, which the caller removes; none: a temporary one,
    /// removed with the [`ModelFiles`]
    pub folder: Option<&'a Path>,
}

/// The reason why no model was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// The path names no model, or several.
    #[error("{0}")]
    Path(String),
    /// A file is no model, or an archive cannot be unpacked.
    #[error("{0}")]
    Content(String),
    /// The caller gave up.
    #[error("looking for the files of a model was interrupted")]
    Interrupted,
}

impl FindError {
    /// Changes the words.
    fn map(self, change: impl FnOnce(&str) -> String) -> FindError {
        match self {
            FindError::Path(words) => FindError::Path(change(&words)),
            FindError::Content(words) => FindError::Content(change(&words)),
            FindError::Interrupted => FindError::Interrupted,
        }
    }
}

impl From<FindError> for OpError {
    fn from(error: FindError) -> OpError {
        let kind = match &error {
            FindError::Path(_) => FailureKind::FileNotFound,
            FindError::Content(_) => FailureKind::Data,
            FindError::Interrupted => FailureKind::Cancelled,
        };
        OpError::new(kind, error.to_string())
    }
}

/// Returns the default name of a model: that of its files, or of the folder of a `symbol.json`.
pub fn own_name(path: &Path) -> Result<String, FindError> {
    check_is_local(path)?;
    if let Some(stem) = archive::stem(path) {
        return Ok(stem.to_owned());
    }
    let text = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let symbol = match ModelPlace::of(path)?.0 {
        Where::Archive(archive) => return Ok(archive::stem(&archive).map_or_else(|| text(&archive), str::to_owned)),
        Where::Symbol(symbol, _) => symbol,
    };
    let name = text(&symbol);
    if name == LONE_SYMBOL {
        let folder = symbol.canonicalize().ok().and_then(|symbol| symbol.parent().map(text));
        return Ok(folder.unwrap_or(name));
    }
    Ok(name.strip_suffix(SYMBOL).or_else(|| name.strip_suffix(".json")).unwrap_or(&name).to_owned())
}

/// Fails for a path that is an address, such as `s3://bucket/model`.
fn check_is_local(path: &Path) -> Result<(), FindError> {
    match path.to_str().and_then(|path| path.split_once("://")) {
        Some((scheme, _)) => {
            let words = format!("addresses of {scheme} are not read: download the model, and name its files");
            Err(FindError::Path(words))
        }
        None => Ok(()),
    }
}

/// Unpacks an archive of any content into a new folder, at most `most_unpacked` bytes. Returns false
/// if the path is no archive.
pub fn unpack_archive(
    path: &Path,
    most_unpacked: usize,
    folder: &Path,
    poll: &mut dyn FnMut() -> bool,
) -> Result<bool, FindError> {
    let is_archive = archive::is_one(path);
    if is_archive {
        archive::unpack(path, most_unpacked, Some(folder), poll)?;
    }
    Ok(is_archive)
}

/// Place of a model's files, found by one look at the path.
#[derive(Debug)]
pub struct ModelPlace(Where);

#[derive(Debug)]
enum Where {
    Archive(PathBuf),
    Symbol(PathBuf, Chosen),
}

impl ModelPlace {
    /// Finds the archive that a path names, or that is all that a folder has of a model, or else
    /// the symbol file. An error names what was looked for.
    pub fn of(path: &Path) -> Result<ModelPlace, FindError> {
        check_is_local(path)?;
        if !path.is_dir() {
            if archive::stem(path).is_some() || archive::is_one(path) {
                return Ok(ModelPlace(Where::Archive(path.to_owned())));
            }
            let (symbol, chosen) = search::symbol_file(path)?;
            return Ok(ModelPlace(Where::Symbol(symbol, chosen)));
        }
        let files = search::files_in(path, path)?;
        Ok(ModelPlace(match search::lone_archive(&files) {
            Some(archive) => Where::Archive(archive.to_owned()),
            None => Where::Symbol(search::symbol_among(&files, path, None)?, Chosen::default()),
        }))
    }

    /// Whether the files are those of an archive, which is to be unpacked.
    pub fn is_archive(&self) -> bool {
        matches!(self.0, Where::Archive(_))
    }
}

impl ModelFiles {
    /// Finds the files. An error names what was looked for. Unpacking an archive continues as
    /// long as `poll` returns true.
    pub fn find(path: &Path, wanted: &Wanted, poll: &mut dyn FnMut() -> bool) -> Result<ModelFiles, FindError> {
        ModelFiles::at(ModelPlace::of(path)?, wanted, poll)
    }

    /// Returns the files at a place, unpacked if they are those of an archive.
    pub fn at(place: ModelPlace, wanted: &Wanted, poll: &mut dyn FnMut() -> bool) -> Result<ModelFiles, FindError> {
        let archive = match place.0 {
            Where::Archive(archive) => archive,
            Where::Symbol(symbol, chosen) => {
                let params = wanted.params.map(Path::to_owned).or(chosen.params);
                let params = params_of(&symbol, params, wanted.epoch.or(chosen.epoch))?;
                return Ok(ModelFiles { symbol, params, unpacked: None });
            }
        };
        let mut unpacked = archive::unpack(&archive, wanted.most_unpacked, wanted.folder, poll)?;
        let mut files = search::files_in(unpacked.folder(), &archive)?;
        // What SageMaker's linear learner and factorization machines write is an archive in an
        // archive.
        if let Some(inner) = search::lone_archive(&files) {
            unpacked.unpack_inner(inner, poll)?;
            files = search::files_in(unpacked.folder(), &archive)?;
        }
        let symbol = search::symbol_among(&files, unpacked.folder(), Some(&archive))?;
        let inside = |name: &Path| name.file_name().map(|name| symbol.with_file_name(name));
        let params = wanted.params.and_then(|path| if path.is_file() { Some(path.to_owned()) } else { inside(path) });
        let params =
            params_of(&symbol, params, wanted.epoch).map_err(|error| error.map(|words| unpacked.shown(words)))?;
        Ok(ModelFiles { symbol, params, unpacked: Some(unpacked) })
    }

    /// Names the archive in words about an unpacked file.
    pub fn shown(&self, words: &str) -> String {
        self.unpacked.as_ref().map_or_else(|| words.to_owned(), |unpacked| unpacked.shown(words))
    }

    /// Returns the size of the parameter file, in bytes.
    pub fn bytes(&self) -> u64 {
        self.params.as_ref().and_then(|file| std::fs::metadata(file).ok()).map_or(0, |about| about.len())
    }
}

/// Returns the parameter file that is named, or else the one of the symbol file.
fn params_of(symbol: &Path, named: Option<PathBuf>, epoch: Option<u64>) -> Result<Option<PathBuf>, FindError> {
    match named {
        Some(named) if !named.is_file() => {
            Err(FindError::Path(format!("there is no file '{}' (params)", named.display())))
        }
        Some(named) => Ok(Some(named)),
        None => params::of_symbol(symbol, epoch).map_err(FindError::Path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the parameter file of a path among empty files with these names.
    fn params(files: &[&str], path: &str, epoch: Option<u64>) -> Result<Option<String>, String> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("mxrt-model-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        files.iter().for_each(|file| std::fs::write(folder.join(file), b"{}").expect("a file"));
        let wanted = Wanted { params: None, epoch, most_unpacked: 0, folder: None };
        let found = ModelFiles::find(&folder.join(path), &wanted, &mut || true);
        std::fs::remove_dir_all(folder).expect("a folder");
        let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        found.map(|files| files.params.and_then(name)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_path_of_any_form_has_its_parameter_file() {
        let two = ["m-symbol.json", "m-0003.params", "m-00012.params"];
        for (path, epoch, wanted) in [
            ("", None, "m-00012.params"),
            ("m", None, "m-00012.params"),
            ("m-symbol.json", None, "m-00012.params"),
            ("m-0003", None, "m-0003.params"),
            ("m-0012", None, "m-00012.params"),
            ("m-0003.params", None, "m-0003.params"),
            ("m", Some(3), "m-0003.params"),
        ] {
            assert_eq!(params(&two, path, epoch), Ok(Some(wanted.to_owned())), "{path} {epoch:?}");
        }
        let missing = params(&two, "m", Some(5)).expect_err("no such number");
        assert!(missing.ends_with("m-0005.params'; parameter files of 'm' have the numbers 3, 12"), "{missing}");
    }

    #[test]
    fn files_of_other_programs_belong_together() {
        for (files, path, wanted) in [
            (&["symbol.json", "x-0007.params"][..], "x-0007", Some("x-0007.params")),
            (&["symbol.json", "x-0007.params"], "", Some("x-0007.params")),
            (&["symbol.json", "params"], "params", Some("params")),
            (&["m-quantized-symbol.json", "m-0000.params"], "m-quantized", Some("m-0000.params")),
            (&["m-symbol.json", "m.params", "other.params"], "m", Some("m.params")),
            (&["m-symbol.json", "a.params", "b.params"], "m", None),
        ] {
            assert_eq!(params(files, path, None), Ok(wanted.map(str::to_owned)), "{files:?} {path}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_link_whose_target_is_gone_is_named_with_it() {
        let folder = std::env::temp_dir().join(format!("mxrt-model-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::os::unix::fs::symlink("/gone", folder.join("m-symbol.json")).expect("a link");
        let wanted = Wanted { params: None, epoch: None, most_unpacked: 0, folder: None };
        let found = ModelFiles::find(&folder.join("m"), &wanted, &mut || true).map(|files| files.symbol);
        std::fs::remove_dir_all(folder).expect("a folder");
        let words = found.expect_err("nothing there").to_string();
        assert!(words.ends_with("m-symbol.json' is a link to '/gone', which is not there"), "{words}");
    }

    #[test]
    fn hidden_files_are_no_files_of_a_model() {
        for (files, path, wanted) in [
            (&["m-symbol.json", "._m-symbol.json", "m-0001.params", "._m-0002.params"][..], "", Some("m-0001.params")),
            (&["m-symbol.json", ".other.params"], "", None),
            (&["-symbol.json", ".params"], "", None),
            (&[".m-symbol.json", ".m-0002.params"], ".m-symbol.json", Some(".m-0002.params")),
        ] {
            assert_eq!(params(files, path, None), Ok(wanted.map(str::to_owned)), "{files:?} {path}");
        }
        let hidden = params(&[".m-symbol.json"], "", None).expect_err("nothing that is shown");
        assert!(hidden.ends_with("expected a file *-symbol.json, found nothing"), "{hidden}");
    }
}
