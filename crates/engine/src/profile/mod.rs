//! Profiling: what every op did, when, and in which thread. Off, it costs a load and a test an op;
//! on, three readings of the processor's counter and one record in a buffer of the completing
//! thread. An op of several steps may record each of them ([`ProfiledOp::step`]).
//!
//! The profiler belongs to the process: it sees the ops of all engines.

pub(crate) mod dump;
mod trace;

pub use trace::rounded;

use crate::device::{DeviceRecord, device_records};
use crate::op::block::{Mode, OpBlock, PROFILED};
use crate::op::spec::{DeviceId, Lane, OpName};
use crate::process::slot::{self, Slot};
use crate::sync::clock::{self, Scale};
use crate::sync::global::Mutex;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static ON: AtomicBool = AtomicBool::new(false);

/// Records of ops, and as many of steps, that a thread keeps; later ones replace the oldest.
pub const RECORDS_PER_THREAD: usize = 1 << 16;
/// Variables of an op that a record names.
const NAMED_VARS: usize = 8;

/// Whether ops are recorded.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Starts or stops recording. Ops that were pushed while it was off are not recorded. What was
/// recorded stays.
pub fn set_on(on: bool) {
    clock::start();
    ON.store(on, Ordering::Relaxed);
}

/// The number by which records know this thread.
pub fn this_thread() -> u32 {
    slot::current().number
}

/// Microseconds on the clock of the records.
pub fn now_micros() -> f64 {
    Scale::measure().micros(clock::now())
}

/// One op.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name of the op.
    pub name: OpName,
    /// The device on which the op ran.
    pub device: DeviceId,
    /// The lane it waited in.
    pub lane: Lane,
    /// Microseconds: when it was pushed, when it started, and when it was complete.
    pub queued: f64,
    /// Time of the start, in the unit of `queued`.
    pub started: f64,
    /// Time of the end, in the unit of `queued`.
    pub ended: f64,
    /// Number of the thread that ran it; see [`Snapshot::threads`].
    pub thread: u32,
    /// Variables it reads, by [`Var::id`](crate::Var::id). Of more than eight accesses the first
    /// four and the last four are noted.
    pub reads: Vec<u64>,
    /// Variables it writes.
    pub writes: Vec<u64>,
    /// Number of the request that it belongs to; see [`RequestScope`](crate::RequestScope).
    pub request: Option<u64>,
    /// Whether the op failed, or did not run because an input had failed.
    pub failed: bool,
}

/// One step of an op.
#[derive(Clone, Debug)]
pub struct StepRecord {
    /// Name of the step.
    pub name: Arc<str>,
    /// The operator of the step.
    pub operator: &'static str,
    /// Microseconds: when it started, and when it ended.
    pub started: f64,
    /// Time of the end, in the unit of `started`.
    pub ended: f64,
    /// Number of the thread that ran it; see [`Snapshot::threads`].
    pub thread: u32,
    /// Number of the request that its op belongs to.
    pub request: Option<u64>,
    /// Whether the step failed.
    pub failed: bool,
}

/// A record as it is stored: in ticks, without allocations.
#[derive(Clone)]
struct RawRecord {
    name: OpName,
    queued: u64,
    started: u64,
    ended: u64,
    /// Number of a variable, times two, plus one for a write.
    vars: [u64; NAMED_VARS],
    request: Option<NonZeroU64>,
    thread: u32,
    device: DeviceId,
    nvars: u8,
    lane: Lane,
    failed: bool,
}

/// A step as it is stored.
#[derive(Clone)]
struct RawStep {
    name: Arc<str>,
    operator: &'static str,
    started: u64,
    ended: u64,
    request: Option<NonZeroU64>,
    thread: u32,
    failed: bool,
}

/// The records of one thread. Its locks are leaves and have no second user except while records
/// are read.
pub(crate) struct Ring {
    records: Mutex<Records<RawRecord>>,
    steps: Mutex<Records<RawStep>>,
}

struct Records<T> {
    list: Vec<T>,
    /// Place of the oldest record once the list is full.
    oldest: usize,
    lost: u64,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Records { list: Vec::new(), oldest: 0, lost: 0 }
    }
}

/// Stamps a new op.
///
/// # Safety
/// `op` is filled and belongs to the caller.
#[cold]
pub(crate) unsafe fn stamp_push(op: *mut OpBlock) {
    // SAFETY: contract.
    unsafe {
        (*op).flags |= PROFILED;
        (&raw mut (*op).pushed).write(clock::now());
    }
}

