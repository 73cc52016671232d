//! The parameter file of a symbol file.

use super::{PARAMS, SYMBOL};
use std::path::{Path, PathBuf};

/// Fewest digits of the number of a parameter file.
const DIGITS: usize = 4;

/// Divides `PREFIX-NNNN` into its prefix and its number.
pub(super) fn numbered(stem: &str) -> Option<(&str, u64)> {
    let (prefix, digits) = stem.rsplit_once('-')?;
    let is_number = digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Some((prefix, digits.parse().ok()?)) } else { None }
}

/// Finds the `PREFIX-NNNN.params` with the highest number, or else `PREFIX.params` or `params`, or
/// else the only parameter file of a folder with one symbol file.
pub(super) fn of_symbol(symbol: &Path) -> Option<PathBuf> {
    let name = symbol.file_name()?.to_str()?;
    let prefix = name.strip_suffix(SYMBOL).or_else(|| name.strip_suffix(".json"))?;
    // MXNet's quantization writes another symbol for the parameters of a prefix.
    let prefixes = [prefix, prefix.strip_suffix("-quantized").unwrap_or(prefix)];
    let folder = symbol.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let all = super::search::named(folder, PARAMS);
    let number = |file: &String| {
        let (of, number) = numbered(file.strip_suffix(PARAMS)?)?;
        prefixes.contains(&of).then_some(number)
    };
    let newest = all.iter().filter(|file| number(file).is_some()).max_by_key(|file| number(file));
    let own =
        || [format!("{prefix}{PARAMS}"), "params".to_owned()].into_iter().find(|file| folder.join(file).is_file());
    let lone = || match (&all[..], super::search::named(folder, super::LONE_SYMBOL).len()) {
        ([lone], 1) => Some(lone.clone()),
        _ => None,
    };
    newest.cloned().or_else(own).or_else(lone).map(|file| symbol.with_file_name(file))
}
