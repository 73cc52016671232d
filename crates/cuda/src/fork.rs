//! A child of the process that opened the driver cannot use it: the driver says so in a way that
//! nobody understands, and some of its calls do not return.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IN_CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn note_child() {
    IN_CHILD.store(true, Ordering::Relaxed);
}

/// Makes children of this process know that the driver belongs to their parent.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler stores a number.
        unsafe { libc::pthread_atfork(None, None, Some(note_child)) };
    });
}

/// Whether the driver was opened by a parent of this process.
#[inline]
pub(crate) fn in_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// The error in a child.
pub(crate) const CHILD: &str = "the CUDA driver was initialised before this process was forked, and cannot be used \
    here; start processes by spawning (multiprocessing.set_start_method('spawn')), or fork before the first use of \
    mx.gpu and mx.num_gpus";
