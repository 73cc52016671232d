//! Captures of streams, by other libraries: work becomes nodes of a graph, and does not run. As
//! the driver's documentation says, a stream that waits for a captured event joins the capture; to
//! wait inside for what is outside, to ask about a captured event, and to wait for the whole context
//! are errors, after which the capture yields no graph.

use crate::graph::{Graph, Node, UNSUPPORTED, forbid};
use crate::state::{Code, Here, INVALID_VALUE};
use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

pub(crate) const INVALIDATED: Code = 901;
const MERGE: Code = 902;
const UNMATCHED: Code = 903;
const UNJOINED: Code = 904;
const ISOLATION: Code = 905;
const IMPLICIT: Code = 906;
const CAPTURED_EVENT: Code = 907;

/// All captures of the process.
#[derive(Default)]
struct Captures {
    next: u64,
    under_way: HashMap<u64, Capture>,
    /// The capture of each stream that is captured.
    streams: HashMap<usize, u64>,
    /// The capture in which an event was recorded last.
    events: HashMap<u64, u64>,
    /// Streams that the default stream waits for.
    blocking: HashSet<usize>,
}

struct Capture {
    device: usize,
    origin: usize,
    graph: Graph,
    failed: bool,
}

static CAPTURES: LazyLock<Mutex<Captures>> = LazyLock::new(Mutex::default);

fn captures() -> MutexGuard<'static, Captures> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a number means a default stream.
fn is_default(stream: usize) -> bool {
    stream <= 2
}

impl Captures {
    /// Ends the chance of a capture to become a graph.
    fn fail(&mut self, capture: u64, code: Code) -> Code {
        if let Some(capture) = self.under_way.get_mut(&capture) {
            capture.failed = true;
        }
        code
    }

    /// The capture of a stream that takes part in one; the default stream may not be used as long as
    /// one that it waits for is captured.
    fn of_stream(&mut self, stream: usize) -> Result<Option<u64>, Code> {
        if is_default(stream) {
            let implied = self.streams.iter().find(|(other, _)| self.blocking.contains(other)).map(|(_, id)| *id);
            return implied.map_or(Ok(None), |id| Err(self.fail(id, IMPLICIT)));
        }
        let Some(id) = self.streams.get(&stream).copied() else { return Ok(None) };
        let failed = self.under_way.get(&id).is_none_or(|capture| capture.failed);
        if failed { Err(INVALIDATED) } else { Ok(Some(id)) }
    }
}

/// Notes a stream that was made, which the default stream waits for unless `flags` say otherwise.
pub(crate) fn made(stream: u64, flags: u32) {
    if flags & 1 == 0 {
        captures().blocking.insert(stream as usize);
    }
}

/// `cuStreamBeginCapture_v2`.
pub(crate) fn begin(here: &Here, stream: usize, mode: u32) -> Result<(), Code> {
    let mut all = captures();
    if is_default(stream) || all.streams.contains_key(&stream) {
        return Err(INVALID_VALUE);
    }
    forbid(mode == 0);
    all.next += 1;
    let id = all.next;
    let capture = Capture { device: here.index, origin: stream, graph: Graph::new(here.index), failed: false };
    all.under_way.insert(id, capture);
    all.streams.insert(stream, id);
    Ok(())
}

/// `cuStreamEndCapture`.
pub(crate) fn end(stream: usize) -> Result<Graph, Code> {
    let mut all = captures();
    let id = all.streams.get(&stream).copied().ok_or(INVALID_VALUE)?;
    if all.under_way.get(&id).is_some_and(|capture| capture.origin != stream) {
        return Err(all.fail(id, UNMATCHED));
    }
    let capture = all.under_way.remove(&id).ok_or(INVALID_VALUE)?;
    let taking_part = all.streams.values().filter(|other| **other == id).count();
    all.streams.retain(|_, other| *other != id);
    forbid(false);
    match (capture.failed, taking_part) {
        (true, _) => Err(INVALIDATED),
        (false, 1) => Ok(capture.graph),
        (false, _) => Err(UNJOINED),
    }
}

/// `cuStreamIsCapturing`: 1, or 2 if the capture has failed.
pub(crate) fn status(stream: usize) -> Result<u32, Code> {
    let all = captures();
    if is_default(stream) {
        let implied = all.streams.keys().any(|other| all.blocking.contains(other));
        return if implied { Err(IMPLICIT) } else { Ok(0) };
    }
    let capture = all.streams.get(&stream).and_then(|id| all.under_way.get(id));
    Ok(capture.map_or(0, |capture| if capture.failed { 2 } else { 1 }))
}

/// Adds work to the capture of a stream; it comes back if there is none.
pub(crate) fn add(stream: usize, node: Node) -> Result<Option<Node>, Code> {
    let mut all = captures();
    let Some(id) = all.of_stream(stream)? else { return Ok(Some(node)) };
    let capture = all.under_way.get_mut(&id).ok_or(INVALIDATED)?;
    capture.graph.push(node).map(|()| None)
}

/// Refuses what cannot be captured.
pub(crate) fn refuse(stream: usize) -> Result<(), Code> {
    let mut all = captures();
    match all.of_stream(stream)? {
        Some(id) => Err(all.fail(id, UNSUPPORTED)),
        None => Ok(()),
    }
}

/// Records an event in the capture of a stream; false: there is none.
pub(crate) fn record(stream: usize, event: u64) -> Result<bool, Code> {
    let mut all = captures();
    let id = all.of_stream(stream)?;
    match id {
        Some(id) => all.events.insert(event, id),
        None => all.events.remove(&event),
    };
    Ok(id.is_some())
}

/// A wait of a stream for an event; false: no capture has to do with it. `recorded`: whether the
/// event was ever recorded.
pub(crate) fn wait(stream: usize, event: u64, recorded: bool) -> Result<bool, Code> {
    let mut all = captures();
    let inside = all.of_stream(stream)?;
    match (inside, all.events.get(&event).copied()) {
        (None, None) => Ok(false),
        (None, Some(id)) if !all.under_way.contains_key(&id) => Err(INVALID_VALUE),
        (None, Some(id)) if is_default(stream) => Err(all.fail(id, IMPLICIT)),
        (None, Some(id)) => {
            all.streams.insert(stream, id);
            Ok(true)
        }
        (Some(id), Some(other)) if id == other => Ok(true),
        (Some(id), Some(_)) => Err(all.fail(id, MERGE)),
        (Some(id), None) if recorded => Err(all.fail(id, ISOLATION)),
        (Some(_), None) => Ok(true),
    }
}

/// Refuses to say whether a captured event is complete.
pub(crate) fn query(event: u64) -> Result<(), Code> {
    let mut all = captures();
    match all.events.get(&event).copied() {
        None => Ok(()),
        Some(id) if all.under_way.contains_key(&id) => Err(all.fail(id, CAPTURED_EVENT)),
        Some(_) => Err(INVALID_VALUE),
    }
}

/// Makes all captures fail, for a call that they forbid.
pub(crate) fn spoil() {
    captures().under_way.values_mut().for_each(|capture| capture.failed = true);
}

/// Refuses to wait for a context with captures.
pub(crate) fn synchronize(device: usize) -> Result<(), Code> {
    let mut all = captures();
    let mut met = all.under_way.values_mut().filter(|capture| capture.device == device).peekable();
    if met.peek().is_none() {
        return Ok(());
    }
    met.for_each(|capture| capture.failed = true);
    Err(UNSUPPORTED)
}
