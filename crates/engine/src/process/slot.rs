//! The state of a thread: its place at the fork gate, its depth inside ops, its counts for
//! `wait_all`, its free op blocks. Slots are never freed, and later threads reuse them. Counts are
//! cumulative, so this is harmless.

use crate::engine::Engine;
use crate::op::block::{Chain, OpBlock};
use crate::op::origin::OpOrigin;
use crate::process::fork_gate;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
use crate::process::room;
use crate::process::running::ThreadNote;
use crate::profile::RingPlace;
use crate::push::bulk::{BY_ENGINE, Collection};
use crate::sync;
use crate::var::VarInner;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Free blocks a thread keeps; half of them go to the depot when it has more.
const KEEP: u32 = 64;
const HALF: u32 = KEEP / 2;
/// Blocks of a list of the depot. A thread takes this many in one step, and holds them while it
/// waits, as a thousand others may.
const LIST: u32 = 8;
/// Memory of variables that a thread keeps.
const KEEP_VARS: u32 = 64;
/// Identities that a slot takes in one step.
const IDS: u64 = 1024;

#[repr(align(128))]
pub(crate) struct Slot {
    /// 1 while the thread is inside the engine: a fork in another thread waits for it.
    pub in_engine: AtomicU32,
    depth: Cell<u32>,
    /// Closures of ops and callbacks this thread is inside of.
    pub op_depth: Cell<u32>,
    /// Whether this thread runs a function of the program that an op waits for.
    pub inside_call: Cell<bool>,
    /// Chunks of splits this thread is inside of.
    pub split_depth: Cell<u32>,
    /// Core token this thread computes with, and the engine it is of.
    held: Cell<(*const Engine, usize)>,
    counts: Cell<(*const Engine, *const Counts)>,
    more_counts: UnsafeCell<Vec<(*const Engine, &'static Counts)>>,
    free: Cell<*mut OpBlock>,
    free_len: Cell<u32>,
    /// Memory of variables that are gone; its first word is the link.
    free_vars: Cell<*mut VarMemory>,
    free_vars_len: Cell<u32>,
    next_id: Cell<u64>,
    /// Ready ops that were not handed over yet, how many ops were pushed since the first of them,
    /// and how many there may be.
    pub bulk: Collection,
    pub bulk_count: Cell<u32>,
    pub bulk_limit: Cell<u32>,
    /// Ready ops that the outermost call in this thread will run, and their engine (naive engine).
    pub drain: Cell<(*const Engine, *mut Chain)>,
    used: AtomicBool,
    /// Place in the registry.
    pub number: u32,
    /// Name of the thread that uses, or used last, the slot.
    pub name: GlobalMutex<String>,
    pub running: ThreadNote,
    /// Calls of `wait_all` that this thread has completed.
    pub wait_alls: Cell<u64>,
    pub origin: OpOrigin,
    pub ring: RingPlace,
}

// SAFETY: the cells are touched only by the thread that uses the slot (`used`), the atomics by
// every thread.
unsafe impl Sync for Slot {}

/// Ops of one engine pushed and completed by one thread, by epoch.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Counts {
    /// Pushed ops; only the slot's owner adds.
    pub pushed: [sync::atomic::AtomicU64; 2],
    pub completed: [sync::atomic::AtomicU64; 2],
}

/// Locks of process-wide state. They are leaves, and held over a fork by the forking thread.
pub(crate) type GlobalMutex<T> = sync::global::Mutex<T>;

pub(crate) static REGISTRY: GlobalMutex<Vec<&'static Slot>> = GlobalMutex::new(Vec::new());
/// Number of forks under way; while it is not 0, no thread enters the engine.
pub(crate) static FORKS_UNDER_WAY: AtomicU32 = AtomicU32::new(0);
static DEPOT: GlobalMutex<Depot> = GlobalMutex::new(Depot(Vec::new()));
static BLOCKS: AtomicUsize = AtomicUsize::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

type VarMemory = MaybeUninit<VarInner>;

struct Depot(Vec<(*mut OpBlock, u32)>);
// SAFETY: raw blocks have no owner; the depot's lock hands them on.
unsafe impl Send for Depot {}

