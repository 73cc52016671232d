//! [`NDArray`]: a typed view of storage that an engine variable guards.

use crate::derived::DerivedValues;
use crate::lent::LentDigest;
use crate::memory::Memory;
use crate::params::Gates;
use crate::place::Span;
use crate::release::ReleaseState;
use crate::sparse::SparseSlot;
use crate::{Context, DType, Element, ReadGuard, Shape, TensorType};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::memory::Block;
use mxrt_engine::{DeviceId, Engine, FailureKind, OpError, Var, WaitError};
use std::sync::{Arc, OnceLock, Weak};

/// Storage and its variable. The thread that touches the bytes holds a grant of the variable.
pub(crate) struct Chunk {
    pub(crate) engine: &'static Engine,
    pub(crate) var: Var,
    context: Context,
    pub(crate) bytes: usize,
    /// Allocated by the thread that touches the content first, which is usually the operator that
    /// writes it.
    block: OnceLock<Memory>,
    /// The array's own memory, used once a thread has written an array whose block is read-only.
    own: OnceLock<Memory>,
    allocating: Mutex<()>,
    /// The content of a sparse array, which has no block.
    pub(crate) sparse: Option<SparseSlot>,
    /// Sets of parameters that the storage belongs to: a thread that writes it passes their gates.
    pub(crate) gates: Gates,
    /// Whether the content is elsewhere for the time being.
    pub(crate) release: ReleaseState,
    /// Values computed from the content.
    pub(crate) derived: DerivedValues,
    /// Whether a program has the address, and what it last wrote there.
    pub(crate) lent: LentDigest,
}

impl Chunk {
    /// The memory, if there is any; its content may be released.
    pub(crate) fn present(&self) -> Option<&Memory> {
        self.own.get().or_else(|| self.block.get())
    }

    /// The memory with its content; allocated and zeroed now if no thread did before.
    pub(crate) fn block(&self) -> Result<&Memory, OpError> {
        match (self.present(), &self.sparse) {
            (Some(block), _) => self.restore(block).map(|()| block),
            (None, Some(slot)) => self.dense_copy(slot),
            (None, None) => self.make_block(true),
        }
    }

    /// The memory for an operator that changes some of it. Called under a grant to write, as is the
    /// next one.
    pub(crate) fn block_to_change(&self) -> Result<&Memory, OpError> {
        self.refuse_dense_write()?;
        self.derived.clear();
        match self.block()? {
            block if block.writable() => Ok(block),
            block => self.make_own(Some(block)),
        }
    }

    /// The memory for an operator that overwrites all of it: nothing is cleared.
    pub(crate) fn block_to_overwrite(&self) -> Result<&Memory, OpError> {
        self.refuse_dense_write()?;
        self.derived.clear();
        match self.present() {
            Some(block) if block.writable() => self.forget(block).map(|()| block),
            Some(_) => self.make_own(None),
            None => self.make_block(false),
        }
    }

    /// The number of writes that changed the content. Under a grant, as in [`NDArray::value_key`].
    pub(crate) fn content_version(&self) -> u64 {
        // A release counts as a write, but changes nothing.
        self.var.version().wrapping_sub(self.release.unchanged_writes())
    }

    /// Whether no other library has an address that it may write to.
    pub(crate) fn is_written_by_the_engine_alone(&self) -> bool {
        self.present().is_some_and(|memory| memory.block().is_some() || !memory.writable()) && !self.address_is_known()
    }

    /// Memory instead of some that may only be read, which stays for the thread that has its
    /// address.
    fn make_own(&self, content: Option<&Memory>) -> Result<&Memory, OpError> {
        let mut block = allocate(self.engine, self.bytes)?;
        if let Some(content) = content {
            // SAFETY: the memory holds at least the bytes of the array (`from_memory`), and no
            // thread writes it (`from_shared`).
            let content = unsafe { std::slice::from_raw_parts(content.as_ptr(), self.bytes) };
            block.as_mut_slice()[..self.bytes].copy_from_slice(content);
        }
        Ok(self.own.get_or_init(|| block.into()))
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// The error of an operation of the host that was given an array of a device.
    pub(crate) fn no_host_memory(&self) -> OpError {
        let message = format!("an array on {} has no memory that the host works on", self.context);
        OpError::new(FailureKind::Device, message)
    }

    fn make_block(&self, cleared: bool) -> Result<&Memory, OpError> {
        if self.context.device().is_some() {
            return Err(self.no_host_memory());
        }
        let _one_at_a_time = self.allocating.lock();
        if let Some(block) = self.block.get() {
            return Ok(block);
        }
        let mut block = allocate(self.engine, self.bytes)?;
        if cleared {
            block.as_mut_slice().fill(0);
        }
        Ok(self.block.get_or_init(|| block.into()))
    }
}

/// Opens the device at its first use; an error says why it cannot be used.
#[cold]
fn check(engine: &'static Engine, context: Context, device: DeviceId) -> Result<(), OpError> {
    if i32::from(device.index()) != context.device_id {
        let message =
            format!("{context}: invalid number, there are {} such devices", engine.device_count(device.kind()));
        return Err(OpError::new(FailureKind::Device, message));
    }
    engine.device(device).map(drop)
}

pub(crate) fn allocate(engine: &'static Engine, bytes: usize) -> Result<Block, OpError> {
    engine.memory().alloc(bytes).map_err(|e| OpError::new(FailureKind::Memory, e.to_string()))
}

/// An array: storage shared by all its views, a variable that orders access to it, an element type
/// and a shape.
///
/// Cloning gives another handle to the same storage. Content is read through [`NDArray::read`] or
/// by operators pushed with [`crate::launch`]; both wait their turn in the order of pushes.
#[derive(Clone)]
pub struct NDArray {
    pub(crate) chunk: Arc<Chunk>,
    /// The guard of [`NDArray::cancel_on_drop`].
    cancel_guard: Option<Arc<CancelGuard>>,
    /// First byte of this view in the chunk.
    pub(crate) offset: usize,
    dtype: DType,
    shape: Shape,
}

impl NDArray {
    /// An array whose storage is allocated when it is first written (or, with zeros, first read).
    ///
    /// Fails with kind `Memory` when the size overflows.
    pub fn new(engine: &'static Engine, context: Context, tensor: TensorType) -> Result<NDArray, OpError> {
        NDArray::with_slot(engine, context, tensor, None)
    }

