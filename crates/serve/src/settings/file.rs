//! Configuration files in TOML.

use super::value::Given;
use crate::regular;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest configuration file, in bytes. A larger file is hardly a configuration.
const LARGEST: u64 = 1 << 20;

/// Key of a file with its value and line.
pub(super) struct FileEntry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: EntryValue,
}

/// Value of a key.
pub(super) enum EntryValue {
    /// section, or table in braces
    Section(Vec<FileEntry>),
    Value(Given),
}

/// Reads a file. Errors name it and the line.
pub(super) fn read(path: &Path) -> Result<Vec<FileEntry>, String> {
    let named = |words: String| format!("{}: {words}", path.display());
    let text = regular::read_text(path, LARGEST).map_err(named)?;
    parse(&text).map_err(|(line, words)| format!("{}:{line}: {words}", path.display()))
}

/// Parses a text. Returns its keys in their order, or the line and description of an error.
pub(super) fn parse(text: &str) -> Result<Vec<FileEntry>, (usize, String)> {
    let line_of = |at: usize| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    let parsed = DeTable::parse(text).map_err(|error| {
        let words = error.message().lines().next().unwrap_or_default().to_owned();
        (line_of(error.span().map_or(0, |span| span.start)), words)
    })?;
    section(parsed.get_ref(), &line_of)
}

fn section(table: &DeTable<'_>, line_of: &dyn Fn(usize) -> usize) -> Result<Vec<FileEntry>, (usize, String)> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let (at, line) = (key.span().start, line_of(key.span().start));
        let value = match value.get_ref() {
            DeValue::Table(table) => EntryValue::Section(section(table, line_of)?),
            _ => EntryValue::Value(given(value, line_of)?),
        };
        entries.push((at, FileEntry { key: key.get_ref().to_string(), line, value }));
    }
    // The parser sorts keys by name. Errors should come in the order of the file.
    entries.sort_by_key(|(at, _)| *at);
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn given(value: &Spanned<DeValue<'_>>, line_of: &dyn Fn(usize) -> usize) -> Result<Given, (usize, String)> {
    let wrong = |words: &str| (line_of(value.span().start), words.to_owned());
    Ok(match value.get_ref() {
        DeValue::String(text) => Given::Text(text.to_string()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Given::Integer(parsed.map_err(|_| wrong("the number is too large"))?)
        }
        DeValue::Float(number) => Given::Float(number.as_str().parse().map_err(|_| wrong("this is no number"))?),
        DeValue::Boolean(truth) => Given::Bool(*truth),
        DeValue::Datetime(_) => return Err(wrong("no key is a date")),
        DeValue::Array(items) => Given::List(items.iter().map(|item| given(item, line_of)).collect::<Result<_, _>>()?),
        DeValue::Table(table) => {
            let mut items = Vec::with_capacity(table.len());
            for (key, value) in table {
                items.push((key.get_ref().to_string(), given(value, line_of)?));
            }
            Given::Table(items)
        }
    })
}

impl FileEntry {
    /// Returns the value. A section becomes a table.
    pub(super) fn given(&self) -> Given {
        match &self.value {
            EntryValue::Value(given) => given.clone(),
            EntryValue::Section(entries) => {
                Given::Table(entries.iter().map(|entry| (entry.key.clone(), entry.given())).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_their_order_with_their_lines() {
        let text =
            "port = 8_000\n\n[models.b]\nbatch = \"auto\"\nshapes = { data = [-1, 3] }\n[models.a]\nweight = 0.5\n";
        let entries = parse(text).expect("a file");
        assert_eq!(entries.iter().map(|e| (e.key.as_str(), e.line)).collect::<Vec<_>>(), [("port", 1), ("models", 3)]);
        assert_eq!(entries[0].given(), Given::Integer(8000));
        let EntryValue::Section(models) = &entries[1].value else { panic!("a section") };
        assert_eq!(models.iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let shape = Given::List(vec![Given::Integer(-1), Given::Integer(3)]);
        let shapes = Given::Table(vec![("data".to_owned(), shape)]);
        let batch = Given::Text("auto".to_owned());
        assert_eq!(models[0].given(), Given::Table(vec![("batch".to_owned(), batch), ("shapes".to_owned(), shapes)]));
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        for (text, line) in [
            ("a = 1\nb = \n", 2),
            ("a = 1\na = 2\n", 2),
            ("\n\nx = 1979-05-27\n", 3),
            ("x = 99999999999999999999\n", 1),
            ("[a\n", 1),
        ] {
            assert_eq!(parse(text).err().map(|(line, _)| line), Some(line), "{text:?}");
        }
        let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse(&deep).is_err());
    }
}
