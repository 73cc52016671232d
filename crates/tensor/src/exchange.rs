//! Sharing memory with other libraries, in both directions.

use crate::array::allocate;
use crate::device::fill_blank;
use crate::index::Region;
use crate::memory::Memory;
use crate::params::push_writing;
use crate::{Context, NDArray, TensorType};
use mxrt_engine::device::{ConsumerStream, ExportGuard, ImportStream};
use mxrt_engine::{Access, Cost, DeviceId, DevicePtr, Engine, Failure, FailureKind, OpError, OpSpec, WaitError};
use std::any::Any;

/// Memory of an array that another library uses. The memory stays until this is dropped.
///
/// What the other library does with it is not ordered with operators that are pushed later; the
/// thread that shares an array answers for that. Models compute what depends on their parameters
/// alone once per version of these: a value written from outside counts as new when the `Shared` is
/// dropped.
pub struct Shared {
    array: NDArray,
    writable: bool,
    address: *mut u8,
    /// guard of an array on a device
    guard: Option<ExportGuard>,
}

// SAFETY: the address is of memory that `array` keeps; what the other library does there is its
// user's affair.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// The array.
    pub fn array(&self) -> &NDArray {
        &self.array
    }

    /// Address of the first byte, in the device's memory if the array is there.
    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What the other library has submitted comes before whatever is pushed now.
        drop(self.guard.take());
        if self.writable {
            self.array.written_outside();
        }
    }
}

/// An array of another library that becomes one here, on a device: its memory, and when it is
/// ready.
pub struct DeviceImport {
    engine: &'static Engine,
    device: DeviceId,
    stream: ImportStream,
}

impl DeviceImport {
    /// Asks the device for a stream that the other library shall make its array ready on.
    pub fn new(engine: &'static Engine, device: DeviceId) -> Result<DeviceImport, OpError> {
        Ok(DeviceImport { engine, device, stream: engine.import_stream(device)? })
    }

    /// The stream, by the number that other libraries know.
    pub fn stream(&self) -> u64 {
        self.stream.number()
    }

    /// The array, once the other library has been asked. `owner` is dropped when no thread uses the
    /// memory any more.
    ///
    /// # Safety
    /// As for [`NDArray::from_shared`], with an address of the device's memory, which is ready when
    /// the stream comes to what is submitted to it from now on.
    pub unsafe fn finish(
        self,
        context: Context,
        tensor: TensorType,
        start: u64,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<NDArray, OpError> {
        let bytes = tensor.bytes();
        let array = NDArray::new(self.engine, context, tensor)?;
        self.engine.adopt_memory(array.var(), self.device, DevicePtr(start), bytes, move || drop(owner))?;
        self.stream.finish(array.var())?;
        Ok(array)
    }
}

impl NDArray {
    /// Gives the memory to another library, once the value is there and, for writing, no thread
    /// reads it any more. Fails with the failure the array holds. `poll` as for [`NDArray::read`].
    pub fn share(&self, writable: bool, poll: &mut dyn FnMut() -> bool) -> Result<Shared, WaitError> {
        let (engine, var) = (self.engine(), self.var());
        self.refuse_sparse()?;
        if writable {
            self.written_outside();
            engine.wait_to_write_with(var, poll)?;
        }
        engine.wait_to_read_with(var, poll)?;
        // The address leaves the engine's order.
        self.chunk.never_release();
        let memory = if writable { self.chunk.block_to_change() } else { self.chunk.block() };
        let memory = memory.map_err(|e| WaitError::Failed(Failure::new((*e).clone())))?;
        // SAFETY: the view lies inside the memory by construction of `NDArray`.
        let address = unsafe { memory.as_ptr().add(self.offset) };
        Ok(Shared { array: self.clone(), writable, address, guard: None })
    }

