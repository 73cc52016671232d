//! Values in the form in which files, the environment, options and programs give them.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Value before its type is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// a program's null: an optional setting is switched off
    Nothing,
    /// text; options and environment variables give only texts
    Text(String),
    /// whole number
    Integer(i64),
    /// number with a fraction or exponent
    Float(f64),
    /// boolean
    Bool(bool),
    /// list
    List(Vec<Given>),
    /// values by name
    Table(Vec<(String, Given)>),
}

/// Longest time that a setting can have, in seconds: more than a century.
const LONGEST: f64 = 4e9;

const UNITS: [(&str, u64); 7] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("b", 1),
];

impl Given {
    /// Formats the value for messages.
    pub fn words(&self) -> String {
        match self {
            Given::Text(text) => text.clone(),
            other => other.toml(),
        }
    }

    /// Returns the value as JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        match self {
            Given::Nothing => serde_json::Value::Null,
            Given::Text(text) => text.as_str().into(),
            Given::Integer(number) => (*number).into(),
            Given::Float(number) => (*number).into(),
            Given::Bool(truth) => (*truth).into(),
            Given::List(items) => items.iter().map(Given::json).collect(),
            Given::Table(items) => items.iter().map(|(key, value)| (key.clone(), value.json())).collect(),
        }
    }

    /// Formats the value as TOML.
    pub fn toml(&self) -> String {
        match self {
            Given::Nothing => "nothing".to_owned(),
            Given::Text(text) => quoted(text),
            Given::Integer(number) => number.to_string(),
            Given::Float(number) => format!("{number:?}"),
            Given::Bool(truth) => truth.to_string(),
            Given::List(items) => format!("[{}]", items.iter().map(Given::toml).collect::<Vec<_>>().join(", ")),
            Given::Table(items) if items.is_empty() => "{}".to_owned(),
            Given::Table(items) => {
                let items: Vec<_> =
                    items.iter().map(|(key, value)| format!("{} = {}", name(key), value.toml())).collect();
                format!("{{ {} }}", items.join(", "))
            }
        }
    }
}

/// Formats a key as TOML.
pub(super) fn name(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Value with the folder of its relative paths. Methods convert it to a type. Their errors say what
/// was expected.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    pub(super) given: &'a Given,
    pub(super) base: Option<&'a Path>,
}

impl<'a> Value<'a> {
    /// Makes a value that a program gives.
    pub fn new(given: &'a Given) -> Value<'a> {
        Value { given, base: None }
    }

    pub(super) fn within(self, given: &'a Given) -> Value<'a> {
        Value { given, base: self.base }
    }

    /// Returns whether the value switches an optional setting off.
    pub(super) fn is_none(self) -> bool {
        match self.given {
            Given::Nothing | Given::Bool(false) => true,
            Given::Text(text) => text == "off",
            _ => false,
        }
    }

    /// Reads an optional value. Returns `None` if it is switched off.
    pub(super) fn optional<T>(self, read: impl FnOnce(Value<'a>) -> Result<T, String>) -> Result<Option<T>, String> {
        if self.is_none() { Ok(None) } else { read(self).map(Some) }
    }

    pub(super) fn text(self) -> Result<String, String> {
        match self.given {
            Given::Text(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err("a text".to_owned()),
        }
    }

    pub(super) fn path(self) -> Result<PathBuf, String> {
        let path = PathBuf::from(self.text().map_err(|_| "a path")?);
        Ok(self.base.map_or(path.clone(), |base| base.join(path)))
    }

    pub(super) fn switch(self) -> Result<bool, String> {
        match self.given {
            Given::Bool(truth) => Ok(*truth),
            Given::Text(text) if matches!(text.as_str(), "on" | "true" | "1") => Ok(true),
            Given::Text(text) if matches!(text.as_str(), "off" | "false" | "0") => Ok(false),
            _ => Err("on or off".to_owned()),
        }
    }

    /// Reads one of these words, and returns what it stands for.
    pub(super) fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, String> {
        let text = match self.given {
            Given::Text(text) => text.as_str(),
            Given::Bool(true) => "on",
            Given::Bool(false) => "off",
            _ => "",
        };
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            match words.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                _ => words.concat(),
            }
        })
    }

    pub(super) fn whole(self, least: u64, most: u64) -> Result<u64, String> {
        let number = match self.given {
            Given::Integer(number) => u64::try_from(*number).ok(),
            Given::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| match most {
            u64::MAX => format!("a whole number, {least} or more"),
            _ => format!("a whole number from {least} to {most}"),
        })
    }

    /// Reads a whole number, `least` or more.
    pub(super) fn count(self, least: usize) -> Result<usize, String> {
        let wrong = || format!("a whole number, {least} or more");
        self.whole(least as u64, u64::MAX).ok().and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong)
    }

    pub(super) fn number(self) -> Option<f64> {
        match self.given {
            Given::Integer(number) => Some(*number as f64),
            Given::Float(number) => Some(*number),
            Given::Text(text) => text.parse().ok(),
            _ => None,
        }
        .filter(|number: &f64| number.is_finite())
    }

    /// Reads a time in seconds.
    pub(super) fn seconds(self) -> Result<Duration, String> {
        let seconds = self.number().filter(|seconds| (0.0..=LONGEST).contains(seconds));
        seconds.map(Duration::from_secs_f64).ok_or_else(|| "a number of seconds, 0 or more".to_owned())
    }

