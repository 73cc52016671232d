//! Work that is recorded once and submitted again as one piece: a graph of CUDA. It owns the memory
//! that it works in, so one op uses it at a time; the device keeps that order by events.

use super::api::{CopyJob, DeviceError, DevicePtr, MemoryPlace, RecordingHandle, StreamHandle, StreamKind};
use super::event::EventRef;
use super::memory::{DeviceBlock, MemoryOrigin};
use super::op::DeviceCtx;
use super::open::OpenDevice;
use super::status::{Explain, InScope};
use super::stream::{Stream, WaitSet};
use crate::failure::OpError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Recorded work, and what it needs.
pub struct Recording {
    device: &'static OpenDevice,
    handle: RecordingHandle,
    memory: Vec<DeviceBlock>,
    words: Vec<RecordedWord>,
    /// The end of its last use. Held while it is submitted.
    last: Mutex<EventRef>,
}

/// A status word of recorded kernels: memory of the device, copied to a word of the host after each
/// use.
pub(super) struct RecordedWord {
    pub at: DevicePtr,
    pub explain: Explain,
    pub scope: Option<InScope>,
}

/// A recording that an op is making.
pub(super) struct Recorder {
    pub stream: StreamHandle,
    pub memory: Vec<DeviceBlock>,
    pub words: Vec<RecordedWord>,
}

/// The stream of a device that recordings are made on, one at a time; made by the first.
#[derive(Default)]
pub(super) struct RecorderStream(Mutex<Option<StreamHandle>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecorderStream {
    fn take(&self, device: &OpenDevice) -> Result<(MutexGuard<'_, Option<StreamHandle>>, StreamHandle), DeviceError> {
        let mut stream = lock(&self.0);
        let handle = match *stream {
            Some(handle) => handle,
            None => *stream.insert(device.backend.new_stream(StreamKind::Compute)?),
        };
        Ok((stream, handle))
    }
}

impl DeviceCtx<'_> {
    /// Records what `submit` submits instead of submitting it. Scratch that it takes belongs to the
    /// recording. `None`: the device records nothing, and `submit` was not called. Functions of the
    /// host cannot be recorded.
    pub fn record_work<T>(
        &self,
        submit: impl FnOnce() -> Result<T, OpError>,
    ) -> Result<Option<(Recording, T)>, OpError> {
        let (device, backend) = (self.device, &*self.device.backend);
        let error = |e: DeviceError| device.op_error(&e, &format!("recording {}", self.name()));
        let (_alone, stream) = device.recorder.take(device).map_err(error)?;
        if !backend.begin_recording(stream).map_err(error)? {
            return Ok(None);
        }
        self.recorder.replace(Some(Recorder { stream, memory: Vec::new(), words: Vec::new() }));
        let end = EndOfRecording { ctx: self, stream };
        let submitted = submit();
        let (ended, recorder) = end.end();
        let (memory, words) = recorder.map_or_else(Default::default, |made| (made.memory, made.words));
        // This op's stream is behind the last users of the memory: its next user has to be behind this
        // stream.
        let last = self.end_of_piece(self.stream)?;
        match (submitted, ended) {
            (Ok(made), Ok(handle)) => {
                let recording = Recording { device, handle, memory, words, last: Mutex::new(last) };
                Ok(Some((recording, made)))
            }
            (submitted, ended) => {
                if let Ok(handle) = ended {
                    backend.free_recording(handle);
                }
                // No work uses it, and this op may want it for something else.
                memory.into_iter().for_each(|mut block| block.use_until(vec![last.clone()]));
                submitted.and(ended.map_err(error).map(|_| None))
            }
        }
    }

    /// Submits recorded work, between what the two functions submit, which may use the memory of the
    /// recording.
    pub fn replay(
        &self,
        work: &Arc<Recording>,
        before: impl FnOnce() -> Result<(), OpError>,
        after: impl FnOnce() -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut last = lock(&work.last);
        let mut waits = WaitSet::default();
        waits.add(&last);
        let ordered = self.stream.wait_for(&waits, self.op.id);
        ordered.map_err(|e| self.device.op_error(&e, "ordering an operator after the last use of its memory"))?;
        self.keep(work.clone());
        let submitted = before().and_then(|()| self.submit_recording(work)).and_then(|()| after());
        *last = self.end_of_piece(self.stream)?;
        submitted
    }

    fn submit_recording(&self, work: &Recording) -> Result<(), OpError> {
        for word in &work.words {
            // SAFETY: eight bytes of the recording, which this op has to itself.
            unsafe { self.clear(word.at, size_of::<u64>())? };
        }
        self.submit(|backend, stream| backend.launch_recording(stream, work.handle))?;
        for word in &work.words {
            let host = self.new_status_word(word.explain.clone(), word.scope.clone())?;
            let (to, from) = (MemoryPlace::Host(host.cast()), MemoryPlace::Device(word.at));
            let job = CopyJob { to, from, bytes: size_of::<u64>(), tag: self.tag() };
            // SAFETY: the word belongs to this op until it is complete, the source as above.
            self.submit(|backend, stream| unsafe { backend.copy(stream, job) })?;
        }
        Ok(())
    }

    /// Takes memory for the recording that is being made, if one is.
    pub(super) fn recorded_memory(&self, block: DeviceBlock) -> Result<DevicePtr, DeviceBlock> {
        match &mut *self.recorder.borrow_mut() {
            Some(recorder) => {
                let ptr = block.ptr;
                recorder.memory.push(block);
                Ok(ptr)
            }
            None => Err(block),
        }
    }

    /// A status word of the recording that is being made, if one is.
    pub(super) fn recorded_word(&self, explain: &Explain) -> Result<Option<DevicePtr>, OpError> {
        if self.recorder.borrow().is_none() {
            return Ok(None);
        }
        let at = self.retire(self.block(MemoryOrigin::Device, size_of::<u64>())?)?;
        let word = RecordedWord { at, explain: explain.clone(), scope: self.scope.borrow().clone() };
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            recorder.words.push(word);
        }
        Ok(Some(at))
    }

    /// The stream to which work is submitted now.
    pub(super) fn target(&self) -> StreamHandle {
        self.recorder.borrow().as_ref().map_or(self.stream.handle, |recorder| recorder.stream)
    }
}

