//! Op blocks: one push, in 384 bytes of pooled memory.
//!
//! The first line holds everything an op with one variable needs, the second the closure (larger
//! ones are boxed), the next three seven more accesses; the last line is touched only by what most
//! ops do not have: further accesses (in an overflow array), a device or priority, a request, the
//! profiler. Accesses stay in declared order, so "the first failed input" is a property of the
//! program and not of addresses.

use crate::failure::{Failure, OpError};
use crate::op::ctx::RunCtx;
use crate::op::origin::Site;
use crate::op::spec::{Access, Cost, DeviceId, Lane, OpKind, OpName, OpSpec};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::var::{Var, VarInner};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::num::NonZeroU64;
use std::ptr::{addr_of_mut, null_mut};
use std::time::Instant;

/// Accesses that fit into a block.
pub(crate) const INLINE_VARS: usize = 8;
/// Bytes of closure that fit into a block.
pub(crate) const INLINE_CLOSURE: usize = 64;

/// How an entry uses its variable. `Alias` marks a duplicate: it only gives the variable a second
/// declared number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Read = 0,
    Write = 1,
    Update = 2,
    Alias = 3,
}

impl Mode {
    pub fn writes(self) -> bool {
        matches!(self, Mode::Write | Mode::Update)
    }
}

impl From<Access> for Mode {
    fn from(access: Access) -> Self {
        match access {
            Access::Read => Mode::Read,
            Access::Write => Mode::Write,
            Access::Update => Mode::Update,
        }
    }
}

/// One access of one op.
pub(crate) struct AccessEntry {
    pub var: *const VarInner,
    pub next: *mut AccessEntry,
    /// Address of the op, which is aligned to 64 bytes, with the mode in the low bits.
    op_mode: usize,
}

impl AccessEntry {
    pub fn new(var: *const VarInner, op: *mut OpBlock, mode: Mode) -> Self {
        AccessEntry { var, next: null_mut(), op_mode: op.expose_provenance() | mode as usize }
    }
    #[inline(always)]
    pub fn mode(&self) -> Mode {
        match self.op_mode & 3 {
            0 => Mode::Read,
            1 => Mode::Write,
            2 => Mode::Update,
            _ => Mode::Alias,
        }
    }
    pub fn set_mode(&mut self, mode: Mode) {
        self.op_mode = (self.op_mode & !3) | mode as usize;
    }
    #[inline(always)]
    pub fn op(&self) -> *mut OpBlock {
        std::ptr::with_exposed_provenance_mut(self.op_mode & !63)
    }
}

/// The way in which the engine handles an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Class {
    Strict,
    Selective,
    NoSkip,
    /// A waiter or callback: runs at once in whichever thread makes it ready, is not counted by
    /// `wait_all`.
    Notify,
    /// Complete only when its `OnComplete` is consumed; skipped when an input has failed.
    Async,
    /// Runs like `Async`, even if an input has failed.
    AsyncSelective,
    /// Runs like `Async`, in every case.
    AsyncAlways,
    /// A guard: granted like a `Notify`, complete when its token is used.
    Grant,
}

impl Class {
    /// Whether failed inputs do not keep it from running.
    #[inline(always)]
    pub fn always_runs(self) -> bool {
        !matches!(self, Class::Strict | Class::Async)
    }

    /// Whether it need not run when none of its results is wanted.
    #[inline(always)]
    pub fn can_be_cancelled(self) -> bool {
        matches!(self, Class::Strict | Class::Selective | Class::Async | Class::AsyncSelective)
    }

    /// Whether it runs in whichever thread makes it ready, and is not counted by `wait_all`.
    #[inline(always)]
    pub fn runs_at_once(self) -> bool {
        matches!(self, Class::Notify | Class::Grant)
    }

    /// Whether it is complete only when its token is used.
    #[inline(always)]
    pub fn has_token(self) -> bool {
        matches!(self, Class::Async | Class::AsyncSelective | Class::AsyncAlways | Class::Grant)
    }
}

