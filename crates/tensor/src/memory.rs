//! Memory of arrays on the host: a block of the engine's pool, or memory of another library.

use mxrt_engine::memory::Block;
use std::any::Any;

/// Bytes and their owner. A thread that touches them holds a grant of the array's variable.
pub(crate) struct Memory {
    start: *mut u8,
    len: usize,
    writable: bool,
    owner: Owner,
}

enum Owner {
    Pool(Block),
    Other(Box<dyn Any + Send + Sync>),
}

// SAFETY: the memory belongs to the owner, which is held here and may be sent; the bytes are only
// touched under the grants of the array's variable.
unsafe impl Send for Memory {}
// SAFETY: as above; a shared `Memory` gives out an address only.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory of another library.
    ///
    /// # Safety
    /// As for [`crate::NDArray::from_shared`].
    pub unsafe fn of_others(start: *mut u8, len: usize, writable: bool, owner: Box<dyn Any + Send + Sync>) -> Memory {
        Memory { start, len, writable, owner: Owner::Other(owner) }
    }

    /// The block of the engine's pool, if it is one.
    pub fn block(&self) -> Option<&Block> {
        match &self.owner {
            Owner::Pool(block) => Some(block),
            Owner::Other(_) => None,
        }
    }

    /// The owner that another library passed with the memory.
    pub fn owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.owner {
            Owner::Pool(_) => None,
            Owner::Other(owner) => Some(&**owner),
        }
    }

    /// Whether the bytes may be changed.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl From<Block> for Memory {
    fn from(block: Block) -> Memory {
        Memory { start: block.as_ptr(), len: block.len(), writable: true, owner: Owner::Pool(block) }
    }
}
