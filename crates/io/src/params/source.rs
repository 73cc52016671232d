//! Bytes of known length that can be read anywhere: a file or a buffer.

use super::ParamsError;
use crate::file::open_file;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The source of a parameter list.
pub(super) enum Source<'a> {
    /// An ordinary file and its size when it was opened.
    File(File, u64),
    /// Memory of the caller.
    Bytes(&'a [u8]),
}

impl Source<'_> {
    /// Opens an ordinary file.
    pub(super) fn open(path: &Path) -> Result<Source<'static>, ParamsError> {
        let (file, size) = open_file(path)?;
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
