//! Files: of models ([`model_files`]), parameter lists ([`params`]), RecordIO framing ([`recordio`]), images
//! ([`image`]) and data iterators ([`iterators`]).
#![forbid(unsafe_code)]

mod error;
mod file;
mod foreign;
pub mod image;
pub mod iterators;
pub mod model_files;
pub mod params;
pub mod recordio;
mod whole;

pub use error::{DataError, FileError};
pub use file::{local_path, open_file, read_file, read_file_within, read_text, read_text_within};
pub use foreign::recognise;
pub use whole::write_file;
