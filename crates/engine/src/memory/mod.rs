//! Memory of arrays: blocks by size class, recycled, bounded.

mod free_blocks;
pub mod reserve;

use crate::memory::free_blocks::FreeBlocks;
use crate::process::slot;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Alignment of every block.
pub const ALIGN: usize = 64;
/// Least size of blocks that come straight from the system, so that freeing one returns its memory
/// and unused pages are never backed.
const MAPPED_FROM: usize = 128 << 10;
/// Least size of blocks that are aligned for huge pages.
const HUGE_FROM: usize = 1 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// Freed memory that is kept in any case; above, up to half of what blocks have held at most.
const CACHE_FLOOR: usize = 256 << 20;
/// Least scratch memory of a thread that is counted.
const LARGE_SCRATCH: usize = 16 << 20;
const NO_LIMIT: usize = usize::MAX;
/// Largest request: the classes above could not be computed without overflow.
const MAX_BYTES: usize = 1 << 47;
const CLASSES: usize = class_of(MAX_BYTES) + 1;

/// Size class of a request: multiples of 64 up to 512, then four per doubling, so at most a fifth
/// is wasted.
pub(crate) const fn class_of(bytes: usize) -> usize {
    if bytes <= 512 {
        return bytes.saturating_sub(1) / 64;
    }
    // 2^exponent < bytes <= 2^(exponent + 1), for exponent >= 9.
    let exponent = (bytes - 1).ilog2() as usize;
    let quarter = ((bytes - 1) >> (exponent - 2)) & 3;
    8 + (exponent - 9) * 4 + quarter
}

/// Bytes of a block of a class.
pub(crate) const fn bytes_of(class: usize) -> usize {
    if class < 8 {
        return (class + 1) * 64;
    }
    let (exponent, quarter) = ((class - 8) / 4 + 9, (class - 8) % 4);
    (1 << exponent) + (quarter + 1) * (1 << (exponent - 2))
}

/// A piece of memory from the system; of zero bytes or zeroed when made.
pub(crate) struct RawMemory {
    ptr: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a `RawMemory` owns its memory.
unsafe impl Send for RawMemory {}
// SAFETY: shared references only read.
unsafe impl Sync for RawMemory {}

impl RawMemory {
    pub const fn empty() -> Self {
        // SAFETY: 64 is not null.
        RawMemory { ptr: unsafe { NonNull::new_unchecked(std::ptr::without_provenance_mut(ALIGN)) }, bytes: 0 }
    }

    /// Allocates at least `bytes` bytes, of which `used` are needed now. `None`: the system has no
    /// memory.
    fn new(bytes: usize, used: usize) -> Option<RawMemory> {
        if bytes == 0 {
            return Some(RawMemory::empty());
        }
        let ptr = if bytes >= MAPPED_FROM { map(bytes, used)? } else { NonNull::new(allocate(bytes)?)? };
        Some(RawMemory { ptr, bytes })
    }

    fn as_mut_slice(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(len <= self.bytes);
        // SAFETY: the memory is ours, at least `len` bytes long, and was initialised with zeros.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), len) }
    }

