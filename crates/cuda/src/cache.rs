//! Compiled kernels on the disk, so that each is compiled once for each kind of GPU and not once for
//! each process. A file that cannot be read or written, or that is damaged, is as good as none.

use mxrt_engine::cache::{CacheFolder, CacheKey, user_folder};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The limit of the folder; the oldest files are deleted.
const MAX_BYTES: u64 = 64 << 20;

static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Says where compiled kernels are kept; the first call counts. Without one it is `mxrt` in the user's
/// folder of caches.
pub fn set_cache_folder(folder: PathBuf) {
    let _ = FOLDER.set(Some(folder));
}

/// The folder; none where the system names no user's one, or others can write it.
fn folder() -> Option<CacheFolder> {
    let path = FOLDER.get_or_init(user_folder).as_deref()?;
    CacheFolder::open(path, "kernels").ok()
}

/// The code that was kept under a key.
pub(crate) fn read(key: &CacheKey) -> Option<Vec<u8>> {
    folder()?.read(key)
}

/// Keeps code under a key.
pub(crate) fn write(key: &CacheKey, code: &[u8]) {
    if let Some(folder) = folder() {
        // Without the file the next process compiles again.
        let _ = folder.write(key, code, MAX_BYTES);
    }
}
