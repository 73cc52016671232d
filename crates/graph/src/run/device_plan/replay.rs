//! Calls that submit recorded work: one call of the driver starts all kernels of a plan (as a
//! graph of CUDA). This matters if kernels take less time than their submission.
//!
//! A recording has its own arena, and its own memory for the data and the results of a call. The
//! device copies between these and the arrays of the call. Parameters and constants stay where they
//! are; a parameter without a value, or one that is not aligned, is in memory of the call alone,
//! and copied too. A plan keeps a few recordings, so that concurrent calls need not wait for
//! each other. The first call of a plan submits the kernels one by one, which also loads them.

use super::DevicePlan;
use mxrt_engine::{DeviceCtx, FailureKind, ForkSafeMutex, OpError};
use mxrt_tensor::{DeviceArguments, InputUse, RecordedCall};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Nanoseconds that a kernel takes longer if it is submitted alone (7 to 8 us instead of 1.7 us on an
/// H200).
const SUBMISSION_NS: usize = 5_000;
/// Bytes that a device copies in a nanosecond.
const COPIED_PER_NS: usize = 2_000;
/// Recordings that a plan makes without asking whether they pay, and number of calls for each
/// further one, in case the memory of parameters keeps changing.
const FREELY_MADE: usize = 64;
const CALLS_FOR_ONE: usize = 16;
/// Calls without a recording after one that failed. Each further failure doubles them, up to a limit.
const CALLS_WITHOUT: usize = 8;
const DOUBLINGS: usize = 10;

/// The recordings of a plan on one device.
#[derive(Default)]
pub(super) struct Recordings {
    list: ForkSafeMutex<Vec<Arc<RecordedCall>>>,
    /// number of recordings that are kept; with 0, calls are not recorded
    limit: usize,
    calls: AtomicUsize,
    /// recordings that were made, without those that were given up
    made: AtomicUsize,
    /// failures since the last recording, and the call from which on the next is tried
    failed: AtomicUsize,
    retry: AtomicUsize,
    /// whether something in the plan cannot be recorded
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
        self.made.fetch_sub(gone.len(), Ordering::Relaxed);
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

    /// Whether a call with this number of kernels, these arguments, and these uses of its inputs
    /// uses a recording.
    fn wants(&self, kernels: usize, at: &DeviceArguments, uses: &[InputUse]) -> bool {
        let inputs = at.input_bytes.iter().zip(uses).filter(|(_, used)| **used == InputUse::Copied);
        let bytes = inputs.map(|(bytes, _)| bytes).chain(&at.output_bytes);
        let bytes = bytes.fold(0usize, |sum, n| sum.saturating_add(*n));
        self.limit > 0
            && bytes / COPIED_PER_NS < kernels.saturating_mul(SUBMISSION_NS)
            && !self.refused.load(Ordering::Relaxed)
            && self.calls.fetch_add(1, Ordering::Relaxed) > 0
    }

    /// Whether one more recording may be made in this call.
    fn may_make(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed);
        let limit = FREELY_MADE + calls / CALLS_FOR_ONE;
        self.made.load(Ordering::Relaxed) < limit && calls >= self.retry.load(Ordering::Relaxed)
    }

    /// Drops a recording, which is freed when no call uses it.
    fn remove(&self, recording: &Arc<RecordedCall>) {
        let gone: Vec<_> = self.list.lock().extract_if(.., |one| Arc::ptr_eq(one, recording)).collect();
        // Memory is freed under no lock.
        drop(gone);
    }

    /// Makes no recording for some calls, as one has failed for a reason that may pass.
    fn put_off(&self) {
        let before = self.failed.fetch_add(1, Ordering::Relaxed).min(DOUBLINGS);
        self.retry.store(self.calls.load(Ordering::Relaxed) + (CALLS_WITHOUT << before), Ordering::Relaxed);
    }
}

impl DevicePlan {
    /// Submits recorded work for a call. Returns false if that was not possible: then the kernels
    /// must be submitted one by one, as `submit` does for the arguments that it gets. `uses` are
    /// those of the inputs.
    pub(super) fn replay(
        self: &Arc<DevicePlan>,
        ctx: &DeviceCtx<'_>,
        at: &DeviceArguments,
        uses: &[InputUse],
        submit: impl FnOnce(&DeviceArguments) -> Result<(), OpError>,
    ) -> Result<bool, OpError> {
        let recordings = &*self.recordings(ctx.device());
        if !recordings.wants(self.lowered.steps.len(), at, uses) {
            return Ok(false);
        }
        let Some(recording) = self.recording(ctx, at, uses, recordings, submit)? else { return Ok(false) };
        match recording.submit(ctx, at, uses) {
            Ok(()) => Ok(true),
            // The driver had no memory to launch it, and would have none at the next call.
            Err(error) if error.kind == FailureKind::Memory => {
                recordings.remove(&recording);
                recordings.put_off();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Finds a recording that fits a call and is free, or makes one. Returns `None` if neither can
    /// be had.
    fn recording(
        self: &Arc<DevicePlan>,
        ctx: &DeviceCtx<'_>,
        at: &DeviceArguments,
        uses: &[InputUse],
        recordings: &Recordings,
        submit: impl FnOnce(&DeviceArguments) -> Result<(), OpError>,
    ) -> Result<Option<Arc<RecordedCall>>, OpError> {
        let fits = |one: &&Arc<RecordedCall>| one.fits(at, uses);
        let known: SmallVec<[Arc<RecordedCall>; 4]> = recordings.list.lock().iter().filter(fits).cloned().collect();
        if let Some(free) = known.iter().find(|one| one.is_free(ctx)) {
            return Ok(Some(free.clone()));
        }
        if known.len() >= recordings.limit || !recordings.may_make() {
            // The device lets the call wait.
            let turn = recordings.calls.load(Ordering::Relaxed).checked_rem(known.len());
            return Ok(turn.map(|turn| known[turn].clone()));
        }
        match RecordedCall::record(ctx, at, uses, self.lowered.arena_bytes, submit) {
            Ok(Some(made)) => return self.keep(ctx, recordings, made).map(Some),
            // What cannot be had now may be had later. Each attempt frees the pool, so it is not
            // made at every call.
            Err(error) if error.kind != FailureKind::NotImplemented => recordings.put_off(),
            // The device records nothing, or not what is in this plan.
            Ok(None) | Err(_) => recordings.refused.store(true, Ordering::Relaxed),
        }
        Ok(None)
    }

    fn keep(
        self: &Arc<DevicePlan>,
        ctx: &DeviceCtx<'_>,
        recordings: &Recordings,
        made: RecordedCall,
    ) -> Result<Arc<RecordedCall>, OpError> {
        recordings.made.fetch_add(1, Ordering::Relaxed);
        recordings.failed.store(0, Ordering::Relaxed);
        ctx.engine().device(ctx.device())?.add_spare(self);
        let recording = Arc::new(made);
        recordings.add(&recording);
        Ok(recording)
    }
}
