//! Memory that a burst of requests has left goes back to the system when the server rests.

use crate::server::Shared;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether the server rests: for two looks no request has begun.
const LOOK: Duration = Duration::from_millis(250);
/// Requests and answers that held less at a time have left nothing to speak of.
const BURST: usize = 16 << 20;

/// Allocations from this size on are pages of their own, which go back to the system when they are
/// freed. The allocator would raise the size to 32 MiB, and keep twice that in each of its arenas.
const PAGES: i32 = 1 << 20;

/// Sets the allocator up for bodies and answers of many sizes.
#[allow(unsafe_code)]
pub(crate) fn set_up_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the allocator's own lock, and any thread may call it at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, PAGES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, PAGES);
    }
}

/// Looks, until connections end.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let service = &shared.service;
    let (mut seen, mut peak) = (0, 0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shared.closing() => return,
        }
        peak = peak.max(service.queue.take_peak() + service.answers.take_peak());
        let begun = service.ever_begun();
        let rests = begun == seen && service.queue.bytes() == 0 && service.answers.bytes() == 0;
        seen = begun;
        if rests && service.begun() == 0 && peak >= BURST {
            peak = 0;
            let memory = service.engine.memory();
            // It takes a while where there is much.
            let _ = tokio::task::spawn_blocking(move || {
                memory.trim();
                trim_allocator();
            })
            .await;
        }
    }
}

/// The allocator keeps what is freed, in each of its arenas.
#[allow(unsafe_code)]
fn trim_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the allocator's own locks, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