impl From<OpKind> for Class {
    fn from(kind: OpKind) -> Self {
        match kind {
            OpKind::Strict => Class::Strict,
            OpKind::Selective => Class::Selective,
            OpKind::NoSkip => Class::NoSkip,
        }
    }
}

pub(crate) struct VTable {
    /// Consumes the closure.
    pub run: unsafe fn(*mut u8, &RunCtx<'_>) -> Result<(), OpError>,
    /// Drops it instead.
    pub drop: unsafe fn(*mut u8),
}

/// Flags of an op.
pub(crate) const COUNTED: u16 = 1;
pub(crate) const EPOCH: u16 = 2;
pub(crate) const SMALL: u16 = 4;
/// Default lane, device and priority, no deadline: the last line need not be read to queue it.
pub(crate) const PLAIN: u16 = 8;
/// Pushed after the engine was closed: fails instead of running.
pub(crate) const DOOMED: u16 = 16;
/// Stamped for the profiler.
pub(crate) const PROFILED: u16 = 32;
/// Submits work to a device: what it depends on need not be complete there.
pub(crate) const ON_DEVICE: u16 = 64;
/// Knows its request, or the place that pushed it.
const ORIGIN: u16 = 128;
/// May run in a thread that waits for it.
pub(crate) const WAITER_MAY_RUN: u16 = 256;
/// Was put aside until devices were done: what it uses is complete, and stays so while it is granted.
pub(crate) const AFTER_DEVICES: u16 = 512;
/// Is counted in the epoch of the op that pushes it.
pub(crate) const FOLLOW_UP: u16 = 1024;

#[repr(C, align(64))]
pub(crate) struct OpBlock {
    /// Accesses not granted yet; afterwards, for an async op, the state shared by its run and its
    /// token.
    pub wait: AtomicU32,
    nvars: u8,
    pub class: Class,
    pub flags: u16,
    pub vtable: *const VTable,
    pub link: *mut OpBlock,
    pub name: ManuallyDrop<OpName>,
    first: AccessEntry,
    closure: [MaybeUninit<u8>; INLINE_CLOSURE],
    rest: [AccessEntry; INLINE_VARS - 1],
    /// Accesses from the ninth on.
    overflow: *mut AccessEntry,
    overflow_len: u32,
    pub priority: i32,
    pub device: DeviceId,
    /// The op's deadline. Like lane, priority and device, this field is written and read only
    /// without the flag `PLAIN`.
    pub deadline: Option<Instant>,
    lane: Lane,
    /// The number of the running thread and the ticks, for the profiler. Written and read only if
    /// the op is profiled.
    pub runner: u32,
    pub pushed: u64,
    pub started: u64,
    /// The request's number. Written and read only with the flag `ORIGIN`.
    request: Option<NonZeroU64>,
    site: ManuallyDrop<Option<Site>>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<OpBlock>() == 384);

/// Results that an async op's run and its token exchange. They are stored in place of the closure,
/// which the run has consumed.
#[derive(Default)]
pub(crate) struct AsyncResult {
    /// Written by the token.
    pub outcome: Option<Failure>,
    /// Written by the run, like `fails`.
    pub panicked: Option<Failure>,
    pub fails: Vec<(usize, Failure)>,
    /// Written by the token.
    pub late: Vec<(usize, Failure)>,
}

const _: () = assert!(size_of::<AsyncResult>() <= INLINE_CLOSURE);

/// The flags with which an op begins.
#[inline(always)]
fn flags_at_push(spec: &OpSpec<'_>, plain: bool) -> u16 {
    let cost = match spec.cost {
        Cost::Small => SMALL | WAITER_MAY_RUN,
        Cost::Medium => WAITER_MAY_RUN,
        Cost::Large => 0,
    };
    let follow_up = if spec.follow_up { FOLLOW_UP } else { 0 };
    if plain { PLAIN | cost | follow_up } else { cost | follow_up }
}

impl OpBlock {
    /// Number of declared accesses.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns in its present state.
    #[inline(always)]
    pub unsafe fn len(op: *mut OpBlock) -> usize {
        // SAFETY: contract; the overflow array exists exactly when the inline places are used up.
        unsafe {
            let n = (*op).nvars as usize;
            if n < INLINE_VARS { n } else { INLINE_VARS + (*op).overflow_len as usize }
        }
    }

