//! Memory of simulated devices: pieces of the host's, with a pattern before and after their life.

use mxrt_engine::device::DevicePtr;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;

const ALIGN: usize = 256;
/// Content of fresh memory: no thread may rely on zeros.
const FRESH: u8 = 0xA5;
/// Content of freed memory, for a moment.
const FREED: u8 = 0x5A;

/// The blocks of one device.
#[derive(Default)]
pub(crate) struct DeviceBlocks {
    blocks: BTreeMap<u64, usize>,
    used: usize,
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGN).ok()
}

impl DeviceBlocks {
    /// `None`: there is not so much.
    pub fn alloc(&mut self, bytes: usize, total: usize) -> Option<DevicePtr> {
        if self.used.checked_add(bytes)? > total {
            return None;
        }
        // SAFETY: the size is not zero.
        let ptr = unsafe { alloc(layout(bytes)?) };
        if ptr.is_null() {
            return None;
        }
        // SAFETY: the memory was just allocated with at least this size.
        unsafe { ptr.write_bytes(FRESH, bytes) };
        self.used += bytes;
        let address = ptr.expose_provenance() as u64;
        self.blocks.insert(address, bytes);
        Some(DevicePtr(address))
    }

    /// False: there is no such block.
    pub fn free(&mut self, ptr: DevicePtr) -> bool {
        let Some(bytes) = self.blocks.remove(&ptr.0) else { return false };
        self.used -= bytes;
        let Some(layout) = layout(bytes) else { return false };
        let raw: *mut u8 = std::ptr::with_exposed_provenance_mut(ptr.0 as usize);
        // SAFETY: allocated by `alloc` with the same layout, and taken out of the list.
        unsafe {
            raw.write_bytes(FREED, bytes);
            dealloc(raw, layout);
        }
        true
    }

    /// Bytes that were allocated and not given back.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Whether the address is inside a block.
    pub fn contains(&self, ptr: DevicePtr) -> bool {
        self.blocks.range(..=ptr.0).next_back().is_some_and(|(start, bytes)| ptr.0 < start + (*bytes).max(1) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_holds_no_zeros() {
        let mut memory = DeviceBlocks::default();
        let ptr = memory.alloc(64, 64).expect("there is as much");
        let raw: *const u8 = std::ptr::with_exposed_provenance(ptr.0 as usize);
        // SAFETY: the block has 64 bytes, and no other thread knows it.
        let bytes = unsafe { std::slice::from_raw_parts(raw, 64) };
        assert!(bytes.iter().all(|byte| *byte != 0), "{bytes:?}");
        assert_eq!((memory.alloc(1, 64), memory.used()), (None, 64), "there is no more");
        assert!(memory.free(ptr) && !memory.free(ptr));
    }
}
