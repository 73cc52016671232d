//! Text files.

use crate::{DataError, FileError};
use std::path::Path;

/// Reads a whole text file, such as a symbol's JSON.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, DataError> {
    let shown = path.as_ref().to_string_lossy();
    let bytes = std::fs::read(&path).map_err(|error| FileError::open(&shown, &error))?;
    String::from_utf8(bytes).map_err(|error| DataError::Content {
        place: format!("{shown} byte {}", error.utf8_error().valid_up_to()),
        problem: "the file is not UTF-8 text".to_owned(),
    })
}
