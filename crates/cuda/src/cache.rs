//! Compiled kernels on the disk, so that each is compiled once for each kind of GPU and not once for
//! each process. Several processes may use one folder. A file that cannot be read or written, or that
//! is damaged, is as good as none.

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How a file begins; the hash of the code follows, then the code.
const HEADER: &[u8] = b"mxrt kernels 1\n";
/// The limit of the folder; the oldest files are deleted.
const MAX_BYTES: u64 = 64 << 20;

static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Says where compiled kernels are kept; the first call counts. Without one it is `mxrt` in the user's
/// folder of caches.
pub fn set_cache_folder(folder: PathBuf) {
    let _ = FOLDER.set(Some(folder));
}

/// The folder; none where the system names no user's one.
fn folder() -> Option<&'static Path> {
    let usual = || {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
        caches.is_absolute().then(|| caches.join("mxrt"))
    };
    FOLDER.get_or_init(usual).as_deref()
}

/// The code that was kept under a key.
pub(crate) fn read(key: &[u8]) -> Option<Vec<u8>> {
    read_in(folder()?, key)
}

/// Keeps code under a key.
pub(crate) fn write(key: &[u8], code: &[u8]) {
    if let Some(folder) = folder() {
        // Without the file the next process compiles again.
        let _ = write_in(folder, key, code, MAX_BYTES);
    }
}

fn name(key: &[u8]) -> OsString {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.kernels").into()
}

fn read_in(folder: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let bytes = std::fs::read(folder.join(name(key))).ok()?;
    let (hash, code) = bytes.strip_prefix(HEADER)?.split_at_checked(32)?;
    (Sha256::digest(code)[..] == *hash).then(|| code.to_vec())
}

/// Writes to another name first, so that no process ever reads half a file.
fn write_in(folder: &Path, key: &[u8], code: &[u8], most: u64) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(folder)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{}-{number}.new", std::process::id()));
    let written = std::fs::write(&temporary, [HEADER, &Sha256::digest(code)[..], code].concat());
    let renamed = written.and_then(|()| std::fs::rename(&temporary, folder.join(name(key))));
    if renamed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    renamed?;
    trim(folder, most)
}

/// Removes the oldest files until the others have at most `most` bytes.
fn trim(folder: &Path, most: u64) -> std::io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // One that another process writes, or that a process left when it was killed.
        if name.ends_with(".kernels") || (name.starts_with('.') && name.ends_with(".new")) {
            let about = entry.metadata()?;
            files.push((about.modified()?, about.len(), entry.path()));
        }
    }
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, size, path) in files {
        if bytes <= most {
            break;
        }
        std::fs::remove_file(path)?;
        bytes -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_unless_the_file_is_damaged() {
        let folder = std::env::temp_dir().join(format!("mxrt-cache-{}", std::process::id()));
        let (key, code) = (&[7u8; 32][..], b"code".repeat(100));
        assert_eq!(read_in(&folder, key), None);
        write_in(&folder, key, &code, MAX_BYTES).unwrap();
        assert_eq!(read_in(&folder, key), Some(code.clone()));
        let file = folder.join(name(key));
        let whole = std::fs::read(&file).unwrap();
        for length in [0, 5, HEADER.len() + 31, HEADER.len() + 32, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(read_in(&folder, key), None, "{length} bytes");
        }
        let mut other = whole.clone();
        other[whole.len() - 1] ^= 1;
        std::fs::write(&file, other).unwrap();
        assert_eq!(read_in(&folder, key), None);
        write_in(&folder, key, &code, MAX_BYTES).unwrap();
        assert_eq!(read_in(&folder, key), Some(code));
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_oldest_files_go_where_there_are_too_many() {
        let folder = std::env::temp_dir().join(format!("mxrt-cache-oldest-{}", std::process::id()));
        let code = [0; 1000];
        for number in 0..5u8 {
            write_in(&folder, &[number], &code, 3200).unwrap();
            let made = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + u64::from(number));
            std::fs::File::options()
                .write(true)
                .open(folder.join(name(&[number])))
                .unwrap()
                .set_modified(made)
                .unwrap();
        }
        let present: Vec<u8> = (0..5).filter(|number| read_in(&folder, &[*number]).is_some()).collect();
        assert_eq!(present, [2, 3, 4]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
