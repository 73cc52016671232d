//! Was everything ordered? Derived from the calls alone: the order on a stream, the waits that were
//! submitted, what the host waited for before it went on. Never from what happened to be done
//! first.

use crate::log::{Knows, LogEntry};
use mxrt_engine::device::{DevicePtr, Tag};
use std::collections::HashMap;
use std::sync::Arc;

/// The checker's result for a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Violations, in words.
    pub violations: Vec<String>,
    /// Waits that streams were given.
    pub waits: usize,
    /// Times the host waited for a device.
    pub host_waits: usize,
    /// Pairs of uses of one thing, at least one of which writes.
    pub conflicts: usize,
    steps: Vec<CheckedStep>,
}

/// A piece of work, or an op of the host, and what it comes after.
#[derive(Clone, Debug)]
struct CheckedStep {
    name: String,
    stream: Option<usize>,
    position: usize,
    clock: Clock,
}

impl Report {
    /// Whether the op of the first name, on a device, is certain to be complete before that of the
    /// second begins.
    ///
    /// # Panics
    /// If there is no op of a name, or the first is one of the host.
    pub fn ordered(&self, first: &str, second: &str) -> bool {
        let find = |name: &str| self.steps.iter().rfind(|s| s.name == name).unwrap_or_else(|| panic!("no op {name}"));
        let (first, second) = (find(first), find(second));
        let stream = first.stream.unwrap_or_else(|| panic!("{} is an op of the host", first.name));
        second.clock.get(stream) >= first.position
    }
}

/// The number of items of each stream that have happened before.
#[derive(Clone, Debug, Default)]
struct Clock(Vec<usize>);

impl Clock {
    fn get(&self, stream: usize) -> usize {
        self.0.get(stream).copied().unwrap_or(0)
    }

    fn set(&mut self, stream: usize, position: usize) {
        if self.0.len() <= stream {
            self.0.resize(stream + 1, 0);
        }
        self.0[stream] = position;
    }

    fn join(&mut self, other: &Clock) {
        for (stream, position) in other.0.iter().enumerate() {
            if self.get(stream) < *position {
                self.set(stream, *position);
            }
        }
    }
}

/// One use of a variable or of memory. The host's own uses have no stream: it does one thing after
/// the other.
#[derive(Clone)]
struct Use {
    stream: Option<usize>,
    position: usize,
    write: bool,
    who: Arc<str>,
}

/// The uses of a thing that later ones have to be compared with: once it was written, what came
/// before matters only through the writer.
#[derive(Default)]
struct Uses {
    writer: Option<Use>,
    readers: Vec<Use>,
}

