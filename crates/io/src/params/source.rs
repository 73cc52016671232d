//! Bytes of known length that can be read anywhere: a file or a buffer.

use super::ParamsError;
use crate::FileError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where a parameter list is read from.
pub(super) enum Source<'a> {
    /// An ordinary file and its size when it was opened.
    File(File, u64),
    /// Memory of the caller.
    Bytes(&'a [u8]),
}

impl Source<'_> {
    /// Opens an ordinary file.
    pub(super) fn open(path: &Path) -> Result<Source<'static>, ParamsError> {
        let shown = path.to_string_lossy();
        let failed = |error: io::Error| FileError::open(&shown, &error);
        // Looked at before opening: opening a pipe would wait for a writer.
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "Is a directory")).into());
        }
        if !metadata.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "Not an ordinary file")).into());
        }
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        Ok(Source::File(file, size))
    }

    /// Bytes altogether.
    pub(super) fn len(&self) -> u64 {
        match self {
            Source::File(_, len) => *len,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills `to` from position `offset`.
    pub(super) fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        match self {
            Source::File(file, _) => file.read_exact_at(to, offset),
            Source::Bytes(bytes) => {
                let from = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)?.get(..to.len()));
                to.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}
