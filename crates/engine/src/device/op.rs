//! An op on a device: what is submitted between its start and its end.

use super::api::{ClearJob, CopyJob, Device, DeviceError, DevicePtr, MemoryPlace, StreamHandle, Tag, TagAccess};
use super::event::EventRef;
use super::kernel::{Kernel, KernelCtx};
use super::memory::{DeviceBlock, MemoryOrigin};
use super::open::OpenDevice;
use super::outcome::{Enqueued, FailedInput, FailureSource, settle};
use super::recording::Recorder;
use super::status::InScope;
use super::stream::{Stream, WaitSet};
use super::sync_object::{Garbage, SyncObject};
use super::timing::Timing;
use crate::engine::Engine;
use crate::failure::{FailureKind, OpError};
use crate::op::block::Mode;
use crate::op::ctx::RunCtx;
use crate::op::spec::{DeviceId, OpKind, OpSpec};
use crate::profile;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

/// The context passed to the closure of an op on a device, which submits work and returns. Before
/// the closure starts, the device is made to wait for earlier work. When it ends, in whatever way,
/// an event is recorded after its work and noted in every variable.
pub struct DeviceCtx<'a> {
    pub(super) run: &'a RunCtx<'a>,
    pub(super) device: &'static OpenDevice,
    pub(super) stream: &'static Stream,
    pub(super) op: Arc<Enqueued>,
    /// Made for the first piece of work; memory that comes later makes a new one.
    tag: RefCell<Option<Arc<Tag>>>,
    /// Memory that this op may still use, although it has no owner any more.
    retired: RefCell<Vec<DeviceBlock>>,
    finished: Cell<bool>,
    /// Whether the op waited for every stream.
    behind_all: Cell<bool>,
    timing: Cell<Option<Timing>>,
    /// The part that is being submitted.
    pub(super) scope: RefCell<Option<InScope>>,
    /// The recorder of submitted work.
    pub(super) recorder: RefCell<Option<Recorder>>,
}

impl<'a> Deref for DeviceCtx<'a> {
    type Target = RunCtx<'a>;
    fn deref(&self) -> &RunCtx<'a> {
        self.run
    }
}

impl Engine {
    /// Pushes an op that submits work to the device in `spec`. It runs when everything it depends
    /// on was submitted; the device keeps the order from there on. An error means that nothing was
    /// pushed: the device does not exist, cannot be opened, or is lost.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push_device<F>(&'static self, spec: OpSpec<'_>, run: F) -> Result<(), OpError>
    where
        F: FnOnce(&DeviceCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let device = self.device(spec.device)?;
        device.usable()?;
        device.end_captured_uses();
        let strict = spec.kind == OpKind::Strict;
        let stream = device.stream_for(spec.lane, spec.stream);
        self.push_on_device(spec, move |ctx| {
            let ctx = DeviceCtx::begin(ctx, device, stream, strict)?;
            let result = run(&ctx);
            ctx.finish(result)
        });
        Ok(())
    }
}

/// Collects what an op on this stream has to wait for, and its inputs that have failed or may still
/// fail.
fn failed_inputs(run: &RunCtx<'_>, stream: &Stream, waits: &mut WaitSet) -> Vec<FailedInput> {
    let mut inputs = Vec::new();
    for (access, mode) in run.primary_accesses() {
        let var = run.var_of(access);
        let look = |sync: &mut SyncObject| sync.before_device_op(mode, stream.number, waits);
        let on_device = var.with_sync(look).flatten();
        // SAFETY: the op holds a grant of the variable.
        let on_host = unsafe { (*var.failure.get()).clone() };
        let source = on_host.map(FailureSource::Failed).or(on_device);
        if let Some(source) = source.filter(|_| mode != Mode::Write) {
            inputs.push(FailedInput { access, updated: mode == Mode::Update, source });
        }
    }
    inputs
}

impl<'a> DeviceCtx<'a> {
    fn begin(
        run: &'a RunCtx<'a>,
        device: &'static OpenDevice,
        stream: &'static Stream,
        strict: bool,
    ) -> Result<Self, OpError> {
        device.usable()?;
        let mut waits = WaitSet::default();
        let inputs = failed_inputs(run, stream, &mut waits);
        let behind_all = Cell::new(waits.every_stream);
        // For those of other drivers the op was put aside.
        let waits = waits.complete(&run.engine().devices, Some(device.id.kind()));
        let mut op = Enqueued::new(run.engine(), run.op_name(), device.id, strict, run.var_ids());
        // Nothing was submitted yet: an op that cannot wait leaves its variables as they are.
        stream.wait_for(&waits, op.id).map_err(|e| device.op_error(&e, "ordering an operator"))?;
        op.origin = run.origin();
        op.set_inputs(inputs);
        let timing = if profile::is_on() { Timing::start(stream) } else { None };
        Ok(DeviceCtx {
            timing: Cell::new(timing),
            run,
            device,
            stream,
            op: Arc::new(op),
            tag: RefCell::new(None),
            retired: RefCell::default(),
            finished: Cell::new(false),
            behind_all,
            scope: RefCell::default(),
            recorder: RefCell::default(),
        })
    }