    /// Access number `i` in declared order.
    ///
    /// # Safety
    /// As for `len`, and `i < len`.
    #[inline(always)]
    pub unsafe fn entry(op: *mut OpBlock, i: usize) -> *mut AccessEntry {
        // SAFETY: contract; every access below `len` has its place.
        unsafe {
            match i {
                0 => addr_of_mut!((*op).first),
                1..INLINE_VARS => addr_of_mut!((*op).rest).cast::<AccessEntry>().add(i - 1),
                _ => (*op).overflow.add(i - INLINE_VARS),
            }
        }
    }

    /// Whether it writes a variable.
    ///
    /// # Safety
    /// `op` is filled and belongs to the caller.
    pub unsafe fn writes(op: *mut OpBlock, var: *const VarInner) -> bool {
        // SAFETY: contract.
        (0..unsafe { OpBlock::len(op) }).map(|i| unsafe { OpBlock::entry(op, i) }).any(|entry| {
            // SAFETY: contract.
            let entry = unsafe { &*entry };
            std::ptr::eq(entry.var, var) && entry.mode().writes()
        })
    }

    /// The address of the closure.
    ///
    /// # Safety
    /// `op` points to a block.
    pub unsafe fn closure(op: *mut OpBlock) -> *mut u8 {
        // SAFETY: contract.
        unsafe { addr_of_mut!((*op).closure).cast() }
    }

    /// # Safety
    /// `op` is a filled block that the caller owns.
    pub unsafe fn lane(op: *mut OpBlock) -> Lane {
        // SAFETY: contract.
        unsafe { if OpBlock::has(op, PLAIN) { Lane::Normal } else { (*op).lane } }
    }

    /// # Safety
    /// `op` is a filled block that the caller owns.
    pub unsafe fn has(op: *mut OpBlock, flag: u16) -> bool {
        // SAFETY: contract.
        unsafe { (*op).flags & flag != 0 }
    }

    /// Fills a raw block with everything except the closure.
    ///
    /// # Safety
    /// `op` is a raw block that the caller owns.
    pub unsafe fn fill(op: *mut OpBlock, spec: &OpSpec<'_>, class: Class) {
        let n = spec.vars.len();
        let deadline = spec.deadline.filter(|_| class.can_be_cancelled());
        let plain =
            (spec.lane, spec.device, spec.priority) == (Lane::Normal, DeviceId::cpu(0), 0) && deadline.is_none();
        let entry = move |declared: &(&Var, Access)| AccessEntry::new(declared.0.as_ptr(), op, Mode::from(declared.1));
        // SAFETY: a raw block may be written anywhere; every place is written once, with plain
        // writes that drop nothing.
        unsafe {
            addr_of_mut!((*op).wait).write(AtomicU32::new(0));
            addr_of_mut!((*op).nvars).write(n.min(INLINE_VARS) as u8);
            addr_of_mut!((*op).class).write(class);
            addr_of_mut!((*op).flags).write(flags_at_push(spec, plain));
            addr_of_mut!((*op).name).write(ManuallyDrop::new(spec.name.clone()));
            if !plain {
                addr_of_mut!((*op).lane).write(spec.lane);
                addr_of_mut!((*op).priority).write(spec.priority);
                addr_of_mut!((*op).device).write(spec.device);
                addr_of_mut!((*op).deadline).write(deadline);
            }
            if n >= INLINE_VARS {
                let rest: Box<[AccessEntry]> = spec.vars[INLINE_VARS..].iter().map(entry).collect();
                let Ok(len) = u32::try_from(rest.len()) else { panic!("an op cannot have {n} variables") };
                addr_of_mut!((*op).overflow_len).write(len);
                addr_of_mut!((*op).overflow).write(Box::into_raw(rest).cast());
            }
            for (i, declared) in spec.vars.iter().take(INLINE_VARS).enumerate() {
                let place = match i {
                    0 => addr_of_mut!((*op).first),
                    _ => addr_of_mut!((*op).rest).cast::<AccessEntry>().add(i - 1),
                };
                place.write(entry(declared));
            }
        }
    }

