//! Was everything ordered? Derived from the calls alone: the order on a stream, the waits that were submitted, what the
//! host waited for before it went on. Never from what happened to be done first.

use crate::log::{Entry, Knows};
use mxrt_engine::device::{DevicePtr, Tag};
use std::collections::HashMap;
use std::sync::Arc;

/// What the checker found out about a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was not as it must be, in words.
    pub violations: Vec<String>,
    /// Waits that streams were told.
    pub waits: usize,
    /// Times the host waited for a device.
    pub host_waits: usize,
    /// Pairs of uses of one thing, at least one of which writes.
    pub conflicts: usize,
    steps: Vec<Step>,
}

/// A piece of work, or an op of the host, and what it comes after.
#[derive(Clone, Debug)]
struct Step {
    name: String,
    stream: Option<usize>,
    position: usize,
    clock: Clock,
}

impl Report {
    /// Whether the op of the first name, on a device, is certain to be complete before that of the second begins.
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

/// Of each stream, how much has happened before.
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

/// One use of a variable or of memory. The host's own uses have no stream: it does one thing after the other.
#[derive(Clone)]
struct Use {
    stream: Option<usize>,
    position: usize,
    write: bool,
    who: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Thing {
    Var(u64),
    Memory(DevicePtr),
}

#[derive(Default)]
struct Checker {
    report: Report,
    /// Of each stream: what its next item comes after.
    streams: Vec<Clock>,
    /// What the host knows to be complete.
    host: Clock,
    records: HashMap<u64, Recorded>,
    uses: HashMap<Thing, Vec<Use>>,
    /// Of each stream: records it was told to wait for since its last work, and ops since its last record.
    asked: HashMap<usize, Vec<u64>>,
    since_record: HashMap<usize, Vec<Arc<Tag>>>,
    may_wait: Option<bool>,
}

struct Recorded {
    clock: Clock,
    ops: Vec<Arc<Tag>>,
}

/// Checks the calls of one host thread (or of several that the engine orders).
pub fn check(log: &[Entry]) -> Report {
    let mut checker = Checker::default();
    log.iter().for_each(|entry| checker.entry(entry));
    checker.report
}

impl Checker {
    fn wrong(&mut self, text: String) {
        self.report.violations.push(text);
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Work { stream, tag } => self.work(*stream, tag),
            Entry::Record { stream, record } => {
                let clock = self.stream(*stream).clone();
                let ops = self.since_record.remove(stream).unwrap_or_default();
                self.asked.remove(stream);
                self.records.insert(*record, Recorded { clock, ops });
            }
            Entry::Wait { stream, record } => {
                self.report.waits += 1;
                let Some(recorded) = self.records.get(record) else {
                    return self.wrong(format!("stream {stream} waits for record {record}, which was not made"));
                };
                let clock = recorded.clock.clone();
                self.stream(*stream).join(&clock);
                self.asked.entry(*stream).or_default().push(*record);
            }
            Entry::Known { record, how } => {
                if *how == Knows::Waited {
                    self.report.host_waits += 1;
                    if self.may_wait == Some(false) {
                        self.wrong(format!("the host waits for record {record} although nobody asked it to"));
                    }
                }
                if let Some(recorded) = self.records.get(record) {
                    self.host.join(&recorded.clock);
                }
            }
            Entry::Host { name, accesses } => {
                let clock = self.host.clone();
                self.report.steps.push(Step { name: name.clone(), stream: None, position: 0, clock });
                for (var, write) in accesses {
                    let this = Use { stream: None, position: 0, write: *write, who: format!("{name} on the host") };
                    let clock = self.host.clone();
                    self.note_use(Thing::Var(*var), this, &clock);
                }
            }
            Entry::MayWait(may) => self.may_wait = Some(*may),
            Entry::Free { ptr } => {
                let uses = self.uses.remove(&Thing::Memory(*ptr)).unwrap_or_default();
                for other in uses.iter().filter(|u| u.stream.is_some_and(|s| self.host.get(s) < u.position)) {
                    let text = format!("memory {ptr:?} was given back while {} may still use it", other.who);
                    self.report.violations.push(text);
                }
            }
            Entry::BadMemory { tag, ptr } => {
                self.wrong(format!("{} uses memory {ptr:?}, which does not exist", tag.name));
            }
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
        self.judge_waits(stream, tag);
        let step = Step { name: tag.name.to_string(), stream: Some(stream), position, clock: clock.clone() };
        self.report.steps.push(step);
        let who = format!("{} (op {}, stream {stream})", tag.name, tag.op);
        for access in &tag.accesses {
            let this = Use { stream: Some(stream), position, write: access.write, who: who.clone() };
            self.note_use(Thing::Var(access.var), this.clone(), &clock);
            if let Some(memory) = access.memory {
                self.note_use(Thing::Memory(memory), this, &clock);
            }
        }
        self.since_record.entry(stream).or_default().push(tag.clone());
    }

    /// Every wait must have a reason: an op before the record that uses something of this one's.
    fn judge_waits(&mut self, stream: usize, tag: &Arc<Tag>) {
        for record in self.asked.remove(&stream).unwrap_or_default() {
            let Some(recorded) = self.records.get(&record) else { continue };
            let shares = |other: &Arc<Tag>| conflict(tag, other);
            if !recorded.ops.is_empty() && !recorded.ops.iter().any(shares) {
                let others: Vec<_> = recorded.ops.iter().map(|t| t.name.to_string()).collect();
                self.wrong(format!("{} waits for {others:?}, with which it shares nothing", tag.name));
            }
        }
    }

    fn note_use(&mut self, thing: Thing, this: Use, clock: &Clock) {
        let uses = self.uses.entry(thing).or_default();
        let what = match thing {
            Thing::Var(var) => format!("variable {var}"),
            Thing::Memory(ptr) => format!("memory {ptr:?}"),
        };
        for other in uses.iter().filter(|other| other.write || this.write) {
            self.report.conflicts += 1;
            let ordered = other.stream.is_none_or(|stream| clock.get(stream) >= other.position);
            // Two pieces of one op.
            if !ordered && other.who != this.who {
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
        // Once something was written, what came before matters only through the writer.
        if this.write {
            uses.clear();
        }
        uses.push(this);
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