    /// `bytes` bytes, after growing if necessary; old content is lost then.
    ///
    /// # Panics
    /// If the system has no memory, with an [`OpError`](crate::OpError) that becomes the op's
    /// failure.
    pub fn at_least(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes < bytes {
            *self = RawMemory::empty();
            let grown = bytes.checked_next_multiple_of(4096).and_then(|bytes| RawMemory::new(bytes, bytes));
            *self = grown.unwrap_or_else(|| no_scratch(bytes));
        }
        self.as_mut_slice(bytes)
    }
}

#[cold]
fn no_scratch(bytes: usize) -> ! {
    end_op(format!(
        "allocating {bytes} bytes of scratch memory: the system has no more; free arrays or use smaller ones"
    ))
}

/// Ends the running op with an error of kind `Memory`.
fn end_op(message: String) -> ! {
    std::panic::resume_unwind(Box::new(crate::OpError::new(crate::FailureKind::Memory, message)))
}

impl Default for RawMemory {
    fn default() -> Self {
        RawMemory::empty()
    }
}

impl Drop for RawMemory {
    fn drop(&mut self) {
        if self.bytes >= MAPPED_FROM {
            // SAFETY: mapped by `map` with this rounding, and not used any more.
            unsafe { libc::munmap(self.ptr.as_ptr().cast(), mapped(self.bytes)) };
        } else if self.bytes > 0
            && let Ok(layout) = Layout::from_size_align(self.bytes, ALIGN)
        {
            // SAFETY: allocated by `allocate` with the same layout.
            unsafe { dealloc(self.ptr.as_ptr(), layout) };
        }
    }
}

fn allocate(bytes: usize) -> Option<*mut u8> {
    let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
    // SAFETY: the size is not zero.
    Some(unsafe { alloc_zeroed(layout) })
}

/// Raises a highest value, which seldom changes.
fn raise(highest: &AtomicUsize, value: usize) {
    if value > highest.load(Ordering::Relaxed) {
        highest.fetch_max(value, Ordering::Relaxed);
    }
}

fn mapped(bytes: usize) -> usize {
    bytes.next_multiple_of(4096)
}

/// Fresh zeroed pages, from [`HUGE_FROM`] on at a multiple of 2 MiB. As many huge pages as `used`
/// bytes fill are asked for; the rest are small ones, so that what no thread touches takes no
/// memory.
fn map(bytes: usize, used: usize) -> Option<NonNull<u8>> {
    let bytes = mapped(bytes);
    let align = if bytes >= HUGE_FROM { HUGE_PAGE } else { 1 };
    let wide = bytes.checked_add(align - 1)?;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh private mapping at an address the system chooses; what lies before and after
    // the aligned part is given back and never used. The advice changes no content.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), wide, access, kind, -1, 0);
        if start == libc::MAP_FAILED {
            return None;
        }
        let before = start.addr().next_multiple_of(align) - start.addr();
        let aligned = start.byte_add(before);
        if before > 0 {
            libc::munmap(start, before);
        }
        let behind = mapped(wide) - before - bytes;
        if behind > 0 {
            libc::munmap(aligned.byte_add(bytes), behind);
        }
        let huge = used / HUGE_PAGE * HUGE_PAGE;
        if huge > 0 {
            libc::madvise(aligned, huge, libc::MADV_HUGEPAGE);
        }
        NonNull::new(aligned.cast())
    }
}

/// The reason why a block could not be allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub asked: usize,
    /// The pool's limit, if it has one.
    pub limit: Option<usize>,
    /// Bytes in use when asked.
    pub in_use: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfMemory { asked, in_use, .. } = self;
        match self.limit {
            Some(limit) => write!(
                f,
                "allocating {asked} bytes: the memory limit is {limit} bytes and {in_use} bytes \
                 are in use; free arrays or raise the limit"
            ),
            None if *in_use == 0 => write!(f, "allocating {asked} bytes: the system has no more memory; free some"),
            None => write!(
                f,
                "allocating {asked} bytes: the system has no more memory and {in_use} bytes are in \
                 use; free arrays or use smaller ones"
            ),
        }
    }
}

impl std::error::Error for OutOfMemory {}

impl From<OutOfMemory> for crate::OpError {
    fn from(error: OutOfMemory) -> Self {
        crate::OpError::new(crate::FailureKind::Memory, error.to_string())
    }
}

/// Counters of a pool, in bytes unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Held by blocks.
    pub in_use: usize,
    /// Highest `in_use` so far.
    pub peak: usize,
    /// Freed and kept for the next block.
    pub cached: usize,
    /// The limit, if there is one.
    pub limit: Option<usize>,
    /// Number of blocks taken from the system so far.
    pub fresh_blocks: usize,
    /// Number of blocks that were used again so far.
    pub recycled_blocks: usize,
}

/// Hands out blocks and takes them back.
pub struct MemoryPool {
    free: Box<[FreeBlocks]>,
    in_use: AtomicUsize,
    /// Part of `in_use` that is outside of blocks.
    charged: AtomicUsize,
    peak: AtomicUsize,
    /// Highest number of bytes in blocks so far.
    most_in_blocks: AtomicUsize,
    cached: AtomicUsize,
    limit: AtomicUsize,
    fresh: AtomicUsize,
    recycled: AtomicUsize,
}

