//! Streams whose work is captured, and graphs: lists of what was captured, which run as one piece of
//! work. Waiting, and functions of the host, cannot be captured: mxrt captures neither.

use crate::kernels::{Arguments, HostKernel};
use crate::state::{Code, Here, INVALID_VALUE};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ILLEGAL_STATE: Code = 401;
pub(crate) const UNSUPPORTED: Code = 900;
const INVALIDATED: Code = 901;
pub(crate) const ISOLATION: Code = 905;
/// The mode in which the thread may make other calls meanwhile.
const RELAXED: c_uint = 2;

/// Launches of graphs so far.
pub(crate) static LAUNCHES: AtomicUsize = AtomicUsize::new(0);

/// Whether another library captures in the mode that forbids other threads what might wait, and how
/// many calls did so.
static FOREIGN: AtomicBool = AtomicBool::new(false);
static FORBIDDEN: AtomicUsize = AtomicUsize::new(0);

thread_local!(static MODE: Cell<c_uint> = const { Cell::new(0) });

/// `cuThreadExchangeStreamCaptureMode`: what captures of others mean for this thread.
pub(crate) fn exchange_mode(mode: c_uint) -> Result<c_uint, Code> {
    if mode > RELAXED { Err(INVALID_VALUE) } else { Ok(MODE.replace(mode)) }
}

/// Begins or ends a capture of another library; how many forbidden calls there were.
pub(crate) fn foreign_capture(begins: bool) -> usize {
    FOREIGN.store(begins, Ordering::SeqCst);
    FORBIDDEN.swap(0, Ordering::SeqCst)
}

/// A call that might wait.
pub(crate) fn might_wait() -> Result<(), Code> {
    if !FOREIGN.load(Ordering::SeqCst) || MODE.get() == RELAXED {
        return Ok(());
    }
    FORBIDDEN.fetch_add(1, Ordering::SeqCst);
    Err(UNSUPPORTED)
}

/// A piece of work that can be done again.
pub(crate) enum Node {
    Kernel { kernel: &'static HostKernel, grid: [c_uint; 3], block: [c_uint; 3], shared: usize, arguments: Arguments },
    Copy { to: u64, from: u64, bytes: usize },
    Clear { at: u64, bytes: usize },
}

/// What a stream has captured so far.
#[derive(Default)]
struct Capture {
    nodes: Vec<Node>,
    broken: bool,
}

/// The captures of a driver, by stream.
#[derive(Default)]
pub(crate) struct Captures(Mutex<HashMap<usize, Capture>>);

/// `CUgraph` and `CUgraphExec`.
pub(crate) struct Graph {
    nodes: Arc<Vec<Node>>,
    device: usize,
    uses: Arc<Uses>,
}

#[derive(Default)]
struct Uses {
    launched: AtomicUsize,
    running: AtomicBool,
}

impl Captures {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Capture>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, stream: usize, mode: c_uint) -> Result<(), Code> {
        // The default streams cannot be captured.
        if mode > RELAXED || stream <= 2 {
            return Err(if stream <= 2 { UNSUPPORTED } else { INVALID_VALUE });
        }
        match self.lock().insert(stream, Capture::default()) {
            None => Ok(()),
            Some(_) => Err(ILLEGAL_STATE),
        }
    }

    /// Whether the stream captures; then `node` is part of it.
    pub fn take(&self, stream: usize, node: impl FnOnce() -> Node) -> bool {
        let mut captures = self.lock();
        let Some(capture) = captures.get_mut(&stream) else { return false };
        capture.nodes.push(node());
        true
    }

    /// A call that a capturing stream does not allow.
    pub fn refuse(&self, stream: usize, code: Code) -> Result<(), Code> {
        match self.lock().get_mut(&stream) {
            None => Ok(()),
            Some(capture) => {
                capture.broken = true;
                Err(code)
            }
        }
    }

    /// The same of a call that no stream may be capturing in.
    pub fn refuse_all(&self) -> Result<(), Code> {
        let mut captures = self.lock();
        captures.values_mut().for_each(|capture| capture.broken = true);
        if captures.is_empty() { Ok(()) } else { Err(UNSUPPORTED) }
    }

    pub fn end(&self, stream: usize, device: usize) -> Result<Graph, Code> {
        let Capture { nodes, broken } = self.lock().remove(&stream).ok_or(ILLEGAL_STATE)?;
        if broken { Err(INVALIDATED) } else { Ok(Graph { nodes: Arc::new(nodes), device, uses: Arc::default() }) }
    }
}

impl Graph {
    /// `cuGraphInstantiateWithFlags`.
    pub fn instance(&self) -> Graph {
        Graph { nodes: self.nodes.clone(), device: self.device, uses: Arc::default() }
    }

    pub fn launch(&self, here: &Here, stream: usize) -> Result<(), Code> {
        if self.device != here.index {
            return Err(INVALID_VALUE);
        }
        let (nodes, uses) = (self.nodes.clone(), self.uses.clone());
        self.uses.launched.fetch_add(1, Ordering::SeqCst);
        let launched = here.launch(stream, "graph", move || {
            if uses.running.swap(true, Ordering::SeqCst) {
                wrong("two launches of a graph run at a time, which share its memory");
            }
            nodes.iter().for_each(Node::run);
            uses.running.store(false, Ordering::SeqCst);
            uses.launched.fetch_sub(1, Ordering::SeqCst);
        });
        match launched {
            Ok(()) => LAUNCHES.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.uses.launched.fetch_sub(1, Ordering::SeqCst),
        };
        launched
    }

    /// `cuGraphExecDestroy`.
    pub fn check_unused(&self) {
        if self.uses.launched.load(Ordering::SeqCst) > 0 {
            wrong("a graph is destroyed before its launch has run");
        }
    }
}

fn wrong(what: &str) -> ! {
    eprintln!("the stand-in of the CUDA driver: {what}");
    std::process::abort();
}

impl Node {
    fn run(&self) {
        match self {
            Node::Kernel { kernel, grid, block, shared, arguments } => {
                kernel.run(*grid, *block, *shared, arguments.clone());
            }
            // SAFETY: the caller's promise to the driver; memory of these devices is the host's.
            Node::Copy { to, from, bytes } => unsafe {
                std::ptr::copy(place(*from).cast_const(), place(*to), *bytes);
            },
            // SAFETY: as above.
            Node::Clear { at, bytes } => unsafe { place(*at).write_bytes(0, *bytes) },
        }
    }
}

fn place(at: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(at as usize)
}
