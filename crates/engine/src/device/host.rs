//! The host waits for devices: never under a lock, never for what only another device needs.

use super::event::{EventRef, give_up};
use super::open::Devices;
use super::outcome::{LastWriter, settle};
use super::park::{AfterDevices, when_all_complete};
use super::stream::WaitSet;
use crate::engine::Engine;
use crate::failure::{Failure, OpError, WaitError};
use crate::op::block::Mode;
use crate::op::ctx::RunCtx;
use crate::var::{Var, VarInner};
use crate::wait::POLL;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// Answers that a device may refuse in one wait.
const TRIES: u32 = 3;
const WAITING: &str = "waiting for an operator";

/// The events that the host waits for before a value is ready, and the op that then says whether it
/// has failed.
#[derive(Default)]
pub(crate) struct HostWait {
    waits: WaitSet,
    writer: Option<LastWriter>,
    late: Option<Failure>,
}

impl HostWait {
    /// The events to be waited for before a value is read or written; `None`: no device uses it.
    ///
    /// # Safety
    /// The variable's lock is held.
    pub unsafe fn of(var: &VarInner, mode: Mode) -> Option<Self> {
        let extra = var.extra()?;
        // SAFETY: contract.
        let sync = unsafe { &mut *extra.sync.get() };
        let lost = sync.memory().and_then(|m| m.device.lost());
        if lost.is_none() && !sync.concerns_host(mode) && sync.failure().is_none() {
            return None;
        }
        let mut waits = WaitSet::default();
        sync.before_host(mode, &mut waits);
        Some(HostWait { waits, writer: sync.writer().cloned(), late: sync.failure().or(lost) })
    }

    /// The events for the variable of an access of a running op.
    pub fn of_access(ctx: &RunCtx<'_>, i: usize, mode: Mode) -> Option<Self> {
        let var = ctx.var_of(i);
        var.extra()?;
        var.lock.lock();
        // SAFETY: the lock is held.
        let wait = unsafe { HostWait::of(var, mode) };
        var.lock.unlock();
        wait
    }

    /// Whether everything is complete.
    pub fn over(self, devices: &Devices) -> bool {
        self.events(devices).iter().all(|e| devices.is_over(e))
    }

    /// The events to be waited for. Called under no lock.
    pub fn events(self, devices: &Devices) -> Vec<EventRef> {
        self.waits.complete(devices, None).into_events()
    }

    /// Blocks until the device is done; then the value's failure.
    pub fn finish(self, engine: &'static Engine, poll: &mut dyn FnMut() -> bool) -> Result<Option<Failure>, WaitError> {
        let HostWait { waits, writer, late } = self;
        for event in waits.complete(&engine.devices, None).events() {
            match engine.devices.host_wait(event, &mut || poll() && !engine.is_closed()) {
                Ok(true) => {}
                Ok(false) => return Err(engine.gave_up()),
                // The device is lost: the op that wrote the value has failed with this, or has not.
                Err(_) => settle(event),
            }
        }
        Ok(late.or_else(|| writer.as_ref().and_then(LastWriter::failure)))
    }

    /// Calls `f` with the value's failure when the device is done.
    pub fn call_when_over(self, devices: &Devices, f: impl FnOnce(Option<Failure>) + Send + 'static) {
        let HostWait { waits, writer, late } = self;
        let events = waits.complete(devices, None).into_events();
        let of_callback = events.clone();
        let callback = move || {
            // Decided, unless the devices were lost in a fork.
            of_callback.iter().for_each(settle);
            f(late.or_else(|| writer.as_ref().and_then(LastWriter::failure)));
        };
        let callback = Arc::new(DeviceCallback(Mutex::new(Some(Box::new(callback)))));
        let weak: Weak<DeviceCallback> = Arc::downgrade(&callback);
        devices.note_parked(weak);
        when_all_complete(events, move || callback.send_on());
    }
}

/// The function that is called when devices are done, or in a child without them.
struct DeviceCallback(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl AfterDevices for DeviceCallback {
    fn send_on(&self) {
        let callback = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(callback) = callback {
            callback();
        }
    }
}

/// The device is done with an event.
fn over(event: &EventRef) {
    event.stream.note_complete(event.seq);
    event.stream.reap();
    settle(event);
}

impl Devices {
    /// Whether an event is complete (its outcome is known then) or its device lost. Asks the
    /// device.
    pub fn is_over(&self, event: &EventRef) -> bool {
        if !event.is_settled() && event.is_complete() {
            // Also what came before it on the stream: a set of waits names only the latest.
            event.stream.reap();
            settle(event);
        }
        event.is_settled()
    }

    /// Blocks until an event is complete; its outcome is known then. False: `poll` asked to give
    /// up. An error: the device is lost.
    pub fn host_wait(&self, event: &EventRef, poll: &mut dyn FnMut() -> bool) -> Result<bool, OpError> {
        let device = event.stream.device;
        let mut asked = Instant::now();
        let mut refused = 0;
        loop {
            if event.is_settled() {
                return Ok(true);
            }
            if let Err(error) = device.usable() {
                settle(event);
                return Err(error);
            }
            match device.backend.host_wait(event.handle, POLL) {
                Ok(true) => over(event),
                Ok(false) if asked.elapsed() >= POLL => {
                    if !poll() {
                        return Ok(false);
                    }
                    asked = Instant::now();
                }
                Ok(false) => {}
                // The op may be running still, so its values are not there.
                Err(error) => {
                    refused += 1;
                    device.note_error(&error, WAITING);
                    if refused == TRIES {
                        give_up(event, &error);
                    }
                }
            }
        }
    }

    /// Blocks until everything that was submitted before is complete on every device.
    pub fn synchronize(&self, engine: &'static Engine, poll: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        for event in self.last_events() {
            // What a lost device did not complete has failed, and is notified as that.
            if let Ok(false) = self.host_wait(&event, &mut || poll() && !engine.is_closed()) {
                return Err(engine.gave_up());
            }
        }
        self.streams().into_iter().for_each(super::stream::Stream::reap);
        Ok(())
    }
}

impl Engine {
    /// Looks what devices have finished, without waiting: its times are known to the profiler then,
    /// and its failures to `wait_all`.
    pub fn collect_from_devices(&'static self) {
        self.devices.streams().into_iter().for_each(super::stream::Stream::collect);
    }

    /// Blocks until what was submitted to devices before is complete. `poll` is called about every
    /// 50 ms; false ends it.
    pub fn wait_for_devices(&'static self, poll: &mut dyn FnMut() -> bool) -> Result<(), WaitError> {
        self.devices.all().iter().for_each(|device| device.end_captured_uses());
        self.devices.synchronize(self, poll)
    }

    pub(super) fn gave_up(&self) -> WaitError {
        if self.is_closed() { WaitError::Closed } else { WaitError::Interrupted }
    }

    /// Freezes a variable that is rarely written: readers leave no event on it. The next write
    /// waits for everything that was submitted to any device, and ends this.
    pub fn freeze(&'static self, var: &Var) {
        self.without_fork(|| var.inner().with_new_sync(|sync| sync.freeze()));
    }

    /// Whether readers of a variable leave nothing on it.
    pub fn is_frozen(&'static self, var: &Var) -> bool {
        self.without_fork(|| var.inner().with_sync(|sync| sync.is_frozen()).unwrap_or(false))
    }
}