impl MemoryPool {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        MemoryPool {
            free: (0..CLASSES).map(|_| FreeBlocks::new()).collect(),
            in_use: AtomicUsize::new(0),
            charged: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            most_in_blocks: AtomicUsize::new(0),
            cached: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit.unwrap_or(NO_LIMIT)),
            fresh: AtomicUsize::new(0),
            recycled: AtomicUsize::new(0),
        }
    }

    /// A block of `bytes` bytes: zeroed when fresh, with arbitrary old content when recycled.
    pub fn alloc(&'static self, bytes: usize) -> Result<Block, OutOfMemory> {
        if bytes == 0 {
            return Ok(Block::new(RawMemory::empty(), 0, self));
        }
        let error = |in_use| OutOfMemory { asked: bytes, limit: self.limit(), in_use };
        if bytes > MAX_BYTES || reserve::check().is_err() {
            return Err(error(self.in_use.load(Ordering::Relaxed)));
        }
        let class = class_of(bytes);
        let size = bytes_of(class);
        let before = self.count(size).map_err(error)?;
        if let Some(raw) = self.take_cached(class) {
            self.recycled.fetch_add(1, Ordering::Relaxed);
            self.note_blocks(before + size);
            return Ok(Block::new(raw, bytes, self));
        }
        self.make_room(before.saturating_add(size));
        let raw = RawMemory::new(size, bytes).or_else(|| {
            self.trim();
            RawMemory::new(size, bytes)
        });
        let Some(raw) = raw else {
            self.in_use.fetch_sub(size, Ordering::Relaxed);
            return Err(error(before));
        };
        self.fresh.fetch_add(1, Ordering::Relaxed);
        self.note_blocks(before + size);
        Ok(Block::new(raw, bytes, self))
    }

    /// Counts `bytes` that are held outside of blocks (a text that is read, a copy for the caller)
    /// as in use, until the charge is dropped.
    pub fn charge(&'static self, bytes: usize) -> Result<Charge, OutOfMemory> {
        let error = |in_use| OutOfMemory { asked: bytes, limit: self.limit(), in_use };
        let before = self.count(bytes).map_err(error)?;
        self.charged.fetch_add(bytes, Ordering::Relaxed);
        raise(&self.peak, before + bytes);
        self.make_room(before.saturating_add(bytes));
        Ok(Charge { bytes, pool: self })
    }

    /// Counts scratch memory of `threads` threads as in use, if it is large: less is noise.
    ///
    /// # Panics
    /// If the limit does not allow it, with an [`OpError`](crate::OpError) that becomes the op's
    /// failure.
    pub(crate) fn charge_scratch(&'static self, bytes: usize, threads: usize) -> Option<Charge> {
        if bytes < LARGE_SCRATCH {
            return None;
        }
        let charge = self.charge(bytes.saturating_mul(threads));
        Some(charge.unwrap_or_else(|refused| {
            end_op(refused.to_string().replacen(
                " bytes:",
                &format!(" bytes of scratch memory in {threads} threads:"),
                1,
            ))
        }))
    }

    /// Counts memory as in use, only if it fits: a large request must not make a concurrent small
    /// one fail. Returns the bytes in use before, in either case.
    fn count(&self, size: usize) -> Result<usize, usize> {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = |in_use: usize| in_use.checked_add(size).filter(|sum| *sum <= limit);
        self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
    }

    /// Notes that a block has its memory, and how much was in use then. A request that fails must
    /// not raise the bound of the cache, which follows from what blocks have held.
    fn note_blocks(&self, in_use: usize) {
        raise(&self.peak, in_use);
        raise(&self.most_in_blocks, in_use.saturating_sub(self.charged.load(Ordering::Relaxed)));
    }

    /// The limit covers what is cached as well: that goes before the system is asked for more.
    fn make_room(&self, in_use: usize) {
        let all = in_use.saturating_add(self.cached.load(Ordering::Relaxed));
        if all > self.limit.load(Ordering::Relaxed) {
            self.trim();
        }
    }

    fn take_cached(&self, class: usize) -> Option<RawMemory> {
        let slot = slot::current();
        slot.enter();
        let raw = self.free[class].take_last();
        slot.exit();
        if raw.is_some() {
            self.cached.fetch_sub(bytes_of(class), Ordering::Relaxed);
        }
        raw
    }

    fn give(&self, raw: RawMemory) {
        let size = raw.bytes;
        if size == 0 {
            return;
        }
        self.in_use.fetch_sub(size, Ordering::Relaxed);
        let bound = CACHE_FLOOR.max(self.most_in_blocks.load(Ordering::Relaxed) / 2);
        let cached = self.cached.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        let slot = slot::current();
        slot.enter();
        let refused = self.free[class_of(size)].give(raw);
        if refused.is_some() {
            self.cached.fetch_sub(size, Ordering::Relaxed);
        }
        if cached > bound {
            self.evict(bound);
        }
        slot.exit();
    }

    /// Gives cached memory back to the system, of the class that holds most and there what was used
    /// longest ago, until no more than `bound` is left. So a burst of requests leaves none of its
    /// blocks in the place of those in daily use.
    fn evict(&self, bound: usize) {
        while self.cached.load(Ordering::Relaxed) > bound {
            let held = |class: &usize| self.free[*class].len() * bytes_of(*class);
            let most = (0..CLASSES).max_by_key(held);
            let Some(oldest) = most.and_then(|class| self.free[class].take_oldest()) else { return };
            self.cached.fetch_sub(oldest.bytes, Ordering::Relaxed);
        }
    }

    /// The pool's counters.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            in_use: self.in_use.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
            cached: self.cached.load(Ordering::Relaxed),
            limit: self.limit(),
            fresh_blocks: self.fresh.load(Ordering::Relaxed),
            recycled_blocks: self.recycled.load(Ordering::Relaxed),
        }
    }

    fn limit(&self) -> Option<usize> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|l| *l != NO_LIMIT)
    }

    /// Sets the upper bound of memory in use; what is in use already stays.
    pub fn set_limit(&self, limit: Option<usize>) {
        self.limit.store(limit.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    }

    /// Gives cached memory back to the system.
    pub fn trim(&self) {
        let slot = slot::current();
        slot.enter();
        for (class, free) in self.free.iter().enumerate() {
            let gone = free.take_all();
            self.cached.fetch_sub(gone.len() * bytes_of(class), Ordering::Relaxed);
        }
        slot.exit();
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(f)
    }
}

