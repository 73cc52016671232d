//! Reading of regular files only. A pipe or device instead of one would block the server at its
//! start.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest file of settings, names or keys, in bytes.
pub(crate) const USUAL: u64 = 16 << 20;

/// Opens a regular file of at most `most` bytes. The error does not name the file.
pub(crate) fn open(path: &Path, most: u64) -> Result<File, String> {
    // Without the flag, opening a pipe would wait for its writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "the user of the server may not read it".to_owned(),
        _ => error.to_string(),
    })?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if about.len() > most {
        return Err(format!("it has {} bytes; expected at most {most}", about.len()));
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open(path, most)?.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if read as u64 > most { Err(format!("it has more than {most} bytes")) } else { Ok(bytes) }
}

/// Reads a regular file of at most `most` bytes as UTF-8.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, String> {
    String::from_utf8(read(path, most)?).map_err(|_| "it is no text of UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_not_read() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            assert!(read(Path::new(path), 10).is_err(), "{path}");
        }
        let file = std::env::temp_dir().join(format!("mxrt-regular-{}", std::process::id()));
        std::fs::write(&file, "twelve bytes").expect("a file");
        assert_eq!(read_text(&file, 12), Ok("twelve bytes".to_owned()));
        assert!(read(&file, 11).is_err_and(|error| error.contains("12 bytes; expected at most 11")));
        std::fs::remove_file(&file).expect("a file");
        assert_eq!(read(&file, 11), Err("there is no such file".to_owned()));
    }
}
