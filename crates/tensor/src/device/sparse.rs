//! Sparse arrays on devices. One block of the array's variable holds the content: values, columns or
//! row numbers, and row pointers, one after the other.
//!
//! The content is computed on the host, where its size is then known. The block is allocated when the
//! copy to the device is enqueued, and the array remembers the size of its parts. Copies to other
//! arrays alone read them.

use super::{SOURCE, TARGET, both_on_the_host, copy, cost};
use crate::sparse::{SparseContent, SparseSlot, StoredCounts, content_of, part_bytes, replace};
use crate::{NDArray, TensorType};
use mxrt_engine::{Access, DeviceCtx, DeviceId, DevicePtr, FailureKind, Lane, OpError, OpSpec};

/// Parts begin at multiples of this.
const ALIGN: usize = 64;

/// The parts of a content in the memory of a device.
struct Layout {
    /// first byte and number of bytes of each part
    parts: [(usize, usize); 3],
    /// bytes of the block
    bytes: usize,
}

impl Layout {
    fn of(slot: &SparseSlot, tensor: &TensorType, counts: StoredCounts) -> Result<Layout, OpError> {
        let mut bytes = 0_usize;
        let mut place = |size: usize| {
            let first = bytes;
            let end = size.checked_next_multiple_of(ALIGN).and_then(|size| first.checked_add(size));
            bytes = end.ok_or_else(|| {
                OpError::new(
                    FailureKind::Memory,
                    format!("a sparse array of {tensor} is larger than the address space"),
                )
            })?;
            Ok::<_, OpError>((first, size))
        };
        let [values, indices, pointers] = part_bytes(slot.storage(), tensor, counts)?;
        let parts = [place(values)?, place(indices)?, place(pointers)?];
        Ok(Layout { parts, bytes })
    }
}

impl NDArray {
    /// Overwrites a sparse array of a device with an array of the same type and storage.
    pub fn overwrite_on_device(&self, source: &NDArray) -> Result<(), OpError> {
        if source.tensor_type() != self.tensor_type() || source.storage_type() != self.storage_type() {
            let message = format!(
                "an array of {} stored as {} cannot be copied to one of {} stored as {}",
                source.tensor_type(),
                source.storage_type(),
                self.tensor_type(),
                self.storage_type()
            );
            return Err(OpError::new(FailureKind::Value, message));
        }
        if self.context().device().is_none() || !self.is_sparse() {
            return Err(OpError::new(FailureKind::Operator, format!("{self:?} is not a sparse array of a device")));
        }
        if self.same_storage(source) { Ok(()) } else { copy(self, source) }
    }
}

/// Enqueues a copy between two sparse arrays of one type, of which one or both are on a device. One on
/// the host that is written is new.
pub(super) fn push_copy(device: DeviceId, lane: Lane, target: &NDArray, source: &NDArray) -> Result<(), OpError> {
    if source.storage_type() != target.storage_type() {
        return target.chunk.refuse_dense_write();
    }
    // In the order of `SOURCE` and `TARGET`.
    let vars = [(source.var(), Access::Read), (target.var(), Access::Write)];
    let spec = OpSpec::new("copy", &vars).device(device).lane(lane).cost(cost(source.engine()));
    // The source is wanted until it is read. The target is not, for the operation that writes it.
    let (from, to) = (source.clone(), target.without_interest());
    source.engine().push_device(spec, move |ctx| match (from.context().device(), to.context().device()) {
        (None, Some(_)) => copy_in(ctx, &from, &to),
        (Some(_), None) => copy_out(ctx, &from, &to),
        (Some(_), Some(_)) => copy_on_devices(ctx, &from, &to),
        (None, None) => Err(both_on_the_host()),
    })
}

fn slot(array: &NDArray) -> Result<&SparseSlot, OpError> {
    let dense = || OpError::new(FailureKind::Operator, "a dense array was copied as a sparse one");
    array.chunk.sparse.as_ref().ok_or_else(dense)
}

/// The memory of the source.
fn source_memory(ctx: &DeviceCtx<'_>) -> Result<DevicePtr, OpError> {
    let missing = || OpError::new(FailureKind::Operator, "a sparse array of a device has no memory");
    ctx.memory(SOURCE).ok_or_else(missing)
}

fn copy_in(ctx: &DeviceCtx<'_>, from: &NDArray, to: &NDArray) -> Result<(), OpError> {
    ctx.keep(from.clone());
    let Some(content) = content_of(from)? else { return Err(both_on_the_host()) };
    let (slot, counts) = (slot(to)?, content.counts());
    let layout = Layout::of(slot, &to.tensor_type(), counts)?;
    // Until the memory is there, nothing is stored.
    slot.set_on_device(None, 0);
    let memory = ctx.alloc(TARGET, layout.bytes.max(1))?;
    for ((first, bytes), host) in layout.parts.into_iter().zip(content.addresses()) {
        if bytes > 0 {
            // SAFETY: the part lies in the block of the target, whose variable this op writes. The host's
            // part has as many bytes (`counts`), stays with the source, which is kept, and is not
            // written by a thread that does not declare the source's variable.
            unsafe { ctx.copy_in((TARGET, memory.offset(first)), (SOURCE, host.cast_const()), bytes)? };
        }
    }
    slot.set_on_device(Some(counts), layout.bytes);
    Ok(())
}

fn copy_out(ctx: &DeviceCtx<'_>, from: &NDArray, to: &NDArray) -> Result<(), OpError> {
    let (source, target, tensor) = (slot(from)?, slot(to)?, to.tensor_type());
    let Some(counts) = source.on_device() else {
        return replace(to, SparseContent::empty(ctx.engine(), target.storage(), &tensor)?);
    };
    let (layout, memory) = (Layout::of(source, &tensor, counts)?, source_memory(ctx)?);
    let content = SparseContent::unfilled(ctx.engine(), target.storage(), &tensor, counts)?;
    let addresses = content.addresses();
    // Readers wait for the end of the op. The target is new: nothing uses what it held.
    replace(to, content)?;
    ctx.keep(to.clone());
    for ((first, bytes), host) in layout.parts.into_iter().zip(addresses) {
        if bytes > 0 {
            // SAFETY: the part lies in the block of the source, which a copy has filled with a content
            // of these counts. The host's part has as many bytes and belongs to the target, which is
            // kept and whose variable this op writes.
            unsafe { ctx.copy_out((TARGET, host), (SOURCE, memory.offset(first)), bytes)? };
        }
    }
    Ok(())
}

fn copy_on_devices(ctx: &DeviceCtx<'_>, from: &NDArray, to: &NDArray) -> Result<(), OpError> {
    let (source, target) = (slot(from)?, slot(to)?);
    let Some(counts) = source.on_device() else {
        target.set_on_device(None, 0);
        return Ok(());
    };
    let (layout, from) = (Layout::of(source, &to.tensor_type(), counts)?, source_memory(ctx)?);
    target.set_on_device(None, 0);
    let to = ctx.alloc(TARGET, layout.bytes.max(1))?;
    for (first, bytes) in layout.parts.into_iter().filter(|(_, bytes)| *bytes > 0) {
        // SAFETY: the part lies in both blocks, which belong to variables of this op.
        unsafe { ctx.copy(to.offset(first), from.offset(first), bytes)? };
    }
    target.set_on_device(Some(counts), layout.bytes);
    Ok(())
}
