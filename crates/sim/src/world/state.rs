//! Changes of the world's state by the calls of a device and the steps of the world. Everything
//! here happens under the world's lock.

use super::*;

impl WorldState {
    pub fn usable(&self, device: usize) -> Result<(), DeviceError> {
        self.devices[device].lost.clone().map_or(Ok(()), Err)
    }

    pub(super) fn can_go_on(&self, stream: usize) -> bool {
        let stream = &self.streams[stream];
        match (&stream.running, stream.queue.front()) {
            (StreamActivity::Begun { .. } | StreamActivity::Ending { .. }, _) => true,
            (StreamActivity::Busy, _) | (StreamActivity::Nothing, None) => false,
            // What waits for a lost device goes on: what it computes belongs to no op.
            (StreamActivity::Nothing, Some(Item::Wait { record })) => {
                record.time().is_some() || self.devices[record.device].lost.is_some()
            }
            (StreamActivity::Nothing, Some(_)) => true,
        }
    }

    pub(super) fn time_of(&mut self, name: &str) -> u64 {
        let set = self.times.iter().rev().find(|(prefix, _)| name.starts_with(prefix.as_str())).map(|(_, time)| *time);
        set.unwrap_or_else(|| 1 + self.random.below(USUAL_TIME))
    }

    pub(super) fn check_memory(&mut self, tag: &Arc<mxrt_engine::device::Tag>, memory: &[DevicePtr], record: bool) {
        for ptr in memory.iter().filter(|ptr| !self.devices.iter().any(|d| d.has(**ptr))) {
            if record {
                self.log.push(LogEntry::BadMemory { tag: tag.clone(), ptr: *ptr });
            }
        }
    }

    pub(super) fn finish(&mut self, record: &Arc<StreamRecord>, stream: usize, now: Option<u64>) -> Later {
        record.finish(now.unwrap_or(self.streams[stream].clock));
        Later { callbacks: self.callbacks.remove(&record.number).unwrap_or_default(), ..Later::default() }
    }

    /// Everything on the device ends here.
    pub(super) fn lose(&mut self, device: usize, error: DeviceError) -> Later {
        let mut later = Later { lost: Some(error.clone()), ..Later::default() };
        self.devices[device].lost.get_or_insert(error);
        for stream in self.streams.iter_mut().filter(|s| s.device == device) {
            for item in stream.queue.drain(..) {
                if let Item::Record { record, .. } = &item {
                    later.callbacks.extend(self.callbacks.remove(&record.number).unwrap_or_default());
                }
                later._items.push(item);
            }
            if !matches!(stream.running, StreamActivity::Busy) {
                later._running.push(std::mem::replace(&mut stream.running, StreamActivity::Nothing));
            }
        }
        later
    }

    /// The host learns that a record is done.
    pub fn know(&mut self, record: &StreamRecord, how: Knows, log: bool) {
        if log {
            self.log.push(LogEntry::Known { record: record.number, how });
        }
    }

    pub fn new_stream(&mut self, device: usize) -> u64 {
        let stream =
            Stream { device, queue: VecDeque::new(), running: StreamActivity::Nothing, clock: 0, thread: None };
        self.streams.push(stream);
        FIRST_STREAM + (self.streams.len() as u64 - 1) * STREAM_SPACE
    }

    /// The place of a stream by its number.
    pub fn stream(&self, device: usize, number: u64) -> Option<usize> {
        let place = usize::try_from(number.checked_sub(FIRST_STREAM)? / STREAM_SPACE).ok()?;
        let exact = number % STREAM_SPACE == FIRST_STREAM % STREAM_SPACE;
        self.streams.get(place).filter(|s| s.device == device && exact).map(|_| place)
    }

    /// A stream with a number of its own on each device: the default ones.
    pub fn reserved_stream(&mut self, device: usize, number: u64) -> u64 {
        let known = self.reserved.iter().find(|(d, n, _)| (*d, *n) == (device, number)).map(|(_, _, place)| *place);
        let place = known.unwrap_or_else(|| {
            self.new_stream(device);
            self.reserved.push((device, number, self.streams.len() - 1));
            self.streams.len() - 1
        });
        FIRST_STREAM + place as u64 * STREAM_SPACE
    }

    pub fn new_event(&mut self) -> u64 {
        let number = self.next_event;
        self.next_event += 1;
        self.events.insert(number, Event::default());
        number
    }

    pub fn free_event(&mut self, number: u64) {
        self.events.remove(&number);
    }

    pub fn record(&mut self, stream: usize, event: u64, op: u64, log: bool) -> bool {
        let Some(event) = self.events.get_mut(&event) else { return false };
        let record = StreamRecord::new(self.next_record, self.streams[stream].device);
        self.next_record += 1;
        event.last = Some(record.clone());
        if log {
            self.log.push(LogEntry::Record { stream, record: record.number, op });
        }
        let submitted = self.host_clock;
        self.streams[stream].queue.push_back(Item::Record { record, submitted });
        true
    }

    /// The last record of an event; `None`: it was never recorded.
    pub fn last_record(&self, event: u64) -> Option<Arc<StreamRecord>> {
        self.events.get(&event)?.last.clone()
    }

    pub fn wait(&mut self, stream: usize, record: Arc<StreamRecord>, op: u64, log: bool) {
        if log {
            self.log.push(LogEntry::Wait { stream, record: record.number, op });
        }
        self.streams[stream].queue.push_back(Item::Wait { record });
    }

    pub fn submit(&mut self, stream: usize, job: StreamJob, log: bool) {
        if log {
            self.log.push(LogEntry::Work { stream, tag: job.tag().clone() });
        }
        self.streams[stream].queue.push_back(Item::StreamJob { job, submitted: self.host_clock });
    }

    /// Calls back when a record is done; the callback is returned if it is, or if its device is
    /// lost.
    pub fn when_done(&mut self, record: &Arc<StreamRecord>, callback: Callback) -> Option<Callback> {
        if record.time().is_some() || self.usable(record.device).is_err() {
            return Some(callback);
        }
        self.callbacks.entry(record.number).or_default().push(callback);
        None
    }

    pub fn alloc(&mut self, device: usize, bytes: usize, pinned: bool) -> Option<DevicePtr> {
        let device = &mut self.devices[device];
        match pinned {
            true => device.pinned.alloc(bytes, usize::MAX),
            false => device.memory.alloc(bytes, device.budget),
        }
    }

    pub fn free(&mut self, device: usize, ptr: DevicePtr, pinned: bool, log: bool) -> bool {
        if log && !pinned {
            self.log.push(LogEntry::Free { ptr });
        }
        let device = &mut self.devices[device];
        if pinned { device.pinned.free(ptr) } else { device.memory.free(ptr) }
    }

    pub fn host_clock(&self) -> u64 {
        self.host_clock
    }
}
