//! Bytes of known length that can be read anywhere: a file or a buffer.

use super::ParamsError;
use crate::file::open_file;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The source of a parameter list.
pub(super) enum ListSource<'a> {
    /// An ordinary file and its size when it was opened.
    File(File, u64),
    /// Memory of the caller.
    Bytes(&'a [u8]),
}

impl ListSource<'_> {
    /// Opens an ordinary file.
    pub(super) fn open(path: &Path) -> Result<ListSource<'static>, ParamsError> {
        let (file, size) = open_file(path)?;
        Ok(ListSource::File(file, size))
    }

    /// Bytes altogether.
    pub(super) fn len(&self) -> u64 {
        match self {
            ListSource::File(_, len) => *len,
            ListSource::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills `to` from position `offset`.
    pub(super) fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        match self {
            ListSource::File(file, _) => file.read_exact_at(to, offset),
            ListSource::Bytes(bytes) => {
                let from = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)?.get(..to.len()));
                to.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}