/// Stamps a starting op.
///
/// # Safety
/// `op` was stamped at its push and belongs to the caller.
#[cold]
pub(crate) unsafe fn stamp_start(slot: &Slot, op: *mut OpBlock) {
    // SAFETY: contract.
    unsafe {
        (&raw mut (*op).started).write(clock::now());
        (&raw mut (*op).runner).write(slot.number);
    }
}

/// Records a complete op, before it gives its variables back.
///
/// # Safety
/// `op` was stamped at its push and start, is complete and belongs to the caller.
#[cold]
pub(crate) unsafe fn record(slot: &'static Slot, op: *mut OpBlock, failed: bool) {
    let ended = clock::now();
    // SAFETY: contract; granted variables are alive.
    unsafe {
        let mut vars = [0; NAMED_VARS];
        let len = OpBlock::len(op);
        let nvars = len.min(NAMED_VARS);
        for (i, place) in vars[..nvars].iter_mut().enumerate() {
            // Of many the first and the last: what an op writes is usually declared last.
            let e = OpBlock::entry(op, if i < NAMED_VARS / 2 { i } else { len - nvars + i });
            *place = (*(*e).var).id << 1 | ((*e).mode() != Mode::Read) as u64;
        }
        let raw = RawRecord {
            name: (*(*op).name).clone(),
            queued: (*op).pushed,
            started: (*op).started,
            ended,
            vars,
            request: OpBlock::request(op),
            thread: (*op).runner,
            device: OpBlock::place(op),
            nvars: nvars as u8,
            lane: OpBlock::lane(op),
            failed,
        };
        add(&ring(slot).records, raw);
    }
}

/// An op that is recorded, while it runs.
#[derive(Clone, Copy, Debug)]
pub struct ProfiledOp {
    request: Option<NonZeroU64>,
}

impl ProfiledOp {
    /// # Safety
    /// `op` exists and runs.
    pub(crate) unsafe fn of(op: *mut OpBlock) -> Option<ProfiledOp> {
        // SAFETY: contract.
        unsafe { OpBlock::has(op, PROFILED).then(|| ProfiledOp { request: OpBlock::request(op) }) }
    }

    /// Runs a step of the op and records it as one of the thread that calls.
    pub fn step<T, E>(
        self,
        name: &Arc<str>,
        operator: &'static str,
        run: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let started = clock::now();
        let result = run();
        let (slot, failed) = (slot::current(), result.is_err());
        let (name, request, thread) = (name.clone(), self.request, slot.number);
        add(&ring(slot).steps, RawStep { name, operator, started, ended: clock::now(), request, thread, failed });
        result
    }
}

fn ring(slot: &'static Slot) -> &'static Ring {
    let known = slot.ring.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: rings are never freed.
        return unsafe { &*known };
    }
    let ring = Ring { records: Mutex::new(Records::default()), steps: Mutex::new(Records::default()) };
    let ring: &'static Ring = Box::leak(Box::new(ring));
    slot.ring.store(std::ptr::from_ref(ring).cast_mut(), Ordering::Release);
    ring
}

/// The field of a slot that holds its ring.
pub(crate) type RingPlace = AtomicPtr<Ring>;

fn add<T>(records: &Mutex<Records<T>>, record: T) {
    let mut records = records.lock();
    if records.list.len() < RECORDS_PER_THREAD {
        records.list.push(record);
        return;
    }
    let oldest = records.oldest;
    let old = std::mem::replace(&mut records.list[oldest], record);
    records.oldest = (oldest + 1) % RECORDS_PER_THREAD;
    records.lost += 1;
    drop(records);
    drop(old);
}

/// Copies records, or takes them and starts over; also returns the number of lost records.
fn read<T: Clone>(records: &Mutex<Records<T>>, clear: bool) -> (Vec<T>, u64) {
    let mut records = records.lock();
    if clear {
        let Records { list, lost, .. } = std::mem::take(&mut *records);
        return (list, lost);
    }
    (records.list.clone(), records.lost)
}

/// All records so far.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Records in the order of their starts.
    pub records: Vec<Record>,
    /// Steps of ops, in the order of their starts.
    pub steps: Vec<StepRecord>,
    /// Names of the threads in `records` and `steps`, by number.
    pub threads: HashMap<u32, String>,
    /// Ops on devices, by their own times there, in the order of their starts.
    pub device_records: Vec<DeviceRecord>,
    /// Records that newer ones have replaced, or that found no room.
    pub lost: u64,
}

