//! Calls that submit recorded work: one call of the driver starts all kernels of a program (as a
//! graph of CUDA). This matters if kernels take less time than their submission.
//!
//! A recording has its own arena, and its own memory for the data and the results of a call. The
//! device copies between these and the arrays of the call. Parameters and constants stay where they
//! are. A program keeps a few recordings, so that concurrent calls need not wait for each other.
//! The first call of a program submits the kernels one by one, which also loads them.

use super::DeviceProgram;
use mxrt_engine::{DeviceCtx, FailureKind, ForkSafeMutex, OpError};
use mxrt_tensor::{DeviceArguments, RecordedCall};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Size above which copies take longer than submitting kernels.
const MAX_COPIED: usize = 16 << 20;
/// Limit of the recordings that a program makes, in case the memory of parameters keeps changing.
const MAX_MADE: usize = 64;

/// The recordings of a program.
#[derive(Default)]
pub(super) struct Recordings {
    list: ForkSafeMutex<Vec<Arc<RecordedCall>>>,
    /// number of recordings that are kept; with 0, calls are not recorded
    limit: usize,
    calls: AtomicUsize,
    made: AtomicUsize,
    /// whether something in the program cannot be recorded
    refused: AtomicBool,
}

impl Recordings {
    pub fn new(limit: usize) -> Recordings {
        Recordings { limit, ..Recordings::default() }
    }

    /// Drops the recordings that no call uses.
    pub fn give_up(&self) {
        let idle = |one: &Arc<RecordedCall>| Arc::strong_count(one) == 1 && one.is_idle();
        let gone: Vec<Arc<RecordedCall>> = self.list.lock().extract_if(.., |one| idle(one)).collect();
        // Memory is freed under no lock.
        drop(gone);
    }

    /// Keeps one more recording, and drops the oldest ones above the limit.
    fn add(&self, recording: &Arc<RecordedCall>) {
        let mut list = self.list.lock();
        list.push(recording.clone());
        let too_many = list.len().saturating_sub(self.limit);
        let gone: Vec<Arc<RecordedCall>> = list.drain(..too_many).collect();
        drop(list);
        drop(gone);
    }

    /// Whether a call with these arguments uses a recording. The first `copied` arguments are its
    /// data.
    fn wants(&self, at: &DeviceArguments, copied: usize) -> bool {
        let bytes = at.input_bytes.iter().take(copied).chain(&at.output_bytes);
        self.limit > 0
            && bytes.fold(0usize, |sum, n| sum.saturating_add(*n)) <= MAX_COPIED
            && !self.refused.load(Ordering::Relaxed)
            && self.calls.fetch_add(1, Ordering::Relaxed) > 0
    }
}

impl DeviceProgram {
    /// Submits recorded work for a call. Returns false if nothing was submitted: then the kernels
    /// must be submitted one by one, as `submit` does for the arguments that it gets.
    pub(super) fn replay(
        self: &Arc<DeviceProgram>,
        ctx: &DeviceCtx<'_>,
        at: &DeviceArguments,
        copied: usize,
        submit: impl FnOnce(&DeviceArguments) -> Result<(), OpError>,
    ) -> Result<bool, OpError> {
        let recordings = &self.recordings;
        if !recordings.wants(at, copied) {
            return Ok(false);
        }
        let fits = |one: &&Arc<RecordedCall>| one.fits(at);
        let known: SmallVec<[Arc<RecordedCall>; 4]> = recordings.list.lock().iter().filter(fits).cloned().collect();
        let free = known.iter().find(|one| one.is_free(ctx));
        let recording = match free {
            Some(free) => free.clone(),
            None if known.len() < recordings.limit && recordings.made.load(Ordering::Relaxed) < MAX_MADE => {
                match RecordedCall::record(ctx, at, copied, self.lowered.arena_bytes, submit) {
                    Ok(Some(made)) => self.keep(ctx, made)?,
                    // What cannot be had now may be had later.
                    Err(error) if error.kind == FailureKind::Memory => return Ok(false),
                    Ok(None) | Err(_) => {
                        recordings.refused.store(true, Ordering::Relaxed);
                        return Ok(false);
                    }
                }
            }
            // The device lets the call wait.
            None if !known.is_empty() => known[recordings.calls.load(Ordering::Relaxed) % known.len()].clone(),
            None => return Ok(false),
        };
        recording.submit(ctx, at).map(|()| true)
    }

    fn keep(self: &Arc<DeviceProgram>, ctx: &DeviceCtx<'_>, made: RecordedCall) -> Result<Arc<RecordedCall>, OpError> {
        self.recordings.made.fetch_add(1, Ordering::Relaxed);
        ctx.engine().device(ctx.device())?.add_spare(self);
        let recording = Arc::new(made);
        self.recordings.add(&recording);
        Ok(recording)
    }
}
