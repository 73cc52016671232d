//! Returning memory to the system after a burst of requests, when the server is idle.

use crate::background::spawn;
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;

/// Interval of checks whether the server is idle, which it is if no request began between two of
/// them.
const LOOK: Duration = Duration::from_millis(250);
/// Least peak of bytes of requests, their heads and responses after which memory is returned.
const BURST: usize = 16 << 20;

/// Size, in bytes, from which an allocation has its own pages, which return to the system when it
/// is freed. Otherwise the allocator would raise this size up to 32 MiB, and keep twice that in
/// each of its arenas.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const PAGES: i32 = 1 << 20;

/// Configures the allocator for bodies and responses of many sizes.
#[allow(unsafe_code)]
pub(crate) fn set_up_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the allocator's own lock, and any thread may call it at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, PAGES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, PAGES);
    }
}

/// Checks whether the server is idle, until connections end.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let service = &shared.service;
    let (mut seen, mut peak) = (0, 0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shared.closing() => return,
        }
        peak = peak.max(service.queue.take_peak() + service.answers.take_peak() + shared.heads.take_peak());
        let begun = service.ever_begun();
        let rests = begun == seen && service.queue.bytes() == 0 && service.answers.bytes() == 0;
        let rests = rests && shared.heads.bytes() == 0;
        seen = begun;
        if rests && service.begun() == 0 && peak >= BURST {
            let memory = service.engine.memory();
            // Trimming takes long if there is much memory.
            let trimming = spawn(move || {
                memory.trim();
                trim_allocator();
            });
            // Without memory for the thread, the next look tries again.
            if let Ok(trimming) = trimming {
                peak = 0;
                let _ = trimming.await;
            }
        }
    }
}

/// Makes the allocator return freed memory, which it keeps in each of its arenas.
#[allow(unsafe_code)]
fn trim_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the allocator's own locks, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