    /// A sparse array whose content is in this slot.
    pub(crate) fn of_slot(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        slot: SparseSlot,
    ) -> Result<NDArray, OpError> {
        NDArray::with_slot(engine, context, tensor, Some(slot))
    }

    fn with_slot(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        sparse: Option<SparseSlot>,
    ) -> Result<NDArray, OpError> {
        let bytes = tensor.checked_bytes().filter(|b| isize::try_from(*b).is_ok()).ok_or_else(|| {
            OpError::new(FailureKind::Memory, format!("an array of {tensor} is larger than the address space"))
        })?;
        mxrt_engine::reserve::check()?;
        if let Some(device) = context.device() {
            check(engine, context, device)?;
        }
        Ok(NDArray {
            chunk: Arc::new(Chunk {
                engine,
                var: engine.new_var(),
                context,
                bytes,
                block: OnceLock::new(),
                own: OnceLock::new(),
                allocating: Mutex::new(()),
                sparse,
                gates: Gates::default(),
                release: ReleaseState::default(),
                derived: DerivedValues::default(),
                lent: LentDigest::default(),
            }),
            cancel_guard: None,
            offset: 0,
            dtype: tensor.dtype,
            shape: tensor.shape,
        })
    }

    /// An array holding a copy of `bytes` (row-major elements).
    pub fn from_bytes(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        bytes: &[u8],
    ) -> Result<NDArray, OpError> {
        if tensor.checked_bytes() != Some(bytes.len()) {
            let message = format!("an array of {tensor} cannot be made of {} bytes", bytes.len());
            return Err(OpError::new(FailureKind::Value, message));
        }
        let mut block = allocate(engine, bytes.len())?;
        block.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        match context.device() {
            None => NDArray::from_block(engine, context, tensor, block),
            Some(_) => NDArray::from_block(engine, Context::cpu(0), tensor, block)?.copy_to_context(context),
        }
    }

    /// An array holding a copy of `values` (row-major).
    pub fn from_slice<T: Element>(
        engine: &'static Engine,
        context: Context,
        shape: impl Into<Shape>,
        values: &[T],
    ) -> Result<NDArray, OpError> {
        NDArray::from_bytes(engine, context, TensorType::new(T::DTYPE, shape), bytemuck::cast_slice(values))
    }

    /// An array of the host around memory that is already filled; `block` must hold at least the
    /// elements of `tensor`.
    pub fn from_block(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        block: Block,
    ) -> Result<NDArray, OpError> {
        NDArray::from_memory(engine, context, tensor, block.into())
    }

    pub(crate) fn from_memory(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        memory: Memory,
    ) -> Result<NDArray, OpError> {
        let array = NDArray::new(engine, context, tensor)?;
        if context.device().is_some() {
            let message = format!("memory of the host cannot be that of an array on {context}");
            return Err(OpError::new(FailureKind::Device, message));
        }
        if memory.len() < array.chunk.bytes {
            let message = format!("{} bytes are too few for {}", memory.len(), array.tensor_type());
            return Err(OpError::new(FailureKind::Value, message));
        }
        array.chunk.block.get_or_init(|| memory);
        Ok(array)
    }

    /// The engine that orders work on this array.
    pub fn engine(&self) -> &'static Engine {
        self.chunk.engine
    }

    /// The variable that guards the storage (shared by all views of it).
    pub fn var(&self) -> &Var {
        &self.chunk.var
    }

