//! Devices, streams and events together, and the choice of what happens next.

use crate::faults::{Call, Fault, Faults, classify};
use crate::log::{Knows, Log, LogEntry};
use crate::memory::DeviceBlocks;
use crate::random::Random;
use crate::work::{Item, StreamActivity, StreamJob, StreamRecord};
use crate::{Mode, SimConfig};
use mxrt_engine::device::{Callback, DeviceError, DevicePtr, ErrorClass};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod state;

/// Numbers of streams begin here: above 2^32, so that code that truncates them is found out.
const FIRST_STREAM: u64 = 0x7f5a_0000_0000;
const STREAM_SPACE: u64 = 0x40;
/// "Driver shutting down", in CUDA's numbers.
const DEINITIALIZED: i32 = 4;
/// Longest time of a piece of work without a time of its own, in nanoseconds.
const USUAL_TIME: u64 = 10_000;

/// Simulated devices that can wait for each other. Clones are the same world.
#[derive(Clone)]
pub struct World(pub(crate) Arc<SharedWorld>);

pub(crate) struct SharedWorld {
    pub config: SimConfig,
    began: Instant,
    state: Mutex<WorldState>,
    /// Something was submitted or done.
    changed: Condvar,
    /// A thread is doing a step.
    stepping: AtomicBool,
    /// Whether its threads must end.
    ended: AtomicBool,
}

pub(crate) struct WorldState {
    random: Random,
    host_clock: u64,
    streams: Vec<Stream>,
    /// Streams of other libraries: device, number, place.
    reserved: Vec<(usize, u64, usize)>,
    events: HashMap<u64, Event>,
    next_event: u64,
    next_record: u64,
    callbacks: HashMap<u64, Vec<Callback>>,
    devices: Vec<SimulatedDevice>,
    pub faults: Faults,
    log: Log,
    times: Vec<(String, u64)>,
    pumping: bool,
    /// Callbacks that could not be made at once.
    deferred: Vec<Later>,
}

struct SimulatedDevice {
    lost: Option<DeviceError>,
    memory: DeviceBlocks,
    pinned: DeviceBlocks,
    budget: usize,
}

impl SimulatedDevice {
    fn has(&self, ptr: DevicePtr) -> bool {
        self.memory.contains(ptr) || self.pinned.contains(ptr)
    }
}

struct Stream {
    device: usize,
    queue: VecDeque<Item>,
    running: StreamActivity,
    clock: u64,
    /// Wakes the thread that serves it, once there is one.
    thread: Option<Arc<Condvar>>,
}

#[derive(Default)]
struct Event {
    last: Option<Arc<StreamRecord>>,
}

/// Values to be dropped, or functions to be called, after the world is unlocked.
#[derive(Default)]
pub(crate) struct Later {
    callbacks: Vec<Callback>,
    lost: Option<DeviceError>,
    _items: Vec<Item>,
    _running: Vec<StreamActivity>,
}

impl Later {
    fn run(self) {
        let result = || self.lost.clone().map_or(Ok(()), Err);
        self.callbacks.into_iter().for_each(|callback| callback(result()));
    }
}

impl World {
    pub(crate) fn new(config: SimConfig) -> World {
        let seed = match config.mode {
            Mode::Scheduled { seed } | Mode::Pumped { seed } | Mode::Threaded { seed, .. } => seed,
        };
        let budget = config.memory;
        let device =
            || SimulatedDevice { lost: None, memory: DeviceBlocks::default(), pinned: DeviceBlocks::default(), budget };
        let state = WorldState {
            random: Random::new(seed),
            host_clock: 0,
            streams: Vec::new(),
            reserved: Vec::new(),
            events: HashMap::new(),
            next_event: 1,
            next_record: 1,
            callbacks: HashMap::new(),
            devices: (0..config.devices).map(|_| device()).collect(),
            faults: Faults::default(),
            log: Log::new(),
            times: Vec::new(),
            pumping: false,
            deferred: Vec::new(),
        };
        World(Arc::new(SharedWorld {
            config,
            began: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            stepping: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }))
    }

