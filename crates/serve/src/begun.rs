//! Count of inference requests whose responses have not been passed on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Guard that counts an inference request from its head until its response has been passed on.
#[derive(Debug)]
pub(crate) struct Begun(Arc<AtomicUsize>);

impl Begun {
    pub(crate) fn new(all: &Arc<AtomicUsize>) -> Begun {
        all.fetch_add(1, Ordering::SeqCst);
        Begun(all.clone())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