    /// Reads a number of bytes, which may have a unit.
    pub(super) fn bytes(self) -> Result<usize, String> {
        let read = |text: &str| {
            let text = text.trim().to_ascii_lowercase();
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let (number, unit) = text.split_at(digits);
            let number: u64 = number.parse().ok()?;
            let unit = unit.trim();
            let factor = if unit.is_empty() { 1 } else { UNITS.iter().find(|(name, _)| *name == unit)?.1 };
            usize::try_from(number.checked_mul(factor)?).ok().filter(|bytes| isize::try_from(*bytes).is_ok())
        };
        match self.given {
            Given::Integer(bytes) => usize::try_from(*bytes).ok(),
            Given::Text(text) => read(text),
            _ => None,
        }
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a number of bytes, 1 or more, or one followed by KB, MB, GB, KiB, MiB or GiB".to_owned())
    }

    /// Reads a time in seconds within which something has to happen.
    pub(super) fn some_seconds(self) -> Result<Duration, String> {
        let seconds = self.seconds().ok().filter(|time| !time.is_zero());
        seconds.ok_or_else(|| "a number of seconds, more than 0".to_owned())
    }

    /// Reads a list. In a text, commas separate its items.
    pub(super) fn list(self) -> Option<Vec<Given>> {
        match self.given {
            Given::List(items) => Some(items.clone()),
            Given::Text(text) => Some(text.split(',').map(|item| Given::Text(item.trim().to_owned())).collect()),
            _ => None,
        }
    }

    /// Reads a table.
    pub(super) fn table(self) -> Option<&'a [(String, Given)]> {
        match self.given {
            Given::Table(items) => Some(items),
            _ => None,
        }
    }

    /// Reads the extents of a shape, where -1 stands for any.
    pub(super) fn shape(self) -> Result<Vec<i64>, String> {
        let wrong = || "whole numbers with commas, such as -1,3,224,224; -1 is any extent".to_owned();
        let extent = |given: &Given| match given {
            Given::Integer(extent) => Some(*extent),
            Given::Text(text) => text.parse().ok(),
            _ => None,
        };
        let extents: Option<Vec<i64>> = self.list().ok_or_else(wrong)?.iter().map(extent).collect();
        extents.filter(|e| !e.is_empty() && e.iter().all(|e| *e >= 1 || *e == -1)).ok_or_else(wrong)
    }
}

/// Formats a number of bytes for `Value::bytes`, in the largest unit that leaves a whole number.
pub(super) fn shown_bytes(bytes: usize) -> Given {
    let fits = |factor: &u64| bytes > 0 && (bytes as u64).is_multiple_of(*factor);
    let unit = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)].into_iter().find(|(_, factor)| fits(factor));
    match unit {
        Some((name, factor)) => Given::Text(format!("{} {name}", bytes as u64 / factor)),
        None => Given::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)),
    }
}

/// Formats a time for `Value::seconds`.
pub(super) fn shown_seconds(time: Duration) -> Given {
    if time.subsec_nanos() == 0 {
        Given::Integer(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
    } else {
        Given::Float(time.as_secs_f64())
    }
}

/// Formats a number for `Value::count`.
pub(super) fn shown_count(count: usize) -> Given {
    Given::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Given {
        Given::Text(text.to_owned())
    }

    #[test]
    fn amounts_of_memory_have_units() {
        for (written, bytes) in
            [("64 MB", 64_000_000), ("64MiB", 64 << 20), ("1gb", 1_000_000_000), ("7", 7), ("3 B", 3)]
        {
            assert_eq!(Value::new(&text(written)).bytes(), Ok(bytes), "{written}");
        }
        for wrong in ["", "MB", "0", "0 MB", "-1", "1.5 MB", "1 XB", "99999999999 GiB", "1 M B"] {
            assert!(Value::new(&text(wrong)).bytes().is_err(), "{wrong}");
        }
        for bytes in [1, 1000, 1024, 64 << 20, 3 << 30, 12_345] {
            assert_eq!(Value::new(&shown_bytes(bytes)).bytes(), Ok(bytes));
        }
    }

    #[test]
    fn times_are_not_negative_and_not_infinite() {
        assert_eq!(Value::new(&text("0.5")).seconds(), Ok(Duration::from_millis(500)));
        assert_eq!(Value::new(&Given::Integer(3)).seconds(), Ok(Duration::from_secs(3)));
        assert_eq!(Value::new(&Given::Integer(0)).seconds(), Ok(Duration::ZERO));
        assert!(Value::new(&Given::Integer(0)).some_seconds().is_err());
        for wrong in
            [text("inf"), text("nan"), text("-1"), Given::Float(f64::NAN), Given::Float(1e300), Given::Bool(true)]
        {
            assert!(Value::new(&wrong).seconds().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn values_are_written_as_toml() {
        let table = Given::Table(vec![("a b".to_owned(), Given::List(vec![Given::Integer(-1), text("x\"\n")]))]);
        assert_eq!(table.toml(), r#"{ "a b" = [-1, "x\"\u000A"] }"#);
        assert_eq!(Given::Float(2.0).toml(), "2.0");
    }
}
