//! Models of what devices add to the protocol, over the production types and a device that does
//! nothing.

use super::api::*;
use super::event::EventRef;
use super::memory::MemoryOrigin;
use super::open::{DeviceReserve, OpenDevice};
use super::park::ParkedOp;
use super::staging::Direction;
use super::sync_object::Garbage;
use crate::config::{Config, EngineKind};
use crate::engine::Engine;
use crate::models::{ModelBody, Watched, model, push};
use crate::op::block::Mode;
use crate::op::spec::{Access, DeviceId, DeviceKind};
use crate::var::Var;
use loom::sync::Arc as Shared;
use loom::thread;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// A device on which nothing is ever complete; its handles are numbers.
#[derive(Debug, Default)]
struct Silent(AtomicU64);

impl Driver for Silent {
    fn kind(&self) -> DeviceKind {
        DeviceKind::SIM
    }
    fn count(&self) -> usize {
        1
    }
    fn open(&self, _: u16) -> Result<Arc<dyn Device>, DeviceError> {
        Ok(Arc::new(Silent::default()))
    }
}

impl Silent {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Device for Silent {
    fn total_memory(&self) -> usize {
        1 << 20
    }
    fn new_stream(&self, _: StreamKind) -> Result<StreamHandle, DeviceError> {
        Ok(StreamHandle(self.next()))
    }
    fn new_event(&self, _: bool) -> Result<EventHandle, DeviceError> {
        Ok(EventHandle(self.next()))
    }
    fn free_event(&self, _: EventHandle) {}
    fn record(&self, _: StreamHandle, _: EventHandle, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }
    fn stream_wait(&self, _: StreamHandle, _: EventHandle, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }
    fn query(&self, _: EventHandle) -> Result<bool, DeviceError> {
        Ok(false)
    }
    fn host_wait(&self, _: EventHandle, _: Duration) -> Result<bool, DeviceError> {
        Ok(false)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn when_complete(&self, _: EventHandle, _: Callback) {}
    fn alloc(&self, _: usize) -> Result<DevicePtr, DeviceError> {
        Ok(DevicePtr(self.next() << 20))
    }
    fn free(&self, _: DevicePtr) {}
    fn alloc_pinned(&self, _: usize) -> Result<*mut u8, DeviceError> {
        Ok(std::ptr::without_provenance_mut((self.next() << 20) as usize))
    }
    fn free_pinned(&self, _: *mut u8) {}
    unsafe fn copy(&self, _: StreamHandle, _: CopyJob) -> Result<(), DeviceError> {
        Ok(())
    }
    unsafe fn clear(&self, _: StreamHandle, _: ClearJob) -> Result<(), DeviceError> {
        Ok(())
    }
    fn launch(&self, _: StreamHandle, _: super::Kernel) -> Result<(), DeviceError> {
        Ok(())
    }
    fn host_pointer(&self, _: DevicePtr) -> Option<*mut u8> {
        None
    }
    fn foreign_stream(&self, number: u64) -> Result<StreamHandle, DeviceError> {
        Ok(StreamHandle(number))
    }
    fn stream_number(&self, stream: StreamHandle) -> u64 {
        stream.0
    }
    fn time_of(&self, _: EventHandle) -> Option<u64> {
        None
    }
    fn now(&self) -> u64 {
        0
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A device of an engine of this execution.
fn device() -> &'static OpenDevice {
    let drivers: Vec<Arc<dyn Driver>> = vec![Arc::new(Silent::default())];
    let kind = EngineKind::ThreadedAsync;
    let device_reserve = DeviceReserve { staging_chunks: 1, staging_bytes: 64, ..DeviceReserve::default() };
    let config = Config { kind, cores: Some(1), drivers, compute_streams: 2, device_reserve, ..Config::default() };
    let engine = Engine::start(config).unwrap();
    engine.device(DeviceId::new(DeviceKind::SIM, 0)).unwrap()
}

fn record(device: &'static OpenDevice, stream: u16) -> EventRef {
    device.stream_for(crate::Lane::Normal, Some(stream)).record(None).unwrap()
}

/// Lets the records go that the stream keeps until they are complete.
fn complete(device: &'static OpenDevice, stream: u16) {
    let stream = device.stream_for(crate::Lane::Normal, Some(stream));
    stream.note_complete(u64::MAX - 1);
    stream.reap();
}

/// Kills `event-given-back-early`.
#[test]
fn an_event_is_free_when_the_last_of_its_references_is_gone() {
    model(|| {
        let device = device();
        let event = record(device, 0);
        let handle = event.handle;
        complete(device, 0);
        let other = event.clone();
        let dropping = thread::spawn(move || drop(other));
        // Whatever the other thread does: as long as this reference exists no thread gets the
        // handle.
        let fresh = device.events.take(&*device.backend).unwrap();
        assert_ne!(fresh, handle, "an event was handed out that is referred to");
        drop(event);
        dropping.join().unwrap();
        assert_eq!(device.events.take(&*device.backend).unwrap(), handle, "the last reference gives it back");
    });
}

/// Kills `weak-unlock` in the part that concerns events.
#[test]
fn whoever_starts_after_a_release_sees_the_event() {
    model(|| {
        let device = device();
        let (var, seen) = (Var::new(), Watched::new());
        let event = record(device, 0);
        let writer: ModelBody = {
            let (var, event) = (var.clone(), event.clone());
            Box::new(move || {
                let mut garbage = Garbage::default();
                var.inner().with_new_sync(|sync| sync.register_write(&event, 0, true, &mut garbage));
                None
            })
        };
        let reader: ModelBody = {
            let (var, seen) = (var.clone(), seen.clone());
            Box::new(move || {
                if var.inner().with_sync(|sync| sync.concerns_host(Mode::Read)) == Some(true) {
                    seen.add(1);
                }
                None
            })
        };
        push(&[(&var, Access::Write)], writer);
        let other = {
            let var = var.clone();
            thread::spawn(move || drop(var))
        };
        push(&[(&var, Access::Read)], reader);
        other.join().unwrap();
        assert_eq!(seen.get(), 1);
        complete(device, 0);
    });
}

/// Two readers of one stream leave the later of their events, in whichever order they come. Kills
/// `earlier-reader-stays`.
#[test]
fn of_two_readers_of_a_stream_the_later_stays() {
    model(|| {
        let device = device();
        let var = Var::new();
        let (first, second) = (record(device, 0), record(device, 0));
        let note = |var: &Var, event: &EventRef| {
            let mut garbage = Garbage::default();
            var.inner().with_new_sync(|sync| sync.register_read(event, &mut garbage));
        };
        let other = {
            let (var, event) = (var.clone(), first.clone());
            thread::spawn(move || note(&var, &event))
        };
        note(&var, &second);
        other.join().unwrap();
        let mut waits = super::stream::WaitSet::default();
        var.inner().with_sync(|sync| sync.before_host(Mode::Write, &mut waits));
        let kept: Vec<u64> = waits.events().iter().map(|e| e.seq).collect();
        assert_eq!(kept, [2]);
        drop((waits, var));
        complete(device, 0);
    });
}

/// Kills `freed-without-events`.
#[test]
fn memory_that_is_freed_while_another_asks_comes_with_its_events() {
    model(|| {
        let device = device();
        let pool = device.pool(MemoryOrigin::Device);
        let (mut block, _) = pool.alloc(device, 64, Some(1)).unwrap();
        let ptr = block.ptr;
        let event = record(device, 0);
        let freeing = thread::spawn(move || {
            block.use_until(vec![event]);
            drop(block);
        });
        // Another stream asks: it gets new memory, or this one with the event.
        let (mine, events) = pool.alloc(device, 64, Some(1)).unwrap();
        freeing.join().unwrap();
        assert!(mine.ptr != ptr || events.len() == 1, "memory in use was handed out without its event");
        drop((mine, events));
        complete(device, 0);
        // The free list keeps the event until then.
        pool.trim(device);
    });
}

/// a parked op is sent on by the device, or by a shutdown: once. Kills `parked-op-sent-twice`.
#[test]
fn a_parked_op_is_sent_on_once_although_everything_ends() {
    model(|| {
        let op = std::ptr::without_provenance_mut(64);
        let (parked, taken) = (Shared::new(ParkedOp::new(op)), Shared::new(AtomicU64::new(0)));
        let other = {
            let (parked, taken) = (parked.clone(), taken.clone());
            thread::spawn(move || {
                taken.fetch_add(!parked.take().is_null() as u64, Ordering::Relaxed);
            })
        };
        taken.fetch_add(!parked.take().is_null() as u64, Ordering::Relaxed);
        other.join().unwrap();
        assert_eq!(taken.load(Ordering::Relaxed), 1);
    });
}

/// Two copies share the only chunk of a ring: one after the other, and the second after the event
/// of the first. Kills `ring-without-bound`.
#[test]
fn a_chunk_has_one_user_at_a_time_and_comes_with_the_event_of_the_last() {
    model(|| {
        let device = device();
        let ring = device.staging(Direction::In);
        let inside = Shared::new(AtomicUsize::new(0));
        let copy = move |inside: &AtomicUsize, stream: u16| {
            let mut lease = ring.take(device).unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two copies submit work with one chunk");
            let before = lease.chunk().event.replace(record(device, stream));
            inside.fetch_sub(1, Ordering::Relaxed);
            before.map(|event| event.stream.number)
        };
        let other = {
            let inside = inside.clone();
            thread::spawn(move || copy(&inside, 0))
        };
        let mine = copy(&inside, 1);
        let theirs = other.join().unwrap();
        assert!(mine.is_some() != theirs.is_some(), "one came first, and left its event: {mine:?}, {theirs:?}");
        complete(device, 0);
        complete(device, 1);
        ring.trim();
        device.pool(MemoryOrigin::Pinned).trim(device);
    });
}

/// Memory that is released while a copy has its chunk is still counted, and comes back after the
/// event. Kills `trimmed-chunks-are-counted`.
#[test]
fn a_ring_that_is_trimmed_during_a_copy_has_all_its_chunks_afterwards() {
    model(|| {
        let device = device();
        let ring = device.staging(Direction::Out);
        drop(ring.take(device).unwrap());
        let trimming = thread::spawn(move || ring.trim());
        drop(ring.take(device).unwrap());
        trimming.join().unwrap();
        // There is one, and it can be had.
        drop(ring.take(device).unwrap());
        ring.trim();
        device.pool(MemoryOrigin::Pinned).trim(device);
    });
}