/// Copies what was recorded; `clear`: and forgets it. Of ops on devices those are there that are
/// complete now, whether or not a thread has waited for them;
/// [`Engine::wait_for_devices`](crate::Engine::wait_for_devices) before this makes it all.
pub fn snapshot(clear: bool) -> Snapshot {
    crate::process::fork::engines().into_iter().for_each(crate::Engine::collect_from_devices);
    let scale = Scale::measure();
    let mut all = Snapshot::default();
    let own = slot::current();
    let mut next = 0;
    while let Some(slot) = slot::nth(next) {
        next += 1;
        let ring = slot.ring.load(Ordering::Acquire);
        if ring.is_null() {
            continue;
        }
        own.enter();
        // SAFETY: rings are never freed.
        let ring = unsafe { &*ring };
        let (raw, lost) = read(&ring.records, clear);
        let (steps, lost_steps) = read(&ring.steps, clear);
        own.exit();
        all.lost += lost + lost_steps;
        all.records.extend(raw.into_iter().map(|r| r.translate(scale)));
        all.steps.extend(steps.into_iter().map(|s| s.translate(scale)));
    }
    own.enter();
    let (device_records, lost) = device_records(clear, |ticks| scale.micros(ticks));
    own.exit();
    all.device_records = device_records;
    all.lost += lost;
    all.records.sort_by(|a, b| a.started.total_cmp(&b.started));
    // Of steps that start together the longer one holds the others.
    all.steps.sort_by(|a, b| a.started.total_cmp(&b.started).then(b.ended.total_cmp(&a.ended)));
    own.enter();
    let threads = all.records.iter().map(|r| r.thread).chain(all.steps.iter().map(|s| s.thread));
    for thread in threads {
        all.threads
            .entry(thread)
            .or_insert_with(|| slot::nth(thread as usize).map_or_else(String::new, |s| s.thread_name()));
    }
    own.exit();
    all
}

impl RawRecord {
    fn translate(self, scale: Scale) -> Record {
        let used = &self.vars[..self.nvars as usize];
        let of = |write: u64| used.iter().filter(|v| **v & 1 == write).map(|v| v >> 1).collect();
        Record {
            device: self.device,
            lane: self.lane,
            queued: scale.micros(self.queued),
            started: scale.micros(self.started),
            ended: scale.micros(self.ended),
            thread: self.thread,
            reads: of(0),
            writes: of(1),
            request: self.request.map(NonZeroU64::get),
            failed: self.failed,
            name: self.name,
        }
    }
}

impl RawStep {
    fn translate(self, scale: Scale) -> StepRecord {
        StepRecord {
            name: self.name,
            operator: self.operator,
            started: scale.micros(self.started),
            ended: scale.micros(self.ended),
            thread: self.thread,
            request: self.request.map(NonZeroU64::get),
            failed: self.failed,
        }
    }
}

/// Times of all ops of one name, in microseconds.
#[derive(Clone, Debug)]
pub struct Total {
    /// The name.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// Sum, shortest and longest of their running times.
    pub total: f64,
    /// Shortest time, in the unit of `total`.
    pub min: f64,
    /// Longest time, in the unit of `total`.
    pub max: f64,
}

fn sums(times: impl Iterator<Item = (String, f64)>) -> Vec<Total> {
    let mut by_name: HashMap<String, Total> = HashMap::new();
    for (name, time) in times {
        let none = || Total { name: name.clone(), count: 0, total: 0.0, min: f64::INFINITY, max: 0.0 };
        let total = by_name.entry(name.clone()).or_insert_with(none);
        total.count += 1;
        total.total += time;
        total.min = total.min.min(time);
        total.max = total.max.max(time);
    }
    let mut totals: Vec<Total> = by_name.into_values().collect();
    totals.sort_by(|a, b| a.name.cmp(&b.name));
    totals
}

impl Snapshot {
    /// Sums by name, in the order of names.
    pub fn totals(&self) -> Vec<Total> {
        sums(self.records.iter().map(|r| (r.name.as_str().to_owned(), r.ended - r.started)))
    }

    /// Sums of what ran on devices by name and device, of the times measured there.
    pub fn device_totals(&self) -> Vec<Total> {
        let time = |r: &DeviceRecord| (format!("{} @{}", r.name, r.device), (r.ended - r.started).max(0.0));
        sums(self.device_records.iter().map(time))
    }
}
