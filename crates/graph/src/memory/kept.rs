//! Folded and packed weights as files that the processes of a machine map, so that the processes
//! of a server or of a cluster's node have one copy together.
//!
//! A file is named by its content: the bytes of the parameters, the way in which they are folded and
//! packed, and the build of this library. Processes that start together take turns: what one has
//! packed, the others map.

use crate::plan::{ConstBlock, Fingerprint};
use mxrt_engine::cache::{CacheError, CacheFolder};
use mxrt_engine::{ForkSafeOnce, OpError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Size from which a content gets a file.
const LEAST_BYTES: usize = 64 << 10;
/// Time for which a process waits for another one that packs. One that takes longer is stopped or
/// stuck: this process waits for it no more, and packs itself.
const PATIENCE: Duration = Duration::from_secs(60);

static FILES: ForkSafeOnce<WeightFiles> = ForkSafeOnce::new();

/// Shares folded and packed weights with the processes that name the same folder. `most` bounds the
/// bytes of its files; `build` names the library, since another one may pack differently. The
/// first call counts.
pub fn share_weights(folder: &Path, most: u64, build: &str) -> Result<(), CacheError> {
    let folder = CacheFolder::open(folder, "weights")?;
    FILES.get_or_init(|| WeightFiles { folder, most, build: Fingerprint::of(build), hasty: AtomicBool::new(false) });
    Ok(())
}

/// The files, if weights of this size are shared.
pub(super) fn files_of(bytes: usize) -> Option<&'static WeightFiles> {
    FILES.get().filter(|_| bytes >= LEAST_BYTES)
}

/// A folder of packed weights.
pub(super) struct WeightFiles {
    folder: CacheFolder,
    most: u64,
    build: Fingerprint,
    /// nobody is waited for any more
    hasty: AtomicBool,
}

impl WeightFiles {
    /// Maps a content, or computes it and keeps it for the other processes. Where it cannot be kept
    /// (the disk is full, the folder gone), this process has its own copy.
    pub fn get_or_compute(
        &self,
        content: Fingerprint,
        bytes: usize,
        compute: impl FnOnce() -> Result<Arc<ConstBlock>, OpError>,
    ) -> Result<Arc<ConstBlock>, OpError> {
        let key = Fingerprint::of((self.build, content, bytes)).bytes();
        let find = || self.folder.map(&key, bytes).map(|content| Arc::new(ConstBlock::shared(content)));
        if let Some(found) = find() {
            return Ok(found);
        }
        let patience = if self.hasty.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
        let turn = self.folder.lock(patience);
        self.hasty.fetch_or(turn.is_none(), Ordering::Relaxed);
        if let Some(found) = find() {
            return Ok(found);
        }
        let computed = compute()?;
        match self.folder.write(&key, computed.bytes(), self.most).ok().and_then(|()| find()) {
            Some(found) => {
                if let Ok(computed) = Arc::try_unwrap(computed) {
                    computed.give_back();
                }
                Ok(found)
            }
            None => Ok(computed),
        }
    }
}
