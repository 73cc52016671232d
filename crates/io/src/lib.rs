//! Files: parameter lists ([`params`]), RecordIO framing ([`recordio`]) and data iterators ([`csv`]), which share the
//! way they make batches ([`batch`]) and run ahead in the background ([`prefetch`]).
#![forbid(unsafe_code)]

pub mod batch;
pub mod csv;
mod error;
pub mod params;
pub mod prefetch;
pub mod recordio;
mod text;

pub use error::{DataError, FileError};
pub use text::read_text;
