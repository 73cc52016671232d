//! The parameter file of a symbol file.

use super::search::{all_named, is_hidden, listed, named};
use super::{PARAMS, SYMBOL};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Fewest digits of the number of a parameter file.
const DIGITS: usize = 4;

/// Divides `PREFIX-NNNN` into its prefix and its number.
pub(super) fn numbered(stem: &str) -> Option<(&str, u64)> {
    let (prefix, digits) = stem.rsplit_once('-')?;
    let is_number = digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Some((prefix, digits.parse().ok()?)) } else { None }
}

/// Finds the `PREFIX-NNNN.params` with the number, or else with the highest, or else
/// `PREFIX.params` or `params`, or else the only parameter file of a folder with one symbol file.
/// Fails if there is none with the number.
pub(super) fn of_symbol(symbol: &Path, epoch: Option<u64>) -> Result<Option<PathBuf>, String> {
    let name = symbol.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(prefix) = name.strip_suffix(SYMBOL).or_else(|| name.strip_suffix(".json")) else { return Ok(None) };
    // MXNet's quantization writes another symbol for the parameters of a prefix.
    let prefixes = [prefix, prefix.strip_suffix("-quantized").unwrap_or(prefix)];
    let folder = symbol.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Whoever names a hidden symbol file means its parameters, which are hidden, too.
    let all = if is_hidden(prefix) { all_named(folder, PARAMS) } else { named(folder, PARAMS) };
    let numbers: BTreeMap<u64, &String> = all
        .iter()
        .filter_map(|file| {
            let (of, number) = numbered(file.strip_suffix(PARAMS)?)?;
            prefixes.contains(&of).then_some((number, file))
        })
        .collect();
    if let Some(epoch) = epoch {
        return match numbers.get(&epoch) {
            Some(file) => Ok(Some(symbol.with_file_name(file))),
            None => Err(without(symbol, prefix, epoch, &numbers)),
        };
    }
    // A symbol file without a prefix has no hidden `.params`.
    let is_own = |file: &str| file != PARAMS && folder.join(file).is_file();
    let own = || [format!("{prefix}{PARAMS}"), "params".to_owned()].into_iter().find(|file| is_own(file));
    let lone = || match (&all[..], named(folder, super::LONE_SYMBOL).len()) {
        ([lone], 1) => Some(lone.clone()),
        _ => None,
    };
    let newest = numbers.last_key_value().map(|(_, file)| (*file).clone());
    Ok(newest.or_else(own).or_else(lone).map(|file| symbol.with_file_name(file)))
}

/// Says which numbers there are.
fn without(symbol: &Path, prefix: &str, epoch: u64, numbers: &BTreeMap<u64, &String>) -> String {
    let missing = symbol.with_file_name(format!("{prefix}-{epoch:04}{PARAMS}"));
    let there: Vec<String> = numbers.keys().map(u64::to_string).collect();
    let there = listed(&there);
    format!("there is no file '{}'; parameter files of '{prefix}' have the numbers {there}", missing.display())
}