    /// Drops what `fill` put in; the block is raw afterwards.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns; its closure is gone and its accesses are
    /// completed.
    #[inline(always)]
    pub unsafe fn clear(op: *mut OpBlock) {
        // SAFETY: contract; both were written by `fill` and are dropped once.
        unsafe {
            ManuallyDrop::drop(&mut (*op).name);
            if (*op).nvars as usize >= INLINE_VARS {
                let len = (*op).overflow_len as usize;
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut((*op).overflow, len)));
            }
            if OpBlock::has(op, ORIGIN) {
                ManuallyDrop::drop(&mut (*op).site);
            }
        }
    }

    /// Notes where the op comes from.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns, without an origin.
    #[cold]
    pub unsafe fn set_origin(op: *mut OpBlock, request: Option<NonZeroU64>, site: Option<Site>) {
        // SAFETY: contract; plain writes drop nothing.
        unsafe {
            (*op).flags |= ORIGIN;
            addr_of_mut!((*op).request).write(request);
            addr_of_mut!((*op).site).write(ManuallyDrop::new(site));
        }
    }

    /// The number of the request that the op belongs to.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns.
    pub unsafe fn request(op: *mut OpBlock) -> Option<NonZeroU64> {
        // SAFETY: contract; the request is written with its flag.
        unsafe { if OpBlock::has(op, ORIGIN) { (*op).request } else { None } }
    }

    /// The place that pushed the op.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns.
    pub unsafe fn site(op: *mut OpBlock) -> Option<String> {
        // SAFETY: contract; the site is written with its flag.
        unsafe { if OpBlock::has(op, ORIGIN) { (*(*op).site).as_ref().map(Site::to_string) } else { None } }
    }

    /// The deadline of the op.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns.
    pub unsafe fn deadline(op: *mut OpBlock) -> Option<Instant> {
        // SAFETY: contract; the deadline is written unless the op is plain.
        unsafe { if (*op).flags & PLAIN != 0 { None } else { (*op).deadline } }
    }

    /// The device on which the op runs.
    ///
    /// # Safety
    /// `op` is a filled block that the caller owns.
    pub unsafe fn place(op: *mut OpBlock) -> DeviceId {
        // SAFETY: contract; the device is written unless the op is plain.
        unsafe { if (*op).flags & PLAIN != 0 { DeviceId::cpu(0) } else { (*op).device } }
    }
}

/// Ready ops collected while locks of variables are held; published afterwards in one step.
pub(crate) struct Chain {
    pub first: *mut OpBlock,
    pub last: *mut OpBlock,
    pub len: usize,
    /// A waiter is among them.
    pub notify: bool,
    /// An op with a lane, device or priority of its own is among them.
    pub special: bool,
}

impl Chain {
    pub const fn new() -> Self {
        Chain { first: null_mut(), last: null_mut(), len: 0, notify: false, special: false }
    }

    /// # Safety
    /// The op is ready and belongs to the caller.
    #[inline(always)]
    pub unsafe fn add(&mut self, op: *mut OpBlock) {
        // SAFETY: contract; the last op of the chain belongs to the chain.
        unsafe {
            (*op).link = null_mut();
            if self.first.is_null() {
                self.first = op;
            } else {
                (*self.last).link = op;
            }
            self.last = op;
            self.len += 1;
            self.notify |= (*op).class.runs_at_once();
            self.special |= (*op).flags & PLAIN == 0;
        }
    }

    /// Moves all ops of another chain to the end of this one.
    pub fn append(&mut self, other: &mut Chain) {
        if other.first.is_null() {
            return;
        }
        if self.first.is_null() {
            self.first = other.first;
        } else {
            // SAFETY: ops of a chain belong to it.
            unsafe { (*self.last).link = other.first };
        }
        self.last = other.last;
        self.len += other.len;
        self.notify |= other.notify;
        self.special |= other.special;
        *other = Chain::new();
    }

