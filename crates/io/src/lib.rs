//! Files: parameter lists ([`params`]), RecordIO framing ([`recordio`]) and data iterators
//! ([`iterators`]).
#![forbid(unsafe_code)]

mod error;
mod file;
pub mod iterators;
pub mod params;
pub mod recordio;

pub use error::{DataError, FileError};
pub use file::{open_file, read_file, read_text};
