//! Ops that no stream can wait for, put aside until a device is done, so that no worker is blocked:
//! ops of the host whose inputs are still on a device, and ops on a device that use what a device
//! of another driver has not finished.

use super::api::{DeviceError, ErrorClass};
use super::event::{EventRef, give_up};
use super::open::Devices;
use super::outcome::{FailureSource, settle};
use super::stream::WaitSet;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::op::block::{AFTER_DEVICES, COUNTED, Chain, Mode, ON_DEVICE, OpBlock, SMALL};
use crate::op::spec::DeviceKind;
use crate::process::slot::{self, Slot};
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr::null_mut;
use std::sync::{Arc, PoisonError, Weak};

/// An op that waits for events.
pub(crate) struct Parked {
    engine: &'static Engine,
    op: ParkedOp,
}

/// An op that belongs to the thread that takes it first.
pub(super) struct ParkedOp(AtomicPtr<OpBlock>);

impl ParkedOp {
    pub fn new(op: *mut OpBlock) -> Self {
        ParkedOp(AtomicPtr::new(op))
    }

    /// Null: another thread has it.
    pub fn take(&self) -> *mut OpBlock {
        self.0.swap(null_mut(), Ordering::AcqRel)
    }
}

/// Work that continues when devices are done with something, or lost. It happens once.
pub(crate) trait AfterDevices: Send + Sync {
    /// Continues the work.
    fn send_on(&self);
}

impl AfterDevices for Parked {
    fn send_on(&self) {
        let op = self.op.take();
        if !op.is_null() {
            // SAFETY: the op was put aside by its owner, and is taken once.
            unsafe { self.engine.unpark(op) };
        }
    }
}

/// Calls back when all of the events are complete, or their devices are lost; their outcomes are
/// known then. At once, in this thread, if they are.
pub(crate) fn when_all_complete(events: Vec<EventRef>, callback: impl FnOnce() + Send + 'static) {
    let rest = Arc::new((AtomicUsize::new(events.len() + 1), std::sync::Mutex::new(Some(callback))));
    let done = move || {
        if rest.0.fetch_sub(1, Ordering::AcqRel) == 1 {
            let callback = rest.1.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(callback) = callback {
                callback();
            }
        }
    };
    for event in events {
        let (done, seen) = (done.clone(), event.clone());
        let backend = event.stream.device.backend.clone();
        backend.when_complete(
            event.handle,
            Box::new(move |result| {
                arrived(&seen, result);
                done();
            }),
        );
    }
    done();
}

/// The device says that an event is complete, or that it will never say so.
fn arrived(event: &EventRef, result: Result<(), DeviceError>) {
    match result {
        Ok(()) => event.stream.note_complete(event.seq),
        Err(error) if error.class == ErrorClass::Lost => event.stream.device.lose(&error, "waiting for an operator"),
        Err(error) => give_up(event, &error),
    }
    event.stream.reap();
    settle(event);
}

impl Engine {
    /// Puts a ready op aside if what it touches is not complete on a device; true: it does not
    /// belong to the caller any more.
    ///
    /// # Safety
    /// `op` is ready and belongs to the caller, which is inside the fork gate.
    #[cold]
    pub(crate) unsafe fn park(&'static self, slot: &Slot, op: *mut OpBlock) -> bool {
        // SAFETY: contract.
        let on_device = unsafe { OpBlock::has(op, ON_DEVICE) };
        // SAFETY: contract.
        let goes_on = unsafe { (*op).class.runs_at_once() || OpBlock::has(op, AFTER_DEVICES) };
        if (on_device && !self.devices.are_mixed()) || goes_on {
            return false;
        }
        // SAFETY: contract.
        let events = unsafe { self.events_before(op, on_device.then(|| OpBlock::place(op).kind())) };
        if events.is_empty() {
            return false;
        }
        if self.is_naive() {
            // Everything happens in this thread, in order.
            for event in &events {
                let _ = self.devices.host_wait(event, &mut || true);
            }
            return false;
        }
        // SAFETY: contract. `wait_all` must wait for this one, too: it does not run before its push
        // returns.
        unsafe {
            if (*op).flags & COUNTED == 0 {
                self.count_push(slot, op);
            }
        }
        let parked = Arc::new(Parked { engine: self, op: ParkedOp::new(op) });
        let weak: Weak<Parked> = Arc::downgrade(&parked);
        self.devices.note_parked(weak);
        when_all_complete(events, move || parked.send_on());
        true
    }