/// Ends a recording whatever happens meanwhile.
struct EndOfRecording<'a, 'o> {
    ctx: &'a DeviceCtx<'o>,
    stream: StreamHandle,
}

impl EndOfRecording<'_, '_> {
    fn end(self) -> (Result<RecordingHandle, DeviceError>, Option<Recorder>) {
        let (backend, stream) = (&*self.ctx.device.backend, self.stream);
        let recorder = self.ctx.recorder.take();
        std::mem::forget(self);
        (backend.end_recording(stream), recorder)
    }
}

impl Drop for EndOfRecording<'_, '_> {
    /// Discards the recording if its closure has panicked.
    fn drop(&mut self) {
        self.ctx.recorder.take();
        if let Ok(handle) = self.ctx.device.backend.end_recording(self.stream) {
            self.ctx.device.backend.free_recording(handle);
        }
    }
}

impl Recording {
    /// Whether an op on this stream would start with it without waiting for another one's end. Asks
    /// the device.
    pub(super) fn is_free_on(&self, stream: &Stream) -> bool {
        let Ok(last) = self.last.try_lock() else { return false };
        last.stream.number == stream.number || last.is_complete()
    }
}

impl DeviceCtx<'_> {
    /// Whether this op could use recorded work without waiting for another one's end.
    pub fn is_free(&self, work: &Recording) -> bool {
        work.is_free_on(self.stream)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.device.is_lost() {
            return;
        }
        // Whoever used it has kept it until its event was complete.
        self.device.backend.free_recording(self.handle);
        let last = lock(&self.last).clone();
        self.memory.iter_mut().for_each(|block| block.use_until(vec![last.clone()]));
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording on {:?}", self.device)
    }
}