    /// The context of the array's memory.
    pub fn context(&self) -> Context {
        self.chunk.context
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Element type and shape together.
    pub fn tensor_type(&self) -> TensorType {
        TensorType { dtype: self.dtype, shape: self.shape.clone() }
    }

    /// Bytes of this view.
    pub fn nbytes(&self) -> usize {
        self.shape.size() * self.dtype.size()
    }

    /// Bytes of the whole storage.
    pub(crate) fn storage_bytes(&self) -> usize {
        self.chunk.bytes
    }

    /// True when this view is the whole storage: writing it replaces everything the variable stands
    /// for.
    pub fn covers_storage(&self) -> bool {
        self.offset == 0 && self.nbytes() == self.chunk.bytes
    }

    /// True when both are views of the same storage.
    pub fn same_storage(&self, other: &NDArray) -> bool {
        Arc::ptr_eq(&self.chunk, &other.chunk)
    }

    /// True when the byte ranges of the two views share anything.
    pub fn overlaps(&self, other: &NDArray) -> bool {
        Span::of(self).overlaps(Span::of(other))
    }

    /// Key of the value that this view holds once all work pushed so far is done: equal keys, equal
    /// content. Only meaningful inside an operator that holds a grant, or while no thread writes.
    pub fn value_key(&self) -> (u64, u64, usize) {
        (self.chunk.var.id(), self.chunk.content_version(), self.offset)
    }

    /// Key of this view's position: equal keys mean the same storage and first byte.
    pub fn place_key(&self) -> (u64, usize) {
        (self.chunk.var.id(), self.offset)
    }

    /// A view of consecutive elements: `start` elements in, with the given shape. `None` when it
    /// does not fit.
    pub fn view(&self, start: usize, shape: Shape) -> Option<NDArray> {
        let end = start.checked_add(shape.checked_size()?)?;
        // The content of a sparse array has the order of its shape.
        if end > self.shape.size() || (self.is_sparse() && shape != self.shape) {
            return None;
        }
        let offset = self.offset + start * self.dtype.size();
        Some(NDArray {
            chunk: self.chunk.clone(),
            cancel_guard: self.cancel_guard.clone(),
            offset,
            dtype: self.dtype,
            shape,
        })
    }

    /// Returns the array with a guard. When this handle and all clones and views of it are gone,
    /// pending work that computes the value and has not started is cancelled. Work that is pushed
    /// to read the array holds a handle.
    pub fn cancel_on_drop(mut self) -> NDArray {
        self.cancel_guard = Some(Arc::new(CancelGuard { engine: self.chunk.engine, var: self.chunk.var.clone() }));
        self
    }

    /// Another handle, which does not keep the work that computes the value from being cancelled.
    pub(crate) fn without_interest(&self) -> NDArray {
        NDArray { cancel_guard: None, ..self.clone() }
    }

    /// The guard that keeps the work that computes the value from being cancelled, if there is one.
    pub(crate) fn cancel_guard(&self) -> Option<Arc<CancelGuard>> {
        self.cancel_guard.clone()
    }

    /// Tells later whether the array is still wanted, without keeping it so; `None` for an array
    /// without [`cancel_on_drop`](NDArray::cancel_on_drop), which always is.
    pub fn interest(&self) -> Option<Interest> {
        self.cancel_guard.as_ref().map(|guard| Interest(Arc::downgrade(guard)))
    }

    /// Waits until everything pushed so far that writes this array is done; raises the failure it
    /// holds, if any.
    pub fn wait_to_read(&self) -> Result<(), WaitError> {
        self.chunk.engine.wait_to_read(&self.chunk.var)
    }

    /// Waits for the value and keeps writers away until the guard is dropped.
    pub fn read(&self) -> Result<ReadGuard<'_>, WaitError> {
        ReadGuard::acquire(self, None)
    }

    /// Reads like [`read`](NDArray::read). `poll` is called periodically while waiting; when it
    /// returns false the wait is abandoned with [`WaitError::Interrupted`].
    pub fn read_with(&self, poll: &mut dyn FnMut() -> bool) -> Result<ReadGuard<'_>, WaitError> {
        ReadGuard::acquire(self, Some(poll))
    }

    /// A copy of the content as bytes, after waiting for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WaitError> {
        copied(self.read()?.tensor().bytes()).map_err(|error| WaitError::Failed(error.to_failure()))
    }

    /// A copy of the elements, row-major, after waiting for them; an error of kind `Type` if they
    /// have another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, OpError> {
        copied(self.read()?.tensor().as_slice()?)
    }
}

/// A copy of elements, or the error of kind `Memory`.
pub fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>, OpError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(elements.len()).map_err(|_| {
        let bytes = size_of_val(elements);
        OpError::new(FailureKind::Memory, format!("copying {bytes} bytes: the system has no more memory; free some"))
    })?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

/// Cancels the writes of a variable when their result is not wanted any more.
pub(crate) struct CancelGuard {
    engine: &'static Engine,
    var: Var,
}

/// Whether a result is still wanted; for long work that may give up when it is not.
pub struct Interest(Weak<CancelGuard>);

impl Interest {
    /// Whether all handles of the array are gone.
    pub fn is_lost(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        // The thread that drops an array may hold locks: nothing else may happen here.
        self.engine.cancel_in_turn(&self.var);
    }
}

impl std::fmt::Debug for NDArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<NDArray {}{} @{}>", self.dtype, self.shape, self.chunk.context)
    }
}
