//! Kinds of values that several settings have.

use super::value::{Given, Value, shown_bytes, shown_count, shown_seconds};
use std::path::PathBuf;
use std::time::Duration;

/// Kind of value of a setting.
pub(super) struct Kind<T> {
    /// reads a value over the present one; an error says what was expected
    pub(super) read: fn(&mut T, Value<'_>) -> Result<(), String>,
    /// returns a value in the form in which people write it; none if it is not set
    pub(super) show: fn(&T) -> Option<Given>,
}

/// Makes a kind from a reader, which returns the value, and a function that shows it.
macro_rules! kind {
    (|$value:ident| $read:expr, |$of:ident| $show:expr) => {
        $crate::settings::kinds::Kind {
            read: |to, $value| {
                *to = $read?;
                Ok(())
            },
            show: |$of| $show,
        }
    };
}

/// Makes the kind of values that words stand for.
macro_rules! words {
    ($words:expr) => {
        $crate::settings::kinds::kind!(|value| value.word($words), |of| {
            $words.iter().find(|(_, value)| value == of).map(|(word, _)| Given::Text((*word).to_owned()))
        })
    };
}

pub(super) use {kind, words};

/// Returns `off` for a setting that is switched off.
pub(super) fn off_or<T: Clone>(of: &Option<T>, show: fn(T) -> Given) -> Option<Given> {
    Some(of.clone().map_or_else(off, show))
}

/// Returns the word for a setting that is switched off.
pub(super) fn off() -> Given {
    Given::Text("off".to_owned())
}

fn shown_path(path: &Option<PathBuf>) -> Option<Given> {
    path.as_ref().map(|path| Given::Text(path.display().to_string()))
}

/// Text that is not empty.
pub(super) const TEXT: Kind<String> = kind!(|value| value.text(), |of| Some(Given::Text(of.clone())));

/// Switch, on or off.
pub(super) const SWITCH: Kind<bool> = kind!(|value| value.switch(), |of| Some(Given::Bool(*of)));

/// Path, which no value switches off.
pub(super) const PATH: Kind<Option<PathBuf>> = kind!(|value| value.path().map(Some), |of| shown_path(of));

/// Path, or none.
pub(super) const OPTIONAL_PATH: Kind<Option<PathBuf>> =
    kind!(|value| value.optional(|value| value.path()), |of| shown_path(of));

/// Number of bytes.
pub(super) const BYTES: Kind<usize> = kind!(|value| value.bytes(), |of| Some(shown_bytes(*of)));

/// Number of bytes, or off.
pub(super) const OPTIONAL_BYTES: Kind<Option<usize>> =
    kind!(|value| value.optional(|value| value.bytes()), |of| off_or(of, shown_bytes));

/// Whole number, 1 or more.
pub(super) const COUNT: Kind<usize> = kind!(|value| value.count(1), |of| Some(shown_count(*of)));

/// Whole number, 1 or more, or off.
pub(super) const OPTIONAL_COUNT: Kind<Option<usize>> =
    kind!(|value| value.optional(|value| value.count(1)), |of| off_or(of, shown_count));

/// Time, 0 or more.
pub(super) const SECONDS: Kind<Duration> = kind!(|value| value.seconds(), |of| Some(shown_seconds(*of)));

/// Time, more than 0.
pub(super) const SOME_SECONDS: Kind<Duration> = kind!(|value| value.some_seconds(), |of| Some(shown_seconds(*of)));

/// Time, more than 0, or off.
pub(super) const OPTIONAL_SECONDS: Kind<Option<Duration>> =
    kind!(|value| value.optional(|value| value.some_seconds()), |of| off_or(of, shown_seconds));