    /// Records the end and notes it in every variable; only then the engine releases what depends
    /// on the op.
    fn finish(&self, result: Result<(), OpError>) -> Result<(), OpError> {
        self.finished.set(true);
        if let Some(timing) = self.timing.take().and_then(Timing::end) {
            self.op.set_timing(timing);
        }
        let (event, recorded) = self.record();
        let Some(event) = event else { return recorded.and(result) };
        for mut block in self.retired.take() {
            block.use_until(vec![event.clone()]);
        }
        for (access, mode) in self.run.primary_accesses() {
            let mut garbage = Garbage::default();
            self.run.var_of(access).with_new_sync(|sync| match mode {
                Mode::Read => sync.register_read(&event, &mut garbage),
                mode => sync.register_write(&event, access, mode == Mode::Write, &mut garbage),
            });
        }
        let result = recorded.and(result);
        if self.run.engine().kind().is_async() {
            return result;
        }
        result.and(self.wait_here(&event))
    }

    /// A record that fails once fails the op; work whose end cannot be marked at all has lost its
    /// order, and the device with it.
    fn record(&self) -> (Option<EventRef>, Result<(), OpError>) {
        match self.stream.record(Some(self.op.clone())) {
            Ok(event) => (Some(event), Ok(())),
            Err(first) => {
                let error = self.device.op_error(&first, "recording the end of an operator");
                match self.stream.record(Some(self.op.clone())) {
                    Ok(event) => (Some(event), Err(error)),
                    Err(_) => {
                        self.device.lose(&first, "recording the end of an operator, twice");
                        (None, Err(error))
                    }
                }
            }
        }
    }

    /// Without `Async` in the engine's name an op is complete on the device before anything that
    /// depends on it starts.
    fn wait_here(&self, event: &EventRef) -> Result<(), OpError> {
        self.run.engine().devices.host_wait(event, &mut || true)?;
        settle(event);
        let Some(outcome) = self.op.outcome() else { return Ok(()) };
        outcome.single.iter().for_each(|(i, failure)| self.run.fail_write(*i, failure.clone()));
        outcome.all.clone().map_or(Ok(()), |failure| Err(OpError::from(failure)))
    }

    /// The device on which this op runs.
    pub fn device(&self) -> DeviceId {
        self.device.id
    }

    /// The backend, for a crate that brings kernels of its own.
    pub fn backend(&self) -> &dyn Device {
        &*self.device.backend
    }

    /// The stream to submit to.
    pub fn stream(&self) -> StreamHandle {
        self.target()
    }

    /// The description of this op that the backend receives.
    pub fn tag(&self) -> Arc<Tag> {
        self.tag
            .borrow_mut()
            .get_or_insert_with(|| {
                let accesses = self.run.primary_accesses().map(|(access, mode)| {
                    let var = self.run.var_of(access);
                    let memory = var.with_sync(|sync| sync.memory().map(|m| m.ptr)).flatten();
                    TagAccess { var: var.id, memory, write: mode != Mode::Read }
                });
                // Memory of the op alone is known by the op's own number.
                let own = |block: &DeviceBlock| TagAccess { var: self.op.id, memory: Some(block.ptr), write: true };
                let accesses = accesses.chain(self.retired.borrow().iter().map(own)).collect();
                self.tag_of(accesses)
            })
            .clone()
    }

    /// The description of a piece of work of this op that the backend receives.
    pub(super) fn tag_of(&self, accesses: Vec<TagAccess>) -> Arc<Tag> {
        let (op, name, device) = (self.op.id, self.op.name.clone(), self.device.id);
        Arc::new(Tag { op, name, device, accesses, behind_all: self.behind_all.get() })
    }

    /// Submits a function of the host that computes in its turn on the stream. Device memory it
    /// uses may be named by address; what else it needs it owns.
    pub fn launch<F>(&self, kernel: F) -> Result<(), OpError>
    where
        F: FnOnce(&KernelCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        if self.recorder.borrow().is_some() {
            let message = format!("{}: a function of the host cannot be recorded", self.name());
            return Err(OpError::new(FailureKind::NotImplemented, message));
        }
        let kernel = Kernel::new(Box::new(kernel), self.op.clone(), self.tag());
        let launched = self.device.backend.launch(self.stream.handle, kernel);
        launched.map_err(|e| self.device.op_error(&e, &format!("launching {}", self.name())))
    }