    /// Takes the first op; it belongs to the caller then.
    #[inline(always)]
    pub fn take(&mut self) -> Option<*mut OpBlock> {
        let op = self.first;
        if op.is_null() {
            return None;
        }
        // SAFETY: ops of a chain belong to it.
        self.first = unsafe { (*op).link };
        self.len -= 1;
        Some(op)
    }
}

/// One access of the entry's op was granted; the last one makes the op ready.
///
/// # Safety
/// The lock of the entry's variable is held and the access was just granted.
#[inline(always)]
pub(crate) unsafe fn grant(entry: *mut AccessEntry, ready: &mut Chain) {
    // SAFETY: an op with a missing grant is alive. A count of 1 means that no other thread will
    // touch the counter.
    unsafe {
        let op = (*entry).op();
        if (*op).wait.load(Ordering::Acquire) == 1 || (*op).wait.fetch_sub(1, Ordering::AcqRel) == 1 {
            ready.add(op);
        }
    }
}

/// Vtables of a plain closure, small or boxed, and of one that completes by a token.
pub(crate) struct SyncClosure<F>(std::marker::PhantomData<F>);
pub(crate) struct AsyncClosure<F>(std::marker::PhantomData<F>);

unsafe fn drop_as<T>(data: *mut u8) {
    // SAFETY: the vtable belongs to a closure of this type, which was not run.
    unsafe { std::ptr::drop_in_place(data.cast::<T>()) }
}

impl<F: FnOnce(&RunCtx<'_>) -> Result<(), OpError>> SyncClosure<F> {
    const INLINE: VTable = VTable {
        // SAFETY: `data` holds an `F`, which is consumed here, once.
        run: |data, ctx| unsafe { data.cast::<F>().read()(ctx) },
        drop: drop_as::<F>,
    };
    const BOXED: VTable = VTable {
        // SAFETY: `data` holds a `Box<F>`, which is consumed here, once.
        run: |data, ctx| unsafe { (*data.cast::<Box<F>>().read())(ctx) },
        drop: drop_as::<Box<F>>,
    };

    /// # Safety
    /// `op` is a block of the caller without a closure.
    #[inline(always)]
    pub unsafe fn store(op: *mut OpBlock, f: F) {
        // SAFETY: contract of `store_closure`.
        unsafe { store_closure(op, f, &Self::INLINE, &Self::BOXED) }
    }
}

impl<F: FnOnce(&RunCtx<'_>, crate::op::ctx::OnComplete)> AsyncClosure<F> {
    const INLINE: VTable = VTable {
        run: |data, ctx| {
            // SAFETY: `data` holds an `F`, which is consumed here, once; the token is made once, by
            // the run.
            unsafe { data.cast::<F>().read()(ctx, ctx.token()) };
            Ok(())
        },
        drop: drop_as::<F>,
    };
    const BOXED: VTable = VTable {
        run: |data, ctx| {
            // SAFETY: `data` holds a `Box<F>`, which is consumed here, once; the token is made
            // once, by the run.
            unsafe { (*data.cast::<Box<F>>().read())(ctx, ctx.token()) };
            Ok(())
        },
        drop: drop_as::<Box<F>>,
    };

    /// # Safety
    /// `op` is a block of the caller without a closure.
    #[inline(always)]
    pub unsafe fn store(op: *mut OpBlock, f: F) {
        // SAFETY: contract of `store_closure`.
        unsafe { store_closure(op, f, &Self::INLINE, &Self::BOXED) }
    }
}

/// # Safety
/// `op` is a block of the caller without a closure; the vtables treat the data as an `F` and as a
/// `Box<F>`.
#[inline(always)]
unsafe fn store_closure<F>(op: *mut OpBlock, f: F, inline: &'static VTable, boxed: &'static VTable) {
    // SAFETY: the place has 64 bytes at an address divisible by 64, which the conditions below
    // compare with.
    unsafe {
        let data = OpBlock::closure(op);
        if size_of::<F>() <= INLINE_CLOSURE && align_of::<F>() <= 64 {
            data.cast::<F>().write(f);
            (*op).vtable = inline;
        } else {
            data.cast::<Box<F>>().write(Box::new(f));
            (*op).vtable = boxed;
        }
    }
}