/// Notes that this thread runs a function of the program that an op waits for, or that it has ended.
/// Between the two, [`wait_all`](crate::Engine::wait_all) in this thread is an error: it would wait
/// for itself.
pub fn set_inside_call(inside: bool) {
    current().inside_call.set(inside);
}

/// Makes what the engine and the standard library keep of this thread. A thread of the program that
/// calls this before it waits by other means than the engine's finds memory for it.
pub fn prepare_thread() {
    current();
}

/// Op blocks that were ever allocated in the process: they are pooled and never given back.
pub fn op_blocks() -> usize {
    BLOCKS.load(Ordering::SeqCst)
}

/// Returns the slot to the pool of slots when the thread ends.
struct Guard(Cell<*const Slot>);

impl Drop for Guard {
    fn drop(&mut self) {
        let slot = self.0.get();
        if slot.is_null() {
            return;
        }
        // SAFETY: slots are never freed.
        let slot = unsafe { &*slot };
        // In a model the collection belongs to an execution that is over.
        #[cfg(not(loom))]
        Engine::flush_any_bulk(slot);
        slot.bulk_limit.set(BY_ENGINE);
        slot.enter();
        while !slot.free.get().is_null() {
            slot.flush_half();
        }
        slot.exit();
        slot.free_var_memory();
        CURRENT.set(null());
        slot.used.store(false, Ordering::Release);
    }
}

thread_local! {
    static CURRENT: Cell<*const Slot> = const { Cell::new(null()) };
    static GUARD: Guard = const { Guard(Cell::new(null())) };
}

/// The slot of this thread.
#[inline(always)]
pub(crate) fn current() -> &'static Slot {
    let slot = CURRENT.get();
    if slot.is_null() {
        return claim();
    }
    // SAFETY: slots are never freed.
    unsafe { &*slot }
}

/// Makes the thread-local variables of this thread, and the standard library's handle of it, for
/// which that asks the system's allocator alone. It has no slot yet, which is claimed inside the
/// fork gate.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) fn prepare() {
    CURRENT.get();
    let _ = GUARD.try_with(|_| ());
    drop(std::thread::current());
}

#[cold]
fn claim() -> &'static Slot {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    {
        room::make();
        prepare();
        room::hold();
    }
    let mut all = REGISTRY.lock();
    let unused = |s: &&Slot| s.used.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let slot = all.iter().copied().find(unused).unwrap_or_else(|| {
        let slot: &'static Slot = Box::leak(Box::new(Slot::new(all.len() as u32)));
        all.push(slot);
        slot
    });
    drop(all);
    set_name(slot, std::thread::current().name().unwrap_or_default().to_owned());
    CURRENT.set(slot);
    // During the destructors of a thread the guard may be gone: then the slot is lost, which costs
    // its few bytes.
    let _ = GUARD.try_with(|g| g.0.set(slot));
    slot
}

/// Slot number `n`, in the order of their making. The registry is not locked between calls.
pub(crate) fn nth(n: usize) -> Option<&'static Slot> {
    REGISTRY.lock().get(n).copied()
}

/// Sets the name of this thread, whose slot it is.
pub(crate) fn set_name(slot: &Slot, name: String) {
    slot.enter();
    let before = std::mem::replace(&mut *slot.name.lock(), name);
    slot.exit();
    drop(before);
}

/// Name of the thread that has slot number `n`; none: it has no name.
pub(crate) fn name(n: u32) -> Option<String> {
    nth(n as usize).map(|slot| slot.name.lock().clone()).filter(|name| !name.is_empty())
}

/// A number that no other call returns.
pub(crate) fn fresh_id() -> u64 {
    let slot = current();
    if slot.next_id.get().is_multiple_of(IDS) {
        slot.next_id.set(NEXT_ID.fetch_add(1, Ordering::Relaxed) * IDS);
    }
    // The first number of a range is left out: a multiple means "take a new range".
    let id = slot.next_id.get() + 1;
    slot.next_id.set(id);
    id
}

