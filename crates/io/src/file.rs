//! Opening files to read: ordinary ones only, whose size is known.

use crate::{DataError, FileError, recognise};
use mxrt_engine::MemoryPool;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The path of a local file that is given as an address, `file:///folder/name`. As in MXNet, what
/// follows is the path, in which percent signs are ordinary characters. Other paths stay unchanged.
pub fn local_path(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let Some(rest) = bytes.strip_prefix(b"file://") else { return path };
    let rest = rest.strip_prefix(b"localhost").filter(|rest| rest.starts_with(b"/")).unwrap_or(rest);
    Path::new(OsStr::from_bytes(rest))
}

/// Opens an ordinary file, and gives its size when it was opened. Directories, pipes and devices
/// are refused: reading them fails, waits for another process, or never ends.
pub fn open_file(path: impl AsRef<Path>) -> Result<(File, u64), FileError> {
    let path = local_path(path.as_ref());
    let failed = |error: io::Error| FileError::open(&path.to_string_lossy(), &error);
    // Looked at before opening: opening a pipe would wait for a process that writes.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "Is a directory")));
    }
    if !metadata.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "Not an ordinary file")));
    }
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok((file, size))
}

/// Reads a whole ordinary file.
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>, DataError> {
    read(path.as_ref(), None)
}

/// [`read_file`] within the limit of a pool: a file that does not fit into the remaining memory is
/// not read.
pub fn read_file_within(path: impl AsRef<Path>, memory: &'static MemoryPool) -> Result<Vec<u8>, DataError> {
    read(path.as_ref(), Some(memory))
}

fn read(path: &Path, memory: Option<&'static MemoryPool>) -> Result<Vec<u8>, DataError> {
    let (file, size) = open_file(path)?;
    let shown = path.to_string_lossy();
    let no_memory = |why: String| DataError::Memory(format!("'{shown}' cannot be read: {why}"));
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    let _charge =
        memory.map(|pool| pool.charge(bytes)).transpose().map_err(|refusal| no_memory(refusal.to_string()))?;
    let mut content = Vec::new();
    content.try_reserve_exact(bytes).map_err(|_| no_memory(format!("there is no memory for its {size} bytes")))?;
    // A file that grows meanwhile is read up to the size that was reserved.
    file.take(size).read_to_end(&mut content).map_err(|error| FileError::io("reading", &shown, &error))?;
    Ok(content)
}

/// Reads a whole text file, such as a symbol's JSON.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, DataError> {
    text(path.as_ref(), read_file(path.as_ref())?)
}

/// [`read_text`] within the limit of a pool; see [`read_file_within`].
pub fn read_text_within(path: impl AsRef<Path>, memory: &'static MemoryPool) -> Result<String, DataError> {
    text(path.as_ref(), read_file_within(path.as_ref(), memory)?)
}

/// How a list of arrays begins.
const PARAMS_MAGIC: [u8; 8] = 0x112_u64.to_le_bytes();

fn text(path: &Path, content: Vec<u8>) -> Result<String, DataError> {
    if content.starts_with(&PARAMS_MAGIC) {
        return Err(DataError::Content {
            place: path.to_string_lossy().into_owned(),
            problem: "this is a parameter file, and not the symbol file that is wanted here: are the two in each \
                      other's place? Pass the one that ends in -symbol.json"
                .to_owned(),
        });
    }
    if let Some(advice) = recognise(&content) {
        return Err(DataError::Content { place: path.to_string_lossy().into_owned(), problem: advice.to_owned() });
    }
    String::from_utf8(content).map_err(|error| DataError::Content {
        place: format!("{} byte {}", path.to_string_lossy(), error.utf8_error().valid_up_to()),
        problem: "the file is not UTF-8 text".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_file_in_the_place_of_a_symbol_file_is_called_that() {
        let content = [&PARAMS_MAGIC[..], &[0xff; 8]].concat();
        let error = text(Path::new("m-symbol.json"), content).expect_err("no text").to_string();
        assert!(error.contains("m-symbol.json") && error.contains("each other's place"), "{error}");
    }

    #[test]
    fn a_pointer_of_git_lfs_in_the_place_of_a_text_is_called_that() {
        let content = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n".to_vec();
        let error = text(Path::new("m-symbol.json"), content).expect_err("no text").to_string();
        assert!(
            error.starts_with("m-symbol.json: It is a pointer of Git LFS") && error.contains("git lfs pull"),
            "{error}"
        );
    }

    #[test]
    fn addresses_of_local_files_are_paths_and_all_else_stays() {
        let rows = [
            ("file:///tmp/a%20b", "/tmp/a%20b"),
            ("file://localhost/tmp/a", "/tmp/a"),
            ("file://localhosts", "localhosts"),
            ("/tmp/file:///a", "/tmp/file:///a"),
            ("s3://bucket/a", "s3://bucket/a"),
            ("file:/a", "file:/a"),
        ];
        for (given, wanted) in rows {
            assert_eq!(local_path(Path::new(given)), Path::new(wanted), "{given}");
        }
    }

    #[test]
    fn a_missing_file_is_named_by_its_path_and_other_addresses_are_called_that() {
        let message = |path: &str| open_file(path).expect_err("there is no such file").to_string();
        let local = message("file:///no/such/file");
        assert!(local.contains("\"/no/such/file\"") && !local.contains("address"), "{local}");
        let remote = message("s3://bucket/name");
        assert!(remote.contains("s3://bucket/name") && remote.contains("This is an address"), "{remote}");
    }
}