    /// Begins another run with this seed: what was recorded is forgotten. Nothing may be under way.
    pub fn restart(&self, seed: u64) {
        let mut state = self.lock();
        state.random = Random::new(seed);
        state.log.clear();
        state.faults = Faults::default();
        state.times.clear();
    }

    /// Ends the threads of the world: for tests that make many. What was not done is never done.
    pub fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        let state = self.lock();
        self.0.changed.notify_all();
        state.streams.iter().filter_map(|s| s.thread.as_ref()).for_each(|thread| thread.notify_one());
    }

    fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// Continues with the random numbers of this seed: another order of all further work.
    pub fn reseed(&self, seed: u64) {
        self.lock().random = Random::new(seed);
    }

    /// Makes a later call fail.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// No later call fails that was to.
    pub fn forget_faults(&self) {
        self.lock().faults = Faults::default();
    }

    /// Sets how much memory a device has.
    pub fn set_memory(&self, device: usize, bytes: usize) {
        if let Some(device) = self.lock().devices.get_mut(device) {
            device.budget = bytes;
        }
    }

    /// Sets how long work takes whose op's name begins like this, in nanoseconds of virtual time.
    pub fn set_time(&self, name: &str, nanos: u64) {
        self.lock().times.push((name.to_owned(), nanos));
    }

    /// Virtual time at which the last piece of work on any stream ends, in nanoseconds.
    pub fn end_time(&self) -> u64 {
        self.lock().streams.iter().map(|s| s.clock).max().unwrap_or(0)
    }

    /// Bytes of page-locked memory that a device has.
    pub fn pinned_bytes(&self, device: usize) -> usize {
        self.lock().devices.get(device).map_or(0, |d| d.pinned.used())
    }

    /// Bytes of a device's memory that are in use.
    pub fn used_bytes(&self, device: usize) -> usize {
        self.lock().devices.get(device).map_or(0, |d| d.memory.used())
    }

    /// Events that were made and not given back.
    pub fn live_events(&self) -> usize {
        self.lock().events.len()
    }

    /// Notes that an op of the host uses variables: numbers, and whether they are written.
    pub fn host_uses(&self, name: &str, accesses: &[(u64, bool)]) {
        self.note(LogEntry::Host { name: name.to_owned(), accesses: accesses.to_vec() });
    }

    /// Notes that the host may wait for devices from now on, or may not.
    pub fn may_wait(&self, may: bool) {
        self.note(LogEntry::MayWait(may));
    }

    fn note(&self, entry: LogEntry) {
        if self.0.config.record {
            self.lock().log.push(entry);
        }
    }

    /// The record so far.
    pub fn log(&self) -> Log {
        self.lock().log.clone()
    }

    /// Pieces of work that were not done yet.
    pub fn pending(&self) -> usize {
        self.lock().streams.iter().map(|s| s.queue.len() + !matches!(s.running, StreamActivity::Nothing) as usize).sum()
    }

    /// Does one step of submitted work; false: there is none that could be done now.
    pub fn step(&self) -> bool {
        if matches!(self.0.config.mode, Mode::Threaded { .. }) || self.0.stepping.swap(true, Ordering::Acquire) {
            return false;
        }
        let stepped = self.step_alone();
        self.0.stepping.store(false, Ordering::Release);
        stepped
    }

    fn step_alone(&self) -> bool {
        let mut state = self.lock();
        if let Some(later) = state.deferred.pop() {
            drop(state);
            later.run();
            return true;
        }
        let ready: Vec<usize> = (0..state.streams.len()).filter(|s| state.can_go_on(*s)).collect();
        if ready.is_empty() {
            return false;
        }
        let stream = ready[state.random.below(ready.len() as u64) as usize];
        match std::mem::replace(&mut state.streams[stream].running, StreamActivity::Busy) {
            StreamActivity::Nothing => {
                state.streams[stream].running = StreamActivity::Nothing;
                let Some(item) = state.streams[stream].queue.pop_front() else { return false };
                self.do_item(state, stream, item);
            }
            StreamActivity::Begun { job, ends } => self.run_job(state, stream, job, ends, true),
            StreamActivity::Ending { tag, memory, ends } => {
                state.check_memory(&tag, &memory, self.0.config.record);
                state.streams[stream].clock = ends;
                state.streams[stream].running = StreamActivity::Nothing;
            }
            StreamActivity::Busy => {}
        }
        true
    }

    fn do_item(&self, mut state: MutexGuard<'_, WorldState>, stream: usize, item: Item) {
        match item {
            Item::Wait { record } => {
                let time = record.time().unwrap_or(0);
                let clock = &mut state.streams[stream].clock;
                *clock = time.max(*clock);
            }
            Item::Record { record, submitted } => {
                let clock = &mut state.streams[stream].clock;
                *clock = submitted.max(*clock);
                let later = state.finish(&record, stream, self.0.now(&self.0.config));
                self.wake(&state);
                drop(state);
                later.run();
            }
            Item::StreamJob { job, submitted } => {
                let time = state.time_of(job.tag().name.as_str());
                let begins = submitted.max(state.streams[stream].clock);
                let memory = job.memory();
                state.check_memory(job.tag(), &memory, self.0.config.record);
                // Its effect may come when it begins or when it ends.
                if state.random.below(2) == 0 {
                    state.streams[stream].running = StreamActivity::Begun { job, ends: begins + time };
                } else {
                    self.run_job(state, stream, job, begins + time, false);
                }
            }
        }
    }

    /// Runs a body without the lock.
    fn run_job(&self, mut state: MutexGuard<'_, WorldState>, stream: usize, job: StreamJob, ends: u64, at_end: bool) {
        let device = state.streams[stream].device;
        if let Some(error) = state.faults.next(device, Call::Execute) {
            state.streams[stream].running = StreamActivity::Nothing;
            let later = state.lose(device, error);
            self.wake(&state);
            drop(state);
            drop(job);
            return later.run();
        }
        state.streams[stream].running = StreamActivity::Busy;
        let (tag, memory) = (job.tag().clone(), job.memory());
        drop(state);
        job.run();
        let mut state = self.lock();
        if at_end {
            state.check_memory(&tag, &memory, self.0.config.record);
            state.streams[stream].clock = ends;
            state.streams[stream].running = StreamActivity::Nothing;
        } else {
            state.streams[stream].running = StreamActivity::Ending { tag, memory, ends };
        }
        self.0.changed.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: an error if the device is lost, or if it was asked for.
    pub(crate) fn call(&self, device: usize, call: Call) -> Result<MutexGuard<'_, WorldState>, DeviceError> {
        let mut state = self.lock();
        state.usable(device)?;
        match state.faults.next(device, call) {
            None => Ok(state),
            Some(error) => {
                if error.class == ErrorClass::Lost {
                    let later = state.lose(device, error.clone());
                    self.defer(state, later);
                }
                Err(error)
            }
        }
    }

    /// Calls back later: the caller may hold locks that callbacks take.
    fn defer(&self, mut state: MutexGuard<'_, WorldState>, later: Later) {
        self.wake(&state);
        match self.0.config.mode {
            Mode::Threaded { .. } => {
                drop(state);
                spawn("sim-lost", move || later.run());
            }
            Mode::Scheduled { .. } | Mode::Pumped { .. } => {
                state.deferred.push(later);
                drop(state);
            }
        }
        self.0.changed.notify_all();
    }

    /// Something can be done now: the thread that does it is notified.
    pub(crate) fn submitted(&self, mut state: MutexGuard<'_, WorldState>, stream: usize) {
        match self.0.config.mode {
            Mode::Scheduled { .. } => {}
            Mode::Pumped { .. } if !state.pumping => {
                state.pumping = true;
                let world = self.clone();
                spawn("sim-pump", move || world.pump());
            }
            Mode::Threaded { max_delay_us, .. } => match &state.streams[stream].thread {
                Some(thread) => thread.notify_one(),
                None => {
                    let thread = Arc::new(Condvar::new());
                    state.streams[stream].thread = Some(thread.clone());
                    let world = self.clone();
                    spawn("sim-stream", move || world.serve(stream, &thread, max_delay_us));
                }
            },
            Mode::Pumped { .. } => self.0.changed.notify_all(),
        }
    }

    /// Wakes the thread that waits for some work, on the host and in the streams, after the work
    /// was done.
    fn wake(&self, state: &WorldState) {
        self.0.changed.notify_all();
        let ready = (0..state.streams.len()).filter(|s| state.can_go_on(*s));
        ready.filter_map(|s| state.streams[s].thread.as_ref()).for_each(|thread| thread.notify_one());
    }

    /// Does steps until the world ends.
    fn pump(&self) {
        while !self.has_ended() {
            while self.step() {}
            let state = self.lock();
            if state.deferred.is_empty() && !(0..state.streams.len()).any(|s| state.can_go_on(s)) {
                drop(self.0.changed.wait_timeout(state, Duration::from_millis(100)));
            }
        }
    }

    /// Does the work of one stream until the world ends.
    fn serve(&self, stream: usize, thread: &Condvar, max_delay_us: u64) {
        loop {
            let mut state = self.lock();
            while !self.has_ended() && !state.can_go_on(stream) {
                state = thread.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if self.has_ended() {
                return;
            }
            match std::mem::replace(&mut state.streams[stream].running, StreamActivity::Busy) {
                StreamActivity::Nothing => {
                    let item = state.streams[stream].queue.pop_front();
                    state.streams[stream].running = StreamActivity::Nothing;
                    if let Some(Item::StreamJob { job, .. }) = item {
                        state.streams[stream].running = StreamActivity::Busy;
                        let pause = state.random.below(max_delay_us + 1);
                        drop(state);
                        delay(pause);
                        let mut state = self.lock();
                        state.check_memory(job.tag(), &job.memory(), self.0.config.record);
                        self.run_job(state, stream, job, 0, true);
                    } else if let Some(item) = item {
                        self.do_item(state, stream, item);
                    }
                }
                other => state.streams[stream].running = other,
            }
        }
    }

    /// Waits until a record is done, or for about so long.
    pub(crate) fn wait_for(
        &self,
        device: usize,
        record: &Arc<StreamRecord>,
        patience: Duration,
    ) -> Result<bool, DeviceError> {
        let until = Instant::now() + patience;
        let stepped = matches!(self.0.config.mode, Mode::Scheduled { .. });
        loop {
            let mut state = self.lock();
            state.usable(device)?;
            state.usable(record.device)?;
            if let Some(time) = record.time() {
                state.host_clock = state.host_clock.max(time);
                state.know(record, Knows::Waited, self.0.config.record);
                return Ok(true);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(false);
            }
            if !stepped {
                drop(self.0.changed.wait_timeout(state, until - now));
                continue;
            }
            drop(state);
            if !self.step() {
                // Another thread does a step, or nothing can be done before something else is
                // submitted.
                std::thread::sleep(Duration::from_micros(50));
                return Ok(false);
            }
        }
    }

    /// Waits until nothing is left to do.
    pub(crate) fn drain(&self, device: usize) -> Result<(), DeviceError> {
        loop {
            let state = self.lock();
            state.usable(device)?;
            if self.has_ended() {
                return Err(classify(DEINITIALIZED));
            }
            if state.streams.iter().all(|s| s.queue.is_empty() && matches!(s.running, StreamActivity::Nothing)) {
                return Ok(());
            }
            if matches!(self.0.config.mode, Mode::Scheduled { .. }) {
                drop(state);
                self.step();
            } else {
                drop(self.0.changed.wait_timeout(state, Duration::from_millis(10)));
            }
        }
    }
}

impl SharedWorld {
    /// Nanoseconds of real time, for modes with threads; `None`: time is virtual.
    pub fn now(&self, config: &SimConfig) -> Option<u64> {
        matches!(config.mode, Mode::Threaded { .. }).then(|| self.began.elapsed().as_nanos() as u64)
    }
}

fn spawn(name: &str, f: impl FnOnce() + Send + 'static) {
    if std::thread::Builder::new().name(name.to_owned()).spawn(f).is_err() {
        // Without a thread the device would never answer.
        eprintln!("mxrt-sim: the system gives no thread for {name}");
        std::process::abort();
    }
}

fn delay(us: u64) {
    match us {
        0 => {}
        us if us < 20 => (0..us).for_each(|_| std::thread::yield_now()),
        us => std::thread::sleep(Duration::from_micros(us)),
    }
}