impl Slot {
    fn new(number: u32) -> Self {
        Slot {
            in_engine: AtomicU32::new(0),
            depth: Cell::new(0),
            op_depth: Cell::new(0),
            inside_call: Cell::new(false),
            split_depth: Cell::new(0),
            held: Cell::new((null(), 0)),
            counts: Cell::new((null(), null())),
            more_counts: UnsafeCell::new(Vec::new()),
            free: Cell::new(null_mut()),
            free_len: Cell::new(0),
            free_vars: Cell::new(null_mut()),
            free_vars_len: Cell::new(0),
            next_id: Cell::new(0),
            bulk: Collection::new(),
            bulk_count: Cell::new(0),
            bulk_limit: Cell::new(BY_ENGINE),
            drain: Cell::new((null(), null_mut())),
            used: AtomicBool::new(true),
            number,
            name: GlobalMutex::new(String::new()),
            running: ThreadNote::new(),
            wait_alls: Cell::new(0),
            origin: OpOrigin::default(),
            ring: RingPlace::new(null_mut()),
        }
    }

    /// Whether this thread, whose slot this is, is inside the fork gate.
    pub fn is_inside(&self) -> bool {
        self.depth.get() > 0
    }

    /// Passes the fork gate. Nested calls count only the outermost.
    #[inline(always)]
    pub fn enter(&self) {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth != 0 {
            return;
        }
        fork_gate::pass(&self.in_engine, &FORKS_UNDER_WAY);
    }

    #[inline(always)]
    pub fn exit(&self) {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth == 0 {
            self.in_engine.store(0, Ordering::Release);
        }
    }

    /// The engine and the token that this thread computes with; null without one.
    pub fn held(&self) -> (*const Engine, usize) {
        self.held.get()
    }

    /// The token of `engine` this thread computes with.
    #[inline]
    pub fn token(&self, engine: &Engine) -> Option<usize> {
        let (of, token) = self.held.get();
        std::ptr::eq(of, engine).then_some(token)
    }

    /// Notes which token this thread computes with; returns what it had before, for
    /// `restore_token`.
    #[inline]
    pub fn hold_token(&self, engine: &Engine, token: usize) -> (*const Engine, usize) {
        self.held.replace((engine, token))
    }

    #[inline]
    pub fn restore_token(&self, before: (*const Engine, usize)) {
        self.held.set(before);
    }