    /// Events that an op has to wait for on the host, without those that are complete: all, or
    /// those which streams of devices of this kind cannot wait for.
    ///
    /// # Safety
    /// As for `park`.
    unsafe fn events_before(&self, op: *mut OpBlock, own: Option<DeviceKind>) -> Vec<EventRef> {
        let mut waits = WaitSet::default();
        // SAFETY: contract: granted variables are alive.
        unsafe {
            for i in 0..OpBlock::len(op) {
                let e = OpBlock::entry(op, i);
                let mode = (*e).mode();
                if mode != Mode::Alias {
                    (*(*e).var).with_sync(|sync| sync.before_host(mode, &mut waits));
                }
            }
        }
        let concerns = |e: &EventRef| own != Some(e.stream.device.id.kind()) && !self.devices.is_over(e);
        waits.complete(&self.devices, None).into_events().into_iter().filter(concerns).collect()
    }

    /// # Safety
    /// The op was parked and belongs to the caller.
    unsafe fn unpark(&'static self, op: *mut OpBlock) {
        let slot = slot::current();
        slot.enter();
        // Where waiting threads do the devices' work they do small ops as well, so that everything
        // stays in one thread. SAFETY: contract; the op is counted.
        unsafe {
            (*op).flags |= AFTER_DEVICES;
            let here = self.devices.need_steps() && OpBlock::has(op, SMALL) && slot.op_depth.get() == 0;
            let token = if here { self.sched.tokens.take() } else { None };
            match token {
                Some(token) => {
                    let before = slot.hold_token(self, token);
                    let mut ready = Chain::new();
                    self.execute(slot, op, &mut ready);
                    self.publish(slot, ready);
                    slot.restore_token(before);
                    self.sched.give_back(self, token);
                }
                None => {
                    let mut ready = Chain::new();
                    ready.add(op);
                    self.publish(slot, ready);
                }
            }
        }
        slot.exit();
    }

    /// Fails all waits for devices, in a forked child, and calls callbacks with the failure.
    pub(crate) fn forget_devices(&'static self) {
        self.devices.forget();
        for parked in self.devices.take_parked() {
            parked.send_on();
        }
    }
}

impl Devices {
    pub(super) fn note_parked(&self, parked: Weak<dyn AfterDevices>) {
        let mut list = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= 64 && list.len().is_power_of_two() {
            list.retain(|p| p.strong_count() > 0);
        }
        list.push(parked);
    }

    fn take_parked(&self) -> Vec<Arc<dyn AfterDevices>> {
        match self.parked.try_lock() {
            Ok(mut list) => std::mem::take(&mut *list).iter().filter_map(Weak::upgrade).collect(),
            Err(_) => Vec::new(),
        }
    }
}

/// The failure a strict op takes over, with those that devices found. An op on a device does not
/// wait to know: if an earlier input may still turn out to have failed it is submitted, and
/// inherits when that is decided. So which failure it takes over does not depend on time.
///
/// # Safety
/// All accesses of `op` are granted.
#[cold]
pub(crate) unsafe fn inherited_with_devices(op: *mut OpBlock) -> Option<Failure> {
    // SAFETY: contract: a grant keeps the variable alive and its failure stable.
    unsafe {
        let on_device = OpBlock::has(op, ON_DEVICE);
        for i in 0..OpBlock::len(op) {
            let e = OpBlock::entry(op, i);
            if !matches!((*e).mode(), Mode::Read | Mode::Update) {
                continue;
            }
            if let Some(failure) = &*(*(*e).var).failure.get() {
                return Some(failure.clone());
            }
            let failure = match (*(*e).var).with_sync(|sync| sync.source()).flatten() {
                None => None,
                Some(FailureSource::Failed(failure)) => Some(failure),
                Some(FailureSource::Pending(writer)) if on_device && !writer.event.is_settled() => return None,
                Some(FailureSource::Pending(writer)) => writer.failure(),
            };
            if failure.is_some() {
                return failure;
            }
        }
        None
    }
}