/// Bytes outside of blocks that count as in use; see [`MemoryPool::charge`].
#[derive(Debug)]
pub struct Charge {
    bytes: usize,
    pool: &'static MemoryPool,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pool.charged.fetch_sub(self.bytes, Ordering::Relaxed);
        self.pool.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Memory from a pool: aligned to 64 bytes, and to 2 MiB from 1 MiB on. Goes back to the pool when
/// dropped.
pub struct Block {
    raw: RawMemory,
    len: usize,
    pool: &'static MemoryPool,
    /// Whether the pages are with the system, see [`Block::release_pages`].
    released: AtomicBool,
}

impl Block {
    fn new(raw: RawMemory, len: usize, pool: &'static MemoryPool) -> Block {
        Block { raw, len, pool, released: AtomicBool::new(false) }
    }

    /// Gives the pages to the system and keeps the addresses: the bytes mean nothing until
    /// [`Block::restore_pages`], and count as free. False, and nothing happens, if the block is too
    /// small to have pages of its own, or has released them already.
    ///
    /// # Safety
    /// No thread reads or writes the bytes until they are restored.
    pub unsafe fn release_pages(&self) -> bool {
        if self.raw.bytes < MAPPED_FROM || self.released.swap(true, Ordering::Relaxed) {
            return false;
        }
        // SAFETY: mapped by `map`, which rounds as `mapped` does; the caller promises that no
        // thread has use for the content.
        unsafe { libc::madvise(self.raw.ptr.as_ptr().cast(), mapped(self.raw.bytes), libc::MADV_DONTNEED) };
        self.pool.in_use.fetch_sub(self.raw.bytes, Ordering::Relaxed);
        true
    }

    /// Counts the bytes as in use again, if the limit allows it. They are zeros.
    pub fn restore_pages(&self) -> Result<(), OutOfMemory> {
        if self.released.load(Ordering::Relaxed) {
            let error = |in_use| OutOfMemory { asked: self.len, limit: self.pool.limit(), in_use };
            let before = self.pool.count(self.raw.bytes).map_err(error)?;
            self.pool.note_blocks(before + self.raw.bytes);
            self.pool.make_room(before.saturating_add(self.raw.bytes));
            self.released.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Address of the first byte. Writing through it needs the care that sharing a block demands.
    pub fn as_ptr(&self) -> *mut u8 {
        self.raw.ptr.as_ptr()
    }

    /// Bytes asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Ends the block and gives its memory to the system instead of keeping it for the next block.
    pub fn give_back(mut self) {
        let raw = std::mem::take(&mut self.raw);
        if !self.released.load(Ordering::Relaxed) {
            self.pool.in_use.fetch_sub(raw.bytes, Ordering::Relaxed);
        }
    }

    /// Whether no bytes were asked for.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the memory is ours, initialised, and at least `len` bytes long.
        unsafe { std::slice::from_raw_parts(self.raw.ptr.as_ptr(), self.len) }
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.raw.as_mut_slice(self.len)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // Pages that are with the system stay there.
        if !*self.released.get_mut() {
            self.pool.give(std::mem::take(&mut self.raw));
        }
    }
}