    /// This thread's counts for `engine`.
    #[inline(always)]
    pub fn counts(&self, engine: &Engine) -> &'static Counts {
        let (of, counts) = self.counts.get();
        if std::ptr::eq(of, engine) {
            // SAFETY: counts are never freed.
            return unsafe { &*counts };
        }
        self.other_counts(engine)
    }

    #[cold]
    fn other_counts(&self, engine: &Engine) -> &'static Counts {
        // SAFETY: only the slot's thread touches the list, and nothing below re-enters.
        let list = unsafe { &mut *self.more_counts.get() };
        let known = list.iter().find(|(of, _)| std::ptr::eq(*of, engine)).map(|x| x.1);
        let counts = known.unwrap_or_else(|| {
            let counts: &'static Counts = Box::leak(Box::default());
            list.push((engine, counts));
            engine.all_counts.lock().push(counts);
            counts
        });
        self.counts.set((engine, counts));
        counts
    }

    /// Memory for a variable.
    #[inline(always)]
    pub fn take_var(&self) -> *mut VarInner {
        let memory = self.free_vars.get();
        if memory.is_null() {
            return Box::into_raw(Box::<VarMemory>::new(VarMemory::uninit())).cast();
        }
        // SAFETY: the memory is this list's, and begins with a link.
        self.free_vars.set(unsafe { memory.cast::<*mut VarMemory>().read() });
        self.free_vars_len.set(self.free_vars_len.get() - 1);
        memory.cast()
    }

    /// Takes it back.
    ///
    /// # Safety
    /// It comes from `take_var`, of any thread, and holds nothing any more.
    #[inline(always)]
    pub unsafe fn give_var(&self, var: *mut VarInner) {
        let memory: *mut VarMemory = var.cast();
        if self.free_vars_len.get() >= KEEP_VARS {
            // SAFETY: contract: it was a box.
            return drop(unsafe { Box::from_raw(memory) });
        }
        // SAFETY: contract; a variable has room for a link.
        unsafe { memory.cast::<*mut VarMemory>().write(self.free_vars.get()) };
        self.free_vars.set(memory);
        self.free_vars_len.set(self.free_vars_len.get() + 1);
    }

    /// Gives the memory of variables back to the system.
    fn free_var_memory(&self) {
        let mut memory = self.free_vars.replace(null_mut());
        self.free_vars_len.set(0);
        while !memory.is_null() {
            // SAFETY: the memory was this list's: a link, in what was a box.
            unsafe {
                let next = memory.cast::<*mut VarMemory>().read();
                drop(Box::from_raw(memory));
                memory = next;
            }
        }
    }

    /// A raw op block.
    #[inline(always)]
    pub fn take_block(&self) -> *mut OpBlock {
        let block = self.free.get();
        if block.is_null() {
            return self.refill();
        }
        // SAFETY: blocks of the free list are raw except for their link.
        self.free.set(unsafe { (*block).link });
        self.free_len.set(self.free_len.get() - 1);
        block
    }

    #[cold]
    fn refill(&self) -> *mut OpBlock {
        let from_depot = DEPOT.lock().0.pop();
        let (head, len) = from_depot.unwrap_or_else(new_blocks);
        // SAFETY: a list of the depot is never empty, its blocks are raw except for their links.
        self.free.set(unsafe { (*head).link });
        self.free_len.set(len - 1);
        head
    }

    /// Takes a raw block back.
    ///
    /// # Safety
    /// The caller owns the block and has cleared it.
    #[inline(always)]
    pub unsafe fn give_block(&self, block: *mut OpBlock) {
        // SAFETY: contract.
        unsafe { (*block).link = self.free.get() };
        self.free.set(block);
        self.free_len.set(self.free_len.get() + 1);
        if self.free_len.get() >= KEEP {
            self.flush_half();
        }
    }

    #[cold]
    fn flush_half(&self) {
        let len = self.free_len.get().min(HALF);
        self.free_len.set(self.free_len.get() - len);
        // SAFETY: the free list has at least `len` blocks, which become the depot's.
        self.free.set(unsafe { give_lists(self.free.get(), len) });
    }
}

/// Cuts blocks off a chain and gives them to the depot as lists; returns the rest of the chain.
///
/// # Safety
/// The chain has `count` blocks, which belong to the caller and are raw except for their links.
unsafe fn give_lists(mut chain: *mut OpBlock, mut count: u32) -> *mut OpBlock {
    let mut lists = [(null_mut(), 0); (HALF / LIST) as usize];
    let mut used = 0;
    while count > 0 {
        let (head, len) = (chain, count.min(LIST));
        let mut last = head;
        // SAFETY: contract.
        unsafe {
            for _ in 1..len {
                last = (*last).link;
            }
            chain = std::mem::replace(&mut (*last).link, null_mut());
        }
        lists[used] = (head, len);
        used += 1;
        count -= len;
    }
    DEPOT.lock().0.extend_from_slice(&lists[..used]);
    chain
}

/// A list of fresh blocks. Also makes room in the depot for every list there can be, so that
/// freeing never allocates.
#[cold]
fn new_blocks() -> (*mut OpBlock, u32) {
    let blocks = BLOCKS.fetch_add(HALF as usize, Ordering::Relaxed) + HALF as usize;
    let mut depot = DEPOT.lock();
    // Lists can be shorter when threads end, hence the factor.
    let lists = blocks / LIST as usize * 2 + 64;
    if depot.0.capacity() < lists {
        let more = lists * 2 - depot.0.len();
        depot.0.reserve(more);
    }
    drop(depot);
    let fresh: Vec<MaybeUninit<OpBlock>> = (0..HALF).map(|_| MaybeUninit::uninit()).collect();
    let mut head = null_mut();
    for block in Box::leak(fresh.into_boxed_slice()) {
        let block = block.as_mut_ptr();
        // SAFETY: the block is ours and may be written.
        unsafe { (&raw mut (*block).link).write(head) };
        head = block;
    }
    // SAFETY: the chain has `HALF` blocks, which are ours.
    (unsafe { give_lists(head, HALF - LIST) }, LIST)
}