    /// Gives the memory of an array on a device to another library, whose stream waits for the
    /// value; for writing, also for every thread that reads it. The caller waits only until the
    /// device knows of what was pushed before.
    pub fn share_on(
        &self,
        consumer: ConsumerStream,
        writable: bool,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Shared, WaitError> {
        let refuse =
            |message: String| WaitError::Failed(Failure::new((*OpError::new(FailureKind::Device, message)).clone()));
        let Some(device) = self.context().device() else {
            return Err(refuse(format!("an array on {} has no streams", self.context())));
        };
        self.refuse_sparse()?;
        if writable || self.var().memory().is_none() {
            self.written_outside();
        }
        let guard = self.engine().export_to(self.var(), device, consumer, writable, poll)?;
        let memory = self.var().memory().ok_or_else(|| refuse(format!("the array on {device} has no memory")))?;
        let address = std::ptr::with_exposed_provenance_mut(memory.ptr.offset(self.offset).0 as usize);
        Ok(Shared { array: self.clone(), writable, address, guard: Some(guard) })
    }

    /// The error of sharing a sparse array, whose content has no address that stays.
    fn refuse_sparse(&self) -> Result<(), WaitError> {
        if !self.is_sparse() {
            return Ok(());
        }
        let message = format!("an array stored as {} cannot be shared: pass tostype('default')", self.storage_type());
        Err(WaitError::Failed(OpError::new(FailureKind::NotImplemented, message).to_failure()))
    }

    /// A new version: a value that comes from outside replaces parts of the old one.
    pub(crate) fn written_outside(&self) {
        let vars = [(self.var(), Access::Update)];
        let spec = OpSpec::new("shared", &vars).cost(Cost::Small);
        match self.context().device() {
            None => push_writing(self.engine(), &[self], spec, |_| Ok(())),
            Some(device) => {
                let bytes = self.storage_bytes();
                // A lost device takes nothing: then there is no value either.
                let _ = self.engine().push_device(spec.device(device), move |ctx| fill_blank(ctx, 0, bytes).map(drop));
            }
        }
    }

    /// An array in memory of another library, which is kept until the last handle and the last
    /// operator are done with it; then `owner` is dropped, in any thread. If it is not `writable`,
    /// the first operator that writes the array gives it memory of its own.
    ///
    /// # Safety
    /// At `start` begin the bytes of `tensor`, row-major, initialised, aligned for its elements,
    /// and writable if the argument says so. They stay until `owner` is dropped, and until then no
    /// other thread writes them while operators use the array.
    pub unsafe fn from_shared(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        (start, writable): (*mut u8, bool),
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<NDArray, OpError> {
        // SAFETY: the caller's promise.
        let memory = unsafe { Memory::of_others(start, tensor.bytes(), writable, owner) };
        NDArray::from_memory(engine, context, tensor, memory)
    }

    /// Makes an array with a copy of elements that are stored at regular distances, counted in
    /// elements, and need not be aligned.
    ///
    /// # Safety
    /// Every element that shape and distances reach from `start` can be read.
    pub unsafe fn from_strided(
        engine: &'static Engine,
        context: Context,
        tensor: TensorType,
        start: *const u8,
        distances: &[isize],
    ) -> Result<NDArray, OpError> {
        if distances.len() != tensor.shape.len() {
            let message = format!("{} distances do not describe an array of shape {}", distances.len(), tensor.shape);
            return Err(OpError::new(FailureKind::Value, message));
        }
        let width = tensor.dtype.size();
        let mut block = allocate(engine, tensor.checked_bytes().unwrap_or(usize::MAX))?;
        let axes = tensor.shape.iter().zip(distances).map(|(n, distance)| (*n, *distance)).collect();
        let mut elements = block.as_mut_slice().chunks_exact_mut(width);
        let region = Region { start: 0, axes };
        region.each(|position| {
            if let Some(element) = elements.next() {
                // SAFETY: the caller's promise; a byte has no alignment.
                unsafe {
                    std::ptr::copy_nonoverlapping(start.offset(position * width as isize), element.as_mut_ptr(), width)
                };
            }
        });
        NDArray::from_block(engine, context, tensor, block)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({:?})", self.array)
    }
}