impl Uses {
    fn all(&self) -> impl Iterator<Item = &Use> {
        self.writer.iter().chain(&self.readers)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Thing {
    Var(u64),
    Memory(DevicePtr),
}

#[derive(Default)]
struct Checker {
    report: Report,
    /// The items after which the next item of each stream comes.
    streams: Vec<Clock>,
    /// The items that the host knows to be complete.
    host: Clock,
    records: HashMap<u64, Recorded>,
    uses: HashMap<Thing, Uses>,
    /// The work of each op.
    ops: HashMap<u64, Vec<Arc<Tag>>>,
    /// Pairs of an op and an op that it waits for: judged at the end, when all work of both is
    /// known.
    asked: Vec<(u64, u64)>,
    may_wait: Option<bool>,
}

struct Recorded {
    clock: Clock,
    op: u64,
}

/// Checks the calls of one host thread (or of several that the engine orders).
pub fn check(log: &[LogEntry]) -> Report {
    let mut checker = Checker::default();
    log.iter().for_each(|entry| checker.entry(entry));
    checker.judge_waits();
    checker.report
}

impl Checker {
    fn wrong(&mut self, text: String) {
        self.report.violations.push(text);
    }

    fn entry(&mut self, entry: &LogEntry) {
        match entry {
            LogEntry::Work { stream, tag } => self.work(*stream, tag),
            LogEntry::Record { stream, record, op } => {
                let clock = self.stream(*stream).clone();
                self.records.insert(*record, Recorded { clock, op: *op });
            }
            LogEntry::Wait { stream, record, op } => self.wait(*stream, *record, *op),
            LogEntry::Known { record, how } => self.known(*record, *how),
            LogEntry::Host { name, accesses } => {
                let clock = self.host.clone();
                self.report.steps.push(CheckedStep { name: name.clone(), stream: None, position: 0, clock });
                for (var, write) in accesses {
                    let this =
                        Use { stream: None, position: 0, write: *write, who: format!("{name} on the host").into() };
                    let clock = self.host.clone();
                    self.note_use(Thing::Var(*var), this, &clock);
                }
            }
            LogEntry::MayWait(may) => self.may_wait = Some(*may),
            LogEntry::Free { ptr } => {
                let uses = self.uses.remove(&Thing::Memory(*ptr)).unwrap_or_default();
                for other in uses.all().filter(|u| u.stream.is_some_and(|s| self.host.get(s) < u.position)) {
                    let text = format!("memory {ptr:?} was given back while {} may still use it", other.who);
                    self.report.violations.push(text);
                }
            }
            LogEntry::BadMemory { tag, ptr } => {
                self.wrong(format!("{} uses memory {ptr:?}, which does not exist", tag.name));
            }
        }
    }

    /// A stream waits for what was recorded on another one, for an op.
    fn wait(&mut self, stream: usize, record: u64, op: u64) {
        self.report.waits += 1;
        let Some(recorded) = self.records.get(&record) else {
            return self.wrong(format!("stream {stream} waits for record {record}, which was not made"));
        };
        let (clock, of) = (recorded.clock.clone(), recorded.op);
        self.stream(stream).join(&clock);
        if op != 0 && of != 0 {
            self.asked.push((op, of));
        }
    }

    /// The host learns that what was recorded is complete.
    fn known(&mut self, record: u64, how: Knows) {
        if how == Knows::Waited {
            self.report.host_waits += 1;
            if self.may_wait == Some(false) {
                self.wrong(format!("the host waits for record {record} although no thread asked it to"));
            }
        }
        if let Some(recorded) = self.records.get(&record) {
            self.host.join(&recorded.clock);
        }
    }

    fn stream(&mut self, stream: usize) -> &mut Clock {
        if self.streams.len() <= stream {
            self.streams.resize(stream + 1, Clock::default());
        }
        &mut self.streams[stream]
    }

    fn work(&mut self, stream: usize, tag: &Arc<Tag>) {
        let host = self.host.clone();
        let clock = self.stream(stream);
        // It was submitted after everything the host had done.
        clock.join(&host);
        let position = clock.get(stream) + 1;
        clock.set(stream, position);
        let clock = clock.clone();
        let step = CheckedStep { name: tag.name.to_string(), stream: Some(stream), position, clock: clock.clone() };
        self.report.steps.push(step);
        let who: Arc<str> = format!("{} (op {}, stream {stream})", tag.name, tag.op).into();
        for access in &tag.accesses {
            let this = Use { stream: Some(stream), position, write: access.write, who: who.clone() };
            self.note_use(Thing::Var(access.var), this.clone(), &clock);
            if let Some(memory) = access.memory {
                self.note_use(Thing::Memory(memory), this, &clock);
            }
        }
        self.ops.entry(tag.op).or_default().push(tag.clone());
    }

    /// Every wait must have a reason: something that both ops use. Each wait and each record says
    /// whose it is, so this holds however the calls of several threads are mixed.
    fn judge_waits(&mut self) {
        for (op, other) in std::mem::take(&mut self.asked) {
            let (Some(work), Some(before)) = (self.ops.get(&op), self.ops.get(&other)) else { continue };
            let reason = |tag: &Arc<Tag>| tag.behind_all || before.iter().any(|other| conflict(tag, other));
            if let (false, Some(tag), Some(first)) = (work.iter().any(reason), work.first(), before.first()) {
                let text = format!("{} waits for {}, with which it shares nothing", tag.name, first.name);
                self.wrong(text);
            }
        }
    }

    fn note_use(&mut self, thing: Thing, this: Use, clock: &Clock) {
        let uses = self.uses.entry(thing).or_default();
        let others = uses.writer.iter().chain(uses.readers.iter().filter(|_| this.write));
        for other in others {
            self.report.conflicts += 1;
            let ordered = other.stream.is_none_or(|stream| clock.get(stream) >= other.position);
            // Two pieces of one op.
            if !ordered && other.who != this.who {
                let what = match thing {
                    Thing::Var(var) => format!("variable {var}"),
                    Thing::Memory(ptr) => format!("memory {ptr:?}"),
                };
                let verb = |write| if write { "writes" } else { "reads" };
                let text = format!(
                    "{} {} {what}, which {} {}, and nothing orders the two",
                    this.who,
                    verb(this.write),
                    other.who,
                    verb(other.write)
                );
                self.report.violations.push(text);
            }
        }
        if this.write {
            *uses = Uses { writer: Some(this), readers: Vec::new() };
        } else {
            uses.readers.push(this);
        }
    }
}

fn conflict(a: &Tag, b: &Tag) -> bool {
    a.accesses.iter().any(|x| {
        b.accesses.iter().any(|y| {
            let same = x.var == y.var || (x.memory.is_some() && x.memory == y.memory);
            same && (x.write || y.write)
        })
    })
}