    /// Submits work of the backend's own kind to the stream: a crate that brings kernels does so here,
    /// so that the device's failures are seen where those of other calls are.
    pub fn submit(
        &self,
        work: impl FnOnce(&dyn Device, StreamHandle) -> Result<(), DeviceError>,
    ) -> Result<(), OpError> {
        let submitted = work(&*self.device.backend, self.target());
        submitted.map_err(|e| self.device.op_error(&e, &format!("launching {}", self.name())))
    }

    /// Submits a copy between memories of devices of one driver. Memory of the host takes part by
    /// [`copy_in`](DeviceCtx::copy_in) and [`copy_out`](DeviceCtx::copy_out).
    ///
    /// # Safety
    /// Both addresses have that many bytes, which belong to a variable of this op or are its
    /// scratch.
    pub unsafe fn copy(&self, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<(), OpError> {
        let job = CopyJob { to: MemoryPlace::Device(to), from: MemoryPlace::Device(from), bytes, tag: self.tag() };
        // SAFETY: contract; the event that is recorded when the op ends comes after the copy.
        let copied = unsafe { self.device.backend.copy(self.target(), job) };
        copied.map_err(|e| self.device.op_error(&e, &format!("copying for {}", self.name())))
    }

    /// Submits setting memory of a device to zero.
    ///
    /// # Safety
    /// As for [`copy`](DeviceCtx::copy).
    pub unsafe fn clear(&self, at: DevicePtr, bytes: usize) -> Result<(), OpError> {
        let job = ClearJob { at, bytes, tag: self.tag() };
        // SAFETY: contract; the event that is recorded when the op ends comes after it.
        let cleared = unsafe { self.device.backend.clear(self.target(), job) };
        cleared.map_err(|e| self.device.op_error(&e, &format!("clearing memory for {}", self.name())))
    }

    /// Memory for the variable of a written access; what it has already is kept if it is large
    /// enough and on this device.
    pub fn alloc(&self, access: usize, bytes: usize) -> Result<DevicePtr, OpError> {
        let Some(Mode::Write | Mode::Update) = self.run.mode_of(access) else {
            let message = format!("{}: memory for access {access}, which is not written", self.name());
            return Err(OpError::new(FailureKind::Value, message));
        };
        if let Some(ptr) = self.owned(access, bytes) {
            return Ok(ptr);
        }
        let block = self.block(MemoryOrigin::Device, bytes)?;
        let ptr = block.ptr;
        let old = self.run.var_of(access).with_new_sync(|sync| sync.replace_memory(block));
        self.retired.borrow_mut().extend(old);
        *self.tag.borrow_mut() = None;
        Ok(ptr)
    }

    fn owned(&self, access: usize, bytes: usize) -> Option<DevicePtr> {
        let fits = |m: &DeviceBlock| (m.bytes >= bytes && m.device.id == self.device.id).then_some(m.ptr);
        self.run.var_of(access).with_sync(|sync| sync.memory().and_then(fits)).flatten()
    }

    /// Memory the variable of an access owns, here or on another device.
    pub fn memory(&self, access: usize) -> Option<DevicePtr> {
        self.run.mode_of(access)?;
        self.run.var_of(access).with_sync(|sync| sync.memory().map(|m| m.ptr)).flatten()
    }

    /// Memory for this op alone, until it is complete on the device.
    pub fn scratch(&self, bytes: usize) -> Result<DevicePtr, OpError> {
        self.retire(self.block(MemoryOrigin::Device, bytes)?)
    }

    pub(super) fn retire(&self, block: DeviceBlock) -> Result<DevicePtr, OpError> {
        let block = match self.recorded_memory(block) {
            Ok(ptr) => return Ok(ptr),
            Err(block) => block,
        };
        let ptr = block.ptr;
        self.retired.borrow_mut().push(block);
        *self.tag.borrow_mut() = None;
        Ok(ptr)
    }

    /// Memory that this op's stream may use.
    pub(super) fn block(&self, origin: MemoryOrigin, bytes: usize) -> Result<DeviceBlock, OpError> {
        let (block, events) = self.device.pool(origin).alloc(self.device, bytes, Some(self.stream.number))?;
        let mut waits = WaitSet::default();
        events.iter().for_each(|e| waits.add(e));
        self.behind_all.set(self.behind_all.get() || block.behind_all);
        match self.stream.wait_for(&waits, self.op.id) {
            Ok(()) => Ok(block),
            Err(error) => {
                let mut block = block;
                block.use_until(events);
                Err(self.device.op_error(&error, "ordering an operator after the last owner of its memory"))
            }
        }
    }

    /// Keeps a value until this op is complete on the device.
    pub fn keep<T: Send + 'static>(&self, value: T) {
        self.op.keep(Box::new(value));
    }
}

impl Drop for DeviceCtx<'_> {
    /// The closure has panicked: what it submitted has an end as well.
    fn drop(&mut self) {
        if !self.finished.get() {
            let _ = self.finish(Ok(()));
        }
    }
}
