//! Responses that the client of a connection still has to take, and when it last took some of each.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a response that a client has to take, all at once or one by one, so that they count.
/// Otherwise a client that occasionally takes a byte would keep the rest for years.
const STEP: usize = 16 << 10;
/// Additional time of a response for each other one of its connection, which may have its turn
/// before it.
const TURN: Duration = Duration::from_secs(1);

/// Open responses of one connection.
#[derive(Debug)]
pub(crate) struct OpenAnswers {
    began: Instant,
    open: Mutex<Vec<Arc<Taking>>>,
}

/// Progress of a response.
#[derive(Debug)]
struct Taking {
    /// time, in milliseconds after `began`, at which bytes were last taken
    last: AtomicU64,
    /// largest number of other responses that were open since then
    others: AtomicU32,
}

/// Response that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenAnswer {
    of: Arc<OpenAnswers>,
    taking: Arc<Taking>,
    /// bytes that were taken and do not count yet
    bytes: AtomicUsize,
}

fn others(open: &[Arc<Taking>]) -> u32 {
    u32::try_from(open.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

impl OpenAnswers {
    pub(crate) fn new() -> Arc<OpenAnswers> {
        Arc::new(OpenAnswers { began: Instant::now(), open: Mutex::default() })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Taking>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a response. It does not count as progress of the others.
    pub(crate) fn open(self: &Arc<OpenAnswers>) -> OpenAnswer {
        let taking = Arc::new(Taking { last: AtomicU64::new(self.now()), others: AtomicU32::new(0) });
        let mut open = self.all();
        open.push(taking.clone());
        let others = others(&open);
        for taking in open.iter() {
            taking.others.fetch_max(others, Ordering::Relaxed);
        }
        drop(open);
        OpenAnswer { of: self.clone(), taking, bytes: AtomicUsize::new(0) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns the time at which the client will have taken nothing of one of the responses for
    /// `patience` and the turns of others; `None` if there are no responses.
    pub(crate) fn limit(&self, patience: Duration) -> Option<Instant> {
        let limit = |taking: &Arc<Taking>| {
            let turns = TURN * taking.others.load(Ordering::Relaxed);
            self.began + Duration::from_millis(taking.last.load(Ordering::Relaxed)) + patience + turns
        };
        self.all().iter().map(limit).min()
    }
}

impl OpenAnswer {
    /// Records that the client took bytes.
    pub(crate) fn took(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= STEP {
            self.bytes.store(0, Ordering::Relaxed);
            self.taking.others.store(others(&self.of.all()), Ordering::Relaxed);
            self.taking.last.store(self.of.now(), Ordering::Relaxed);
        }
    }
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        self.of.all().retain(|other| !Arc::ptr_eq(other, &self.taking));
    }
}
